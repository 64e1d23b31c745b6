"""How functions are declared: once, for the checker and the evaluator, with the version that brought them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dradriver import api
from dradriver.cel.kinds import Type
from dradriver.cel.values import (
    ComputedQuantity,
    DomainMap,
    EntryMap,
    Optional,
    TypeValue,
    UInt,
    size_in_steps,
    value_of_key,
)

_CLASSES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "uint": (UInt,),
    "double": (float,),
    "string": (str,),
    "bytes": (bytes,),
    "null_type": (type(None),),
    "list": (tuple,),
    "map": (dict, DomainMap, EntryMap),
    "optional_type": (Optional,),
    "kubernetes.Quantity": (api.Quantity, ComputedQuantity),
    "kubernetes.Semver": (api.Version,),
    "type": (TypeValue,),
}


@dataclass(frozen=True, slots=True)
class Overload:
    """One form of a function: types in, type out, what it does, and the base version that brought it.

    A member takes its target as the first parameter. The implementation gets arguments of the declared classes and
    raises values.Failure where there is no result. An unguarded overload is called with values of any classes.
    """

    function: str
    parameters: tuple[Type, ...]
    result: Type
    implementation: Callable[..., Any]
    member: bool = False
    since: int = 0
    lists_gate: bool = False
    guarded: bool = True
    cost: Callable[..., int] | None = None

    def steps(self, arguments: tuple[Any, ...]) -> int:
        """What a call costs before it is made; without a cost of its own, going through each argument once."""
        return self.cost(*arguments) if self.cost is not None else sum(map(size_in_steps, arguments))

    def takes(self, arguments: tuple[Any, ...]) -> bool:
        """Whether values are of the declared classes; of a list or map only the first element counts, as in cel-go."""
        return not self.guarded or all(map(_is_of, self.parameters, arguments))


def _is_of(kind: Type, value: Any) -> bool:
    classes = _CLASSES.get(kind.name)
    if classes is None:
        return True
    if type(value) not in classes:
        return False
    if not value or kind.name not in ("list", "map"):
        return True
    if kind.name == "list":
        return _is_of(kind.parameters[0], value[0])
    key, item = next(iter(value.items()))
    return _is_of(kind.parameters[0], value_of_key(key)) and _is_of(kind.parameters[1], item)


def function(
    name: str,
    parameters: tuple[Type, ...],
    result: Type,
    implementation: Callable[..., Any],
    *,
    since: int = 0,
) -> Overload:
    """Declare `name(parameters)`."""
    return Overload(name, parameters, result, implementation, since=since)


def member(
    name: str,
    parameters: tuple[Type, ...],
    result: Type,
    implementation: Callable[..., Any],
    *,
    since: int = 0,
    lists_gate: bool = False,
) -> Overload:
    """Declare `target.name(...)`; the target is the first parameter."""
    return Overload(name, parameters, result, implementation, member=True, since=since, lists_gate=lists_gate)
