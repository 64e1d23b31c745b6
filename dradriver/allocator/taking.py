"""What a search has taken so far, and how it is given back.

One device at a time is taken for one request, if everything that limits it allows: use by others, counters, taints,
constraints, capacity. Source: dynamic-resource-allocation `allocator_*.go`, allocateDevice and rollbackDevice. What a
refused or returned device leaves behind where a version forgets about it is a rule in `variants`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from dradriver import api
from dradriver.allocator.compatibility import Compatibility, Groups
from dradriver.allocator.constraints import constraint_for
from dradriver.allocator.counters import Counters
from dradriver.allocator.offering import Offer, Place, blocking_taint
from dradriver.allocator.pools import Candidate
from dradriver.allocator.requesting import Abort, Failed, Wanted
from dradriver.allocator.results import Pick
from dradriver.allocator.sharing import Consumed, Shares, UnfitError, shareable


class Undo(NamedTuple):
    """What one device changed, to be undone: which claims took it, how many were picked, what else it drew."""

    picks: int
    marked: bool
    charged: bool
    consumed: Consumed | None
    groups: Groups | None


class Taking:
    """The devices taken, by claim, with all that they draw from. Owned by one search.

    `picks` are the devices of every claim, in order.
    """

    def __init__(self, offer: Offer, claims: Sequence[api.ResourceClaim]) -> None:
        cluster = offer.cluster
        self._cluster = cluster
        self._offer = offer
        self._rules = cluster.rules
        self._partitioned = cluster.kubernetes.enabled("DRAPartitionableDevices")
        self.picks: list[list[Pick]] = [[] for _ in claims]
        # For each device taken, by which claims: admin access may take a device twice, but not within one claim.
        self._takers: dict[api.DeviceID, set[int]] = {}
        self._counters = Counters(cluster, self._takers)
        self._compatibility = Compatibility(cluster) if self._rules.groups else None
        self._shares = Shares(self._rules, cluster.shares if cluster.has_shares else None)
        self._constraints = [[constraint_for(c, self._rules) for c in claim.spec.constraints] for claim in claims]

    def fits(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Whether a device has the capacity left that a request asks: the first look at it. Raises Abort."""
        try:
            return self._shares.fits(wanted.spec.capacity, candidate)
        except UnfitError as error:
            raise self._offer.unfit(wanted, candidate, error, candidate.id) from error

    def state(self, candidate: Candidate) -> Hashable:
        """What being taken so far tells a device apart by from its like."""
        takers = frozenset(self._takers.get(candidate.id, ()))
        if not shareable(candidate.device, self._rules):
            return takers
        return takers, tuple(sorted(self._shares.used(candidate.id).items())), self._shares.known(candidate)

    def used(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Whether a device is in use by claims or taken, so that a request cannot have it."""
        taken = self._takers.get(candidate.id, set())
        if wanted.admin_access:
            return wanted.claim in taken and not self._rules.admin_unchecked
        return bool(taken) or self._cluster.in_use(candidate.id)

    def take(self, wanted: Wanted, place: Place, *, must: bool = False) -> Undo | None:
        """Take a device if node, counters, taints, constraints and capacity allow; None where one does not.

        What a device drew before it was refused is given back, but where the version forgets to.
        """
        candidate = place.candidate
        if self.used(wanted, candidate) or not self._offer.operable(candidate):
            return None
        shared = candidate.device.allow_multiple_allocations and self._rules.consumable
        draws = bool(candidate.device.consumes_counters)
        if shared and self._rules.shares_charge_once and self._partitioned and self._shares.known(candidate):
            draws = False
        groups = self._charge(place) if draws else None
        if draws and groups is None:
            return None
        if not self._accepts(wanted, candidate, must=must):
            if draws and not self._rules.counters_leak:
                self._discharge(place, groups)
            return None
        picks = self.picks[wanted.claim]
        marks = not shared and not (wanted.admin_access and self._rules.admin_unchecked)
        if marks:
            self._takers.setdefault(candidate.id, set()).add(wanted.claim)
        if not self._has_room(wanted, candidate):
            if not self._rules.capacity_leaks:
                self.drop(wanted, place, Undo(len(picks), marks, draws, None, groups))
            return None
        consumed = self._shares.take(wanted.spec.capacity, candidate) if shared else None
        picks.append(Pick(wanted, candidate, consumed))
        return Undo(len(picks) - 1, marks, draws, consumed, groups)

    def _accepts(self, wanted: Wanted, candidate: Candidate, *, must: bool) -> bool:
        """Whether the taints and constraints of a claim let a device in; the constraints then know of it."""
        if blocking_taint(self._cluster, wanted, candidate.device) is not None:
            return False
        constraints = self._constraints[wanted.claim]
        for accepted, constraint in enumerate(constraints):
            if not constraint.add(wanted, candidate):
                if must:
                    raise Abort(self._unsatisfiable(wanted, candidate))
                for before in reversed(constraints[:accepted]):
                    before.remove(wanted, candidate)
                return False
        return True

    def _has_room(self, wanted: Wanted, candidate: Candidate) -> bool:
        """The second look at a capacity, after all else is found good."""
        if not self._rules.consumable:
            return True
        if self._rules.capacity_of_neighbour:
            position, devices = self._number(wanted), candidate.slice.devices
            if position >= len(devices):
                crash = f"PANIC runtime error: index out of range [{position}] with length {len(devices)}"
                raise Abort(Failed(crash, wanted.claim, wanted.name, candidate.id))
            neighbour = devices[position]
            return self._shares.fits_at(wanted.spec.capacity, candidate.id._replace(device=neighbour.name), neighbour)
        try:
            return self._shares.fits(wanted.spec.capacity, candidate)
        except UnfitError as error:
            raise self._offer.unfit(wanted, candidate, error, candidate.id) from error

    def _number(self, wanted: Wanted) -> int:
        """How many devices the request has so far."""
        return sum(pick.wanted.request == wanted.request for pick in self.picks[wanted.claim])

    def drop(self, wanted: Wanted, place: Place, undo: Undo) -> None:
        """Undo a `_take` that succeeded; the last one first."""
        candidate = place.candidate
        del self.picks[wanted.claim][undo.picks :]
        if undo.marked:
            self._takers[candidate.id].discard(wanted.claim)
        for constraint in reversed(self._constraints[wanted.claim]):
            constraint.remove(wanted, candidate)
        if undo.consumed is not None:
            self._shares.give(candidate, undo.consumed)
        if undo.charged and (undo.consumed is None or not self._rules.shares_keep_counters):
            self._discharge(place, undo.groups)

    def _charge(self, place: Place) -> Groups | None:
        """Take the counters of a device, if it goes with the devices on them: what to discharge, else None."""
        candidate, view = place
        groups = self._compatibility.take(view, candidate) if self._compatibility is not None else {}
        if groups is not None and not self._counters.take(view, candidate):
            self._regroup(groups)
            return None
        return groups

    def _discharge(self, place: Place, groups: Groups | None) -> None:
        """Give back the counters of a device, and its groups."""
        self._counters.give(place.view, place.candidate)
        self._regroup(groups)

    def _regroup(self, groups: Groups | None) -> None:
        if groups is not None and self._compatibility is not None:
            self._compatibility.give(groups)

    def _unsatisfiable(self, wanted: Wanted, candidate: Candidate) -> Failed:
        message = (
            f"{self._offer.where(wanted)}: "
            f"cannot add device {candidate.id} because a claim constraint would not be satisfied"
        )
        return Failed(message, wanted.claim, wanted.name, candidate.id)
