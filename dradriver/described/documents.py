"""YAML documents, read key by key, so that each mistake is told with its file, its key, the value seen and a remedy.

The documents are YAML with the scalars of YAML 1.2: `true`, `false`, `null`, whole numbers in decimal or 0x, all else
is text. In YAML 1.1 the PCI address 0000:17:00.0 would be the number 1020, and a CUDA version 12.10 would be 12.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import yaml

from dradriver.described.errors import DescriptionError, choices, shown

E = TypeVar("E", bound=Enum)
T = TypeVar("T")

_REQUIRED: Final[Any] = object()


class _Loader(yaml.SafeLoader):
    """YAML with few scalars, and no key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - as its base has it
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key that is no word", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key.value!r} is twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|false", "tf"),
    ("null", r"null|~|", ["n", "~", ""]),
    ("int", r"-?(?:0|[1-9][0-9]*)|0x[0-9A-Fa-f]+", "-0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))


def read(file: Path) -> object:
    """What a file holds. Raises DescriptionError."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise DescriptionError(str(file), "", reason, "give the path of a file that can be read") from error
    except UnicodeDecodeError as error:
        raise DescriptionError(str(file), "", "not UTF-8 text", "give a YAML file") from error
    return parse(text, str(file))


def parse(text: str, file: str) -> object:
    """What a text holds. Raises DescriptionError."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise DescriptionError(file, where, f"not YAML: {problem}", "correct it there or just before") from error
    except (ValueError, RecursionError) as error:
        raise DescriptionError(file, "", f"not YAML: {error}", "correct it") from error


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two mappings as one, deeply; where both say something `above` holds."""
    both = dict(below)
    for key, value in above.items():
        under = both.get(key)
        both[key] = merged(under, value) if isinstance(under, Mapping) and isinstance(value, Mapping) else value
    return both


class Fields:
    """A mapping of a document that is taken apart key by key; what nobody asked for is a mistake.

    Each getter raises DescriptionError for a value of a wrong kind, and for an absent one where it has no default.
    Call `done` when all that can be there was asked for.
    """

    def __init__(self, value: object, file: str, path: str = "") -> None:
        if not isinstance(value, dict):
            raise DescriptionError(file, path, f"{shown(value)} is not a mapping", "write it as `key: value` lines")
        for key in value:
            if not isinstance(key, str):
                value = {str(each): value[each] for each in value}
                break
        self._values: dict[str, Any] = value
        self._asked: set[str] = set()
        self.file = file
        self.path = path

    def __contains__(self, key: str) -> bool:
        return self._values.get(key) is not None

    def keys(self) -> Iterator[str]:
        """All keys, for mappings whose keys are names."""
        return iter(self._values)

    def error(self, key: str, problem: str, remedy: str) -> DescriptionError:
        """An error about the value of a key, or about this mapping when the key is empty."""
        path = ".".join(part for part in (self.path, key) if part)
        return DescriptionError(self.file, path, problem, remedy)

    def raw(self, key: str) -> object:
        """The value as it is, None where there is none."""
        self._asked.add(key)
        return self._values.get(key)

    def text(self, key: str, default: T = _REQUIRED, *, pattern: str = ".+", like: str = "a text") -> str | T:
        """A text of a pattern; `like` says what it should look like. Numbers are text where text is asked for."""
        value = self.raw(key)
        if value is None:
            return self._default(key, default, like)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise self.error(key, f"{shown(value)} is not {like}", f"write {like}")
        return value

    def number(self, key: str, default: T = _REQUIRED, *, least: int = 0, most: int = 1 << 40) -> int | T:
        """A whole number in a range."""
        value = self.raw(key)
        if value is None:
            return self._default(key, default, "a whole number")
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            upper = "" if most == 1 << 40 else f" to {most}"
            raise self.error(key, f"{shown(value)} is not a whole number from {least}{upper}", "write such a number")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        """`true` or `false`."""
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(key, f"{shown(value)} is neither true nor false", "write true or false")
        return value

    def one_of(self, key: str, enum: type[E], default: T = _REQUIRED) -> E | T:
        """A member of an enum, by its name in the document: lower case, or as it is where the enum has words."""
        value = self.raw(key)
        words = words_of(enum)
        if value is None:
            return self._default(key, default, f"one of {', '.join(words)}")
        return self._word(key, value, words)

    def many_of(self, key: str, enum: type[E]) -> frozenset[E]:
        """A list of members of an enum; empty where the key is absent."""
        words = words_of(enum)
        return frozenset(self._word(f"{key}[{i}]", value, words) for i, value in enumerate(self.items(key, default=())))

    def section(self, key: str, *, optional: bool = False) -> Fields:
        """A mapping under a key, an empty one where it is optional and absent."""
        value = self.raw(key)
        if value is None:
            if not optional:
                raise self.error(key, "missing", "write a mapping there")
            value = {}
        return Fields(value, self.file, f"{self.path}.{key}" if self.path else key)

    def sections(self, key: str, default: object = _REQUIRED) -> tuple[Fields, ...]:
        """A list of mappings under a key."""
        path = f"{self.path}.{key}" if self.path else key
        return tuple(Fields(value, self.file, f"{path}[{i}]") for i, value in enumerate(self.items(key, default)))

    def items(self, key: str, default: object = _REQUIRED) -> tuple[object, ...]:
        """A list under a key."""
        value = self.raw(key)
        if value is None:
            value = self._default(key, default, "a list")
        if not isinstance(value, list | tuple):
            raise self.error(key, f"{shown(value)} is not a list", "write [a, b] or lines that begin with `- `")
        return tuple(value)

    def numbers(self, key: str, default: object = _REQUIRED, *, most: int = 1 << 40) -> tuple[int, ...]:
        """A list of whole numbers."""
        found = self.items(key, default)
        for i, value in enumerate(found):
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
                upper = "" if most == 1 << 40 else f" to {most}"
                raise self.error(f"{key}[{i}]", f"{shown(value)} is not a whole number from 0{upper}", "write one")
        return cast("tuple[int, ...]", found)

    def done(self) -> None:
        """Raise DescriptionError for a key that was never asked for."""
        for key in self._values:
            if key not in self._asked:
                raise self.error(key, f"unknown key {shown(key)}", choices(key, self._asked))

    def _default(self, key: str, default: T, like: str) -> T:
        if default is _REQUIRED:
            raise self.error(key, "missing", f"write {like} there")
        return default

    def _word(self, key: str, value: object, words: Mapping[str, E]) -> E:
        if not isinstance(value, str) or value not in words:
            raise self.error(key, f"{shown(value)} is not known", choices(str(value), words))
        return words[value]


def words_of(enum: type[E]) -> dict[str, E]:
    """The words that stand for the members of an enum: its values where they are text, else its names as they are."""
    return {member.value if isinstance(member.value, str) else member.name: member for member in enum}
