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

DISTINCT_REMEMBERED_MINOR = 37
"""From this minor on distinctAttribute remembers the value of every device."""


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


class ForgetfulDistinctAttribute:
    """DistinctAttribute up to 1.36: one value is remembered for each request, and forgotten with any of its devices.

    So two devices of one request may have the same value, depending on what was tried before.
    """

    def __init__(self, spec: api.DeviceConstraint, name: str) -> None:
        self.spec = spec
        self.name = name
        self._seen: dict[str, AttributeKey] = {}
        self._devices = 0

    def add(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Accept a device whose value is not that remembered for any request; the first always."""
        if not affects(self.spec, wanted):
            return True
        value = lookup(candidate, self.name)
        if value is None or (self._devices and (value in self._seen.values() or (self._seen and is_list(value)))):
            return False
        self._seen[wanted.request] = value
        self._devices += 1
        return True

    def remove(self, wanted: Wanted, candidate: Candidate) -> None:  # noqa: ARG002 - the protocol names it
        """Forget what the device's request had."""
        if affects(self.spec, wanted):
            self._seen.pop(wanted.request, None)
            self._devices -= 1


def constraint_for(spec: api.DeviceConstraint, kubernetes: api.Kubernetes) -> Constraint:
    """What a search asks of a constraint of a known kind."""
    if spec.match_attribute is not None:
        return MatchAttribute(spec, spec.match_attribute)
    distinct = DistinctAttribute if kubernetes.minor >= DISTINCT_REMEMBERED_MINOR else ForgetfulDistinctAttribute
    return distinct(spec, spec.distinct_attribute or "")


def depends_on_history(spec: api.DeviceConstraint, wanted: Wanted, kubernetes: api.Kubernetes) -> bool:
    """Whether what a constraint accepts depends on devices tried and given back: then no try may be spared."""
    forgetful = spec.match_attribute is None and kubernetes.minor < DISTINCT_REMEMBERED_MINOR
    return forgetful and affects(spec, wanted) and (wanted.takes_all or wanted.count > 1)


def is_list(value: AttributeKey) -> bool:
    """Whether an attribute is of a list type."""
    return isinstance(value[1], tuple)
