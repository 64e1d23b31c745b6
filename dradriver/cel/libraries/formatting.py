"""`"%s".format([...])`: the clauses s, d, f, e, b, o, x, X of cel-go `ext/formatting.go`.

Numbers are written as for en_US, which is what Kubernetes has.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

from dradriver.cel.kinds import Type
from dradriver.cel.libraries.standard import text_of_double
from dradriver.cel.values import DomainMap, EntryMap, Failure, TypeValue, UInt, name_of_type, sized, value_of_key

_CLAUSE = re.compile(r"%(?:(?P<percent>%)|(?:\.(?P<precision>[0-9]{1,4}))?(?P<verb>.)?)", re.DOTALL)
_DEFAULT_PRECISION = 6
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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


def refusal(pattern: str, kinds: tuple[Type, ...]) -> str | None:
    """Why the API server refuses a pattern that is written out with a list of arguments of these types."""
    verbs = [clause["verb"] or "" for clause in _CLAUSE.finditer(pattern) if not clause["percent"]]
    for verb in verbs:
        if verb not in _TAKEN:
            return f"%{verb} is no formatting clause: use one of %s %d %f %e %b %o %x %X, or %% for a percent sign"
    if len(verbs) != len(kinds):
        return f"the pattern has {len(verbs)} clauses but {len(kinds)} arguments"
    for verb, kind in zip(verbs, kinds, strict=True):
        if not kind.is_dynamic and kind.name not in _TAKEN[verb]:
            return f"%{verb} does not take a {kind}"
    return None


_WHOLE = frozenset({"int", "uint"})
_TAKEN: dict[str, frozenset[str]] = {
    "s": frozenset({"list", "map", "int", "uint", "double", "bool", "string", "bytes", "type", "null_type"}),
    "d": _WHOLE,
    "f": frozenset({"double"}),
    "e": frozenset({"double"}),
    "b": _WHOLE | {"bool"},
    "o": _WHOLE,
    "x": _WHOLE | {"string", "bytes"},
    "X": _WHOLE | {"string", "bytes"},
}


def _clause(verb: str, value: Any, precision: int) -> str:
    kind = type(value)
    match verb:
        case "s":
            return _text(value)
        case "d" if kind in (int, UInt):
            return str(int(value))
        case "f" if kind is float:
            return f"{value:,.{precision}f}"
        case "e" if kind is float:
            digits, _, exponent = f"{value:.{precision}e}".partition("e")
            return f"{digits}×10{exponent.removeprefix('+').translate(_RAISED)}"  # noqa: RUF001 - Go's sign
        case "b" if kind in (int, UInt, bool):
            return f"{value:b}"
        case "o" if kind in (int, UInt):
            return f"{value:o}"
        case "x" | "X" if kind in (int, UInt):
            return f"{value:{verb}}"
        case "x" | "X" if kind in (str, bytes):
            octets: str = (value.encode() if kind is str else value).hex()
            return octets.upper() if verb == "X" else octets
    raise Failure(f'error during formatting: no clause "%{verb}" for a value of type {name_of_type(value)}')


def _text(value: Any) -> str:
    write_kind = _TEXTS.get(type(value))
    if write_kind is None:
        raise Failure(f"error during formatting: no string clause for a value of type {name_of_type(value)}")
    return write_kind(value)


def _inner(value: Any) -> str:
    """An element of a list or map, as a literal."""
    match value:
        case str():
            return _quoted(value)
        case bytes():
            return f"b{_quoted(value.decode(errors='replace'))}"
        case float():
            return f"{value:.{_DEFAULT_PRECISION}f}" if math.isfinite(value) else _quoted(text_of_double(value))
        case TypeValue(name):
            return f"type({name})"
        case _:
            return _text(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _text_of_map(value: dict[Any, Any]) -> str:
    entries = sorted(f"{_inner(value_of_key(key))}:{_inner(item)}" for key, item in value.items())
    return "{" + ", ".join(entries) + "}"


_TEXTS: dict[type, Callable[[Any], str]] = {
    str: str,
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null",
    float: text_of_double,
    int: str,
    UInt: lambda value: str(int(value)),
    bytes: lambda value: value.decode(errors="replace"),
    tuple: lambda value: f"[{', '.join(map(_inner, value))}]",
    dict: _text_of_map,
    DomainMap: _text_of_map,
    EntryMap: _text_of_map,
    TypeValue: lambda value: value.name,
}
