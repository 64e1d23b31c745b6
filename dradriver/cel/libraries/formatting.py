"""`"%s".format([...])`: the clauses s, d, f, e, b, o, x, X of cel-go `ext/formatting.go`.

Not modelled: the digits that Go's locale printer gives to %e.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dradriver.cel.libraries.standard import text_of_double
from dradriver.cel.values import DomainMap, Failure, TypeValue, UInt, name_of_type, sized, value_of_key

_CLAUSE = re.compile(r"%(?:(?P<percent>%)|(?:\.(?P<precision>[0-9]{1,4}))?(?P<verb>.)?)", re.DOTALL)
_DEFAULT_PRECISION = 6


def write(pattern: str, arguments: tuple[Any, ...]) -> str:
    """Fill a pattern's clauses with arguments, in order. Raises Failure."""
    rest = iter(arguments)

    def fill(clause: re.Match[str]) -> str:
        if clause["percent"]:
            return "%"
        verb = clause["verb"]
        if verb is None:
            raise Failure("unexpected end of string")
        try:
            argument = next(rest)
        except StopIteration:
            raise Failure(f"index {len(arguments)} out of range") from None
        return _clause(verb, argument, int(clause["precision"] or _DEFAULT_PRECISION))

    return str(sized(_CLAUSE.sub(fill, pattern)))


def _clause(verb: str, value: Any, precision: int) -> str:
    kind = type(value)
    match verb:
        case "s":
            return _text(value)
        case "d" if kind in (int, UInt):
            return str(int(value))
        case "f" if kind in (float, int, UInt):
            return f"{value:.{precision}f}"
        case "e" if kind in (float, int, UInt):
            return f"{value:.{precision}e}"
        case "b" if kind in (int, UInt, bool):
            return f"{value:b}"
        case "o" if kind in (int, UInt):
            return f"{value:o}"
        case "x" | "X" if kind in (int, UInt):
            return f"{value:{verb}}"
        case "x" | "X" if kind in (str, bytes):
            digits: str = (value.encode() if kind is str else value).hex()
            return digits.upper() if verb == "X" else digits
    raise Failure(f'error during formatting: no clause "%{verb}" for a value of type {name_of_type(value)}')


def _text(value: Any) -> str:
    write_kind = _TEXTS.get(type(value))
    if write_kind is None:
        raise Failure(f"error during formatting: no string clause for a value of type {name_of_type(value)}")
    return write_kind(value)


def _text_of_map(value: dict[Any, Any]) -> str:
    entries = sorted(f"{_text(value_of_key(key))}: {_text(item)}" for key, item in value.items())
    return "{" + ", ".join(entries) + "}"


_TEXTS: dict[type, Callable[[Any], str]] = {
    str: str,
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null",
    float: text_of_double,
    int: str,
    UInt: lambda value: str(int(value)),
    bytes: lambda value: value.decode(errors="replace"),
    tuple: lambda value: f"[{', '.join(map(_text, value))}]",
    dict: _text_of_map,
    DomainMap: _text_of_map,
    TypeValue: lambda value: value.name,
}
