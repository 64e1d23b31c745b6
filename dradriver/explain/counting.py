"""Counting devices: each in exactly one bucket, at the furthest stage any request took it, so that counts sum up."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from dradriver import allocator, api
from dradriver.allocator import Assessment, Cluster, Finding, Reason
from dradriver.explain.explanations import Bucket, RequestBuckets
from dradriver.explain.paths import Paths

ORDER = {reason: position for position, reason in enumerate(Reason)}
_MOST_SAID = 3

WORDS = {
    Reason.POOL_INCOMPLETE: "in a pool that is being published",
    Reason.POOL_INVALID: "in an invalid pool",
    Reason.NOT_FOR_NODE: "for no node of this cluster",
    Reason.NODE: "on a node that is out",
    Reason.CLASS_SELECTOR: "not of the device class",
    Reason.REQUEST_SELECTOR: "not as the selectors want",
    Reason.SELECTOR_ERROR: "on which a selector fails",
    Reason.TAINT: "tainted",
    Reason.UNHEALTHY: "unhealthy",
    Reason.IN_USE: "held by other claims",
    Reason.COUNTERS: "partly held by other claims",
    Reason.CAPACITY: "with too little capacity",
    Reason.CONSTRAINT: "in too small a group",
    Reason.PICKED_FOR_OTHER_REQUEST: "needed for another request",
    Reason.FITS: "would do",
}
"""What each bucket holds, to be read after a number."""


def assess(
    cluster: Cluster,
    claim: api.ResourceClaim,
    nodes: Collection[api.Node],
    excluded: Mapping[str, str] = MappingProxyType({}),
) -> Assessment:
    """How far every device gets, also where a claim cannot be tried as written.

    No device is of a class that does not exist, nor of a kind of request that is not known, nor does any get further
    for a claim that requests nothing.
    """
    known = tuple(r for r in claim.spec.requests if r.exactly is not None or r.first_available)
    tried = replace(claim, spec=replace(claim.spec, requests=known))
    found = dict(allocator.assess(cluster, tried, nodes, excluded=excluded).requests) if known else {}
    for name, option, _ in Paths().options(tried):
        if option.device_class_name not in cluster.classes:
            nowhere = Finding(Reason.CLASS_SELECTOR, detail=f"class {option.device_class_name} does not exist")
            found[name] = {
                device: nowhere if ORDER[finding.reason] > ORDER[Reason.NODE] else finding
                for device, finding in found[name].items()
            }
    unknown = [request.name for request in claim.spec.requests if request not in known]
    for name in unknown if claim.spec.requests else [""]:
        detail = "a kind of request that is not known" if name else "the claim requests no devices"
        found[name] = dict.fromkeys(cluster.devices, Finding(Reason.CLASS_SELECTOR, detail=detail))
    return Assessment(found)


def picked(assessment: Assessment, picks: Mapping[api.DeviceID, str], claim: str) -> Assessment:
    """The assessment where a device that would do for one request but was picked for another is not free for it.

    `picks` gives the `claim request` a device was picked for; `claim` is the one assessed.
    """
    return Assessment(
        {
            request: {
                device: replace(
                    finding, reason=Reason.PICKED_FOR_OTHER_REQUEST, detail=f"request {taker.rpartition(' ')[2]}"
                )
                if finding.reason is Reason.FITS
                and (taker := picks.get(device))
                and not _same(taker, f"{claim} {request}")
                else finding
                for device, finding in findings.items()
            }
            for request, findings in assessment.requests.items()
        }
    )


def _same(one: str, other: str) -> bool:
    """Whether two `claim request`s are of one request: options of a request do not compete."""
    (claim, _, request), (other_claim, _, other_request) = one.rpartition(" "), other.rpartition(" ")
    return claim == other_claim and request.partition("/")[0] == other_request.partition("/")[0]


def merge(assessment: Assessment) -> dict[api.DeviceID, Finding]:
    """The furthest finding of each device over all requests."""
    furthest: dict[api.DeviceID, Finding] = {}
    for findings in assessment.requests.values():
        for device, finding in findings.items():
            known = furthest.get(device)
            if known is None or ORDER[finding.reason] > ORDER[known.reason]:
                furthest[device] = finding
    return furthest


def buckets(findings: Mapping[api.DeviceID, Finding]) -> tuple[Bucket, ...]:
    """Devices by reason, in the order of the reasons; empty buckets are left out."""
    grouped: dict[Reason, list[api.DeviceID]] = {}
    for device, finding in findings.items():
        grouped.setdefault(finding.reason, []).append(device)
    return tuple(
        Bucket(reason, tuple(sorted(grouped[reason])), _detail([findings[d] for d in sorted(grouped[reason])]))
        for reason in Reason
        if reason in grouped
    )


def by_request(assessment: Assessment) -> tuple[RequestBuckets, ...]:
    """The same for each request by itself."""
    return tuple(RequestBuckets(name, buckets(findings)) for name, findings in assessment.requests.items() if name)


def _detail(findings: Collection[Finding]) -> str:
    """What there is to say of the devices of a bucket; nothing where the reason says it all."""
    said = [words for words in dict.fromkeys(map(_words, findings)) if words]
    more = f" and {len(said) - _MOST_SAID} more" if len(said) > _MOST_SAID else ""
    return "; ".join(said[:_MOST_SAID]) + more


def _words(finding: Finding) -> str:
    if finding.taint is not None:
        value = f"={finding.taint.value}" if finding.taint.value else ""
        return f"{finding.taint.key}{value}:{finding.taint.effect}"
    if finding.reason is Reason.NODE:
        return f"{finding.node}: {finding.detail}"
    if finding.detail:
        return finding.detail
    return ", ".join(sorted({f"{h.claim.metadata.namespace}/{h.claim.metadata.name}" for h in finding.holders}))
