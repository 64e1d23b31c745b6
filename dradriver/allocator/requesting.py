"""What claims ask for, checked and flattened: the steps of a search.

The checks and their messages are those of kube-scheduler's DynamicResources PreFilter (classes first) and of
dynamic-resource-allocation `allocator_incubating.go`, validateDeviceRequest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dradriver import api
from dradriver.allocator.clusters import Cluster
from dradriver.allocator.variants import Distinct

RESULTS_LIMIT = 32
"""Devices one claim can be given (resource.k8s.io AllocationResultsMaxSize)."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The scheduler would abort the pod with this message (a selector that errs, an unknown class, over 32 devices)."""

    message: str
    claim: int | None = None
    request: str | None = None
    device: api.DeviceID | None = None


class Abort(Exception):  # noqa: N818 - carries an outcome, and is caught where the search began
    """Ends a search with an outcome of its own."""

    def __init__(self, outcome: Failed) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """One way to meet a request. `name` is `request` or `request/subrequest`, `count` is 0 with mode All.

    `option` counts the subrequests of a prioritized request.
    """

    claim: int
    request: str
    name: str
    spec: api.ExactDeviceRequest | api.DeviceSubRequest
    device_class: api.DeviceClass | None
    option: int = 0

    @property
    def own_name(self) -> str:
        """The name that errors give: a subrequest's without its request."""
        return self.name.rpartition("/")[2]

    @property
    def takes_all(self) -> bool:
        """Whether every device that passes the selectors is wanted."""
        return self.spec.allocation_mode == api.AllocationMode.ALL

    @property
    def count(self) -> int:
        """How many devices are wanted."""
        return 0 if self.takes_all else self.spec.count

    @property
    def admin_access(self) -> bool:
        """Whether devices in use may be had too."""
        return isinstance(self.spec, api.ExactDeviceRequest) and self.spec.admin_access


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One request of one claim: its options are tried in order. `first` where the request is its claim's first."""

    claim: int
    options: tuple[Wanted, ...]
    first: bool
    prioritized: bool


def full_name(claim: api.ResourceClaim) -> str:
    """A claim as the scheduler writes it: `namespace/name`."""
    namespace, name = claim.metadata.namespace, claim.metadata.name
    return f"{namespace}/{name}" if namespace else name


def options(request: api.DeviceRequest, claim: int, cluster: Cluster) -> tuple[Wanted, ...]:
    """The ways to meet a request; none for a kind of request this version does not know."""
    if request.exactly is not None:
        device_class = cluster.classes.get(request.exactly.device_class_name)
        return (Wanted(claim, request.name, request.name, request.exactly, device_class),)
    return tuple(
        Wanted(
            claim, request.name, f"{request.name}/{sub.name}", sub, cluster.classes.get(sub.device_class_name), option
        )
        for option, sub in enumerate(request.first_available)
    )


def steps(cluster: Cluster, claims: Sequence[api.ResourceClaim]) -> tuple[Step, ...]:
    """All requests of all claims, in order. Raises Abort where the scheduler would not begin to search."""
    made = tuple(
        Step(index, options(request, index, cluster), position == 0, bool(request.first_available))
        for index, claim in enumerate(claims)
        for position, request in enumerate(claim.spec.requests)
    )
    for index, claim in enumerate(claims):
        for request in claim.spec.requests:
            _check_kind(cluster, claim, index, request)
    return made


def check_capacity(cluster: Cluster, claim: api.ResourceClaim, step: Step) -> None:
    """Refuse a request for capacity that this scheduler does not understand. Raises Abort."""
    rules = cluster.rules
    if rules.consumable or not rules.refuses_capacity:
        return
    for wanted in (w for w in step.options if w.spec.capacity):
        named = f"request {wanted.request}"
        if isinstance(wanted.spec, api.DeviceSubRequest) and rules.names_subrequest:
            named = f"subrequest {wanted.own_name}"
        message = f"{named}: has capacity requests, but the DRAConsumableCapacity feature is disabled"
        raise _refusal(claim, wanted, message)


def check_wanted(cluster: Cluster, claim: api.ResourceClaim, wanted: Wanted) -> None:
    """Refuse what the allocator refuses to try. Raises Abort."""
    enabled, spec = cluster.kubernetes.enabled, wanted.spec
    for index, selector in enumerate(spec.selectors):
        if selector.expression is None:
            text = f"request {wanted.own_name}, selector #{index}: CEL expression empty (unsupported selector type?)"
            raise _refusal(claim, wanted, text)
    if wanted.admin_access and not enabled("DRAAdminAccess"):
        text = f"request {wanted.own_name}: admin access is requested, but the feature is disabled"
        raise _refusal(claim, wanted, text)
    if spec.allocation_mode not in tuple(api.AllocationMode):
        text = f"request {wanted.own_name}: unsupported count mode {spec.allocation_mode}"
        raise _refusal(claim, wanted, text)


def check_constraints(cluster: Cluster, claim: api.ResourceClaim, index: int) -> None:
    """Refuse kinds of constraint that the scheduler does not know. Raises Abort."""
    distinct = cluster.rules.distinct is not Distinct.UNKNOWN
    for number, constraint in enumerate(claim.spec.constraints):
        if constraint.match_attribute is None and (constraint.distinct_attribute is None or not distinct):
            message = f"constraint #{number}: empty constraint (unsupported constraint type?)"
            raise Abort(Failed(f"claim {full_name(claim)}, {message}", index))


def check_addition(cluster: Cluster, claim: api.ResourceClaim, wanted: Wanted, count: int, total: int) -> None:
    """Refuse a request that takes a claim over the limit; `check_total` does where messages are older. Raises Abort."""
    if total + count > RESULTS_LIMIT and cluster.rules.names_remainder:
        limit = f"the claim limit of {RESULTS_LIMIT}, with {total} already accounted for"
        message = f"claim {full_name(claim)}, request {wanted.request}: adding {count} devices exceeds {limit}"
        raise Abort(Failed(message, wanted.claim, wanted.request))


def check_total(claim: api.ResourceClaim, index: int, total: int) -> None:
    """Refuse more devices than a claim can be given. Raises Abort."""
    if total > RESULTS_LIMIT:
        message = f"number of requested devices {total} exceeds the claim limit of {RESULTS_LIMIT}"
        raise Abort(Failed(f"claim {full_name(claim)}: {message}", index))


def _check_kind(cluster: Cluster, claim: api.ResourceClaim, index: int, request: api.DeviceRequest) -> None:
    where = f"resource claim {full_name(claim)}, request {request.name}"
    ways = options(request, index, cluster)
    if not ways:
        raise Abort(Failed(f"{where}: unknown request type", index, request.name))
    if request.exactly is None and not cluster.kubernetes.enabled("DRAPrioritizedList"):
        message = "has subrequests, but the DRAPrioritizedList feature is disabled"
        raise Abort(Failed(f"{where}: {message}", index, request.name))
    for wanted in ways:
        if not wanted.spec.device_class_name:
            raise Abort(Failed(f"request {wanted.name}: unsupported request type", index, wanted.name))
        if wanted.device_class is None:
            message = f"request {wanted.name}: device class {wanted.spec.device_class_name} does not exist"
            raise Abort(Failed(message, index, wanted.name))


def _refusal(claim: api.ResourceClaim, wanted: Wanted, message: str) -> Abort:
    return Abort(Failed(f"claim {full_name(claim)}, {message}", wanted.claim, wanted.name))
