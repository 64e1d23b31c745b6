"""Which partitions may be had together beside the counters: compatibility groups (KEP-5963).

Devices that draw from one counter set must all name a common group, or all name none. Source:
dynamic-resource-allocation `structured/internal/experimental/compatibility_groups.go`; without
DRADeviceCompatibilityGroups 1.37 ignores slices that name groups, which `pools` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from dradriver import api
from dradriver.allocator.clusters import Cluster
from dradriver.allocator.pools import Candidate, PoolView

Common: TypeAlias = frozenset[str]
"""Groups that all devices on a counter set name; empty where they name none."""

Place: TypeAlias = tuple[int, str]
"""Identity of the view of a pool, and counter set."""

Groups: TypeAlias = dict[Place, Common]
"""What devices have in common, by place."""


class Compatibility:
    """What the devices on every counter set have in common, while devices are taken and given back."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._held: dict[int, dict[str, Common]] = {}
        self._taken: Groups = {}

    def take(self, view: PoolView, candidate: Candidate) -> Groups | None:
        """Take a device if it goes with those before it: what to hand to `give`, or None if it does not."""
        before = dict(self._taken)
        held = self._of(view)
        for counter_set, groups in _groups(candidate.device):
            place = id(view), counter_set
            known = self._taken.get(place, held.get(counter_set))
            together = groups if known is None else known & groups
            if known is not None and not together and (known or groups):
                self._taken = before
                return None
            self._taken[place] = together
        return before

    def give(self, before: Groups) -> None:
        """Undo a `take`; the last one first."""
        self._taken = before

    def _of(self, view: PoolView) -> dict[str, Common]:
        """What the devices that claims hold have in common, whether or not they should be held together."""
        if id(view) not in self._held:
            devices = (c.device for c in (*view.candidates, *view.elsewhere) if self._cluster.holders(c.id))
            self._held[id(view)] = _folded(item for device in devices for item in _groups(device))
        return self._held[id(view)]


def _groups(device: api.Device) -> Iterator[tuple[str, Common]]:
    return ((use.counter_set, frozenset(use.compatibility_groups)) for use in device.consumes_counters)


def _folded(items: Iterable[tuple[str, Common]]) -> dict[str, Common]:
    common: dict[str, Common] = {}
    for counter_set, groups in items:
        known = common.get(counter_set)
        # Where some name groups and others none, upstream keeps what it had.
        common[counter_set] = groups if known is None else known & groups if known and groups else known
    return common
