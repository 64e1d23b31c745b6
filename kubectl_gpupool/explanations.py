"""An explanation as text: the verdict first, what to do last, nothing of ours that depends on more than 100 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dradriver import api, explain
from dradriver.allocator import Cluster, Reason
from dradriver.explain import ClaimExplanation, Code, Expression, PodExplanation, Verdict
from kubectl_gpupool.signs import Signs
from kubectl_gpupool.tables import columns, table

COLOURS = {
    Verdict.ALLOCATED: "green",
    Verdict.FITS: "green",
    Verdict.PENDING: "yellow",
    Verdict.UNKNOWN: "yellow",
    Verdict.BLOCKED: "red",
    Verdict.IMPOSSIBLE: "red",
}
MOST_NAMED = 3
MOST_SEEN = 3
SELECTOR_CODES = (Code.SELECTED_BY_NONE, Code.SELECTOR_ERRS, Code.EXPRESSION_REFUSED)
"""Answers that a person finds in the text of their selectors."""
DETAILED = (
    Reason.POOL_INVALID, Reason.NODE, Reason.TAINT, Reason.UNHEALTHY, Reason.IN_USE, Reason.COUNTERS,
    Reason.PICKED_FOR_OTHER_REQUEST,
)  # fmt: skip
"""Buckets whose detail is not told elsewhere."""
ROOM = 65
"""Columns for what is said of a bucket beside its reason."""
OLD_SECONDS = 300


def text(explanation: ClaimExplanation | PodExplanation, cluster: Cluster, signs: Signs) -> str:
    """The whole explanation."""
    if isinstance(explanation, PodExplanation):
        return "\n".join(_pod(explanation, cluster, signs))
    return "\n".join(_claim(explanation, cluster, signs))


def _pod(explanation: PodExplanation, cluster: Cluster, signs: Signs) -> Iterator[str]:
    yield f"pod {explanation.namespace}/{explanation.name} {explanation.summary}"
    for claim in explanation.claims:
        yield ""
        yield from _claim(claim, cluster, signs)


def _claim(claim: ClaimExplanation, cluster: Cluster, signs: Signs) -> Iterator[str]:
    verdict = signs.paint(f"{claim.verdict}:", COLOURS[claim.verdict])
    code = f"  [{claim.code} {explain.TITLES[claim.code]}]" if claim.code else ""
    yield f"{verdict} claim {claim.namespace}/{claim.name} {claim.headline}{code}"
    yield from (f"  {sentence}" for sentence in claim.because)
    if claim.allocation is not None:
        yield from _allocation(claim, claim.allocation, cluster, signs)
    else:
        yield from _counts(claim, signs)
        if claim.code in SELECTOR_CODES:
            yield from _expressions(claim.expressions, signs)
    yield from _notes(claim)
    yield from _corrections(claim)


def _allocation(claim: ClaimExplanation, allocation: api.Allocation, cluster: Cluster, signs: Signs) -> Iterator[str]:
    rows = []
    for result in allocation.results:
        device = cluster.devices.get(result.id)
        attributes = device.attributes if device else {}
        product = str(attributes.get("productName", attributes.get("type", "not published any more")))
        name = f"{result.pool}/{result.device}"
        rows.append((f"  {result.request}", name, product, str(attributes.get("uuid", ""))))
    yield ""
    yield table(("  REQUEST", "DEVICE", "PRODUCT", "UUID"), rows, signs)
    if claim.pods:
        yield f"\n  used by pod {', '.join(claim.pods)}"


def _counts(claim: ClaimExplanation, signs: Signs) -> Iterator[str]:
    if not claim.devices:
        return
    fitting = next((bucket.count for bucket in claim.devices if bucket.reason is Reason.FITS), 0)
    yield ""
    yield f"  {fitting} of {claim.total} devices would do:"
    rows = [(f"  {bucket.count:>4} {explain.WORDS[bucket.reason]}", _where(bucket)) for bucket in claim.devices]
    yield columns(rows, signs)


def _where(bucket: explain.Bucket) -> str:
    """Where the devices of a bucket are, by pool, a few of them, and what there is to say of them."""
    pools: dict[str, list[str]] = {}
    for device in bucket.devices:
        pools.setdefault(device.pool, []).append(device.device)
    parts = [f"{pool}/{names[0]}" if len(names) == 1 else f"{pool} x{len(names)}" for pool, names in pools.items()]
    more = len(parts) - MOST_NAMED
    named = ", ".join(parts[:MOST_NAMED]) + (f", {more} more pool{'s' * (more > 1)}" if more > 0 else "")
    with_detail = f"{named} ({bucket.detail})"
    # A row is one line; what does not fit it is in `-o json`.
    return with_detail if bucket.detail and bucket.reason in DETAILED and len(with_detail) <= ROOM else named


def _expressions(expressions: Sequence[Expression], signs: Signs) -> Iterator[str]:
    """Each expression as written, with a mark under every part that left devices behind."""
    written: dict[tuple[str, str], list[Expression]] = {}
    for expression in expressions:
        written.setdefault((expression.where, expression.text), []).append(expression)
    own = any(not where.startswith("class ") for where, _ in written)
    for (where, expression_text), parts in written.items():
        # That devices are not of the class is in the counts; it matters where nothing else left any behind.
        if where.startswith("class ") and own and not any(part.error for part in parts):
            continue
        yield ""
        yield f"  {where}"
        start = 0
        for line in expression_text.split("\n"):
            end = start + len(line) + 1
            yield f"    {line}"
            for part in sorted(parts, key=lambda part: part.failing):
                if start <= part.failing.start < end:
                    yield from _mark(part, line, start, signs)
            start = end


def _mark(part: Expression, line: str, start: int, signs: Signs) -> Iterator[str]:
    first = part.failing.start - start
    length = max(1, min(part.failing.end - start, len(line)) - first)
    yield "    " + " " * first + signs.paint("^" * length, "red")
    yield "    " + " " * first + _said(part)


def _said(part: Expression) -> str:
    if not part.devices:
        return part.error
    if part.error:
        return f"fails on {part.devices} devices: {part.error}"
    seen = [
        "no such attribute"
        if value.value is None
        else value.value + (f" ({value.count})" if len(part.seen) > 1 else "")
        for value in part.seen[:MOST_SEEN]
    ]
    more = ", ..." if len(part.seen) > MOST_SEEN else ""
    return f"false on {part.devices} devices" + (f", seen: {', '.join(seen)}{more}" if seen else "")


def _notes(claim: ClaimExplanation) -> Iterator[str]:
    evidence = claim.evidence
    notes = list(claim.notes)
    if evidence.scheduler_message:
        notes.append(f'the scheduler says "{evidence.scheduler_message}"')
    notes.extend(f"assumed {assumption}" for assumption in evidence.assumed)
    if evidence.age_seconds is not None and evidence.age_seconds > OLD_SECONDS:
        notes.append(f"these facts are {_age(evidence.age_seconds)} old")
    if notes:
        yield ""
        yield from (f"note: {note}" for note in notes)


def _age(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds / 60:.0f}m"


def _corrections(claim: ClaimExplanation) -> Iterator[str]:
    if claim.corrections:
        yield ""
        yield "help: any one of these makes it fit (each was tried)"
        for number, correction in enumerate(claim.corrections, start=1):
            yield f"  {number}  {correction.change}"
            yield f"     {correction.path}"
    elif claim.verdict in (Verdict.PENDING, Verdict.BLOCKED, Verdict.IMPOSSIBLE) and claim.devices:
        yield ""
        yield "help: no single change that was tried makes it fit"
