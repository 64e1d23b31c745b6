"""Text functions (cel-go `ext/strings.go`, version 2, as Kubernetes enables it). Positions are code points."""

from __future__ import annotations

from typing import Any

from dradriver.cel.declarations import Overload, function, member
from dradriver.cel.kinds import DYN, INT, STRING, list_of
from dradriver.cel.libraries import formatting
from dradriver.cel.values import Failure, sized

_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_SPACES = (
    " \t\n\v\f\r\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""What Go calls a space."""
_QUOTES = str.maketrans(
    {
        "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
        "\\": "\\\\", '"': '\\"',
    },
)  # fmt: skip


def _checked(position: int, length: int) -> int:
    if not 0 <= position <= length:
        raise Failure(f"index out of range: {position}")
    return position


def _char_at(text: str, position: int) -> str:
    return text[_checked(position, len(text)) :][:1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if offset < 0:
        raise Failure(f"index out of range: {offset}")
    if not part:
        return min(offset, len(text))
    return text.find(part, offset)


def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if offset is None:
        return text.rfind(part)
    if offset < 0:
        raise Failure(f"index out of range: {offset}")
    if not part:
        return min(offset, len(text))
    return text.rfind(part, 0, offset + len(part)) if offset < len(text) else -1


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    """A negative count replaces all; lengths are checked before the text is built."""
    found = text.count(old) if count < 0 else min(text.count(old), count)
    sized(range(max(0, len(text) + found * (len(new) - len(old)))))
    return text.replace(old, new, found)


def _split(text: str, separator: str, count: int = -1) -> tuple[str, ...]:
    """As Go's SplitN: a count of 0 gives nothing, an empty separator single characters."""
    if count == 0:
        return ()
    if separator:
        return tuple(text.split(separator, count - 1 if count > 0 else -1))
    if 0 < count < len(text):
        return (*text[: count - 1], text[count - 1 :])
    return tuple(text)


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        return text[_checked(start, len(text)) :]
    if start > end:
        raise Failure(f"invalid substring range. start: {start}, end: {end}")
    return text[_checked(start, len(text)) : _checked(end, len(text))]


def _join(elements: tuple[Any, ...], separator: str = "") -> str:
    for element in elements:
        if type(element) is not str:
            raise Failure(f"join: invalid input: {element}")
    sized(range(sum(map(len, elements)) + len(separator) * max(0, len(elements) - 1)))
    return separator.join(elements)


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTES)}"'


_TEXTS = list_of(STRING)

OVERLOADS: tuple[Overload, ...] = (
    member("charAt", (STRING, INT), STRING, _char_at),
    member("indexOf", (STRING, STRING), INT, _index_of),
    member("indexOf", (STRING, STRING, INT), INT, _index_of),
    member("lastIndexOf", (STRING, STRING), INT, _last_index_of),
    member("lastIndexOf", (STRING, STRING, INT), INT, _last_index_of),
    member("lowerAscii", (STRING,), STRING, lambda text: text.translate(_LOWER)),
    member("upperAscii", (STRING,), STRING, lambda text: text.translate(_UPPER)),
    member("replace", (STRING, STRING, STRING), STRING, _replace),
    member("replace", (STRING, STRING, STRING, INT), STRING, _replace),
    member("split", (STRING, STRING), _TEXTS, _split),
    member("split", (STRING, STRING, INT), _TEXTS, _split),
    member("substring", (STRING, INT), STRING, _substring),
    member("substring", (STRING, INT, INT), STRING, _substring),
    member("trim", (STRING,), STRING, lambda text: text.strip(_SPACES)),
    member("join", (_TEXTS,), STRING, _join),
    member("join", (_TEXTS, STRING), STRING, _join),
    member("format", (STRING, list_of(DYN)), STRING, formatting.write),
    function("strings.quote", (STRING,), STRING, _quote),
)
