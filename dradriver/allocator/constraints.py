"""Constraints over the devices of a claim: matchAttribute and distinctAttribute.

A constraint is monotonic: once it refuses a device, more devices do not make it accept it. Source:
dynamic-resource-allocation `allocator_*.go` and `constraint.go`. With DRAListTypeAttributes a value is a set: what
all devices share must not be empty, or no two may share anything (KEP-5491). Without it a list never matches.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from dradriver import api
from dradriver.allocator.pools import Candidate
from dradriver.allocator.requesting import Wanted
from dradriver.allocator.variants import Distinct, Rules

AttributeKey: TypeAlias = tuple[str, object]
"""An attribute's type and value: values of two types are never equal, though Python says 1 == True."""

ValueSet: TypeAlias = tuple[str, frozenset[object]]
"""The type of an attribute's values, and these values."""


def lookup(candidate: Candidate, name: str) -> AttributeKey | None:
    """An attribute by its full name; the bare id counts where the domain is the driver's."""
    attributes = candidate.device.attributes
    value = attributes.get(name)
    if value is None:
        domain, slash, bare = name.partition("/")
        if not slash or domain != candidate.id.driver:
            return None
        value = attributes.get(bare)
    return None if value is None else (type(value).__name__, value)


def affects(constraint: api.DeviceConstraint, wanted: Wanted) -> bool:
    """Whether a constraint covers a request or subrequest; one that names none covers all."""
    return not constraint.requests or wanted.request in constraint.requests or wanted.name in constraint.requests


class Constraint(Protocol):
    """What a search asks of a constraint: every `add` that was true is undone by one `remove`, last in first out."""

    def add(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Accept a device, or refuse it and stay as before."""

    def remove(self, wanted: Wanted, candidate: Candidate) -> None:
        """Undo an `add`."""


class MatchAttribute:
    """All devices have one value of an attribute."""

    def __init__(self, spec: api.DeviceConstraint, name: str) -> None:
        self.spec = spec
        self.name = name
        self._value: AttributeKey | None = None
        self._devices = 0

    def add(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Accept a device whose value is that of the devices before it; the first sets it."""
        if not affects(self.spec, wanted):
            return True
        value = lookup(candidate, self.name)
        if value is None or (self._devices and (value != self._value or is_list(value))):
            return False
        self._value = value
        self._devices += 1
        return True

    def remove(self, wanted: Wanted, candidate: Candidate) -> None:  # noqa: ARG002 - the protocol names it
        """Forget a device."""
        if affects(self.spec, wanted):
            self._devices -= 1


class DistinctAttribute:
    """No two devices have the same value of an attribute."""

    def __init__(self, spec: api.DeviceConstraint, name: str) -> None:
        self.spec = spec
        self.name = name
        self._seen: list[AttributeKey] = []

    def add(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Accept a device whose value no device before it has."""
        if not affects(self.spec, wanted):
            return True
        value = lookup(candidate, self.name)
        if value is None or value in self._seen or (self._seen and is_list(value)):
            return False
        self._seen.append(value)
        return True

    def remove(self, wanted: Wanted, candidate: Candidate) -> None:  # noqa: ARG002 - the protocol names it
        """Forget the last device."""
        if affects(self.spec, wanted):
            self._seen.pop()


class MatchSets:
    """All devices have a value of an attribute in common."""

    def __init__(self, spec: api.DeviceConstraint, name: str) -> None:
        self.spec = spec
        self.name = name
        # What the devices so far have in common, after each of them.
        self._common: list[ValueSet] = []

    def add(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Accept a device that leaves something in common."""
        if not affects(self.spec, wanted):
            return True
        values = value_set(lookup(candidate, self.name))
        if values is None:
            return False
        if self._common:
            kind, known = self._common[-1]
            values = kind, known & values[1] if kind == values[0] else frozenset()
        if not values[1]:
            return False
        self._common.append(values)
        return True

    def remove(self, wanted: Wanted, candidate: Candidate) -> None:  # noqa: ARG002 - the protocol names it
        """Forget the last device."""
        if affects(self.spec, wanted):
            self._common.pop()


class DistinctSets:
    """No two devices have a value of an attribute in common."""

    def __init__(self, spec: api.DeviceConstraint, name: str) -> None:
        self.spec = spec
        self.name = name
        self._seen: list[ValueSet] = []

    def add(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Accept a device that has nothing in common with those before it."""
        if not affects(self.spec, wanted):
            return True
        values = value_set(lookup(candidate, self.name))
        if values is None or any(kind == values[0] and known & values[1] for kind, known in self._seen):
            return False
        self._seen.append(values)
        return True

    def remove(self, wanted: Wanted, candidate: Candidate) -> None:  # noqa: ARG002 - the protocol names it
        """Forget the last device."""
        if affects(self.spec, wanted):
            self._seen.pop()


class ForgetfulDistinctAttribute:
    """DistinctAttribute up to 1.36: one value is remembered for each request, and forgotten with any of its devices.

    So two devices of one request may have the same value, depending on what was tried before. In 1.34 values are
    compared by address (`compares` is False), so that only a device is equal to itself.
    """

    def __init__(self, spec: api.DeviceConstraint, name: str, *, compares: bool) -> None:
        self.spec = spec
        self.name = name
        self._compares = compares
        self._seen: dict[str, AttributeKey] = {}
        self._devices = 0

    def add(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Accept a device whose value is not that remembered for any request; the first always."""
        if not affects(self.spec, wanted):
            return True
        value = lookup(candidate, self.name)
        if value is None:
            return False
        key = value if self._compares else (str(candidate.id), value)
        if self._devices and (key in self._seen.values() or (self._seen and is_list(value))):
            return False
        self._seen[wanted.request] = key
        self._devices += 1
        return True

    def remove(self, wanted: Wanted, candidate: Candidate) -> None:  # noqa: ARG002 - the protocol names it
        """Forget what the device's request had."""
        if affects(self.spec, wanted):
            self._seen.pop(wanted.request, None)
            self._devices -= 1


def constraint_for(spec: api.DeviceConstraint, rules: Rules) -> Constraint:
    """What a search asks of a constraint of a known kind."""
    if spec.match_attribute is not None:
        return (MatchSets if rules.lists else MatchAttribute)(spec, spec.match_attribute)
    name = spec.distinct_attribute or ""
    if rules.lists:
        return DistinctSets(spec, name)
    if rules.distinct is Distinct.ALL:
        return DistinctAttribute(spec, name)
    return ForgetfulDistinctAttribute(spec, name, compares=rules.distinct is Distinct.ONE_PER_REQUEST)


def depends_on_history(spec: api.DeviceConstraint, wanted: Wanted, rules: Rules) -> bool:
    """Whether what a constraint accepts depends on devices tried and given back: then no try may be spared."""
    forgetful = spec.match_attribute is None and rules.distinct is not Distinct.ALL
    return forgetful and affects(spec, wanted) and (wanted.takes_all or wanted.count > 1)


def value_set(value: AttributeKey | None) -> ValueSet | None:
    """An attribute's values; None where it has none."""
    if value is None:
        return None
    values = value[1] if isinstance(value[1], tuple) else (value[1],)
    return (type(values[0]).__name__, frozenset(values)) if values else None


def is_list(value: AttributeKey) -> bool:
    """Whether an attribute is of a list type."""
    return isinstance(value[1], tuple)
