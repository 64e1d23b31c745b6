"""The verdict, from up to three allocations: as it is; put right; put right and empty.

The claims of a pod are judged together: the scheduler gives all of them or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dradriver import allocator, api, cel
from dradriver.allocator import Cluster
from dradriver.explain.codes import Code
from dradriver.explain.considering import Considered
from dradriver.explain.explanations import Verdict
from dradriver.explain.situations import Situation

MOST_DEVICES = 32
"""resource.k8s.io `AllocationResultsMaxSize`: a claim gets no more devices."""

NEEDED_KINDS = ("ResourceSlice", "DeviceClass")
"""Kinds without which nothing can be said; without ResourceClaim `impossible` still can."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, the cause where it is known without looking at devices, and the node on which the claims would fit."""

    verdict: Verdict
    code: Code | None = None
    cause: tuple[str, ...] = ()
    node: str | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """One question to the allocator over several nodes: where the claims fit first, and what went wrong elsewhere."""

    node: str | None = None
    allocations: tuple[api.Allocation, ...] = ()
    failure: allocator.Failed | None = None
    undecided: bool = False


def fit(
    cluster: Cluster, nodes: Iterable[api.Node], claims: Sequence[api.ResourceClaim], *, every_node: bool = False
) -> Fit:
    """Ask on which node the claims fit; `every_node` asks on, to see whether a selector errs on one after it."""
    found: Fit | None = None
    failure: allocator.Failed | None = None
    undecided = False
    for node in nodes:
        answer = allocator.allocate(cluster, node, claims)
        if isinstance(answer, allocator.Allocated):
            found = found or Fit(node.name, answer.allocations)
            if not every_node:
                return found
        elif isinstance(answer, allocator.Failed):
            failure = failure or answer
        elif isinstance(answer, allocator.Undecided):
            undecided = True
    if found is not None:
        return Fit(found.node, found.allocations, failure)
    return Fit(failure=failure, undecided=undecided)


def judge(situation: Situation, claims: Sequence[api.ResourceClaim], considered: Considered) -> Judgement:
    """Judge the unallocated claims of one pod together."""
    for kind in NEEDED_KINDS:
        if kind in situation.missing:
            return Judgement(Verdict.UNKNOWN, Code.NOT_READABLE, (f"{kind}s are not known: {situation.missing[kind]}",))
    judgement = misconfigured(situation.cluster, claims) or _by_allocation(situation.cluster, claims, considered)
    unseen = situation.missing.get("ResourceClaim")
    if unseen and judgement.verdict in (Verdict.FITS, Verdict.PENDING):
        return Judgement(Verdict.UNKNOWN, Code.NOT_READABLE, (f"who holds devices is not known: {unseen}",))
    return judgement


def _by_allocation(cluster: Cluster, claims: Sequence[api.ResourceClaim], considered: Considered) -> Judgement:
    now = fit(cluster, considered.open, claims, every_node=True)
    if now.node is not None and now.failure is None:
        return Judgement(Verdict.FITS, node=now.node)
    if now.node is None and (pool := _in_flux(cluster, claims)) is not None:
        cause = f"pool {pool} is being published: its devices are not all known yet"
        return Judgement(Verdict.UNKNOWN, Code.POOL_IN_FLUX, (cause,))
    right = fit(cluster.repaired(), considered.everywhere, claims)
    if right.node is not None:
        return _blocked(cluster, claims, considered, now, right.node)
    empty = fit(considered.emptied(cluster), considered.everywhere, claims)
    if empty.node is not None:
        return Judgement(Verdict.PENDING, node=empty.node)
    if now.undecided or right.undecided or empty.undecided:
        return Judgement(Verdict.UNKNOWN, Code.SEARCH_TOO_LONG, ("there are too many combinations to try them all",))
    return _impossible(cluster, claims, considered, empty)


def _blocked(
    cluster: Cluster, claims: Sequence[api.ResourceClaim], considered: Considered, now: Fit, node: str
) -> Judgement:
    """Find the one repair that is enough; where it takes several, the first kind that has something to repair."""
    selectors = cluster.repaired(taints=False, pools=False)
    taints = cluster.repaired(pools=False, selectors=False)
    if now.failure is not None and (now.node or fit(selectors, considered.open, claims).node):
        if now.failure.device is None:
            return Judgement(Verdict.BLOCKED, Code.REQUEST_REFUSED, (now.failure.message,), node)
        cause = f"a selector fails on {now.failure.device}, and the scheduler then gives up the pod"
        return Judgement(Verdict.BLOCKED, Code.SELECTOR_ERRS, (cause,), node)
    if fitting := fit(taints, considered.open, claims).node:
        return Judgement(Verdict.BLOCKED, Code.DEVICE_TAINTED, (), fitting)
    if fitting := fit(cluster.repaired(taints=False, selectors=False), considered.open, claims).node:
        broken = next((p for p in cluster.pools if p.invalid and fitting in (p.node, p.name)), None)
        cause = f"pool {broken.id} is invalid: {broken.invalid}" if broken else "a pool is invalid"
        return Judgement(Verdict.BLOCKED, Code.POOL_INVALID, (cause,), fitting)
    fitting = fit(cluster, considered.reopened, claims).node or node
    if fitting in considered.closed:
        cause = f"node {fitting} is {considered.closed[fitting]}"
        return Judgement(Verdict.BLOCKED, Code.NODE_CLOSED, (cause,), fitting)
    return Judgement(Verdict.BLOCKED, Code.DEVICE_TAINTED, (), fitting)


def _impossible(cluster: Cluster, claims: Sequence[api.ResourceClaim], considered: Considered, empty: Fit) -> Judgement:
    if not cluster.devices:
        causes = ("no driver has published a device", "see whether its pods run: kubectl get resourceslices")
        return Judgement(Verdict.IMPOSSIBLE, Code.NO_DEVICES_PUBLISHED, causes)
    left_out = [cluster.nodes[name] for name in considered.unwanted]
    elsewhere = fit(considered.emptied(cluster), left_out, claims).node
    if elsewhere is not None:
        cause = f"only nodes that the pod leaves out could do it: {elsewhere}, since {considered.unwanted[elsewhere]}"
        return Judgement(Verdict.IMPOSSIBLE, Code.NODES_LEFT_OUT, (cause,), elsewhere)
    if empty.failure is not None:
        return Judgement(Verdict.IMPOSSIBLE, Code.REQUEST_REFUSED, (empty.failure.message,))
    return Judgement(Verdict.IMPOSSIBLE)


def _in_flux(cluster: Cluster, claims: Sequence[api.ResourceClaim]) -> allocator.PoolID | None:
    """A pool that is not complete and whose devices the claims might want."""
    classes = {o.device_class_name for c in claims for r in c.spec.requests for o in _options(r)}
    return next(
        (
            pool.id
            for pool in cluster.pools
            if not pool.complete and not all(_excludes(cluster, name, pool.driver) for name in classes)
        ),
        None,
    )


def _excludes(cluster: Cluster, class_name: str, driver: str) -> bool:
    """Whether a class refuses every device of a driver for the driver's name alone."""
    for selector in cluster.classes[class_name].selectors:
        program = cluster.selectors.program(selector.expression or "")
        if isinstance(program, cel.Program):
            trace = program.trace(driver, api.Device("any"))
            if trace.outcome is False and {seen.path for seen in trace.observations} == {"device.driver"}:
                return True
    return False


def misconfigured(cluster: Cluster, claims: Sequence[api.ResourceClaim]) -> Judgement | None:
    """What is wrong with the claims or classes themselves, found without an allocation."""
    for claim in claims:
        asked = 0
        for request in claim.spec.requests:
            options = _options(request)
            if not options:
                cause = f"request {request.name} is of a kind this version does not know"
                return Judgement(Verdict.BLOCKED, Code.REQUEST_REFUSED, (cause,))
            for option in options:
                if judgement := _option(cluster, request.name, option):
                    return judgement
            asked += min(o.count if o.allocation_mode == api.AllocationMode.EXACT_COUNT else 1 for o in options)
        if asked > MOST_DEVICES:
            cause = f"it asks for {asked} devices, and a claim gets at most {MOST_DEVICES}"
            return Judgement(Verdict.BLOCKED, Code.TOO_MANY_DEVICES, (cause,))
    return None


def _options(request: api.DeviceRequest) -> Sequence[api.ExactDeviceRequest | api.DeviceSubRequest]:
    return (request.exactly,) if request.exactly else request.first_available


def _option(cluster: Cluster, request: str, option: api.ExactDeviceRequest | api.DeviceSubRequest) -> Judgement | None:
    device_class = cluster.classes.get(option.device_class_name)
    if device_class is None:
        known = ", ".join(sorted(cluster.classes)) or "none"
        cause = f"request {request} names class {option.device_class_name}, which does not exist"
        return Judgement(Verdict.BLOCKED, Code.CLASS_MISSING, (cause, f"there are: {known}"))
    sources = [(f"class {option.device_class_name}", s) for s in device_class.selectors]
    sources += [(f"request {request}", s) for s in option.selectors]
    for where, selector in sources:
        if selector.expression is None:
            return Judgement(Verdict.BLOCKED, Code.REQUEST_REFUSED, (f"{where} has a selector of an unknown kind",))
        error = cluster.selectors.program(selector.expression)
        if isinstance(error, cel.CompileError):
            return Judgement(Verdict.BLOCKED, Code.EXPRESSION_REFUSED, (f"a selector of {where}: {error}",))
    return None
