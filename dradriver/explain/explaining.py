"""Explaining a claim, and the claims of a pod together.

Order of work: which nodes count; how far every device gets (`assess`); the verdict from up to three allocations; then
words, holders and corrections. An explanation never changes anything and can be computed again at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from dradriver import api
from dradriver.allocator import Assessment
from dradriver.explain import considering, correcting, counting, expressions, grouping, holding, noting, reasoning
from dradriver.explain.codes import Code
from dradriver.explain.considering import Considered
from dradriver.explain.explanations import ClaimExplanation, Evidence, PodExplanation, Verdict
from dradriver.explain.judging import Judgement, fit, judge
from dradriver.explain.paths import Paths, paths_of
from dradriver.explain.situations import Situation
from dradriver.explain.surroundings import Pod, PodClaim

_NOT_GROUPED = (Verdict.FITS, Verdict.BLOCKED, Verdict.UNKNOWN)


@dataclass(frozen=True, slots=True)
class _Subject:
    """A claim to be explained, where its text stands, and the pod it is for."""

    claim: api.ResourceClaim
    paths: Paths
    pod: Pod | None = None
    template: str | None = None
    """The template it was made from, or would be."""


def explain_claim(situation: Situation, claim: api.ResourceClaim, *, pod: Pod | None = None) -> ClaimExplanation:
    """Explain one claim by itself.

    Args:
        situation: What is known of the cluster.
        claim: The claim, in the cluster or not yet.
        pod: The pod it is for; where not given, the first that uses it counts.
    """
    pod = pod or next(iter(situation.pods_of(claim)), None)
    return _explain(situation, (_subject(situation, claim, pod),), 0, _considered(situation, claim, pod))


def explain_template(situation: Situation, template: api.ResourceClaimTemplate) -> ClaimExplanation:
    """Explain what a claim made from a template would get."""
    subject = _from_template(situation, template, None)
    return _explain(situation, (subject,), 0, considering.consider(situation, None))


def explain_pod(situation: Situation, pod: Pod) -> PodExplanation:
    """Explain all claims of a pod, those not yet allocated judged together."""
    found = [(entry, _of_pod(situation, pod, entry)) for entry in pod.claims]
    subjects = [subject for _, subject in found if subject is not None]
    waiting = tuple(subject for subject in subjects if subject.claim.status.allocation is None)
    explained: list[ClaimExplanation] = []
    for entry, subject in found:
        if subject is None:
            explained.append(_absent(situation, pod, entry))
        elif subject in waiting:
            together = considering.consider(situation, pod)
            explained.append(_explain(situation, waiting, waiting.index(subject), together))
        else:
            explained.append(_explain(situation, (subject,), 0, considering.consider(situation, None)))
    on = f" on node {pod.node}" if pod.node else ""
    count = f"{len(pod.claims)} claim" + "s" * (len(pod.claims) != 1)
    return PodExplanation(pod.namespace, pod.name, f"is {pod.phase}{on}, with {count}", tuple(explained))


def _considered(situation: Situation, claim: api.ResourceClaim, pod: Pod | None) -> Considered:
    # Where the pod of an allocated claim runs says nothing of where the claim could be had.
    return considering.consider(situation, None if claim.status.allocation else pod)


def _subject(situation: Situation, claim: api.ResourceClaim, pod: Pod | None) -> _Subject:
    namespace, name = claim.metadata.namespace, claim.metadata.name
    template = next((e.template for e in (pod.claims if pod else ()) if e.claim == name), None)
    return _Subject(claim, paths_of(situation, "ResourceClaim", namespace, name), pod, template)


def _from_template(situation: Situation, template: api.ResourceClaimTemplate, pod: Pod | None) -> _Subject:
    namespace, name = template.metadata.namespace, template.metadata.name
    claim = api.ResourceClaim(api.ObjectMeta(name=name, namespace=namespace), template.spec)
    return _Subject(claim, paths_of(situation, "ResourceClaimTemplate", namespace, name), pod, name)


def _of_pod(situation: Situation, pod: Pod, entry: PodClaim) -> _Subject | None:
    """The claim of a pod, or the one that its template would give; None where neither exists."""
    claim = situation.claim(pod.namespace, entry.claim) if entry.claim else None
    if claim is not None:
        return _subject(situation, claim, pod)
    template = situation.template(pod.namespace, entry.template) if entry.template else None
    return _from_template(situation, template, pod) if template is not None else None


def _absent(situation: Situation, pod: Pod, entry: PodClaim) -> ClaimExplanation:
    """A claim of a pod that is not there, nor anything to make it from."""
    kind, name = ("template", entry.template) if entry.template else ("claim", entry.claim)
    name = name or ""
    missing = situation.missing.get("ResourceClaimTemplate" if entry.template else "ResourceClaim")
    if missing:
        code, verdict, because = Code.NOT_READABLE, Verdict.UNKNOWN, [f"{kind} {name} is not known: {missing}"]
    else:
        values = situation.templates if entry.template else situation.claims
        there = [v.metadata.name for v in values if v.metadata.namespace == pod.namespace]
        near = get_close_matches(name, there, n=1)
        code, verdict = Code.CLAIM_NOT_GENERATED, Verdict.BLOCKED
        because = [f"{kind} {pod.namespace}/{name}, which the pod names, does not exist"]
        because += [f"did you mean {near[0]}?"] if near else []
    return ClaimExplanation(
        pod.namespace,
        entry.claim or entry.name,
        verdict,
        code,
        reasoning.ABSENT,
        tuple(because),
        evidence=_evidence(situation, pod),
        pods=(str(pod),),
    )


def _explain(
    situation: Situation, subjects: Sequence[_Subject], position: int, considered: Considered
) -> ClaimExplanation:
    """Explain one of several claims that are judged together."""
    cluster, subject = situation.cluster, subjects[position]
    claim, claims = subject.claim, tuple(each.claim for each in subjects)
    assessment = counting.assess(cluster, claim, considered.open, considered.excluded)
    holds = claim.status.allocation is not None
    judgement = Judgement(Verdict.ALLOCATED) if holds else judge(situation, claims, considered)
    assessment = counting.picked(assessment, _picks(situation, claims, considered, judgement), holding.name(claim))
    merged = counting.merge(assessment)
    if holds:
        said = reasoning.Reasoning(reasoning.allocated(claim), (), None)
    else:
        said = reasoning.reason(judgement, _groupings(situation, claim, considered, judgement, assessment), assessment)
    written = expressions.expressions(cluster, claim, assessment, subject.paths)
    judged = replace(judgement, code=said.code)
    findings = tuple(merged.values())
    question = correcting.Question(cluster, considered, claims, position, judged, findings, written, subject.paths)
    corrections = () if judgement.verdict in noting.SETTLED else correcting.corrections(question)
    explanation = ClaimExplanation(
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        verdict=judgement.verdict,
        code=said.code,
        headline=said.headline,
        because=said.because,
        devices=counting.buckets(merged),
        requests=counting.by_request(assessment),
        expressions=written,
        holders=() if holds else holding.held(merged),
        corrections=corrections,
        evidence=_evidence(situation, None if holds else subject.pod),
        allocation=claim.status.allocation,
        pods=tuple(str(pod) for pod in situation.pods_of(claim)),
    )
    notes = noting.notes(situation, claim, explanation, subject.pod, subject.template)
    return replace(explanation, notes=notes)


def _groupings(
    situation: Situation,
    claim: api.ResourceClaim,
    considered: Considered,
    judgement: Judgement,
    assessment: Assessment,
) -> tuple[grouping.Grouping, ...]:
    """The best groups for each request, where the verdict is about them."""
    if judgement.cause or judgement.verdict in _NOT_GROUPED:
        return ()
    empty = counting.assess(considered.emptied(situation.cluster), claim, considered.everywhere)
    found = (
        grouping.group(situation.cluster, claim, name, empty.requests[name], assessment.requests[name])
        for name in assessment.requests
    )
    return tuple(each for each in found if each is not None)


def _picks(
    situation: Situation, claims: Sequence[api.ResourceClaim], considered: Considered, judgement: Judgement
) -> Mapping[api.DeviceID, str]:
    """Which device is picked for which request: those allocated, or as many requests as the allocator can meet."""
    if judgement.verdict is Verdict.ALLOCATED:
        return _given(claims, [c.status.allocation for c in claims if c.status.allocation])
    if judgement.cause:
        return {}
    total = sum(len(claim.spec.requests) for claim in claims)
    # One request by itself competes with nothing.
    for count in range(total if judgement.verdict is Verdict.FITS else total - 1, 0, -1):
        first = _first_requests(claims, count)
        answer = fit(situation.cluster, considered.open, first)
        if answer.node is not None:
            return _given(first, answer.allocations)
    return {}


def _given(claims: Sequence[api.ResourceClaim], allocations: Sequence[api.Allocation]) -> dict[api.DeviceID, str]:
    return {
        result.id: f"{holding.name(claim)} {result.request}"
        for claim, allocation in zip(claims, allocations, strict=True)
        for result in allocation.results
        if not result.admin_access
    }


def _first_requests(claims: Sequence[api.ResourceClaim], count: int) -> list[api.ResourceClaim]:
    """The claims with only their first `count` requests, counted over all of them."""
    first: list[api.ResourceClaim] = []
    for claim in claims:
        requests = claim.spec.requests[:count]
        count -= len(requests)
        names = {r.name for r in requests} | {f"{r.name}/{o.name}" for r in requests for o in r.first_available}
        constraints = tuple(
            replace(c, requests=kept)
            for c in claim.spec.constraints
            if (kept := tuple(name for name in c.requests if name in names)) or not c.requests
        )
        if requests:
            first.append(replace(claim, spec=replace(claim.spec, requests=requests, constraints=constraints)))
    return first


def _evidence(situation: Situation, pod: Pod | None) -> Evidence:
    message = pod.refused if pod else None
    if pod and message is None and pod.node is None:
        told = [r for r in situation.refusals if r.pod == (pod.namespace, pod.name)]
        message = max(told, key=lambda refusal: refusal.time).message if told else None
    return Evidence(situation.resource_version, situation.age_seconds, message, situation.assumed)
