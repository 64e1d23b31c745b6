"""The search: first fit, depth first, in the scheduler's order.

Claims in order, requests in order, the options of a prioritized request in order, devices as combinations in the order
of the pools. The first complete solution is the answer, as upstream (dynamic-resource-allocation
`allocator_incubating.go`, allocateOne); counting and symmetry (`outlook`) only spare what cannot change it.
The search is a stack of generators, one for each choice: it knows no depth limit, can be stopped at any step, and
every choice undoes itself when it is taken up again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dradriver import api
from dradriver.allocator.clusters import Cluster
from dradriver.allocator.constraints import constraint_for, depends_on_history
from dradriver.allocator.counters import Counters
from dradriver.allocator.offering import Offer, Place, blocking_taint
from dradriver.allocator.outlook import Outlook, Shortfall
from dradriver.allocator.pools import POOL_WIDE_MINOR, Candidate, PoolView
from dradriver.allocator.requesting import (
    RESULTS_LIMIT,
    Abort,
    Failed,
    Wanted,
    check_addition,
    check_constraints,
    check_total,
    check_wanted,
    full_name,
    steps,
)
from dradriver.allocator.results import allocation

DEFAULT_BUDGET = 200_000
"""Devices looked at before a search gives up: a second or two."""


@dataclass(frozen=True, slots=True)
class Allocated:
    """All claims fit; allocations in the order of the claims."""

    allocations: tuple[api.Allocation, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """The claims do not fit on this node, with the scheduler's message."""

    shortfall: Shortfall | None = None
    message: str = "cannot allocate all claims"


@dataclass(frozen=True, slots=True)
class Undecided:
    """The budget ran out: neither a solution was found nor is it known that there is none."""

    budget: int

    @property
    def message(self) -> str:
        """What to tell a person."""
        return f"undecided: the search looked at {self.budget} devices without an answer"


Outcome: TypeAlias = Allocated | Refused | Failed | Undecided


def allocate(
    cluster: Cluster, node: api.Node, claims: Sequence[api.ResourceClaim], *, budget: int = DEFAULT_BUDGET
) -> Outcome:
    """Allocate the claims of one pod together on one node; claims must not be allocated yet.

    Args:
        cluster: what is there and who holds it.
        node: where the pod would run.
        claims: the pod's claims in the order of its spec.
        budget: how many times a device may be looked at.
    """
    try:
        search = _Search(cluster, node, claims, budget)
        found = search.run()
    except Abort as end:
        return end.outcome
    except _OutOfBudgetError:
        return Undecided(budget)
    return Allocated(search.allocations()) if found else search.refusal()


class _OutOfBudgetError(Exception):
    """Ends a search that looked at too many devices."""


class _HopelessError(Exception):
    """Ends a search of which counting has shown that it finds nothing."""


class _Search:
    """One search on one node. Owns what is taken so far: devices, counters, constraints."""

    def __init__(self, cluster: Cluster, node: api.Node, claims: Sequence[api.ResourceClaim], budget: int) -> None:
        self._cluster = cluster
        self._claims = claims
        self._budget = budget
        self._steps = steps(cluster, claims)
        self._offer = Offer(cluster, node, claims)
        self._everything: dict[Wanted, tuple[Place, ...]] = {}
        self._check()
        self._places, self._broken = _places(self._offer.views, cluster.kubernetes)
        self._counters = Counters(cluster)
        self._constraints = [
            [constraint_for(c, cluster.kubernetes) for c in claim.spec.constraints] for claim in claims
        ]
        # For each device taken, by which claims: admin access may take a device twice, but not within one claim.
        self._taken: dict[api.DeviceID, set[int]] = {}
        self._picks: list[list[tuple[Wanted, Candidate]]] = [[] for _ in claims]
        self._chosen: list[Wanted] = [step.options[0] for step in self._steps]
        # Set while a choice fails only because a claim would get more than 32 devices: trying other devices is
        # pointless, only another option of a prioritized request can help. Cleared at the boundary of a claim.
        self._exceeded = False
        self._outlook: Outlook | None = None
        self._history_counts = any(
            depends_on_history(constraint, wanted, cluster.kubernetes)
            for step in self._steps
            for wanted in step.options
            for constraint in claims[step.claim].spec.constraints
        )
        self._deepest: tuple[int, Shortfall | None] = (-1, None)

    def run(self) -> bool:
        """Search until the first solution or the end; True leaves the solution in place."""
        stack = [self._step(0)]
        try:
            while stack:
                for choice in stack[-1]:
                    if choice is None:
                        return True
                    stack.append(choice)
                    break
                else:
                    stack.pop()
        except _HopelessError:
            pass
        return False

    def allocations(self) -> tuple[api.Allocation, ...]:
        """What the solution gives each claim."""
        return tuple(
            allocation(
                claim,
                [w for s, w in zip(self._steps, self._chosen, strict=True) if s.claim == index],
                self._picks[index],
                self._offer.node,
                self._cluster.kubernetes,
            )
            for index, claim in enumerate(self._claims)
        )

    def refusal(self) -> Refused:
        """Why there is no solution, as far as counting and the deepest try tell."""
        shortfall = self._look_out().shortfall() or self._deepest[1]
        if any(view.invalid for view in self._offer.views):
            return Refused(shortfall, "invalid resource pools were encountered")
        return Refused(shortfall)

    def _check(self) -> None:
        for index, claim in enumerate(self._claims):
            total = 0
            for step in (s for s in self._steps if s.claim == index):
                least = min(self._count(claim, wanted) for wanted in step.options)
                check_addition(self._cluster, claim, step.options[0], least, total)
                total += least
            check_total(claim, index, total)
            check_constraints(self._cluster, claim, index)

    def _count(self, claim: api.ResourceClaim, wanted: Wanted) -> int:
        check_wanted(self._cluster, claim, wanted)
        if wanted.takes_all:
            self._everything[wanted] = self._offer.everything(wanted)
            return len(self._everything[wanted])
        return wanted.count

    def _step(self, index: int) -> Iterator[_Choice]:
        """Choose an option of one request, then its devices; past the last request all is found."""
        if index == len(self._steps):
            yield None
            return
        step = self._steps[index]
        exceeded = True
        for wanted in step.options:
            self._exceeded = False
            self._chosen[index] = wanted
            yield self._all(index, wanted, 0) if wanted.takes_all else self._next(index, wanted, 0, 0)
            exceeded = exceeded and self._exceeded
        self._exceeded = exceeded and not step.first

    def _all(self, index: int, wanted: Wanted, number: int) -> Iterator[_Choice]:
        """Take every device a request with mode All wants, one after the other: there is no choice in it."""
        everything = self._everything[wanted]
        if not everything or self._finds_too_many(wanted, len(everything) - number):
            return
        if number == len(everything):
            yield self._step(index + 1)
            return
        place = everything[number]
        self._spend()
        if not self._take(wanted, place, must=True):
            self._dead_end(wanted, number)
            return
        yield self._all(index, wanted, number + 1)
        self._drop(wanted, place)

    def _next(self, index: int, wanted: Wanted, number: int, start: int) -> Iterator[_Choice]:
        """Choose the device after `number` others of a request, from position `start` on."""
        if number >= wanted.count:
            yield self._step(index + 1)
            return
        if self._finds_too_many(wanted, wanted.count - number):
            return
        failed: set[object] = set()
        for position in self._ahead(wanted, start, wanted.count - number):
            self._spend()
            if not self._open(wanted, position) or self._known_dead(wanted, position, failed):
                continue
            place = self._places[position]
            if not self._take(wanted, place):
                continue
            yield self._next(index, wanted, number + 1, position + 1)
            self._drop(wanted, place)
            if self._exceeded:
                return
            failed.add(self._kind(position))
        self._pass_broken_pools(len(self._places))
        self._dead_end(wanted, number)

    def _ahead(self, wanted: Wanted, start: int, needed: int) -> Sequence[int]:
        """Positions to try from `start` on; none if fewer than `needed` are left that could be taken by themselves."""
        outlook = self._outlook
        if outlook is None or not outlook.sound or self._history_counts:
            return range(start, len(self._places))
        left = [p for p in outlook.usable[wanted] if p >= start and self._takeable(wanted, p)]
        return left if len(left) >= needed else ()

    def _takeable(self, wanted: Wanted, position: int) -> bool:
        self._spend()
        place = self._places[position]
        if self._used(wanted, place.candidate) or not self._take(wanted, place):
            return False
        self._drop(wanted, place)
        return True

    def _finds_too_many(self, wanted: Wanted, remaining: int) -> bool:
        self._exceeded = remaining > RESULTS_LIMIT - len(self._picks[wanted.claim])
        return self._exceeded

    def _open(self, wanted: Wanted, position: int) -> bool:
        """Whether a device is free, selected and large enough: the checks before anything is taken."""
        self._pass_broken_pools(position)
        candidate = self._places[position].candidate
        return (
            not self._used(wanted, candidate)
            and self._offer.selectable(wanted, candidate)
            and self._offer.roomy(wanted, candidate)
        )

    def _used(self, wanted: Wanted, candidate: Candidate) -> bool:
        taken = self._taken.get(candidate.id, set())
        if wanted.admin_access:
            return wanted.claim in taken
        return bool(taken) or self._cluster.in_use(candidate.id)

    def _take(self, wanted: Wanted, place: Place, *, must: bool = False) -> bool:
        """Take a device if counters, taints and constraints allow; everything is undone where one does not."""
        candidate, view = place
        draws = bool(candidate.device.consumes_counters)
        if self._used(wanted, candidate) or (draws and not self._counters.take(view, candidate)):
            return False
        accepted = 0
        if blocking_taint(self._cluster, wanted, candidate.device) is None:
            for constraint in self._constraints[wanted.claim]:
                if not constraint.add(wanted, candidate):
                    break
                accepted += 1
            else:
                self._taken.setdefault(candidate.id, set()).add(wanted.claim)
                self._picks[wanted.claim].append((wanted, candidate))
                return True
            if must:
                raise Abort(self._unsatisfiable(wanted, candidate))
        for constraint in reversed(self._constraints[wanted.claim][:accepted]):
            constraint.remove(wanted, candidate)
        if draws:
            self._counters.give(view, candidate)
        return False

    def _drop(self, wanted: Wanted, place: Place) -> None:
        """Undo a `_take` that succeeded; the last one first."""
        candidate, view = place
        self._picks[wanted.claim].pop()
        self._taken[candidate.id].discard(wanted.claim)
        for constraint in reversed(self._constraints[wanted.claim]):
            constraint.remove(wanted, candidate)
        if candidate.device.consumes_counters:
            self._counters.give(view, candidate)

    def _unsatisfiable(self, wanted: Wanted, candidate: Candidate) -> Failed:
        where = f"claim {full_name(self._claims[wanted.claim])}, request {wanted.name.rpartition('/')[2]}"
        message = f"{where}: cannot add device {candidate.id} because a claim constraint would not be satisfied"
        return Failed(message, wanted.claim, wanted.name, candidate.id)

    def _spend(self) -> None:
        self._budget -= 1
        if self._budget < 0:
            raise _OutOfBudgetError

    def _pass_broken_pools(self, position: int) -> None:
        """Before 1.35 a search that comes to an invalid pool ends with an error."""
        for before, view in self._broken:
            if before <= position:
                raise Abort(Failed(f"pool {view.id.name} is invalid: {view.invalid}"))

    def _known_dead(self, wanted: Wanted, position: int, failed: set[object]) -> bool:
        outlook = self._outlook
        if outlook is None or not outlook.symmetric or self._history_counts:
            return False
        if failed and self._kind(position) in failed:
            return True
        return outlook.sound and outlook.refused_by(wanted, self._places[position].candidate) is not None

    def _kind(self, position: int) -> object:
        # A device that admin access already took is no longer what its like are.
        taken = frozenset(self._taken.get(self._places[position].candidate.id, ()))
        return self._look_out().kind(position), taken

    def _dead_end(self, wanted: Wanted, number: int) -> None:
        depth = sum(len(picks) for picks in self._picks)
        if depth > self._deepest[0]:
            picks = self._picks[wanted.claim]
            found = tuple(candidate.id for _, candidate in picks[len(picks) - number :])
            count = len(self._everything[wanted]) if wanted.takes_all else wanted.count
            self._deepest = (depth, Shortfall(wanted.claim, wanted.name, count, found))
        if self._look_out().hopeless:
            raise _HopelessError

    def _look_out(self) -> Outlook:
        if self._outlook is None:
            self._outlook = Outlook(self._offer, self._places, self._steps, self._claims, self._everything)
        return self._outlook


_Choice: TypeAlias = "Iterator[_Choice] | None"


def _places(
    views: Sequence[PoolView], kubernetes: api.Kubernetes
) -> tuple[tuple[Place, ...], tuple[tuple[int, PoolView], ...]]:
    """Devices in the order of the search, and before which position an invalid pool ends it (before 1.35)."""
    places: list[Place] = []
    broken: list[tuple[int, PoolView]] = []
    for view in views:
        if view.invalid and kubernetes.minor < POOL_WIDE_MINOR:
            broken.append((len(places), view))
        else:
            places += [Place(candidate, view) for candidate in view.candidates]
    return tuple(places), tuple(broken)
