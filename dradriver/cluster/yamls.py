"""YAML as Kubernetes reads it, fast enough for a snapshot of thousands of devices.

Built from the parser's events, several times faster than PyYAML's own nodes and constructors. Scalars are those of JSON
(and yes/no/on/off): a timestamp without quotes stays text, and so does a PCI address, which YAML 1.1 takes for a number
in base 60. Keys are text as written. An alias means the finished value of its anchor, so no value contains itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import yaml

try:
    from yaml import CSafeLoader as Loader
except ImportError:  # PyYAML was built without libyaml: ten times slower, otherwise the same
    from yaml import SafeLoader as Loader  # type: ignore[assignment]  # either will do

_WORDS: dict[str, bool | None] = {
    form: value
    for words, value in ((("true", "yes", "on"), True), (("false", "no", "off"), False), (("null",), None))
    for word in words
    for form in (word, word.title(), word.upper())
} | {"~": None, "": None}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_TEXT = {"!", "tag:yaml.org,2002:str"}


def load_all(data: bytes) -> list[Any]:
    """All documents. Raises yaml.YAMLError with line and column, ValueError for bytes that are no text."""
    return list(_documents(yaml.parse(data, Loader)))


def _documents(events: Iterator[Any]) -> Iterator[Any]:
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            yield _value(next(events), events, {})


def _value(event: Any, events: Iterator[Any], anchors: dict[str, Any]) -> Any:
    value: Any
    if isinstance(event, yaml.ScalarEvent):
        value = _scalar(event)
    elif isinstance(event, yaml.MappingStartEvent):
        value = _mapping(events, anchors)
    elif isinstance(event, yaml.SequenceStartEvent):
        value = []
        while not isinstance(item := next(events), yaml.SequenceEndEvent):
            value.append(_value(item, events, anchors))
    elif event.anchor in anchors:
        return anchors[event.anchor]
    else:
        raise _wrong(event, f"alias {event.anchor!r} has no anchor before it, or stands inside it")
    if event.anchor is not None:
        anchors[event.anchor] = value
    return value


def _mapping(events: Iterator[Any], anchors: dict[str, Any]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    while not isinstance(key := next(events), yaml.MappingEndEvent):
        if not isinstance(key, yaml.ScalarEvent):
            raise _wrong(key, "a key must be text")
        item = _value(next(events), events, anchors)
        if key.value == "<<" and not key.style:
            sources = item if isinstance(item, list) else [item]
            if not all(isinstance(source, dict) for source in sources):
                raise _wrong(key, "only mappings can be merged")
            for source in sources:
                merged = {**source, **merged}
        else:
            value[key.value] = item
    return {**merged, **value} if merged else value


def _scalar(event: Any) -> Any:
    if event.tag is not None and event.tag not in _TEXT:
        raise _wrong(event, f"tag {event.tag} has no meaning in Kubernetes")
    return event.value if event.style or event.tag else _plain(event.value)


@lru_cache(4096)
def _plain(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "+-.0123456789":
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text


def _wrong(event: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
