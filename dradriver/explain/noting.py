"""What else a person should know beside the verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dradriver import api
from dradriver.explain.explanations import ClaimExplanation, Verdict
from dradriver.explain.situations import Situation
from dradriver.explain.surroundings import Pod

MIB = 1 << 20
GIB = 1 << 30
_NEAR = 0.9
"""How much of the number asked for a device must have for the number to be its name."""
_ASKED = re.compile(r'quantity\("(\d+)Gi"\)')

SETTLED = (Verdict.ALLOCATED, Verdict.FITS, Verdict.UNKNOWN)
"""Verdicts that call for no correction."""


def notes(
    situation: Situation,
    claim: api.ResourceClaim,
    explanation: ClaimExplanation,
    pod: Pod | None,
    template: str | None,
) -> tuple[str, ...]:
    """Notes for one claim, `explanation` complete but for them."""
    own = _of_allocation(situation, claim) if claim.status.allocation else _waiting(situation, explanation, pod)
    return (
        *_of_claim(claim, explanation, pod, template),
        *own,
        *(f"{kind}s could not be read: {why}" for kind, why in situation.missing.items()),
    )


def _of_claim(
    claim: api.ResourceClaim, explanation: ClaimExplanation, pod: Pod | None, template: str | None
) -> Iterator[str]:
    if claim.metadata.deletion_timestamp:
        yield "the claim is being deleted; no new pod may use it"
    if template and not claim.metadata.uid:
        yield f"this is what a claim made from template {template} gets"
    elif template and any(correction.changed for correction in explanation.corrections):
        yield f"the claim was made from template {template}: change it there, then make pod {pod} anew"
    elif claim.metadata.uid and any(correction.changed for correction in explanation.corrections):
        yield "the spec of a claim cannot be changed: delete the claim and make it anew"


def _of_allocation(situation: Situation, claim: api.ResourceClaim) -> Iterator[str]:
    if not claim.status.reserved_for:
        yield "allocated but reserved for nobody: it holds its devices until a pod uses it or it is deleted"
    for result in claim.status.allocation.results if claim.status.allocation else ():
        device = situation.cluster.devices.get(result.id)
        if device is None:
            yield f"{result.id} is not published any more"
        else:
            yield from (f"{result.id} is tainted {taint.key}:{taint.effect}" for taint in device.taints)


def _waiting(situation: Situation, explanation: ClaimExplanation, pod: Pod | None) -> Iterator[str]:
    fits = explanation.verdict is Verdict.FITS
    if pod is None and fits:
        yield "no pod uses it yet; devices are allocated when the first pod that does is scheduled"
    if pod is not None and pod.node:
        yield f"pod {pod} was put on node {pod.node} past the scheduler, so nothing allocates its claims"
    if pod is not None and pod.gates:
        yield f"pod {pod} is held back by its scheduling gates: {', '.join(pod.gates)}"
    others = [c.claim for c in pod.claims if c.claim and c.claim != explanation.name] if pod else []
    waiting = [
        name
        for name in others
        if pod and (other := situation.claim(pod.namespace, name)) and other.status.allocation is None
    ]
    if waiting and fits:
        yield f"its pod needs {', '.join(waiting)} at the same time: kubectl gpupool explain pod {pod}"
    if fits and explanation.evidence.scheduler_message:
        yield "the scheduler found no place when it looked last; it tries again as things change"
    yield from _of_memory(explanation)


def _of_memory(explanation: ClaimExplanation) -> Iterator[str]:
    """The trap of round numbers: what is sold as 80GB reports 81559Mi, which is less than 80Gi."""
    for part in explanation.expressions:
        asked = _ASKED.search(part.text[slice(*part.failing)])
        if explanation.verdict is Verdict.IMPOSSIBLE and asked and part.path.endswith(".memory"):
            amounts = [_amount(seen.value) for seen in part.seen if seen.value]
            number = int(asked.group(1))
            near = max((a for a in amounts if _NEAR * number <= a / GIB < number), default=None)
            if near is not None:
                yield (
                    f"{number} GB cards report {near // MIB}Mi, less than {number}Gi: "
                    f'write quantity("{near // GIB}Gi"), or nominalMemoryGB >= {number}'
                )
                return


def _amount(text: str) -> int:
    try:
        return int(api.Quantity.parse(text).value)
    except api.ApiError:
        return 0
