"""Arithmetic, relations and `in` on values; each raises values.Failure where there is no result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dradriver import api
from dradriver.cel import values
from dradriver.cel.libraries.sets import contained
from dradriver.cel.values import Failure, UInt, bounded, no_overload, sized

_WHOLE = (int, UInt)


def _pair(left: Any, right: Any, *kinds: type) -> type:
    """The common type of two operands, one of `kinds`."""
    kind = type(left)
    if kind is not type(right) or kind not in kinds:
        raise no_overload()
    return kind


def add(left: Any, right: Any) -> Any:
    """Sum, or concatenation."""
    kind = _pair(left, right, int, UInt, float, str, bytes, tuple)
    if kind in _WHOLE:
        return bounded(int(left) + int(right), kind)
    if kind is tuple and len(left) + len(right) > values.MAX_COST:
        raise values.Abort(values.COST_EXCEEDED)
    if kind is not float:
        sized(range(len(left) + len(right)))
    return left + right


def subtract(left: Any, right: Any) -> Any:
    """Difference."""
    kind = _pair(left, right, int, UInt, float)
    return left - right if kind is float else bounded(int(left) - int(right), kind)


def multiply(left: Any, right: Any) -> Any:
    """Product."""
    kind = _pair(left, right, int, UInt, float)
    return left * right if kind is float else bounded(int(left) * int(right), kind)


def divide(left: Any, right: Any) -> Any:
    """Quotient, of whole numbers towards zero."""
    kind = _pair(left, right, int, UInt, float)
    if kind is float:
        return _divide_doubles(left, right)
    if right == 0:
        raise Failure("division by zero")
    quotient = abs(int(left)) // abs(int(right))
    return bounded(quotient if (left < 0) == (right < 0) else -quotient, kind)


def _divide_doubles(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def modulo(left: Any, right: Any) -> Any:
    """Remainder with the sign of the left operand."""
    kind = _pair(left, right, int, UInt)
    if right == 0:
        raise Failure("modulus by zero")
    if left == values.INT_MIN and right == -1:
        raise Failure("integer overflow")
    return bounded(int(math.copysign(1, left)) * (abs(int(left)) % abs(int(right))), kind)


def negate(value: Any) -> Any:
    """The opposite number."""
    if type(value) is float:
        return -value
    if type(value) is not int:
        raise no_overload()
    return bounded(-value, int)


def is_in_literals(value: Any, container: Any) -> bool:
    """`in` on a list of literals, a hash table to cel-go that takes no versions; bytes among them keep it a list."""
    if type(value) in (api.Version, bytes) and not any(type(element) is bytes for element in container):
        raise values.Abort(values.UNHASHABLE)
    return is_in(value, container)


def is_in(value: Any, container: Any) -> bool:
    """Whether a list has an element, or a map a key; versions and bytes err in maps, but for those of the device."""
    if type(container) is tuple:
        return contained(value, container)
    if isinstance(container, values.DomainMap | values.EntryMap):
        return type(value) is str and value in container
    if isinstance(container, dict):
        return bool(container) and values.key_of(value) in container
    raise no_overload()


def _ordered(sign: str, holds: Callable[[int], bool]) -> Callable[[Any, Any], bool]:
    def relate(left: Any, right: Any) -> bool:
        if type(left) is api.Version or type(right) is api.Version:
            raise Failure(
                f'no such overload: {sign} does not compare versions, use .compareTo(semver("1.2.3")) {sign} 0'
            )
        return holds(values.compare(left, right))

    return relate


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "<": _ordered("<", lambda sign: sign < 0),
    "<=": _ordered("<=", lambda sign: sign <= 0),
    ">": _ordered(">", lambda sign: sign > 0),
    ">=": _ordered(">=", lambda sign: sign >= 0),
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": modulo,
    "in": is_in,
}
