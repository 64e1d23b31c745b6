"""Corrections: the smallest changes that make a claim fit, each tried by running the allocator with it.

Tried in order of what they cost a person. At most `MOST` are given; one that was not seen to work is not given at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TypeAlias

from dradriver import api
from dradriver.allocator import Cluster, Finding, Holder, Reason
from dradriver.explain import holding
from dradriver.explain.codes import Code
from dradriver.explain.considering import Considered
from dradriver.explain.explanations import Correction, Expression, Verdict
from dradriver.explain.judging import Judgement, fit, misconfigured
from dradriver.explain.paths import Paths
from dradriver.explain.rewriting import rewritings

MOST = 3
_MOST_HOLDERS = 64
"""Claims among which those to be ended are looked for."""
_MOST_NAMED = 8
"""Ending more claims than this is no advice."""
_MOST_EXPRESSIONS = 3
_BEYOND_SELECTORS = (
    Reason.TAINT, Reason.UNHEALTHY, Reason.IN_USE, Reason.COUNTERS, Reason.CAPACITY, Reason.CONSTRAINT, Reason.FITS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    """What corrections are looked for: a claim that does not fit, where, and how far devices got.

    `claims` are all unallocated claims of the pod in its order, `position` tells which one is to be corrected.
    """

    cluster: Cluster
    considered: Considered
    claims: tuple[api.ResourceClaim, ...]
    position: int
    judgement: Judgement
    findings: Sequence[Finding]
    expressions: tuple[Expression, ...]
    paths: Paths

    @property
    def claim(self) -> api.ResourceClaim:
        """The claim to be corrected."""
        return self.claims[self.position]

    def fits(self, claim: api.ResourceClaim, cluster: Cluster | None = None) -> bool:
        """Whether the pod's claims would fit now with this claim, or in this cluster."""
        claims = (*self.claims[: self.position], claim, *self.claims[self.position + 1 :])
        cluster = cluster or self.cluster
        if misconfigured(cluster, claims) is not None:
            return False
        answer = fit(cluster, self.considered.open, claims, every_node=True)
        return answer.node is not None and answer.failure is None


Kind: TypeAlias = Callable[[Question], Iterator[Correction]]


def corrections(question: Question) -> tuple[Correction, ...]:
    """The cheapest changes that were seen to work."""
    kinds: list[Kind] = [_reclassed, _reopened, _fewer, _ended, _unconstrained, _elsewhere]
    selected = any(finding.reason in _BEYOND_SELECTORS for finding in question.findings)
    # Where nothing passes the selectors they are what is wrong; otherwise they are the last thing to change.
    kinds.insert(len(kinds) if selected and question.judgement.code is not Code.SELECTOR_ERRS else 0, _rewritten)
    found = itertools.chain.from_iterable(kind(question) for kind in kinds)
    return tuple(itertools.islice(found, MOST))


def _rewritten(question: Question) -> Iterator[Correction]:
    """A selector written otherwise: first what may have been meant, then what other devices would meet."""
    if question.judgement.verdict is Verdict.PENDING:
        return
    known = sorted(
        {name.rpartition("/")[2] for d in question.cluster.devices.values() for name in (*d.attributes, *d.capacity)}
    )
    own = [expression for expression in question.expressions if not expression.where.startswith("class ")]
    tries = [(each, r) for each in own[:_MOST_EXPRESSIONS] for r in rewritings(each, known)]
    # Other devices are proposed only for the part that let devices come furthest.
    for expression, rewriting in sorted(tries, key=lambda item: not item[1].meant):
        if rewriting.meant or expression is own[0]:
            changed = _with_expression(question, expression.where, rewriting.text)
            if question.fits(changed):
                yield Correction(rewriting.change, expression.where, changed=changed)


def _reclassed(question: Question) -> Iterator[Correction]:
    """A class that exists, in place of one that does not."""
    for position, request in enumerate(question.claim.spec.requests):
        exactly = request.exactly
        if exactly is None or exactly.device_class_name in question.cluster.classes:
            continue
        for name in get_close_matches(exactly.device_class_name, question.cluster.classes, n=2, cutoff=0.5):
            changed = _with_request(
                question.claim, position, replace(request, exactly=replace(exactly, device_class_name=name))
            )
            if question.fits(changed):
                path = f"{question.paths.exactly(position)}.deviceClassName"
                yield Correction(f"write {name} in place of {exactly.device_class_name}", path, changed=changed)


def _reopened(question: Question) -> Iterator[Correction]:
    """A node that is closed for now."""
    for node in question.considered.reopened:
        if fit(question.cluster, (node,), question.claims).node is not None:
            reason = question.considered.closed[node.name]
            if reason == "cordoned":
                yield Correction(f"uncordon node {node.name}", f"kubectl uncordon {node.name}")
            else:
                change = f"let the pod tolerate what node {node.name} is {reason}"
                yield Correction(change, "spec.tolerations of the pod")
            return


def _fewer(question: Question) -> Iterator[Correction]:
    """As many devices as there are, in one request."""
    for position, request in enumerate(question.claim.spec.requests):
        exactly = request.exactly
        if exactly is None or exactly.allocation_mode != api.AllocationMode.EXACT_COUNT:
            continue
        for count in range(min(exactly.count - 1, len(question.findings)), 0, -1):
            changed = _with_request(question.claim, position, replace(request, exactly=replace(exactly, count=count)))
            if question.fits(changed):
                path = f"{question.paths.exactly(position)}.count"
                yield Correction(f"ask for {count} in place of {exactly.count}", path, changed=changed)
                return


def _ended(question: Question) -> Iterator[Correction]:
    """Other claims that end: each that is enough by itself, else a smallest set of them."""
    if question.judgement.verdict is not Verdict.PENDING:
        return
    found = holding.holders(question.findings)
    own = {f"{namespace}/{name}" for namespace, name in question.considered.own}
    candidates = [holder for holder in found if holding.name(holder.claim) not in own][:_MOST_HOLDERS]
    enough = (holder for holder in candidates if _fits_without(question, [holder]))
    alone = list(itertools.islice(enough, MOST - 1))
    for holder in alone:
        yield _ending([holder])
    if alone or not _fits_without(question, candidates):
        return
    needed = list(candidates)
    for holder in candidates:
        rest = [other for other in needed if other is not holder]
        if _fits_without(question, rest):
            needed = rest
    if len(needed) <= _MOST_NAMED:
        yield _ending(needed)


def _fits_without(question: Question, ended: Sequence[Holder]) -> bool:
    names = {holding.name(holder.claim) for holder in ended}
    return question.fits(question.claim, question.cluster.without_claims(lambda claim: holding.name(claim) in names))


def _ending(ended: Sequence[Holder]) -> Correction:
    said, commands = [], []
    for holder in ended:
        namespace, claim = holder.claim.metadata.namespace, holder.claim.metadata.name
        pods = holding.users(holder.claim)
        if pods:
            said.append(f"pod {', '.join(f'{namespace}/{pod}' for pod in pods)} (claim {namespace}/{claim})")
            commands.append(f"kubectl delete pod -n {namespace} {' '.join(pods)}")
        else:
            said.append(f"claim {namespace}/{claim}, which no pod uses")
            commands.append(f"kubectl delete resourceclaim -n {namespace} {claim}")
    names = tuple(holding.name(holder.claim) for holder in ended)
    return Correction(f"wait for or end {' and '.join(said)}", " && ".join(commands), ended=names)


def _unconstrained(question: Question) -> Iterator[Correction]:
    """One constraint dropped."""
    constraints = question.claim.spec.constraints
    for position, constraint in enumerate(constraints):
        kept = (*constraints[:position], *constraints[position + 1 :])
        changed = replace(question.claim, spec=replace(question.claim.spec, constraints=kept))
        if question.fits(changed):
            attribute = constraint.match_attribute or constraint.distinct_attribute
            change = f"drop the constraint on {attribute}"
            yield Correction(change, question.paths.constraint(position), changed=changed)


def _elsewhere(question: Question) -> Iterator[Correction]:
    """A node that the pod's own rules leave out."""
    for name, reason in question.considered.unwanted.items():
        node = question.cluster.nodes[name]
        if "allocated" not in reason and fit(question.cluster, (node,), question.claims).node is not None:
            path = "spec.nodeName" if reason.startswith("the pod is on") else "spec.nodeSelector and spec.affinity"
            yield Correction(f"let the pod run on node {name}; now {reason}", f"{path} of the pod")
            return


def _with_expression(question: Question, where: str, text: str) -> api.ResourceClaim:
    """The claim with the expression at a path replaced."""

    def swap(selectors: tuple[api.Selector, ...], path: str) -> tuple[api.Selector, ...]:
        here = [f"{path}.selectors[{number}].cel.expression" == where for number in range(len(selectors))]
        return tuple(api.Selector(text) if changed else s for s, changed in zip(selectors, here, strict=True))

    claim, paths = question.claim, {name: path for name, _, path in question.paths.options(question.claim)}
    requests = tuple(
        replace(
            request,
            exactly=request.exactly
            and replace(request.exactly, selectors=swap(request.exactly.selectors, paths[request.name])),
            first_available=tuple(
                replace(option, selectors=swap(option.selectors, paths[f"{request.name}/{option.name}"]))
                for option in request.first_available
            ),
        )
        for request in claim.spec.requests
    )
    return replace(claim, spec=replace(claim.spec, requests=requests))


def _with_request(claim: api.ResourceClaim, position: int, request: api.DeviceRequest) -> api.ResourceClaim:
    requests = claim.spec.requests
    return replace(claim, spec=replace(claim.spec, requests=(*requests[:position], request, *requests[position + 1 :])))
