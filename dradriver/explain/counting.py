"""Counting devices: each in exactly one bucket, at the furthest stage any request took it, so that counts sum up."""

from __future__ import annotations

from collections.abc import Mapping

from dradriver import api
from dradriver.allocator import Assessment, Finding, Reason
from dradriver.explain.explanations import Bucket, RequestBuckets

ORDER = tuple(Reason)

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
    Reason.COUNTERS: "whose hardware others hold in part",
    Reason.CAPACITY: "with too little capacity left",
    Reason.CONSTRAINT: "in too small a group",
    Reason.PICKED_FOR_OTHER_REQUEST: "needed for another request of this claim",
    Reason.FITS: "would do",
}
"""What each bucket holds, to be read after a number."""


def merge(assessment: Assessment) -> dict[api.DeviceID, Finding]:
    """The furthest finding of each device over all requests."""
    furthest: dict[api.DeviceID, Finding] = {}
    for findings in assessment.requests.values():
        for device, finding in findings.items():
            known = furthest.get(device)
            if known is None or ORDER.index(finding.reason) > ORDER.index(known.reason):
                furthest[device] = finding
    return furthest


def buckets(findings: Mapping[api.DeviceID, Finding]) -> tuple[Bucket, ...]:
    """Devices by reason, in the order of the reasons; empty buckets are left away."""
    grouped: dict[Reason, list[api.DeviceID]] = {}
    for device, finding in findings.items():
        grouped.setdefault(finding.reason, []).append(device)
    return tuple(
        Bucket(reason, tuple(sorted(grouped[reason])), _detail(reason, [findings[d] for d in grouped[reason]]))
        for reason in ORDER
        if reason in grouped
    )


def by_request(assessment: Assessment) -> tuple[RequestBuckets, ...]:
    """The same for each request by itself."""
    return tuple(RequestBuckets(name, buckets(findings)) for name, findings in assessment.requests.items())


def _detail(reason: Reason, findings: list[Finding]) -> str:
    """What is the same for all devices of a bucket, or the few things there are."""
    said: list[str] = []
    for finding in findings:
        words = ""
        if finding.taint is not None:
            words = f"{finding.taint.key}={finding.taint.value}:{finding.taint.effect}".replace("=:", ":")
        elif reason is Reason.NODE:
            words = f"{finding.node}: {finding.detail}"
        elif finding.detail:
            words = finding.detail
        elif finding.holders:
            words = ", ".join(
                sorted({f"{h.claim.metadata.namespace}/{h.claim.metadata.name}" for h in finding.holders})
            )
        if words and words not in said:
            said.append(words)
    most = 3
    more = f" and {len(said) - most} more" if len(said) > most else ""
    return ("; ".join(said[:most]) + more) if said else WORDS[reason]
