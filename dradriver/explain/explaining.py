"""Explaining a claim, and the claims of a pod together.

Order of work: which nodes count; how far every device gets (`assess`); the verdict from up to three allocations; then
words, holders and corrections. An explanation never changes anything and can be computed again at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dradriver import allocator, api
from dradriver.explain import considering, correcting, counting, expressions, holding, summing
from dradriver.explain.codes import Code
from dradriver.explain.considering import Considered
from dradriver.explain.explanations import ClaimExplanation, Evidence, Expression, PodExplanation, Verdict
from dradriver.explain.judging import Judgement, judge
from dradriver.explain.situations import Situation

NOT_ASSESSED = (Code.CLASS_MISSING, Code.EXPRESSION_REFUSED)
"""With these nothing can be said of devices: no selector could be run."""


def explain_claim(
    situation: Situation, claim: api.ResourceClaim, *, pod: Mapping[str, Any] | None = None, written_flat: bool = False
) -> ClaimExplanation:
    """Explain one claim.

    Args:
        situation: What is known of the cluster.
        claim: The claim, in the cluster or not yet.
        pod: The pod it is for; where not given, the first that uses it counts.
        written_flat: Whether the claim was written as v1beta1, whose requests have no `exactly`; paths follow that.
    """
    pods = holding.pods_of(situation, claim)
    pod = pod or (pods[0] if pods else None)
    return _explain(situation, claim, (), considering.consider(situation, pod), pod, written_flat=written_flat)


def explain_pod(situation: Situation, pod: Mapping[str, Any], *, written_flat: bool = False) -> PodExplanation:
    """Explain all claims of a pod, those not yet allocated judged together."""
    namespace, name = pod["metadata"].get("namespace", ""), pod["metadata"]["name"]
    known = {(c.metadata.namespace, c.metadata.name): c for c in situation.claims}
    considered = considering.consider(situation, pod)
    notes: list[str] = []
    claims: list[api.ResourceClaim] = []
    entries = {entry["name"]: entry for entry in pod["spec"].get("resourceClaims") or ()}
    for entry, claim_name in holding.claim_names(pod).items():
        claim = known.get((namespace, claim_name)) if claim_name else None
        claim = claim or _from_template(situation, namespace, entries[entry], notes)
        if claim is not None:
            claims.append(claim)
    explained = tuple(
        _explain(
            situation,
            claim,
            tuple(c for c in claims if c is not claim and c.status.allocation is None),
            considered,
            pod,
            written_flat=written_flat,
        )
        for claim in claims
    )
    phase = (pod.get("status") or {}).get("phase", "Pending")
    where = pod["spec"].get("nodeName")
    summary = f"is {phase}" + (f" on node {where}" if where else "") + f", with {len(entries)} claims"
    return PodExplanation(namespace, name, summary, explained, tuple(notes))


def _from_template(
    situation: Situation, namespace: str, entry: Mapping[str, Any], notes: list[str]
) -> api.ResourceClaim | None:
    """The claim that a template would give, where it was not generated yet."""
    template_name = str(entry.get("resourceClaimTemplateName") or "")
    for template in situation.templates:
        if (template.metadata.namespace, template.metadata.name) == (namespace, template_name):
            notes.append(f"claim {entry['name']} is not generated yet; its template {template_name} is explained")
            return api.ResourceClaim(api.ObjectMeta(name=template_name, namespace=namespace), template.spec)
    missing = (
        f"template {template_name}" if template_name else f"claim {namespace}/{entry.get('resourceClaimName', '')}"
    )
    notes.append(f"{Code.CLAIM_NOT_GENERATED}: {missing} does not exist, so the pod waits for {entry['name']}")
    return None


def _explain(
    situation: Situation,
    claim: api.ResourceClaim,
    others: tuple[api.ResourceClaim, ...],
    considered: Considered,
    pod: Mapping[str, Any] | None,
    *,
    written_flat: bool,
) -> ClaimExplanation:
    cluster = situation.cluster
    assessment = allocator.assess(cluster, claim, considered.open, excluded=considered.excluded)
    findings = counting.merge(assessment)
    reasons = frozenset(finding.reason for finding in findings.values())
    if claim.status.allocation is not None:
        judgement = Judgement(Verdict.ALLOCATED)
        summary = summing.allocated(claim)
    else:
        judgement = judge(situation, (claim, *others), considered, reasons)
        summary = summing.unallocated(claim, judgement, findings)
    assessed = judgement.code not in NOT_ASSESSED
    said = expressions.expressions(cluster, claim, assessment, written_flat=written_flat) if assessed else ()
    question = correcting.Question(
        cluster, considered, claim, others, judgement, tuple(findings.values()), said, written_flat
    )
    asks = judgement.verdict in (Verdict.BLOCKED, Verdict.PENDING, Verdict.IMPOSSIBLE) and assessed
    return ClaimExplanation(
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        verdict=judgement.verdict,
        code=str(judgement.code) if judgement.code else None,
        summary=summary,
        devices=counting.buckets(findings),
        requests=counting.by_request(assessment),
        expressions=said,
        holders=holding.held(findings) if judgement.verdict is not Verdict.ALLOCATED else (),
        corrections=correcting.corrections(question) if asks else (),
        notes=tuple(_notes(situation, claim, judgement, said, pod)),
        evidence=_evidence(situation, claim, pod),
        allocation=claim.status.allocation,
        pods=tuple(
            f"{p['metadata'].get('namespace', '')}/{p['metadata']['name']}" for p in holding.pods_of(situation, claim)
        ),
    )


def _notes(
    situation: Situation,
    claim: api.ResourceClaim,
    judgement: Judgement,
    said: Sequence[Expression],
    pod: Mapping[str, Any] | None,
) -> list[str]:
    notes: list[str] = []
    if claim.metadata.deletion_timestamp:
        notes.append("the claim is being deleted; no new pod may use it")
    if claim.status.allocation is not None and not claim.status.reserved_for:
        notes.append("allocated but reserved for nobody: it holds its devices until a pod uses it or it is deleted")
    if judgement.verdict is Verdict.FITS and pod is None:
        notes.append("no pod uses it; devices are allocated when the first pod that does is scheduled")
    bound = (pod or {}).get("spec", {}).get("nodeName") if claim.status.allocation is None else None
    if bound:
        notes.append(f"its pod was put on node {bound} past the scheduler, which therefore never allocates its claims")
    short = [e for e in said if "quantity(" in e.text[e.failing.start : e.failing.end] and ".memory" in e.path]
    if short and judgement.verdict is Verdict.IMPOSSIBLE:
        values = ", ".join(seen.value for seen in short[0].seen if seen.value)
        notes.append(
            f"GPUs report a little less than the round number in their name (here {values}); "
            "nominalMemoryGB is the number in the name"
        )
    notes.extend(f"could not be read: {kind}: {why}" for kind, why in situation.missing.items())
    return notes


def _evidence(situation: Situation, claim: api.ResourceClaim, pod: Mapping[str, Any] | None) -> Evidence:
    message = None
    if claim.status.allocation is None:
        conditions = ((pod or {}).get("status") or {}).get("conditions") or ()
        message = next((c.get("message") for c in conditions if c.get("type") == "PodScheduled"), None)
    return Evidence(situation.resource_version, situation.age_seconds, message, situation.assumed)
