"""Lists: Kubernetes' own functions (apiserver `pkg/cel/library/lists.go`) and cel-go's (`ext/lists.go`, version 3).

Element types are looked at where they matter, so a mixed list fails as it does in Kubernetes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from dradriver.cel import values
from dradriver.cel.declarations import Overload, function, member
from dradriver.cel.kinds import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    Type,
    list_of,
    optional_of,
)
from dradriver.cel.libraries.sets import contained
from dradriver.cel.values import NONE, Failure, Optional, bounded, compare, equals_surely, sized

COMPARABLE: tuple[Type, ...] = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
_LIST = list_of(A)
_CEL_LISTS_SINCE = 34
_INCLUDES_SINCE = 36


def _order(left: Any, right: Any) -> int:
    """Values of different types have no order, and none is preferred."""
    if type(left) is not type(right) and compare(left, left) == compare(right, right):
        try:
            return compare(left, right)
        except Failure:
            return 0
    return compare(left, right)


def _is_sorted(elements: tuple[Any, ...]) -> bool:
    return all(_order(mine, next_) <= 0 for mine, next_ in pairwise(elements))


def _sum(zero: float) -> Any:
    def total(elements: tuple[Any, ...]) -> Any:
        result: Any = zero
        for element in elements:
            if type(element) is not type(zero):
                raise values.no_overload()
            result = result + element if type(zero) is float else bounded(int(result) + int(element), type(zero))
        return result

    return total


def _extreme(name: str, sign: int) -> Any:
    def find(elements: tuple[Any, ...]) -> Any:
        if not elements:
            raise Failure(f"{name} called on empty list")
        best = elements[0]
        for element in elements[1:]:
            if _order(element, best) == sign:
                best = element
        return best

    return find


def _index_of(elements: tuple[Any, ...], value: Any) -> int:
    return next((index for index, element in enumerate(elements) if equals_surely(element, value)), -1)


def _last_index_of(elements: tuple[Any, ...], value: Any) -> int:
    indices = range(len(elements) - 1, -1, -1)
    return next((index for index in indices if equals_surely(elements[index], value)), -1)


def _includes(target: Any, value: Any) -> bool:
    return contained(value, target) if type(target) is tuple else equals_surely(target, value)


def _slice(elements: tuple[Any, ...], start: int, end: int) -> tuple[Any, ...]:
    asked = f"cannot slice({start}, {end}), "
    if start < 0 or end < 0:
        raise Failure(f"{asked}negative indexes not supported")
    if start > end:
        raise Failure(f"{asked}start index must be less than or equal to end index")
    if end > len(elements):
        raise Failure(f"{asked}list is length {len(elements)}")
    return elements[start:end]


def _flatten(elements: tuple[Any, ...], depth: int = 1) -> tuple[Any, ...]:
    if type(elements) is not tuple:
        raise values.no_overload()
    if depth < 0:
        raise Failure("level must be non-negative")
    while depth and any(type(element) is tuple for element in elements):
        elements = sized(tuple(_inner(elements)))
        depth -= 1
    return elements


def _flattenings() -> tuple[Overload, ...]:
    one = member("flatten", (list_of(_LIST),), _LIST, _flatten, since=_CEL_LISTS_SINCE)
    deep = member("flatten", (list_of(DYN), INT), list_of(DYN), _flatten, since=_CEL_LISTS_SINCE)
    return replace(one, guarded=False), replace(deep, guarded=False)


def _inner(elements: tuple[Any, ...]) -> list[Any]:
    flat: list[Any] = []
    for element in elements:
        flat.extend(element if type(element) is tuple else (element,))
        sized(flat)
    return flat


def sort(elements: tuple[Any, ...], keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """Elements in the order of their keys, which must be of one comparable type. Raises Failure."""
    if any(type(key) is not type(keys[0]) for key in keys):
        raise Failure("list elements must have the same type")
    for key in keys:
        compare(key, key)

    def by_key(left: int, right: int) -> int:
        return compare(keys[left], keys[right])

    order = sorted(range(len(keys)), key=cmp_to_key(by_key))
    return tuple(elements[position] for position in order)


def _range(count: int) -> tuple[int, ...]:
    if count < 0:
        raise Failure(f"lists.range: size must be non-negative, got {count}")
    if count > values.MAX_COST:
        raise values.Abort(values.COST_EXCEEDED)
    return tuple(range(count))


def _distinct(elements: tuple[Any, ...]) -> tuple[Any, ...]:
    kept: list[Any] = []
    for element in elements:
        if not contained(element, tuple(kept)):
            kept.append(element)
    return tuple(kept)


def _of_each(name: str, result: Type | None, implementation: Any) -> tuple[Overload, ...]:
    return tuple(member(name, (list_of(kind),), result or kind, implementation) for kind in COMPARABLE)


OVERLOADS: tuple[Overload, ...] = (
    *_of_each("isSorted", BOOL, _is_sorted),
    *_of_each("min", None, _extreme("min", -1)),
    *_of_each("max", None, _extreme("max", 1)),
    member("sum", (list_of(INT),), INT, _sum(0)),
    member("sum", (list_of(UINT),), UINT, _sum(values.UInt(0))),
    member("sum", (list_of(DOUBLE),), DOUBLE, _sum(0.0)),
    member("indexOf", (_LIST, A), INT, _index_of),
    member("lastIndexOf", (_LIST, A), INT, _last_index_of),
    member("includes", (DYN, DYN), BOOL, _includes, since=_INCLUDES_SINCE, lists_gate=True),
    member("slice", (_LIST, INT, INT), _LIST, _slice, since=_CEL_LISTS_SINCE),
    *_flattenings(),
    *(
        member(
            "sort", (list_of(kind),), list_of(kind), lambda elements: sort(elements, elements), since=_CEL_LISTS_SINCE
        )
        for kind in COMPARABLE
    ),
    function("lists.range", (INT,), list_of(INT), _range, since=_CEL_LISTS_SINCE),
    member("reverse", (_LIST,), _LIST, lambda elements: elements[::-1], since=_CEL_LISTS_SINCE),
    replace(member("distinct", (_LIST,), _LIST, _distinct, since=_CEL_LISTS_SINCE), cost=lambda each: len(each) ** 2),
    member(
        "first",
        (_LIST,),
        optional_of(A),
        lambda elements: Optional(elements[0]) if elements else NONE,
        since=_CEL_LISTS_SINCE,
    ),
    member(
        "last",
        (_LIST,),
        optional_of(A),
        lambda elements: Optional(elements[-1]) if elements else NONE,
        since=_CEL_LISTS_SINCE,
    ),
)
