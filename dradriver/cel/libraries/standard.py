"""The functions of CEL itself (cel-go `common/stdlib`): size, text tests, conversions between types."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

from dradriver.cel.declarations import Overload, function, member
from dradriver.cel.kinds import BOOL, BYTES, DOUBLE, DYN, INT, STRING, UINT, A, B, Type, list_of, map_of, type_of
from dradriver.cel.values import INT_MAX, INT_MIN, UINT_MAX, Failure, TypeValue, UInt, bounded, name_of_type

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DOUBLE = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf(?:inity)?|nan", re.ASCII | re.IGNORECASE
)
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_LONGEST_EXPONENT = 6
_SHORTEST_EXPONENT = -4


def _bool_of(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise Failure(f'type conversion error from "{text}" to bool')


def _int_of_text(text: str) -> int:
    if not _INTEGER.fullmatch(text) or len(text) > len(str(INT_MIN)) + 20 or not INT_MIN <= int(text) <= INT_MAX:
        raise Failure(f'type conversion error from "{text}" to int')
    return int(text)


def _uint_of_text(text: str) -> UInt:
    if not _INTEGER.fullmatch(text) or text[0] in "+-" or len(text) > len(str(UINT_MAX)) + 20 or int(text) > UINT_MAX:
        raise Failure(f'type conversion error from "{text}" to uint')
    return UInt(text)


def _double_of_text(text: str) -> float:
    if not _DOUBLE.fullmatch(text):
        raise Failure(f'type conversion error from "{text}" to double')
    return float(text)


def _int_of_double(value: float) -> int:
    if not math.isfinite(value) or not INT_MIN < value < INT_MAX:
        raise Failure("integer overflow")
    return int(value)


def _uint_of_double(value: float) -> UInt:
    if not math.isfinite(value) or not 0 <= value < UINT_MAX:
        raise Failure("unsigned integer overflow")
    return UInt(value)


def text_of_double(value: float) -> str:
    """A double as Go's strconv writes it with format g and the fewest digits."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    digits, _, exponent = f"{Decimal(repr(value)).normalize():e}".partition("e")
    if _SHORTEST_EXPONENT <= int(exponent) < _LONGEST_EXPONENT:
        return f"{Decimal(repr(value)).normalize():f}"
    return f"{digits}e{int(exponent):+03d}"


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Failure("invalid UTF-8 in bytes, cannot convert to string") from None


def _itself(value: Any) -> Any:
    return value


def _conversions(name: str, result: Type, *sources: tuple[Type, Any]) -> tuple[Overload, ...]:
    return tuple(function(name, (source,), result, conversion) for source, conversion in sources)


def _sizes() -> tuple[Overload, ...]:
    sized = (STRING, BYTES, list_of(A), map_of(A, B))
    return tuple(declare("size", (kind,), INT, len) for kind in sized for declare in (function, member))


_TEXTS = (STRING, STRING)

OVERLOADS: tuple[Overload, ...] = (
    *_sizes(),
    function("dyn", (A,), DYN, _itself),
    function("type", (A,), type_of(A), lambda value: TypeValue(name_of_type(value))),
    *_conversions("bool", BOOL, (BOOL, _itself), (STRING, _bool_of)),
    *_conversions("bytes", BYTES, (BYTES, _itself), (STRING, str.encode)),
    *_conversions("double", DOUBLE, (DOUBLE, _itself), (INT, float), (STRING, _double_of_text), (UINT, float)),
    *_conversions(
        "int",
        INT,
        (INT, _itself),
        (DOUBLE, _int_of_double),
        (STRING, _int_of_text),
        (UINT, lambda value: bounded(int(value), int)),
    ),
    *_conversions(
        "uint",
        UINT,
        (UINT, _itself),
        (DOUBLE, _uint_of_double),
        (INT, lambda value: bounded(value, UInt)),
        (STRING, _uint_of_text),
    ),
    *_conversions(
        "string",
        STRING,
        (STRING, _itself),
        (BOOL, lambda value: "true" if value else "false"),
        (BYTES, _text_of_bytes),
        (DOUBLE, text_of_double),
        (INT, str),
        (UINT, lambda value: str(int(value))),
    ),
    member("contains", _TEXTS, BOOL, lambda text, part: part in text),
    member("startsWith", _TEXTS, BOOL, str.startswith),
    member("endsWith", _TEXTS, BOOL, str.endswith),
)

CONVERSIONS = frozenset({"bool", "bytes", "double", "int", "string", "uint"})
"""Functions named after the type that they convert to."""

TYPES = {
    "bool": BOOL,
    "bytes": BYTES,
    "double": DOUBLE,
    "int": INT,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "null_type": Type("null_type"),
    "string": STRING,
    "type": Type("type"),
    "uint": UINT,
    "optional_type": Type("optional_type", (DYN,)),
}
"""Identifiers that stand for types."""
