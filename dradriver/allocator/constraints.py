"""Constraints over the devices of a claim: matchAttribute and distinctAttribute.

A constraint is monotonic: once it refuses a device, more devices do not make it accept it. Source:
dynamic-resource-allocation `allocator_incubating.go` and `constraint.go`. List attributes count as a type that never
matches, as they do in a scheduler without DRAListTypeAttributes.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from dradriver import api
from dradriver.allocator.pools import Candidate
from dradriver.allocator.requesting import Wanted

AttributeKey: TypeAlias = tuple[str, object]
"""An attribute's type and value: values of two types are never equal, though Python says 1 == True."""

DISTINCT_LISTED_MINOR = 37
"""Up to 1.36 only the last device of each request was remembered, so duplicates within a request could pass."""


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

    def __init__(self, spec: api.DeviceConstraint, name: str, kubernetes: api.Kubernetes) -> None:
        self.spec = spec
        self.name = name
        self._listed = kubernetes.minor >= DISTINCT_LISTED_MINOR
        self._seen: list[tuple[str, AttributeKey]] = []

    def add(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Accept a device whose value no device before it has."""
        if not affects(self.spec, wanted):
            return True
        value = lookup(candidate, self.name)
        if value is None or (self._seen and is_list(value)) or value in self._compared():
            return False
        self._seen.append((wanted.request, value))
        return True

    def remove(self, wanted: Wanted, candidate: Candidate) -> None:  # noqa: ARG002 - the protocol names it
        """Forget the last device."""
        if affects(self.spec, wanted):
            self._seen.pop()

    def _compared(self) -> set[AttributeKey]:
        return {value for _, value in self._seen} if self._listed else set(dict(self._seen).values())


def is_list(value: AttributeKey) -> bool:
    """Whether an attribute is of a list type."""
    return isinstance(value[1], tuple)
