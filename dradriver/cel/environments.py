"""What an expression may use on a given Kubernetes: functions, macros, and the fields of `device`.

New expressions are checked by an API server of 1.n with what 1.(n-1) had, so that a rollback still understands them;
stored ones may use all that 1.n has (apiserver `pkg/cel/environment`, DRA `cel/compile.go`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from dradriver import api
from dradriver.cel import libraries
from dradriver.cel.declarations import Overload
from dradriver.cel.kinds import ANY, BOOL, DYN, QUANTITY, STRING, Type, map_of

_LISTS_SINCE = 36
_SHARED_SINCE = 34
_NEW_GRAMMAR_SINCE = 37
"""The first minor version with cel-go 0.29: names in backquotes, and `or` and `orValue` on optionals alone."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A level of libraries (a minor version) and the gates that change the type of `device`."""

    level: int
    lists: bool
    shared: bool
    quoted_names: bool
    strict_alternatives: bool = True

    def overloads(self, name: str, *, member: bool) -> tuple[Overload, ...]:
        """The forms of a function, empty where there is none."""
        return _functions(self).get((name, member), ())

    def knows(self, name: str) -> bool:
        """Whether a function exists as a member or not."""
        functions = _functions(self)
        return (name, True) in functions or (name, False) in functions

    @property
    def attribute(self) -> Type:
        """The type of an attribute."""
        return DYN if self.lists else ANY

    def fields(self) -> dict[str, Type]:
        """The fields of `device`."""
        fields = {
            "driver": STRING,
            "attributes": map_of(STRING, map_of(STRING, self.attribute)),
            "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
        }
        return fields | {"allowMultipleAllocations": BOOL} if self.shared else fields


def environment(kubernetes: api.Kubernetes, *, stored: bool) -> Environment:
    """The environment of new or of stored expressions on a Kubernetes."""
    minor = kubernetes.minor
    return Environment(
        level=minor if stored else minor - 1,
        lists=minor >= _LISTS_SINCE if stored else kubernetes.enabled("DRAListTypeAttributes"),
        shared=minor >= _SHARED_SINCE if stored else kubernetes.enabled("DRAConsumableCapacity"),
        quoted_names=minor >= _NEW_GRAMMAR_SINCE,
        strict_alternatives=minor >= _NEW_GRAMMAR_SINCE,
    )


@lru_cache(maxsize=32)
def _functions(environment: Environment) -> dict[tuple[str, bool], tuple[Overload, ...]]:
    functions: dict[tuple[str, bool], tuple[Overload, ...]] = {}
    for overload in libraries.OVERLOADS:
        if overload.since <= environment.level and (environment.lists or not overload.lists_gate):
            key = (overload.function, overload.member)
            functions[key] = (*functions.get(key, ()), overload)
    return functions
