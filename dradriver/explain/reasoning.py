"""The sentences that bear out a verdict: what is asked, what there is, and who is in the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dradriver import api
from dradriver.allocator import Assessment, Finding, Reason
from dradriver.explain import counting, holding
from dradriver.explain.codes import Code
from dradriver.explain.explanations import Verdict
from dradriver.explain.grouping import Group, Grouping
from dradriver.explain.judging import Judgement

MOST_NAMED = 3

HEADLINES = {
    Verdict.UNKNOWN: "cannot be judged",
    Verdict.BLOCKED: "would fit, but something stands in the way",
    Verdict.PENDING: "has no place right now",
    Verdict.IMPOSSIBLE: "fits not even an empty cluster",
}
ABSENT = "is not there"
"""The headline for a claim that a pod names and nobody made."""

AS_WRITTEN = "cannot be allocated as written"
"""The headline for what no state of the cluster can mend."""

_MISCONFIGURED = (Code.CLASS_MISSING, Code.EXPRESSION_REFUSED, Code.TOO_MANY_DEVICES, Code.REQUEST_REFUSED)


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The answer in words: the headline follows `<verdict>: claim <name>`."""

    headline: str
    because: tuple[str, ...]
    code: Code | None


def allocated(claim: api.ResourceClaim) -> str:
    """What a claim holds."""
    results = claim.status.allocation.results if claim.status.allocation else ()
    devices: dict[str, list[str]] = {}
    for result in results:
        devices.setdefault(result.pool, []).append(result.device)
    return "holds " + "; ".join(f"{', '.join(names)} of {pool}" for pool, names in devices.items())


def reason(judgement: Judgement, groupings: Sequence[Grouping], assessment: Assessment) -> Reasoning:
    """Why an unallocated claim is where it is; `groupings` are the best groups of each of its requests."""
    verdict, merged = judgement.verdict, counting.merge(assessment)
    if verdict is Verdict.FITS:
        return Reasoning(f"fits on node {judgement.node}", (), None)
    headline = HEADLINES[verdict]
    if judgement.code in _MISCONFIGURED and verdict is Verdict.BLOCKED:
        headline = AS_WRITTEN
    if judgement.cause:
        return Reasoning(headline, judgement.cause, judgement.code)
    if verdict is Verdict.BLOCKED:
        return Reasoning(headline, _tainted(merged), judgement.code)
    short = [g for g in groupings if _best(g, verdict) < g.wanted]
    if not short:
        return Reasoning(headline, _together(groupings, merged, verdict), _together_code(verdict))
    sentences = [sentence for g in short[:MOST_NAMED] for sentence in _sentences(g, verdict)]
    if not short[0].groups:
        sentences += _erring(assessment.requests[short[0].request])
    if verdict is Verdict.PENDING:
        sentences += _in_the_way(assessment.requests[short[0].request], short[0].groups[0])
    return Reasoning(headline, tuple(sentences), _code(short[0], assessment, verdict))


def _best(grouping: Grouping, verdict: Verdict) -> int:
    if verdict is Verdict.PENDING:
        return max((len(g.free) for g in grouping.groups), default=0)
    return max((len(g.devices) for g in grouping.groups), default=0)


def _sentences(grouping: Grouping, verdict: Verdict) -> tuple[str, ...]:
    """What a request asks, and what there is."""
    wanted = grouping.wanted
    asked = f"request {grouping.request} needs {_devices(wanted)}"
    if wanted > 1:
        asked += f" that agree on {_short(grouping.attribute)}" if grouping.attribute else " on one node"
    if not grouping.groups:
        lacking = f" and has {_short(grouping.attribute)}" if grouping.attribute else ""
        return (f"{asked}, and no device passes its selectors{lacking}",)
    if verdict is Verdict.PENDING:
        most = grouping.groups[0]
        return asked, f"of the {len(most.devices)} in {most.name} {len(most.free) or 'none'} are free"
    largest = max(grouping.groups, key=lambda g: len(g.devices))
    alike = sum(len(g.devices) == len(largest.devices) for g in grouping.groups) - 1
    more = f" and {alike} more" if alike else ""
    kind = "group" if grouping.attribute else "node"
    return asked, f"the largest {kind} has {len(largest.devices)} ({largest.name}{more})"


def _erring(findings: Mapping[api.DeviceID, Finding]) -> list[str]:
    erring = [finding for finding in findings.values() if finding.reason is Reason.SELECTOR_ERROR]
    return [f"a selector fails on {_devices(len(erring))}: {erring[0].detail}".split(". ")[0]] if erring else []


def _devices(count: int) -> str:
    return f"{count} device" + "s" * (count != 1)


def _short(attribute: str | None) -> str:
    return (attribute or "").rpartition("/")[2]


def _in_the_way(findings: Mapping[api.DeviceID, Finding], group: Group) -> list[str]:
    counts: Counter[str] = Counter()
    pods: dict[str, str | None] = {}
    for device in group.devices:
        for holder in {holding.name(h.claim): h for h in findings[device].holders}.values():
            counts[holding.name(holder.claim)] += 1
            pods[holding.name(holder.claim)] = holding.user(holder.claim)
    if not counts:
        return []
    said = [
        f"claim {name}" + (f" of pod {pods[name]}" if pods[name] else "") + f" with {count}"
        for name, count in counts.most_common(MOST_NAMED)
    ]
    more = f" and {len(counts) - MOST_NAMED} more claims" if len(counts) > MOST_NAMED else ""
    return [f"in the way: {', '.join(said)}{more}"]


def _code(grouping: Grouping, assessment: Assessment, verdict: Verdict) -> Code:
    reasons = {finding.reason for finding in assessment.requests[grouping.request].values()}
    if verdict is Verdict.PENDING:
        if grouping.attribute and grouping.wanted > 1:
            return Code.GROUP_HELD_BY_OTHERS
        return Code.HELD_BY_OTHERS if Reason.IN_USE in reasons else Code.PARTS_HELD_BY_OTHERS
    if not grouping.groups:
        return Code.SELECTOR_ERRS if Reason.SELECTOR_ERROR in reasons else Code.SELECTED_BY_NONE
    return Code.NO_SUCH_GROUP if grouping.attribute else Code.NOT_ENOUGH_HARDWARE


def _together_code(verdict: Verdict) -> Code:
    return Code.HELD_BY_OTHERS if verdict is Verdict.PENDING else Code.NOT_TOGETHER


def _together(
    groupings: Sequence[Grouping], merged: Mapping[api.DeviceID, Finding], verdict: Verdict
) -> tuple[str, ...]:
    names = ", ".join(f"{g.request} ({g.wanted})" for g in groupings)
    sentence = f"each request could be met by itself, but not all on one node: {names}"
    if not groupings:
        sentence = "it asks for all devices of a node that pass its selectors"
    held = Counter(holding.name(h.claim) for finding in merged.values() for h in finding.holders)
    if verdict is Verdict.PENDING and held:
        said = ", ".join(f"claim {name} with {count}" for name, count in held.most_common(MOST_NAMED))
        return sentence, f"in the way: {said}"
    return (sentence,)


def _tainted(merged: Mapping[api.DeviceID, Finding]) -> tuple[str, ...]:
    said = [
        f"{device.device} of {device.pool} is tainted {finding.taint.key}:{finding.taint.effect}"
        for device, finding in sorted(merged.items())
        if finding.taint is not None
    ]
    more = f" and {len(said) - MOST_NAMED} more" if len(said) > MOST_NAMED else ""
    return ("; ".join(said[:MOST_NAMED]) + more,) if said else ()
