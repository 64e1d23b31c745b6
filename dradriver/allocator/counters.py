"""Counters: what partitions of one device draw from, and what is left of it (KEP-4815).

From 1.35 on a counter set belongs to the pool and stands in slices of its own; before, to the slice it stands in.
Nothing records consumption in a claim: it is computed from the devices held, as the current slices describe them.
Source: dynamic-resource-allocation `allocator_*.go`, checkAvailableCounters (1.33: checkAvailableCapacity).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sized
from types import MappingProxyType
from typing import TypeAlias

from dradriver import api
from dradriver.allocator.clusters import Cluster
from dradriver.allocator.pools import Candidate, PoolView
from dradriver.allocator.variants import CounterScope

Key: TypeAlias = tuple[str, str]
"""Counter set and counter."""

Taken: TypeAlias = Mapping[api.DeviceID, Sized]
"""For each device that a search has taken, by whom; empty where it was given back."""

_NOTHING: Taken = MappingProxyType({})


class _Left:
    """What is left of the counters of one scope; `overdrawn` are those of which less than nothing is left.

    Upstream looks at every counter of the scope, so one that is overdrawn keeps all others from being used.
    """

    def __init__(self, slices: Iterable[api.ResourceSlice]) -> None:
        self.amounts = {
            (s.name, name): amount.value
            for r in slices
            for s in r.shared_counters
            for name, amount in s.counters.items()
        }
        self.overdrawn = {key for key, amount in self.amounts.items() if amount < 0}

    def draw(self, device: api.Device, times: int) -> None:
        """Take what a device consumes, or give it back."""
        for use in device.consumes_counters:
            for name, amount in use.counters.items():
                key = (use.counter_set, name)
                # A counter that is not there is caught where pools are judged (1.35+) or has no amount (before).
                if key in self.amounts:
                    self.amounts[key] -= times * amount.value
                    (self.overdrawn.add if self.amounts[key] < 0 else self.overdrawn.discard)(key)


class Counters:
    """What is left of every counter, while devices are taken and given back."""

    def __init__(self, cluster: Cluster, taken: Taken = _NOTHING) -> None:
        self._cluster = cluster
        self._taken = taken
        self._rules = cluster.rules
        self._enabled = cluster.kubernetes.enabled("DRAPartitionableDevices")
        self._left: dict[Hashable, _Left] = {}

    def take(self, view: PoolView, candidate: Candidate) -> bool:
        """Take what a device consumes, if it is there; without the gate most minors give out no such device."""
        if not self._enabled:
            return self._rules.free_without_gate
        if self._rules.counters is CounterScope.DEVICES:
            return self._suffice_in_slice(candidate)
        left = self._of(view, candidate)
        left.draw(candidate.device, 1)
        if left.overdrawn:
            left.draw(candidate.device, -1)
            return False
        return True

    def give(self, view: PoolView, candidate: Candidate) -> None:
        """Give back what a device consumes."""
        if self._enabled and self._rules.counters is not CounterScope.DEVICES:
            self._of(view, candidate).draw(candidate.device, -1)

    def suffice(self, view: PoolView, candidate: Candidate) -> bool:
        """Whether a device could be taken."""
        if self.take(view, candidate):
            self.give(view, candidate)
            return True
        return False

    def _of(self, view: PoolView, candidate: Candidate) -> _Left:
        scope: Hashable = id(view)
        slices: Iterable[api.ResourceSlice] = view.counter_slices
        devices: Iterable[Candidate] = (*view.candidates, *view.elsewhere)
        if self._rules.counters is CounterScope.SLICES:
            scope, slices = id(candidate.slice), (candidate.slice,)
            devices = (c for c in view.candidates if c.slice is candidate.slice)
        elif self._rules.counters is CounterScope.POOL_NAMES:
            scope = view.id.name
        if scope not in self._left:
            left = self._left[scope] = _Left(slices)
            for other in devices:
                if self._holds(other):
                    left.draw(other.device, 1)
        return self._left[scope]

    def _holds(self, candidate: Candidate) -> bool:
        """Whether a device is held by claims, so that its counters are consumed."""
        if self._rules.shares_hold_counters:
            return bool(self._cluster.holders(candidate.id))
        return self._cluster.in_use(candidate.id)

    def _suffice_in_slice(self, candidate: Candidate) -> bool:
        """1.33: what the devices held and taken leave of the counters that a device draws from."""
        left = _Left((candidate.slice,))
        for device in candidate.slice.devices:
            identity = candidate.id._replace(device=device.name)
            if self._cluster.in_use(identity) or self._taken.get(identity):
                left.draw(device, 1)
        return all(
            (use.counter_set, name) in left.amounts and left.amounts[use.counter_set, name] >= amount.value
            for use in candidate.device.consumes_counters
            for name, amount in use.counters.items()
        )


def drawn(device: api.Device) -> set[Key]:
    """The counters that a device draws from."""
    return {(use.counter_set, name) for use in device.consumes_counters for name in use.counters}
