"""Lists as sets (cel-go `ext/sets.go`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dradriver.cel.declarations import Overload, function
from dradriver.cel.kinds import BOOL, A, list_of
from dradriver.cel.values import equals_surely


def contained(value: Any, elements: tuple[Any, ...]) -> bool:
    """Whether a list has an element equal to a value."""
    return any(equals_surely(element, value) for element in elements)


def _contains(whole: tuple[Any, ...], part: tuple[Any, ...]) -> bool:
    return all(contained(value, whole) for value in part)


def _equivalent(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return _contains(left, right) and _contains(right, left)


def _intersects(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return any(contained(value, right) for value in left)


_PAIR = (list_of(A), list_of(A))


def _cost(left: tuple[Any, ...], right: tuple[Any, ...]) -> int:
    return 2 * len(left) * len(right)


OVERLOADS: tuple[Overload, ...] = tuple(
    replace(function(f"sets.{name}", _PAIR, BOOL, test), cost=_cost)
    for name, test in (("contains", _contains), ("equivalent", _equivalent), ("intersects", _intersects))
)
