"""Optional values (cel-go `cel/library.go`, OptionalTypes)."""

from __future__ import annotations

from typing import Any

from dradriver.cel.declarations import Overload, function, member
from dradriver.cel.kinds import BOOL, A, list_of, optional_of
from dradriver.cel.values import NONE, Failure, Optional, UInt


def _is_zero(value: Any) -> bool:
    return value is None or (isinstance(value, bool | int | UInt | float | str | bytes | tuple | dict) and not value)


def _value(optional: Optional) -> Any:
    if not optional.present:
        raise Failure("optional.none() dereference")
    return optional.value


def _unwrap(optionals: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(each.value for each in optionals if each.present)


_OPTIONAL = optional_of(A)
_OF_LISTS = list_of(_OPTIONAL)

OVERLOADS: tuple[Overload, ...] = (
    function("optional.of", (A,), _OPTIONAL, Optional),
    function("optional.ofNonZeroValue", (A,), _OPTIONAL, lambda value: NONE if _is_zero(value) else Optional(value)),
    function("optional.none", (), _OPTIONAL, lambda: NONE),
    function("optional.unwrap", (_OF_LISTS,), list_of(A), _unwrap, since=34),
    member("unwrapOpt", (_OF_LISTS,), list_of(A), _unwrap, since=34),
    member("hasValue", (_OPTIONAL,), BOOL, lambda optional: optional.present),
    member("value", (_OPTIONAL,), A, _value),
    member("or", (_OPTIONAL, _OPTIONAL), _OPTIONAL, lambda left, right: left if left.present else right),
    member("orValue", (_OPTIONAL, A), A, lambda left, right: left.value if left.present else right),
)
