"""The first line of an explanation: one sentence that stands alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dradriver import allocator, api
from dradriver.allocator import Finding, Reason
from dradriver.explain import holding
from dradriver.explain.codes import TITLES, Code
from dradriver.explain.counting import WORDS
from dradriver.explain.explanations import Verdict
from dradriver.explain.judging import Judgement

MOST_NAMED = 3


def allocated(claim: api.ResourceClaim) -> str:
    """What a claim holds."""
    results = claim.status.allocation.results if claim.status.allocation else ()
    pools = dict.fromkeys(result.pool for result in results)
    devices = {pool: [r.device for r in results if r.pool == pool] for pool in pools}
    return "holds " + "; ".join(f"{', '.join(names)} of {pool}" for pool, names in devices.items())


def unallocated(claim: api.ResourceClaim, judgement: Judgement, findings: Mapping[api.DeviceID, Finding]) -> str:
    """Why a claim is where it is."""
    if judgement.verdict is Verdict.FITS:
        return f"fits on node {judgement.node} and waits for the scheduler"
    if judgement.cause:
        return judgement.cause
    short = judgement.shortfall
    if judgement.verdict is Verdict.PENDING:
        return f"has no place right now: {_short(claim, short) or 'what it needs is held'}{_by_whom(findings)}"
    return f"cannot be satisfied, not even by an empty cluster: {_short(claim, short) or _nearest(judgement, findings)}"


def _short(claim: api.ResourceClaim, short: allocator.Shortfall | None) -> str:
    """What counting found missing."""
    if short is None or not (short.found or short.constraint is not None):
        return ""
    request = f"request {short.request}"
    if short.constraint is None:
        return f"{request} needs {short.wanted} devices on one node, and at most {len(short.found)} would do there"
    constraint = claim.spec.constraints[short.constraint]
    attribute = constraint.match_attribute or constraint.distinct_attribute or ""
    most = len(short.found)
    group = f"agree on {attribute.rpartition('/')[2]}" if constraint.match_attribute else f"differ in {attribute}"
    return f"{request} needs {short.wanted} devices that {group}, and the best group has {most or 'none'}"


def _by_whom(findings: Mapping[api.DeviceID, Finding]) -> str:
    names = Counter(
        holding.name(holder.claim) for finding in findings.values() for holder in finding.holders
    ).most_common()
    if not names:
        return ""
    said = ", ".join(f"claim {name} holds {count}" for name, count in names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} more claims" if len(names) > MOST_NAMED else ""
    return f" ({said}{more})"


def _nearest(judgement: Judgement, findings: Mapping[api.DeviceID, Finding]) -> str:
    counts = Counter(finding.reason for finding in findings.values())
    for reason in reversed(tuple(Reason)):
        if counts[reason]:
            return f"{TITLES[judgement.code or Code.SELECTED_BY_NONE]}; nearest: {counts[reason]} {WORDS[reason]}"
    return TITLES[Code.NO_DEVICES_PUBLISHED]
