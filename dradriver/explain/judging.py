"""The verdict, from up to three allocations: as it is; put right; put right and empty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dradriver import allocator, api, cel
from dradriver.allocator import Reason
from dradriver.explain.codes import Code
from dradriver.explain.considering import Considered
from dradriver.explain.explanations import Verdict
from dradriver.explain.situations import Situation

MOST_DEVICES = 32
"""resource.k8s.io `AllocationResultsMaxSize`: a claim gets no more devices."""

NEEDED_KINDS = ("resourceslices", "resourceclaims", "deviceclasses")
"""Kinds without which an answer may be wrong."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, what stands in the way, half a sentence about it, and what the last search fell short of."""

    verdict: Verdict
    code: Code | None = None
    cause: str = ""
    shortfall: allocator.Shortfall | None = None
    node: str | None = None
    """Where it would fit."""


@dataclass(frozen=True, slots=True)
class Fit:
    """One question to the allocator over several nodes: where it fits first, or the nearest miss."""

    node: str | None = None
    shortfall: allocator.Shortfall | None = None
    failure: allocator.Failed | None = None
    undecided: bool = False


def fit(cluster: allocator.Cluster, nodes: Iterable[api.Node], claims: Sequence[api.ResourceClaim]) -> Fit:
    """Ask on which node the claims fit."""
    nearest: allocator.Shortfall | None = None
    failure: allocator.Failed | None = None
    undecided = False
    for node in nodes:
        answer = allocator.allocate(cluster, node, claims)
        if isinstance(answer, allocator.Allocated):
            return Fit(node=node.name)
        if isinstance(answer, allocator.Failed):
            failure = failure or answer
        elif isinstance(answer, allocator.Undecided):
            undecided = True
        elif answer.shortfall and (nearest is None or _nearness(answer.shortfall) > _nearness(nearest)):
            nearest = answer.shortfall
    return Fit(shortfall=nearest, failure=failure, undecided=undecided)


def _nearness(shortfall: allocator.Shortfall) -> tuple[int, int]:
    return (shortfall.constraint is not None, len(shortfall.found) - shortfall.wanted)


def judge(
    situation: Situation,
    claims: Sequence[api.ResourceClaim],
    considered: Considered,
    reasons: frozenset[Reason],
) -> Judgement:
    """Judge unallocated claims of one pod together; `reasons` are those any device was left behind for."""
    cluster = situation.cluster
    missing = [kind for kind in NEEDED_KINDS if kind in situation.missing]
    if missing:
        return Judgement(Verdict.UNKNOWN, Code.NOT_READABLE, f"{missing[0]}: {situation.missing[missing[0]]}")
    if plain := _misconfigured(cluster, claims):
        return plain
    now = fit(cluster, considered.open, claims)
    if now.node is not None and now.failure is None:
        return Judgement(Verdict.FITS, node=now.node)
    if Reason.POOL_INCOMPLETE in reasons:
        return Judgement(
            Verdict.UNKNOWN, Code.POOL_IN_FLUX, "a pool is being published; its devices are not all known yet"
        )
    everywhere = (*considered.open, *considered.reopened)
    right = fit(cluster.repaired(), everywhere, claims)
    if right.node is not None:
        return _blocked(now, right.node, considered, reasons)
    empty = fit(cluster.repaired().emptied(), everywhere, claims)
    if empty.node is not None:
        return Judgement(Verdict.PENDING, _waiting_code(right.shortfall, reasons), "", right.shortfall, empty.node)
    if now.undecided or right.undecided or empty.undecided:
        return Judgement(Verdict.UNKNOWN, Code.SEARCH_TOO_LONG, "the search was given up: too many combinations")
    return _impossible(cluster, empty, reasons)


def _misconfigured(cluster: allocator.Cluster, claims: Sequence[api.ResourceClaim]) -> Judgement | None:
    """What is wrong with the claims or classes themselves, found without an allocation."""
    for claim in claims:
        asked = 0
        for request in claim.spec.requests:
            options = (request.exactly,) if request.exactly else request.first_available
            if not options:
                cause = f"request {request.name} is of a kind this version does not know"
                return Judgement(Verdict.BLOCKED, Code.REQUEST_REFUSED, cause)
            for option in options:
                if judgement := _option(cluster, request.name, option):
                    return judgement
            asked += _fewest(options)
        if asked > MOST_DEVICES:
            cause = f"it asks for {asked} devices, and a claim gets at most {MOST_DEVICES}"
            return Judgement(Verdict.BLOCKED, Code.TOO_MANY_DEVICES, cause)
    return None


def _fewest(options: Sequence[api.ExactDeviceRequest | api.DeviceSubRequest]) -> int:
    """The fewest devices a request can end up with; All may be satisfied by one."""
    return min(o.count if o.allocation_mode == api.AllocationMode.EXACT_COUNT else 1 for o in options)


def _option(
    cluster: allocator.Cluster, request: str, option: api.ExactDeviceRequest | api.DeviceSubRequest
) -> Judgement | None:
    device_class = cluster.classes.get(option.device_class_name)
    if device_class is None:
        known = ", ".join(sorted(cluster.classes)) or "none"
        name = option.device_class_name
        cause = f"request {request} names device class {name}, which does not exist (there are: {known})"
        return Judgement(Verdict.BLOCKED, Code.CLASS_MISSING, cause)
    sources = [(f"class {option.device_class_name}", s) for s in device_class.selectors]
    sources += [(f"request {request}", s) for s in option.selectors]
    for where, selector in sources:
        if selector.expression is None:
            return Judgement(Verdict.BLOCKED, Code.REQUEST_REFUSED, f"{where} has a selector of an unknown kind")
        try:
            cel.compile_expression(selector.expression, cluster.kubernetes, stored=True)
        except cel.CompileError as error:
            part = selector.expression[error.span.start : error.span.end]
            cause = f"an expression of {where} does not compile: {error}" + (f" (at {part!r})" if part else "")
            return Judgement(Verdict.BLOCKED, Code.EXPRESSION_REFUSED, cause)
    return None


def _blocked(now: Fit, node: str, considered: Considered, reasons: frozenset[Reason]) -> Judgement:
    if now.failure is not None:
        code = Code.SELECTOR_ERRS if now.failure.device is not None else Code.REQUEST_REFUSED
        return Judgement(Verdict.BLOCKED, code, now.failure.message, node=node)
    if node in considered.closed:
        return Judgement(Verdict.BLOCKED, Code.NODE_CLOSED, f"node {node} is {considered.closed[node]}", node=node)
    if Reason.TAINT in reasons or Reason.UNHEALTHY in reasons:
        return Judgement(Verdict.BLOCKED, Code.DEVICE_TAINTED, "devices that would do are tainted", node=node)
    return Judgement(Verdict.BLOCKED, Code.POOL_IN_FLUX, "a pool it needs is invalid", node=node)


def _waiting_code(shortfall: allocator.Shortfall | None, reasons: frozenset[Reason]) -> Code:
    if shortfall is not None and shortfall.constraint is not None:
        return Code.GROUP_HELD_BY_OTHERS
    return Code.PARTS_HELD_BY_OTHERS if Reason.IN_USE not in reasons else Code.HELD_BY_OTHERS


def _impossible(cluster: allocator.Cluster, empty: Fit, reasons: frozenset[Reason]) -> Judgement:
    short = empty.shortfall
    if not cluster.devices:
        return Judgement(Verdict.IMPOSSIBLE, Code.NO_DEVICES_PUBLISHED, "no driver has published a device")
    if empty.failure is not None:
        return Judgement(Verdict.IMPOSSIBLE, Code.REQUEST_REFUSED, empty.failure.message)
    if short is not None and short.constraint is not None:
        return Judgement(Verdict.IMPOSSIBLE, Code.NO_SUCH_GROUP, "", short)
    if short is not None and short.found:
        return Judgement(Verdict.IMPOSSIBLE, Code.NOT_ENOUGH_HARDWARE, "", short)
    beyond = reasons - {Reason.NOT_FOR_NODE, Reason.NODE, Reason.CLASS_SELECTOR, Reason.REQUEST_SELECTOR}
    code = Code.NOT_ENOUGH_HARDWARE if beyond - {Reason.SELECTOR_ERROR} else Code.SELECTED_BY_NONE
    return Judgement(Verdict.IMPOSSIBLE, code, "", short)
