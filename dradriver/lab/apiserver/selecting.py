"""Label and field selectors as lists, watches and deletions of collections take them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from dradriver.lab.apiserver import kinds, statuses
from dradriver.lab.apiserver.kinds import Kind

Test: TypeAlias = Callable[[Mapping[str, Any]], bool]

_TERM = re.compile(
    r"\s*(?:(?P<absent>!)\s*)?(?P<key>[\w./-]+)\s*"
    r"(?:(?P<operator>==|!=|=)\s*(?P<value>[\w.-]*)|\s(?P<word>in|notin)\s*\((?P<values>[^)]*)\))?\s*(?:,|$)"
)


def parse_selectors(kind: Kind, labels: str, fields: str) -> Test:
    """One test of both selectors. Raises RefusedError for what cannot be parsed or selected by."""
    tests = [*_label_tests(labels), *(_field_test(kind, term) for term in fields.split(",") if term)]
    return lambda obj: all(test(obj) for test in tests)


def _field_test(kind: Kind, term: str) -> Test:
    match = re.fullmatch(r"([\w.]+)(==|=|!=)(.*)", term)
    if match is None:
        raise statuses.bad_request(f"invalid field selector: {term!r}; can't understand it")
    path, operator, value = match.groups()
    if path not in kind.fields:
        raise statuses.bad_request(f"field label not supported: {path}")
    return lambda obj: (kinds.field_value(obj, path) == value) is (operator != "!=")


def _label_tests(text: str) -> list[Test]:
    tests: list[Test] = []
    position = 0
    while position < len(text):
        match = _TERM.match(text, position)
        if match is None:
            raise statuses.bad_request(f"unable to parse requirement: {text[position:]!r} in label selector {text!r}")
        tests.append(_label_test(match))
        position = match.end()
    return tests


def _label_test(match: re.Match[str]) -> Test:
    key = match["key"]
    if not match["operator"] and not match["word"]:
        return lambda obj: (key in _labels(obj)) is not bool(match["absent"])
    values = {match["value"]} if match["operator"] else {v.strip() for v in match["values"].split(",")}
    if match["operator"] == "!=" or match["word"] == "notin":
        return lambda obj: _labels(obj).get(key) not in values
    return lambda obj: _labels(obj).get(key) in values


def _labels(obj: Mapping[str, Any]) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}
