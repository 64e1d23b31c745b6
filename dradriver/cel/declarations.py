"""How functions are declared: once, for the checker and the evaluator, with the version that brought them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dradriver import api
from dradriver.cel.kinds import Type
from dradriver.cel.values import DomainMap, Optional, TypeValue, UInt

_CLASSES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "uint": (UInt,),
    "double": (float,),
    "string": (str,),
    "bytes": (bytes,),
    "null_type": (type(None),),
    "list": (tuple,),
    "map": (dict, DomainMap),
    "optional_type": (Optional,),
    "kubernetes.Quantity": (api.Quantity,),
    "kubernetes.Semver": (api.Version,),
    "type": (TypeValue,),
}


@dataclass(frozen=True, slots=True)
class Overload:
    """One form of a function: types in, type out, what it does, and the base version that brought it.

    A member takes its target as the first parameter. The implementation gets arguments of the declared classes and
    raises values.Failure where there is no result.
    """

    function: str
    parameters: tuple[Type, ...]
    result: Type
    implementation: Callable[..., Any]
    member: bool = False
    since: int = 0
    lists_gate: bool = False

    def takes(self, arguments: tuple[Any, ...]) -> bool:
        """Whether values are of the declared classes; elements of lists and maps are not looked at, as in cel-go."""
        for parameter, argument in zip(self.parameters, arguments, strict=True):
            classes = _CLASSES.get(parameter.name)
            if classes is not None and type(argument) not in classes:
                return False
        return True


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
