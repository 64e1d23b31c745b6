"""How far each device gets, without a search: the raw material of explanations.

Where `allocate` looks at devices in use before it evaluates anything, `assess` evaluates all selectors, so that a
person sees that a device is of the wrong kind before being told that it is taken. Its answers are by device: whether
enough devices fit is the search's matter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from dradriver import api
from dradriver.allocator.clusters import Cluster, Holder
from dradriver.allocator.counters import Counters, drawn
from dradriver.allocator.offering import Offer, Place, blocking_taint
from dradriver.allocator.outlook import Outlook
from dradriver.allocator.pools import Candidate, PoolID, PoolView, candidate_serves
from dradriver.allocator.requesting import Step, Wanted, options
from dradriver.allocator.selecting import Judgement
from dradriver.cel import Trace

HEALTH_TAINTS = frozenset({"xid", "lost", "ecc", "nvlink", "fabric", "driver", "cleaning", "vanished"})
"""Taint keys `<driver>/<name>` by which a driver says that a device is not well."""


class Reason(StrEnum):
    """Where a device was left behind, in the order shown and tested; FITS is the furthest."""

    POOL_INCOMPLETE = "poolIncomplete"
    POOL_INVALID = "poolInvalid"
    NOT_FOR_NODE = "notForNode"
    NODE = "node"
    CLASS_SELECTOR = "classSelector"
    REQUEST_SELECTOR = "requestSelector"
    SELECTOR_ERROR = "selectorError"
    TAINT = "taint"
    UNHEALTHY = "unhealthy"
    IN_USE = "inUse"
    COUNTERS = "counters"
    CAPACITY = "capacity"
    CONSTRAINT = "constraint"
    PICKED_FOR_OTHER_REQUEST = "pickedForOtherRequest"
    FITS = "fits"


@dataclass(frozen=True, slots=True)
class Finding:
    """How far one device gets for one request.

    Fields beside `reason` are set where they say something: the selector that decided (`selector` counts within the
    class, if `in_class`, or the request) and its trace, None where it does not compile; the taint that is not
    tolerated; the claims that hold the device or what it consumes; the constraint's index; the excluded node it is
    for; what is wrong with the pool.
    """

    reason: Reason
    selector: int | None = None
    in_class: bool = False
    trace: Trace | None = None
    taint: api.Taint | None = None
    holders: tuple[Holder, ...] = ()
    constraint: int | None = None
    node: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Assessment:
    """Findings by request (`req` or `req/sub`) and device, every device of every newest generation in each."""

    requests: dict[str, dict[api.DeviceID, Finding]]


_NONE_EXCLUDED: Mapping[str, str] = MappingProxyType({})


def assess(
    cluster: Cluster,
    claim: api.ResourceClaim,
    nodes: Collection[api.Node],
    *,
    excluded: Mapping[str, str] = _NONE_EXCLUDED,
) -> Assessment:
    """Look at every device for every request of a claim, for the nodes considered.

    A constraint leaves a device behind (CONSTRAINT) when no group of candidates that agree with it is large enough.
    A claim that is allocated already is assessed without its own allocation, and its devices fit.

    Args:
        cluster: what is there and who holds it.
        claim: the claim, allocated or not.
        nodes: where its pod might run.
        excluded: nodes where it may not, by name, with the reason (cordoned, tainted, node selector): their devices
            are left behind as NODE with that reason as detail, those of nodes not named at all as NOT_FOR_NODE.
    """
    own = claim.status.allocation.results if claim.status.allocation else ()
    if own:
        cluster = cluster.without_claims(lambda other: _same(other, claim))
    assessor = _Assessor(cluster, claim, nodes, excluded)
    findings = {w.name: assessor.findings(w) for step in assessor.steps for w in step.options}
    for result in own:
        if result.id in findings.get(result.request, {}):
            findings[result.request][result.id] = Finding(Reason.FITS)
    return Assessment(findings)


def _same(one: api.ResourceClaim, other: api.ResourceClaim) -> bool:
    if one.metadata.uid and other.metadata.uid:
        return one.metadata.uid == other.metadata.uid
    return (one.metadata.namespace, one.metadata.name) == (other.metadata.namespace, other.metadata.name)


@dataclass(frozen=True, slots=True, eq=False)
class _Seat:
    """A device on one considered node."""

    place: Place
    on: _NodeOutlook


class _NodeOutlook:
    """One considered node: its devices, what counting says of them, and its counters."""

    def __init__(
        self,
        cluster: Cluster,
        node: api.Node,
        claim: api.ResourceClaim,
        steps: tuple[Step, ...],
        judged: dict[tuple[Wanted, Candidate], Judgement],
    ) -> None:
        self.offer = Offer(cluster, node, (claim,), judged)
        self.counters = Counters(cluster)
        places = [Place(c, v) for v in self.offer.views for c in v.candidates if candidate_serves(c, node)]
        self.places = places
        everything = {
            w: tuple(p for p in places if self.offer.judge(w, p.candidate).passed)
            for s in steps
            for w in s.options
            if w.takes_all
        }
        self.outlook = Outlook(self.offer, places, steps, (claim,), everything)

    def refused_by(self, wanted: Wanted, candidate: Candidate) -> int | None:
        """The constraint that leaves a device behind on this node."""
        return self.outlook.refused_by(wanted, candidate)


class _Assessor:
    """One assessment: the considered nodes, and which device is on which."""

    def __init__(
        self,
        cluster: Cluster,
        claim: api.ResourceClaim,
        nodes: Collection[api.Node],
        excluded: Mapping[str, str],
    ) -> None:
        self._cluster = cluster
        self._excluded = excluded
        self.steps = tuple(
            Step(0, options(request, 0, cluster), index == 0, bool(request.first_available))
            for index, request in enumerate(claim.spec.requests)
        )
        judged: dict[tuple[Wanted, Candidate], Judgement] = {}
        self._nodes = [_NodeOutlook(cluster, node, claim, self.steps, judged) for node in nodes]
        self._seats: dict[api.DeviceID, list[_Seat]] = {}
        self._broken: dict[PoolID, Finding] = {}
        for node in self._nodes:
            self._seat(node)
        self._elsewhere = self._excluded_devices()

    def findings(self, wanted: Wanted) -> dict[api.DeviceID, Finding]:
        """How far every device gets for one request."""
        return {device: self._finding(wanted, c) for device, c in self._cluster.candidates.items()}

    def _seat(self, node: _NodeOutlook) -> None:
        for view in node.offer.views:
            broken = _broken(view, self._cluster)
            if broken is not None:
                self._broken.setdefault(view.id, broken)
        for place in node.places:
            if _broken(place.view, self._cluster) is None:
                self._seats.setdefault(place.candidate.id, []).append(_Seat(place, node))

    def _excluded_devices(self) -> dict[api.DeviceID, str]:
        found: dict[api.DeviceID, str] = {}
        for name in self._excluded:
            node = self._cluster.nodes.get(name, api.Node(name))
            for candidate in (c for view in self._cluster.pools_for(node) for c in view.candidates):
                if candidate_serves(candidate, node):
                    found.setdefault(candidate.id, name)
        return found

    def _finding(self, wanted: Wanted, candidate: Candidate) -> Finding:
        seats = self._seats.get(candidate.id)
        if not seats:
            return self._unseated(candidate)
        return self._unselected(wanted, candidate) or self._unavailable(wanted, seats) or self._fitting(wanted, seats)

    def _unseated(self, candidate: Candidate) -> Finding:
        pool = self._cluster.pool(candidate.id)
        broken = self._broken.get(pool.id)
        if broken is None and not self._cluster.repairs.pools and self._cluster.rules.pool_wide:
            broken = None if pool.complete else Finding(Reason.POOL_INCOMPLETE)
        if broken is not None:
            return broken
        node = self._elsewhere.get(candidate.id)
        if node is not None:
            return Finding(Reason.NODE, node=node, detail=self._excluded[node])
        return Finding(Reason.NOT_FOR_NODE)

    def _unselected(self, wanted: Wanted, candidate: Candidate) -> Finding | None:
        judgement = self._nodes[0].offer.judge(wanted, candidate)
        if judgement.selector is None:
            return None
        erred = judgement.error is not None and not self._cluster.repairs.selectors
        if erred and not wanted.admin_access and self._cluster.in_use(candidate.id):
            return Finding(Reason.IN_USE, holders=self._cluster.holders(candidate.id))
        selectors = wanted.device_class.selectors if judgement.in_class and wanted.device_class else ()
        selectors = selectors or wanted.spec.selectors
        trace = self._cluster.selectors.trace(candidate, selectors[judgement.selector])
        reason = Reason.CLASS_SELECTOR if judgement.in_class else Reason.REQUEST_SELECTOR
        return Finding(
            Reason.SELECTOR_ERROR if erred else reason,
            judgement.selector,
            judgement.in_class,
            trace,
            detail=str(judgement.error) if judgement.error is not None else None,
        )

    def _unavailable(self, wanted: Wanted, seats: list[_Seat]) -> Finding | None:
        cluster, candidate = self._cluster, seats[0].place.candidate
        taint = blocking_taint(cluster, wanted, candidate.device)
        if taint is not None:
            return Finding(_taint_reason(taint, candidate), taint=taint)
        if not wanted.admin_access and cluster.in_use(candidate.id):
            return Finding(Reason.IN_USE, holders=cluster.holders(candidate.id))
        if candidate.device.consumes_counters and not any(
            s.on.counters.suffice(s.place.view, candidate) for s in seats
        ):
            return Finding(Reason.COUNTERS, holders=self._drawing(seats[0].place))
        if not seats[0].on.offer.roomy(wanted, candidate):
            return Finding(Reason.CAPACITY, holders=cluster.holders(candidate.id))
        return None

    def _fitting(self, wanted: Wanted, seats: list[_Seat]) -> Finding:
        refused = [s.on.refused_by(wanted, s.place.candidate) for s in seats]
        if None in refused:
            return Finding(Reason.FITS)
        return Finding(Reason.CONSTRAINT, constraint=refused[0])

    def _drawing(self, place: Place) -> tuple[Holder, ...]:
        """Who holds devices that draw from the counters a device needs."""
        needed = drawn(place.candidate.device)
        others = (c for c in (*place.view.candidates, *place.view.elsewhere) if needed & drawn(c.device))
        return tuple(h for c in others for h in self._cluster.holders(c.id))


def _broken(view: PoolView, cluster: Cluster) -> Finding | None:
    """What keeps every device of a pool from being used on a node."""
    if view.incomplete and cluster.rules.pool_wide:
        return Finding(Reason.POOL_INCOMPLETE)
    return Finding(Reason.POOL_INVALID, detail=view.invalid) if view.invalid else None


def _taint_reason(taint: api.Taint, candidate: Candidate) -> Reason:
    domain, _, name = taint.key.partition("/")
    return Reason.UNHEALTHY if domain == candidate.id.driver and name in HEALTH_TAINTS else Reason.TAINT
