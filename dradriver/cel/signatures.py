"""What operators take and give: the forms of cel-go's `common/stdlib`, in its order."""

from __future__ import annotations

from typing import TypeAlias

from dradriver.cel.kinds import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    B,
    Type,
    list_of,
    map_of,
    optional_of,
)

Form: TypeAlias = tuple[tuple[Type, ...], Type]
"""Types in, type out."""

_NUMBERS = (INT, UINT, DOUBLE)
_TIMES = (DURATION, TIMESTAMP)
"""Not modelled as values, but null may stand for them, so `null < null` compiles."""
_TIME_SUMS: tuple[Form, ...] = (
    ((DURATION, DURATION), DURATION),
    ((DURATION, TIMESTAMP), TIMESTAMP),
    ((TIMESTAMP, DURATION), TIMESTAMP),
)
_TIME_DIFFERENCES: tuple[Form, ...] = (
    ((DURATION, DURATION), DURATION),
    ((TIMESTAMP, DURATION), TIMESTAMP),
    ((TIMESTAMP, TIMESTAMP), DURATION),
)
_ORDER: tuple[Form, ...] = (
    *(((kind, kind), BOOL) for kind in (BOOL, STRING, BYTES, *_TIMES)),
    *(((left, right), BOOL) for left in _NUMBERS for right in _NUMBERS),
)


def _arithmetic(*kinds: Type) -> tuple[Form, ...]:
    return tuple(((kind, kind), kind) for kind in kinds)


OPERATORS: dict[str, tuple[Form, ...]] = {
    "==": (((A, A), BOOL),),
    "!=": (((A, A), BOOL),),
    "<": _ORDER,
    "<=": _ORDER,
    ">": _ORDER,
    ">=": _ORDER,
    "+": (*_TIME_SUMS, *_arithmetic(INT, UINT, DOUBLE, STRING, BYTES, list_of(A))),
    "-": (*_TIME_DIFFERENCES, *_arithmetic(*_NUMBERS)),
    "*": _arithmetic(*_NUMBERS),
    "/": _arithmetic(*_NUMBERS),
    "%": _arithmetic(INT, UINT),
    "in": (((A, list_of(A)), BOOL), ((A, map_of(A, B)), BOOL)),
}
SIGNS: dict[str, tuple[Form, ...]] = {"!": (((BOOL,), BOOL),), "-": (((INT,), INT), ((DOUBLE,), DOUBLE))}
CONDITIONAL: tuple[Form, ...] = (((BOOL, A, A), A),)
INDEX: tuple[Form, ...] = (
    ((list_of(A), INT), A),
    ((map_of(A, B), A), B),
    ((optional_of(list_of(A)), INT), optional_of(A)),
    ((optional_of(map_of(A, B)), A), optional_of(B)),
)
OPTIONAL_INDEX: tuple[Form, ...] = tuple(
    (given, result if result.name == "optional_type" else optional_of(result)) for given, result in INDEX
)
