"""Corrections: the smallest changes that make a claim fit, each tried by running the allocator with it.

Tried in order of what they cost a person: another way to write what was meant, fewer devices, a dropped constraint,
another claim ended. At most `MOST` are given; one that was not seen to work is not given at all.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dradriver import api, cel
from dradriver.allocator import Cluster, Finding, Holder
from dradriver.explain import holding
from dradriver.explain.considering import Considered
from dradriver.explain.explanations import Correction, Expression, Verdict
from dradriver.explain.judging import Judgement, fit

MOST = 3
MOST_TRIED = 64
"""Allocator runs spent on corrections of one kind; past them the kind has no answer."""
MOST_ENDED = 2
"""Claims ended together."""
GIB = 1 << 30

_QUANTITY = re.compile(r'quantity\("([^"]*)"\)')


@dataclass(frozen=True, slots=True)
class Question:
    """What corrections are looked for: a claim that does not fit, where, and how far devices got."""

    cluster: Cluster
    considered: Considered
    claim: api.ResourceClaim
    others: tuple[api.ResourceClaim, ...]
    """The other unallocated claims of the same pod."""
    judgement: Judgement
    findings: Sequence[Finding]
    expressions: tuple[Expression, ...]
    written_flat: bool

    def fits(self, claim: api.ResourceClaim, cluster: Cluster | None = None) -> bool:
        """Whether the pod's claims would fit now with this claim, or in this cluster."""
        answer = fit(cluster or self.cluster, self.considered.open, (claim, *self.others))
        return answer.node is not None


def corrections(question: Question) -> tuple[Correction, ...]:
    """The cheapest changes that were seen to work."""
    kinds: tuple[Callable[[Question], Iterator[Correction]], ...] = (
        _rewritten,
        _reopened,
        _fewer,
        _ended,
        _unconstrained,
    )
    found: list[Correction] = []
    for kind in kinds:
        found.extend(itertools.islice(kind(question), MOST - len(found)))
        if len(found) == MOST:
            break
    return tuple(found)


def _rewritten(question: Question) -> Iterator[Correction]:
    """Selectors that nothing meets: the part that the nearest misses fail, left away or with the value they have."""
    if question.judgement.verdict is not Verdict.IMPOSSIBLE:
        return
    for expression in question.expressions[:2]:
        if expression.where.startswith("class "):
            continue
        worked = False
        for change, text in _rewrites(expression):
            if question.fits(_with_expression(question.claim, expression, text)):
                worked = True
                yield Correction(change, expression.where)
        if worked:
            return


def _rewrites(expression: Expression) -> Iterator[tuple[str, str]]:
    start, end = expression.failing
    part = expression.text[start:end]
    values = [seen.value for seen in expression.seen if seen.value is not None]
    quantity = _QUANTITY.search(part)
    if quantity and values:
        asked = quantity.group(1)
        smaller = _gib_below(values)
        if smaller is not None:
            written = part.replace(quantity.group(0), f'quantity("{smaller}")')
            text = expression.text[:start] + written + expression.text[end:]
            yield f'write quantity("{smaller}") in place of quantity("{asked}"): these devices have {values[0]}', text
    without = _without(expression.text, expression.failing)
    if without:
        yield f"leave away: {' '.join(part.split())}", without
    comparison = re.fullmatch(r"(.+?)\s*==\s*(\"[^\"]*\"|-?\d+)", part, re.DOTALL)
    for value in values[:2] if comparison else ():
        written = f"{comparison.group(1)} == {value}" if comparison else ""
        yield (
            f"write {value} in place of {comparison.group(2) if comparison else ''}",
            (expression.text[:start] + written + expression.text[end:]),
        )


def _gib_below(values: Sequence[str]) -> str | None:
    """The largest whole number of GiB that the largest of these quantities still has."""
    try:
        largest = max(api.Quantity.parse(value) for value in values)
    except api.ApiError:
        return None
    whole = int(largest.value // GIB)
    return f"{whole}Gi" if whole > 0 else None


def _without(text: str, span: cel.Span) -> str | None:
    """An expression without one of its conjuncts, None where it is the only one."""
    before, after = text[: span.start].rstrip(), text[span.end :].lstrip()
    if before.endswith("&&"):
        return before[:-2].rstrip() + (f" {after}" if after else "")
    if after.startswith("&&"):
        return f"{before} {after[2:].lstrip()}".strip()
    return None


def _with_expression(claim: api.ResourceClaim, expression: Expression, text: str) -> api.ResourceClaim:
    """The claim with one expression replaced wherever it stands as it is."""

    def swap(selectors: tuple[api.Selector, ...]) -> tuple[api.Selector, ...]:
        return tuple(replace(s, expression=text) if s.expression == expression.text else s for s in selectors)

    def request(value: api.DeviceRequest) -> api.DeviceRequest:
        exactly = value.exactly
        return replace(
            value,
            exactly=replace(exactly, selectors=swap(exactly.selectors)) if exactly else None,
            first_available=tuple(replace(o, selectors=swap(o.selectors)) for o in value.first_available),
        )

    return _with_requests(claim, tuple(request(r) for r in claim.spec.requests))


def _reopened(question: Question) -> Iterator[Correction]:
    """Nodes that are closed for now."""
    for node in question.considered.reopened:
        if fit(question.cluster, (node,), (question.claim, *question.others)).node is not None:
            reason = question.considered.closed[node.name]
            if reason == "cordoned":
                yield Correction(f"uncordon node {node.name}", f"kubectl uncordon {node.name}")
            else:
                yield Correction(f"tolerate or remove the taint of node {node.name} ({reason})", f"node {node.name}")


def _fewer(question: Question) -> Iterator[Correction]:
    """Fewer devices in one request."""
    for position, request in enumerate(question.claim.spec.requests):
        exactly = request.exactly
        if exactly is None or exactly.allocation_mode != api.AllocationMode.EXACT_COUNT:
            continue
        for count in range(min(exactly.count - 1, MOST_TRIED), 0, -1):
            smaller = replace(request, exactly=replace(exactly, count=count))
            requests = question.claim.spec.requests
            if question.fits(
                _with_requests(question.claim, (*requests[:position], smaller, *requests[position + 1 :]))
            ):
                inner = "" if question.written_flat else ".exactly"
                path = f"spec.devices.requests[{position}]{inner}.count"
                yield Correction(f"ask for {count} in place of {exactly.count}", path)
                break


def _ended(question: Question) -> Iterator[Correction]:
    """The fewest other claims that have to end."""
    if question.judgement.verdict is not Verdict.PENDING:
        return
    candidates = holding.holders(question.findings)
    tried = 0
    for size in range(1, MOST_ENDED + 1):
        found = False
        for group in itertools.combinations(candidates, size):
            tried += 1
            if tried > MOST_TRIED:
                return
            if question.fits(question.claim, _without_claims(question.cluster, group)):
                found = True
                yield _ending(group)
        if found:
            return


def _without_claims(cluster: Cluster, group: Sequence[Holder]) -> Cluster:
    names = {holding.name(holder.claim) for holder in group}
    return cluster.without_claims(lambda claim: holding.name(claim) in names)


def _ending(group: Sequence[Holder]) -> Correction:
    said, commands = [], []
    for holder in group:
        namespace, claim = holder.claim.metadata.namespace, holder.claim.metadata.name
        pod = holding.user(holder.claim)
        if pod is None:
            said.append(f"claim {namespace}/{claim}")
            commands.append(f"kubectl delete resourceclaim -n {namespace} {claim}")
        else:
            said.append(f"pod {pod}, which holds claim {namespace}/{claim}")
            commands.append(f"kubectl delete pod -n {namespace} {pod.rpartition('/')[2]}")
    return Correction(f"wait for or end {' and '.join(said)}", " && ".join(commands))


def _unconstrained(question: Question) -> Iterator[Correction]:
    """One constraint dropped."""
    constraints = question.claim.spec.constraints
    for position, constraint in enumerate(constraints):
        kept = (*constraints[:position], *constraints[position + 1 :])
        changed = replace(question.claim, spec=replace(question.claim.spec, constraints=kept))
        if question.fits(changed):
            attribute = constraint.match_attribute or constraint.distinct_attribute
            yield Correction(f"drop the constraint on {attribute}", f"spec.devices.constraints[{position}]")


def _with_requests(claim: api.ResourceClaim, requests: tuple[api.DeviceRequest, ...]) -> api.ResourceClaim:
    return replace(claim, spec=replace(claim.spec, requests=requests))
