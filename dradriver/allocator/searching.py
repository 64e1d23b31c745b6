"""The search: first fit, depth first, in the scheduler's order.

Claims in order, requests in order, the options of a prioritized request in order, devices as combinations in the order
of the pools. The first complete solution is the answer, as upstream (dynamic-resource-allocation
`allocator_*.go`, allocateOne and allocateDevice); counting and symmetry (`outlook`) only spare what cannot change it,
and nothing is spared where a rule of the version makes an answer depend on what was tried before.
The search is a stack of generators, one for each choice: it knows no depth limit, can be stopped at any step, and
every choice undoes itself when it is taken up again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dradriver import api
from dradriver.allocator.clusters import Cluster
from dradriver.allocator.constraints import depends_on_history
from dradriver.allocator.offering import Offer, Place
from dradriver.allocator.outlook import Outlook, Shortfall
from dradriver.allocator.pools import PoolView
from dradriver.allocator.requesting import (
    RESULTS_LIMIT,
    Abort,
    Failed,
    Wanted,
    check_addition,
    check_capacity,
    check_constraints,
    check_total,
    check_wanted,
    steps,
)
from dradriver.allocator.results import allocation
from dradriver.allocator.sharing import shareable
from dradriver.allocator.taking import Taking
from dradriver.allocator.variants import BrokenPools, Rules

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
    """Ends a search that finds nothing: counting has shown it, or upstream gives up here."""


class _Search:
    """One search on one node."""

    def __init__(self, cluster: Cluster, node: api.Node, claims: Sequence[api.ResourceClaim], budget: int) -> None:
        self._cluster = cluster
        self._rules = cluster.rules
        self._claims = claims
        self._budget = budget
        self._steps = steps(cluster, claims)
        self._offer = Offer(cluster, node, claims)
        self._everything: dict[Wanted, tuple[Place, ...]] = {}
        self._check()
        self._places, self._broken = _places(self._offer.views, self._rules)
        self._taking = Taking(self._offer, claims)
        self._chosen: list[Wanted] = [step.options[0] for step in self._steps]
        # Set while a choice fails only because a claim would get more than 32 devices: trying other devices is
        # pointless, only another option of a prioritized request can help. Cleared at the boundary of a claim.
        self._exceeded = False
        self._outlook: Outlook | None = None
        self._history_counts = self._depends_on_history()
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
                self._taking.picks[index],
                self._offer.node,
                self._rules,
            )
            for index, claim in enumerate(self._claims)
        )

    def refusal(self) -> Refused:
        """Why there is no solution, as far as counting and the deepest try tell."""
        shortfall = self._look_out().shortfall() or self._deepest[1]
        if self._rules.says_invalid and any(view.invalid for view in self._offer.views):
            return Refused(shortfall, "invalid resource pools were encountered")
        return Refused(shortfall)

    def _check(self) -> None:
        for index, claim in enumerate(self._claims):
            total = 0
            for step in (s for s in self._steps if s.claim == index):
                check_capacity(self._cluster, claim, step)
                least = min(self._count(claim, wanted) for wanted in step.options)
                check_addition(self._cluster, claim, step.options[0], least, total)
                total += least
            check_total(claim, index, total)
            check_constraints(self._cluster, claim, index)
        self._offer.begin()

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
        self._exceeded = exceeded and not step.first and self._rules.limit_skips

    def _all(self, index: int, wanted: Wanted, number: int) -> Iterator[_Choice]:
        """Take every device a request with mode All wants, one after the other: there is no choice in it."""
        everything = self._everything[wanted]
        if not everything and not self._rules.all_of_nothing:
            return
        if number >= len(everything):
            yield self._step(index + 1)
            return
        if self._finds_too_many(wanted, len(everything) - number):
            return
        place = everything[number]
        self._spend()
        undo = self._taking.take(wanted, place, must=True)
        if undo is None:
            if self._rules.all_gives_up:
                raise _HopelessError
            self._dead_end(wanted, number)
            return
        forgets = self._rules.all_forgets_option and wanted.option
        yield self._go_on(index, self._steps[index].options[0] if forgets else wanted, number + 1)
        if not self._rules.all_keeps:
            self._taking.drop(wanted, place, undo)

    def _go_on(self, index: int, wanted: Wanted, number: int) -> Iterator[_Choice]:
        """The rest of a request after `number` devices."""
        return self._all(index, wanted, number) if wanted.takes_all else self._next(index, wanted, number, 0)

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
            undo = self._taking.take(wanted, place)
            if undo is None:
                continue
            # Orders of one set of devices come to the same, but where nothing may be spared.
            again = self._rules.permutes and self._history_counts
            yield self._next(index, wanted, number + 1, 0 if again else position + 1)
            self._taking.drop(wanted, place, undo)
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
        if self._taking.used(wanted, place.candidate):
            return False
        undo = self._taking.take(wanted, place)
        if undo is None:
            return False
        self._taking.drop(wanted, place, undo)
        return True

    def _finds_too_many(self, wanted: Wanted, remaining: int) -> bool:
        too_many = self._rules.limit_checked and remaining > RESULTS_LIMIT - len(self._taking.picks[wanted.claim])
        self._exceeded = too_many and self._rules.limit_skips
        return too_many

    def _open(self, wanted: Wanted, position: int) -> bool:
        """Whether a device is free, selected and large enough: the checks before anything is taken."""
        self._pass_broken_pools(position)
        candidate, view = self._places[position]
        if self._taking.used(wanted, candidate) or not self._offer.selectable(wanted, candidate):
            return False
        if view.invalid:
            raise Abort(Failed(f"pool {view.id.name} is invalid: {view.invalid}"))
        return self._taking.fits(wanted, candidate)

    def _spend(self) -> None:
        self._budget -= 1
        if self._budget < 0:
            raise _OutOfBudgetError

    def _pass_broken_pools(self, position: int) -> None:
        """A search that comes to an invalid pool may end with an error."""
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
        return self._look_out().kind(position), self._taking.state(self._places[position].candidate)

    def _dead_end(self, wanted: Wanted, number: int) -> None:
        depth = sum(len(picks) for picks in self._taking.picks)
        if depth > self._deepest[0]:
            picks = self._taking.picks[wanted.claim]
            found = tuple(pick.candidate.id for pick in picks[len(picks) - number :])
            count = len(self._everything[wanted]) if wanted.takes_all else wanted.count
            self._deepest = (depth, Shortfall(wanted.claim, wanted.name, count, found))
        if not self._history_counts and self._look_out().hopeless:
            raise _HopelessError

    def _look_out(self) -> Outlook:
        if self._outlook is None:
            self._outlook = Outlook(self._offer, self._places, self._steps, self._claims, self._everything)
        return self._outlook

    def _depends_on_history(self) -> bool:
        """Whether what is found may depend on what was tried and given back: then no try may be spared."""
        rules = self._rules
        options = [wanted for step in self._steps for wanted in step.options]
        everything = any(w.takes_all for w in options)
        return (
            any(
                depends_on_history(constraint, wanted, rules)
                for wanted in options
                for constraint in self._claims[wanted.claim].spec.constraints
            )
            or any(view.refills for view in self._offer.views)
            or (rules.all_keeps and everything)
            or (
                rules.judged_as_before
                and any(s.prioritized and any(w.takes_all for w in s.options) for s in self._steps)
            )
            or (rules.admin_unchecked and any(w.admin_access for w in options))
            or (rules.counters_leak and any(p.candidate.device.consumes_counters for p in self._places))
            or (rules.capacity_leaks and any(shareable(p.candidate.device, rules) for p in self._places))
            or (rules.capacity_of_neighbour and rules.consumable)
        )


_Choice: TypeAlias = "Iterator[_Choice] | None"


def _places(views: Sequence[PoolView], rules: Rules) -> tuple[tuple[Place, ...], tuple[tuple[int, PoolView], ...]]:
    """Devices in the order of the search, and before which position an invalid pool ends it."""
    places: list[Place] = []
    broken: list[tuple[int, PoolView]] = []
    for view in views:
        if view.invalid and rules.broken_pools is BrokenPools.ON_SIGHT:
            broken.append((len(places), view))
        else:
            places += [Place(candidate, view) for candidate in view.candidates]
    return tuple(places), tuple(broken)
