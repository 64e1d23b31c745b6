"""Counting before searching: what no choice can bring about, and which choices come to the same.

A search asks for an `Outlook` at its first dead end. It must not change an answer, only spare work:

- Counting removes branches without a solution. The scheduler would have searched them, and met every selector error
  on the way; so nothing is removed where any device not in use errs (`sound` is False then).
- Devices of one `kind` are interchangeable: swapping them in a solution gives a solution, and neither meets an error
  that the other does not. Where one has failed at a place in the search, the others need not be tried there. Only
  a request for all devices under a constraint tells them apart, by their order (`symmetric` is False then).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from dradriver import api
from dradriver.allocator.constraints import AttributeKey, affects, lookup
from dradriver.allocator.counters import Counters
from dradriver.allocator.offering import Offer, Place, blocking_taint
from dradriver.allocator.pools import Candidate
from dradriver.allocator.requesting import Step, Wanted
from dradriver.allocator.sharing import shareable
from dradriver.allocator.variants import BrokenPools


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The best partial answer found: how many devices of how many for a request, and which constraint stopped it.

    `claim` and `constraint` are indices; `found` are devices that would do, `wanted` how many are needed.
    """

    claim: int
    request: str
    wanted: int
    found: tuple[api.DeviceID, ...]
    constraint: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Devices that agree on the attribute of one matchAttribute constraint, by request option."""

    value: AttributeKey
    members: dict[Wanted, tuple[int, ...]]


class Outlook:
    """What can be had on a node before anything is taken.

    `usable` are positions of devices that a request could be given by itself, in order; `sound` and `symmetric` say
    which of the two means above hold here; `hopeless` says that counting alone rules a solution out.
    """

    def __init__(
        self,
        offer: Offer,
        places: Sequence[Place],
        steps: Sequence[Step],
        claims: Sequence[api.ResourceClaim],
        everything: dict[Wanted, tuple[Place, ...]],
    ) -> None:
        self._offer = offer
        self._places = places
        self._steps = steps
        self._claims = claims
        self._everything = everything
        counters = Counters(offer.cluster)
        self._erring: dict[Wanted, set[int]] = {}
        self.usable = {w: self._usable(w, counters) for s in steps for w in s.options}
        self._usable_sets = {w: frozenset(positions) for w, positions in self.usable.items()}
        self.symmetric = not self._all_meets_constraint()
        # Before 1.35 the search ends with an error when it comes to an invalid pool.
        skipped = offer.cluster.rules.broken_pools is BrokenPools.SKIPPED
        broken = not skipped and any(view.invalid for view in offer.views)
        self.sound = self.symmetric and not broken and not any(self._erring.values())
        self._groups = {
            (index, number): self._grouped(index, constraint)
            for index, claim in enumerate(claims)
            for number, constraint in enumerate(claim.spec.constraints)
            # Of lists, two values may go together that are not equal.
            if constraint.match_attribute is not None and not offer.cluster.rules.lists
        }
        self._viable = {key: self._viable_values(key) for key in self._groups}
        self._asks_capacity = any(w.spec.capacity for s in steps for w in s.options)
        self._kinds: dict[int, Hashable] = {}
        self.hopeless = self.sound and self.shortfall() is not None

    def needed(self, wanted: Wanted) -> int:
        """How many devices an option takes; All takes at least one."""
        return max(1, len(self._everything[wanted])) if wanted.takes_all else wanted.count

    def refused_by(self, wanted: Wanted, candidate: Candidate) -> int | None:
        """The first constraint under which a device would commit its claim to too small a group, None if all allow."""
        for number, constraint in enumerate(self._claims[wanted.claim].spec.constraints):
            if not affects(constraint, wanted):
                continue
            value = lookup(candidate, constraint.match_attribute or constraint.distinct_attribute or "")
            viable = self._viable.get((wanted.claim, number))
            if value is None or (viable is not None and value not in viable):
                return number
        return None

    def kind(self, position: int) -> Hashable:
        """What a device is to this search: devices of one kind are interchangeable while they are free."""
        known = self._kinds.get(position)
        if known is None:
            known = self._kinds[position] = self._describe(position)
        return known

    def shortfall(self) -> Shortfall | None:
        """What counting finds missing: for a request by itself, then for a constraint; None if nothing."""
        for step in self._steps:
            if not any(len(self.usable[w]) >= self.needed(w) for w in step.options):
                best = max(step.options, key=lambda w: len(self.usable[w]) / max(1, self.needed(w)))
                return self._short(best, self.usable[best], None)
        for key, viable in self._viable.items():
            if not viable and (short := self._constraint_shortfall(*key)) is not None:
                return short
        return None

    def _usable(self, wanted: Wanted, counters: Counters) -> tuple[int, ...]:
        cluster, found = self._offer.cluster, []
        erring = self._erring.setdefault(wanted, set())
        constraints = self._claims[wanted.claim].spec.constraints
        names = [c.match_attribute or c.distinct_attribute or "" for c in constraints if affects(c, wanted)]
        for position, (candidate, view) in enumerate(self._places):
            if not wanted.admin_access and cluster.in_use(candidate.id):
                continue
            judgement = self._offer.judge(wanted, candidate)
            room = self._offer.room(wanted, candidate) if judgement.passed else False
            if (judgement.error is not None or room is None) and not cluster.repairs.selectors:
                erring.add(position)
            elif (
                room
                and self._offer.selectable(wanted, candidate)
                and blocking_taint(cluster, wanted, candidate.device) is None
                and all(lookup(candidate, name) is not None for name in names)
                and self._offer.operable(candidate)
                and (
                    not candidate.device.consumes_counters
                    or self._offer.charged(candidate)
                    or counters.suffice(view, candidate)
                )
            ):
                found.append(position)
        return tuple(found)

    def _all_meets_constraint(self) -> bool:
        """Whether a constraint covers a request for all devices: refusing one of them is an error upstream.

        Which one is refused, or found in use before that, depends on the order of the devices.
        """
        return any(affects(c, w) for w in self._everything for c in self._claims[w.claim].spec.constraints)

    def _grouped(self, claim: int, constraint: api.DeviceConstraint) -> tuple[Group, ...]:
        groups: dict[AttributeKey, dict[Wanted, list[int]]] = {}
        for wanted in self._covered(claim, constraint):
            for position in self.usable[wanted]:
                value = lookup(self._places[position].candidate, constraint.match_attribute or "")
                if value is not None:
                    groups.setdefault(value, {}).setdefault(wanted, []).append(position)
        return tuple(Group(v, {w: tuple(p) for w, p in members.items()}) for v, members in groups.items())

    def _covered(self, claim: int, constraint: api.DeviceConstraint) -> list[Wanted]:
        return [w for s in self._steps if s.claim == claim for w in s.options if affects(constraint, w)]

    def _viable_values(self, key: tuple[int, int]) -> frozenset[AttributeKey]:
        return frozenset(g.value for g in self._groups[key] if self._suffices(key, g))

    def _suffices(self, key: tuple[int, int], group: Group) -> bool:
        claim, number = key
        constraint = self._claims[claim].spec.constraints[number]
        together: set[int] = set()
        wanted_together = 0
        for step in (s for s in self._steps if s.claim == claim):
            if not any(self._reaches(w, constraint, group) for w in step.options):
                return False
            only = step.options[0]
            if len(step.options) == 1 and affects(constraint, only) and not only.admin_access:
                members = group.members.get(only, ())
                if any(self._shareable(position) for position in members):
                    continue  # what many requests may have does not run out
                together.update(members)
                wanted_together += self.needed(only)
        return wanted_together <= len(together)

    def _shareable(self, position: int) -> bool:
        return shareable(self._places[position].candidate.device, self._offer.cluster.rules)

    def _reaches(self, wanted: Wanted, constraint: api.DeviceConstraint, group: Group) -> bool:
        found = group.members.get(wanted, ()) if affects(constraint, wanted) else self.usable[wanted]
        return len(found) >= self.needed(wanted)

    def _constraint_shortfall(self, claim: int, number: int) -> Shortfall | None:
        constraint = self._claims[claim].spec.constraints[number]
        steps = [s for s in self._steps if s.claim == claim]
        if all(any(not affects(constraint, w) for w in s.options) for s in steps):
            return None  # an option that the constraint does not cover may do
        covered = [s.options[0] for s in steps if len(s.options) == 1 and affects(constraint, s.options[0])]
        covered = covered or self._covered(claim, constraint)
        best = max(self._groups[claim, number], key=lambda g: self._filled(g, covered), default=None)
        members = best.members if best is not None else {}
        short = next((w for w in covered if len(members.get(w, ())) < self.needed(w)), covered[-1])
        return self._short(short, members.get(short, ()), number)

    def _filled(self, group: Group, covered: Sequence[Wanted]) -> int:
        return sum(min(self.needed(w), len(group.members.get(w, ()))) for w in covered)

    def _short(self, wanted: Wanted, found: Sequence[int], constraint: int | None) -> Shortfall:
        ids = tuple(self._places[p].candidate.id for p in found)
        return Shortfall(wanted.claim, wanted.name, self.needed(wanted), ids, constraint)

    def _describe(self, position: int) -> Hashable:
        candidate, view = self._places[position]
        values = tuple(
            lookup(candidate, c.match_attribute or c.distinct_attribute or "")
            for claim in self._claims
            for c in claim.spec.constraints
        )
        fates = tuple(
            (position in usable, position in self._erring[w], self._swept(w, candidate))
            for w, usable in self._usable_sets.items()
        )
        return fates, values, _draw(candidate, id(view)), self._room(candidate)

    def _room(self, candidate: Candidate) -> Hashable:
        """What tells two devices apart by capacity."""
        if not self._offer.cluster.rules.consumable or (candidate.plain and not self._asks_capacity):
            return None
        return (
            candidate.device.allow_multiple_allocations,
            tuple(sorted((name, repr(capacity)) for name, capacity in candidate.device.capacity.items())),
            tuple(sorted(self._offer.used(candidate).items())),
        )

    def _swept(self, wanted: Wanted, candidate: Candidate) -> bool:
        return wanted.takes_all and any(p.candidate is candidate for p in self._everything[wanted])


def _draw(candidate: Candidate, scope: int) -> Hashable:
    uses = candidate.device.consumes_counters
    if not uses:
        return None
    amounts = sorted(
        (u.counter_set, name, amount.value, u.compatibility_groups) for u in uses for name, amount in u.counters.items()
    )
    return scope, id(candidate.slice), tuple(amounts)
