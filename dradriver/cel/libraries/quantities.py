"""Quantities in CEL (apiserver `pkg/cel/library/quantity.go`)."""

from __future__ import annotations

from dradriver import api
from dradriver.cel.declarations import Overload, function, member
from dradriver.cel.kinds import BOOL, DOUBLE, INT, QUANTITY, STRING
from dradriver.cel.values import INT_MAX, INT_MIN, ComputedQuantity, Failure


def _parse(text: str) -> api.Quantity:
    try:
        return api.Quantity.parse(text)
    except api.QuantityError as error:
        raise Failure(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        api.Quantity.parse(text)
    except api.QuantityError:
        return False
    return True


def _compare(left: api.Quantity, right: api.Quantity) -> int:
    return (left.value > right.value) - (left.value < right.value)


def _is_integer(quantity: api.Quantity) -> bool:
    return quantity.value.denominator == 1 and INT_MIN <= quantity.value <= INT_MAX


def _integer(quantity: api.Quantity) -> int:
    if not _is_integer(quantity):
        raise Failure("cannot convert value to integer")
    return quantity.value.numerator


def _sign(quantity: api.Quantity) -> int:
    return (quantity.value > 0) - (quantity.value < 0)


def _computed(quantity: api.Quantity) -> ComputedQuantity:
    return ComputedQuantity(quantity.value, quantity.text, quantity.form, quantity.canonical)


_PAIR = (QUANTITY, QUANTITY)

OVERLOADS: tuple[Overload, ...] = (
    function("quantity", (STRING,), QUANTITY, _parse),
    function("isQuantity", (STRING,), BOOL, _is_quantity),
    function("sign", (QUANTITY,), INT, _sign),
    member("isGreaterThan", _PAIR, BOOL, lambda left, right: left.value > right.value),
    member("isLessThan", _PAIR, BOOL, lambda left, right: left.value < right.value),
    member("compareTo", _PAIR, INT, _compare),
    member("asApproximateFloat", (QUANTITY,), DOUBLE, lambda quantity: float(quantity.value)),
    member("asInteger", (QUANTITY,), INT, _integer),
    member("isInteger", (QUANTITY,), BOOL, _is_integer),
    member("add", _PAIR, QUANTITY, lambda left, right: _computed(left + right)),
    member("add", (QUANTITY, INT), QUANTITY, lambda left, right: _computed(left + api.Quantity.of(right))),
    member("sub", _PAIR, QUANTITY, lambda left, right: _computed(left - right)),
    member("sub", (QUANTITY, INT), QUANTITY, lambda left, right: _computed(left - api.Quantity.of(right))),
)
