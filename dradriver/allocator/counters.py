"""Counters: what partitions of one device draw from, and what is left of it (KEP-4815).

From 1.35 on a counter set belongs to the pool and stands in slices of its own; before, to the slice it stands in.
Nothing records consumption in a claim: it is computed from the devices held, as the current slices describe them.
Source: dynamic-resource-allocation `allocator_incubating.go`, checkAvailableCounters.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TypeAlias

from dradriver import api
from dradriver.allocator.clusters import Cluster
from dradriver.allocator.pools import POOL_WIDE_MINOR, Candidate, PoolView

Scope: TypeAlias = int
"""Identity of the view or slice that a counter set belongs to."""

Key: TypeAlias = tuple[str, str]
"""Counter set and counter."""


class Counters:
    """What is left of every counter, while devices are taken and given back."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pool_wide = cluster.kubernetes.minor >= POOL_WIDE_MINOR
        self._left: dict[Scope, dict[Key, Fraction] | None] = {}

    def take(self, view: PoolView, candidate: Candidate) -> bool:
        """Take what a device consumes, if it is there; without the gate no device that consumes any is given out."""
        if not self._cluster.kubernetes.enabled("DRAPartitionableDevices"):
            return False
        left = self._available(view, candidate)
        if left is None:
            return False
        _draw(left, candidate.device, 1)
        if any(left.get(key, 0) < 0 for key in drawn(candidate.device)):
            _draw(left, candidate.device, -1)
            return False
        return True

    def give(self, view: PoolView, candidate: Candidate) -> None:
        """Give back what a device consumes."""
        left = self._available(view, candidate)
        if left is not None:
            _draw(left, candidate.device, -1)

    def suffice(self, view: PoolView, candidate: Candidate) -> bool:
        """Whether a device could be taken."""
        if self.take(view, candidate):
            self.give(view, candidate)
            return True
        return False

    def _available(self, view: PoolView, candidate: Candidate) -> dict[Key, Fraction] | None:
        """What is left in the scope of a device; None where devices held overdraw any counter of it.

        Upstream looks at every counter of the scope, so one that is overdrawn keeps all others from being used.
        """
        scope = id(view) if self._pool_wide else id(candidate.slice)
        if scope not in self._left:
            slices: Iterable[api.ResourceSlice] = view.counter_slices if self._pool_wide else (candidate.slice,)
            devices = (c for c in (*view.candidates, *view.elsewhere) if self._pool_wide or c.slice is candidate.slice)
            left = {(s.name, n): a.value for r in slices for s in r.shared_counters for n, a in s.counters.items()}
            for other in devices:
                if self._cluster.holders(other.id):
                    _draw(left, other.device, 1)
            self._left[scope] = None if any(amount < 0 for amount in left.values()) else left
        return self._left[scope]


def drawn(device: api.Device) -> set[Key]:
    """The counters that a device draws from."""
    return {(use.counter_set, name) for use in device.consumes_counters for name in use.counters}


def _draw(left: dict[Key, Fraction], device: api.Device, times: int) -> None:
    for use in device.consumes_counters:
        for name, amount in use.counters.items():
            key = (use.counter_set, name)
            # A counter that is not there is caught where pools are judged (1.35+) or has no amount (before).
            if key in left:
                left[key] -= times * amount.value
