"""CEL's values in Python, and the laws that differ from Python's: equality, order, map keys, 64-bit numbers.

| CEL | Python |
|---|---|
| bool, int, double, string, bytes, null | bool, int, float, str, bytes, None |
| uint | UInt |
| list | tuple |
| map | dict whose bool keys are BoolKey (Python takes True for 1); DomainMap and EntryMap for those of a device |
| optional | Optional |
| quantity, semver | api.Quantity, api.Version |
| type | TypeValue |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from dradriver import api

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
UINT_MAX = 2**64 - 1
MAX_COST = 1_000_000
"""Steps that one evaluation may take: the limit of resource.k8s.io on CEL selectors, in coarser steps than cel-go's."""


class Failure(Exception):  # noqa: N818 - an outcome of CEL, turned into EvaluationError where the span is known
    """An operation that has no result; `missing_key` where a map had not the key."""

    def __init__(self, message: str, missing_key: str | None = None) -> None:
        super().__init__(message)
        self.missing_key = missing_key


class Abort(Failure):
    """An operation that ends the evaluation; && and || do not absorb it."""


class UInt(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


class BoolKey(Enum):
    """A bool as the key of a map."""

    FALSE = False
    TRUE = True


@dataclass(frozen=True, slots=True, eq=False)
class UniqueKey:
    """A list, map or optional as the key of a map: Kubernetes takes it, and never finds it again."""

    value: Any


class ComputedQuantity(api.Quantity):
    """What add and sub give: on the right of == it is an error (apiserver `quantity.go` returns a pointer there)."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Optional:
    """A value that may be absent."""

    value: Any = None
    present: bool = True


NONE = Optional(present=False)


@dataclass(frozen=True, slots=True)
class TypeValue:
    """What `type(x)` gives, and what the names of types stand for."""

    name: str


class EntryMap(dict[str, Any]):
    """What a device publishes under one domain, by id."""

    __slots__ = ()


class DomainMap(dict[str, Any]):
    """`device.attributes` or `device.capacity` as a whole: finding an unknown domain gives an empty map."""

    __slots__ = ()


_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    tuple: "list",
    dict: "map",
    DomainMap: "map",
    EntryMap: "map",
    Optional: "optional_type",
    api.Quantity: "kubernetes.Quantity",
    ComputedQuantity: "kubernetes.Quantity",
    api.Version: "kubernetes.Semver",
    TypeValue: "type",
}
_NUMBERS = frozenset({int, UInt, float})
_COMPARABLE = frozenset({bool, str, bytes})


def name_of_type(value: Any) -> str:
    """The CEL name of a value's type."""
    return _NAMES[type(value)]


def no_overload() -> Failure:
    """What cel-go says where no function or operator takes values of these types."""
    return Failure("no such overload")


UNHASHABLE = "internal error: versions and bytes cannot be looked up in maps or among literals: use == semver(...)"


def key_of(value: Any) -> Any:
    """A value as the key of a map; numbers of all types find each other. Raises Failure."""
    kind = type(value)
    if kind is str or kind is int or kind is UInt or value is None:
        return value
    if kind is bool:
        return BoolKey(value)
    if kind is float:
        return int(value) if value.is_integer() else value
    if kind is api.Version or kind is bytes:
        raise Abort(UNHASHABLE)
    return UniqueKey(value)


def value_of_key(key: Any) -> Any:
    """The value that a map's key stands for."""
    return key.value if isinstance(key, BoolKey | UniqueKey) else key


def find(container: dict[Any, Any], key: Any) -> Any:
    """The value under a key, or ABSENT."""
    found = container.get(key_of(key), ABSENT)
    return EntryMap() if found is ABSENT and type(container) is DomainMap else found


class _Absent(Enum):
    ABSENT = "absent"


ABSENT = _Absent.ABSENT
"""What `find` gives where there is nothing: None is CEL's null."""


class Meter(Protocol):
    """What counts the steps of an evaluation."""

    def spend(self, steps: int) -> None:
        """Count steps. Raises Abort beyond the cost limit."""


class _FreshMeter:
    """A limit for one comparison by itself."""

    def __init__(self) -> None:
        self._left = MAX_COST

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise Abort(COST_EXCEEDED)


def equal(left: Any, right: Any, meter: Meter | None = None) -> bool:
    """`==` of CEL: across numeric types by value, across other types false. Raises Failure.

    A version on the left of another type is an error, as in Kubernetes (apiserver `pkg/cel/semver.go`).
    """
    return _equal(left, right, meter or _FreshMeter())


def _equal(left: Any, right: Any, meter: Meter) -> bool:
    kind, other = type(left), type(right)
    if left is None or right is None:
        return left is right
    if kind in _NUMBERS:
        return other in _NUMBERS and _same_number(left, right)
    compare = _EQUALITIES.get(kind)
    if compare is not None:
        meter.spend(1)
        return compare(left, right, meter)
    return kind is other and left == right


def _same_number(left: Any, right: Any) -> bool:
    """Whole numbers meet doubles as doubles, so that large ones can equal neighbours, as in cel-go."""
    if type(left) is float or type(right) is float:
        return float(left) == float(right)
    return bool(left == right)


def equals_surely(left: Any, right: Any) -> bool:
    """`==` where an error counts as false: how lists and sets look for an element."""
    try:
        return equal(left, right)
    except Abort:
        raise
    except Failure:
        return False


def _not_unequal(left: Any, right: Any, meter: Meter) -> bool:
    """`==` where an error counts as true: how lists and maps compare their elements in cel-go."""
    try:
        return _equal(left, right, meter)
    except Abort:
        raise
    except Failure:
        return True


COST_EXCEEDED = "operation cancelled: actual cost limit exceeded"


def _equal_lists(left: tuple[Any, ...], right: Any, meter: Meter) -> bool:
    if type(right) is not tuple or len(left) != len(right):
        return False
    return all(_not_unequal(mine, theirs, meter) for mine, theirs in zip(left, right, strict=True))


def _equal_maps(left: dict[Any, Any], right: Any, meter: Meter) -> bool:
    if not isinstance(right, dict) or len(left) != len(right):
        return False
    return all(key in right and _not_unequal(value, right[key], meter) for key, value in left.items())


def _equal_optionals(left: Optional, right: Any, meter: Meter) -> bool:
    if type(right) is not Optional or left.present != right.present:
        return False
    return not left.present or _equal(left.value, right.value, meter)


def _equal_versions(left: api.Version, right: Any, _: Meter) -> bool:
    if type(right) is not api.Version:
        raise no_overload()
    return not left < right and not right < left


def _equal_quantities(left: api.Quantity, right: Any, _: Meter) -> bool:
    if type(right) is not api.Quantity:
        raise no_overload()
    return left == right


_EQUALITIES: dict[type, Callable[[Any, Any, Meter], bool]] = {
    tuple: _equal_lists,
    dict: _equal_maps,
    DomainMap: _equal_maps,
    EntryMap: _equal_maps,
    Optional: _equal_optionals,
    api.Version: _equal_versions,
    api.Quantity: _equal_quantities,
    ComputedQuantity: _equal_quantities,
}


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1 for values that have an order: numbers of any type, and two strings, bytes or bools."""
    kind, other = type(left), type(right)
    if not ((kind in _NUMBERS and other in _NUMBERS) or (kind is other and kind in _COMPARABLE)):
        raise no_overload()
    if left != left or right != right:  # noqa: PLR0124 - only NaN differs from itself
        raise Failure("NaN values cannot be ordered")
    if kind is float or other is float:
        left, right = float(left), float(right)
    return int(left > right) - int(left < right)


def bounded(value: int, kind: type) -> int:
    """An integer result that fits 64 bits. Raises Failure."""
    if kind is UInt:
        if not 0 <= value <= UINT_MAX:
            raise Failure("unsigned integer overflow")
        return UInt(value)
    if not INT_MIN <= value <= INT_MAX:
        raise Failure("integer overflow")
    return value


_TEXTS = (str, bytes)
_PER_STEP = 10
"""Characters that one step handles, as in cel-go."""


def size_in_steps(value: Any) -> int:
    """What it costs to go through a value once."""
    kind = type(value)
    return len(value) // _PER_STEP if kind in _TEXTS else len(value) if kind is tuple else 0


def sized(value: Any) -> Any:
    """Something to be built whose length is not beyond what the cost limit allows."""
    if len(value) > (MAX_COST if type(value) in (tuple, list) else _PER_STEP * MAX_COST):
        raise Abort(COST_EXCEEDED)
    return value
