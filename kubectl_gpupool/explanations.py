"""An explanation as text: the verdict first, the next command last, nothing that depends on more than 100 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dradriver import api, explain
from dradriver.allocator import Cluster, Reason
from dradriver.explain import ClaimExplanation, Expression, PodExplanation, Verdict
from kubectl_gpupool.signs import Signs
from kubectl_gpupool.tables import table

COLOURS = {
    Verdict.ALLOCATED: "green",
    Verdict.FITS: "green",
    Verdict.PENDING: "yellow",
    Verdict.UNKNOWN: "yellow",
    Verdict.BLOCKED: "red",
    Verdict.IMPOSSIBLE: "red",
}
MOST_NAMED = 4
MOST_SEEN = 3
SELECTOR_VERDICTS = (Verdict.IMPOSSIBLE, Verdict.BLOCKED)


def text(explanation: ClaimExplanation | PodExplanation, cluster: Cluster, signs: Signs) -> str:
    """The whole explanation."""
    return "\n".join(
        _pod(explanation, cluster, signs)
        if isinstance(explanation, PodExplanation)
        else _claim(explanation, cluster, signs)
    )


def _pod(explanation: PodExplanation, cluster: Cluster, signs: Signs) -> Iterator[str]:
    yield f"pod {explanation.namespace}/{explanation.name} {explanation.summary}"
    yield from (f"note: {note}" for note in explanation.notes)
    for claim in explanation.claims:
        yield ""
        yield from _claim(claim, cluster, signs)


def _claim(claim: ClaimExplanation, cluster: Cluster, signs: Signs) -> Iterator[str]:
    verdict = signs.paint(f"{claim.verdict}:", COLOURS[claim.verdict])
    code = f"  [{claim.code} {explain.TITLES[explain.Code(claim.code)]}]" if claim.code else ""
    yield f"{verdict} claim {claim.namespace}/{claim.name} {claim.summary}{code}"
    if claim.allocation is not None:
        yield from _allocation(claim, claim.allocation, cluster)
    else:
        yield from _counts(claim)
        if claim.verdict in SELECTOR_VERDICTS:
            yield from _expressions(claim.expressions, signs)
        yield from _holders(claim)
        yield from _corrections(claim)
    yield from _notes(claim)


def _allocation(claim: ClaimExplanation, allocation: api.Allocation, cluster: Cluster) -> Iterator[str]:
    rows = []
    for result in allocation.results:
        device = cluster.devices.get(result.id)
        attributes = device.attributes if device else {}
        product = str(attributes.get("productName", attributes.get("type", "not published any more")))
        profile = f" {attributes['profile']}" if "profile" in attributes else ""
        rows.append((f"  {result.request}", str(result.id), product + profile, str(attributes.get("uuid", "-"))))
    yield ""
    yield table(("  REQUEST", "DEVICE", "PRODUCT", "UUID"), rows)
    if claim.pods:
        yield f"\n  used by pod {', '.join(claim.pods)}"


def _counts(claim: ClaimExplanation) -> Iterator[str]:
    if not claim.devices:
        return
    fits = next((bucket.count for bucket in claim.devices if bucket.reason is Reason.FITS), 0)
    yield ""
    yield f"  {fits} of {claim.total} devices would do by themselves:"
    rows = [
        (f"  {bucket.count:>4}", explain.WORDS[bucket.reason], _named(bucket.devices), _detail(bucket))
        for bucket in claim.devices
    ]
    yield from (line.rstrip() for line in table(("", "", "", ""), rows, with_heads=False).splitlines())


def _detail(bucket: explain.Bucket) -> str:
    return " " if bucket.detail == explain.WORDS[bucket.reason] else bucket.detail


def _named(devices: Sequence[api.DeviceID]) -> str:
    """Where devices are: by pool, a few named."""
    pools: dict[str, list[str]] = {}
    for device in devices:
        pools.setdefault(device.pool, []).append(device.device)
    parts = [f"{pool}: {names[0]}" if len(names) == 1 else f"{pool} x{len(names)}" for pool, names in pools.items()]
    more = f", {len(parts) - MOST_NAMED} more nodes" if len(parts) > MOST_NAMED else ""
    return ", ".join(parts[:MOST_NAMED]) + more


def _expressions(expressions: Sequence[Expression], signs: Signs) -> Iterator[str]:
    """Each expression as written, with a mark under every part that left devices behind."""
    written: dict[tuple[str, str], list[Expression]] = {}
    for expression in expressions:
        written.setdefault((expression.where, expression.text), []).append(expression)
    for (where, expression_text), parts in written.items():
        if where.startswith("class ") and len(written) > 1:
            continue
        yield ""
        yield f"  {where}"
        start = 0
        for line in expression_text.splitlines():
            end = start + len(line)
            yield f"    {line}"
            for part in sorted(parts, key=lambda part: part.failing):
                if start <= part.failing.start < end:
                    yield from _mark(part, line, start, signs)
            start = end + 1


def _mark(part: Expression, line: str, start: int, signs: Signs) -> Iterator[str]:
    first = part.failing.start - start
    length = max(1, min(part.failing.end - start, len(line)) - first)
    seen = ", ".join(
        (f"{value.value} ({value.count})" if len(part.seen) > 1 else str(value.value))
        if value.value is not None
        else f"no such attribute ({value.count})"
        for value in part.seen[:MOST_SEEN]
    ) + (", ..." if len(part.seen) > MOST_SEEN else "")
    said = f"fails on {part.devices} devices" if part.error else f"false on {part.devices} devices"
    yield "    " + " " * first + signs.paint("^" * length, "red")
    yield "    " + " " * first + said + (f", seen: {seen}" if seen else "") + (f": {part.error}" if part.error else "")


def _holders(claim: ClaimExplanation) -> Iterator[str]:
    if claim.verdict is not Verdict.PENDING:
        return
    held: dict[tuple[str, str | None], list[str]] = {}
    for holder in claim.holders:
        held.setdefault((holder.claim, holder.pod), []).append(str(holder.device))
    if held:
        rows = [
            (
                f"  {name}",
                pod or "-",
                f"{len(devices)}: {', '.join(devices[:MOST_NAMED])}" + (", ..." if len(devices) > MOST_NAMED else ""),
            )
            for (name, pod), devices in sorted(held.items(), key=lambda item: -len(item[1]))
        ]
        yield ""
        yield table(("  HELD BY CLAIM", "POD", "DEVICES"), rows)


def _corrections(claim: ClaimExplanation) -> Iterator[str]:
    if claim.verdict not in (Verdict.PENDING, Verdict.BLOCKED, Verdict.IMPOSSIBLE):
        return
    yield ""
    if not claim.corrections:
        yield "help: no single change that was tried makes it fit"
        return
    yield "help: any one of these makes it fit (each was tried)"
    for number, correction in enumerate(claim.corrections, start=1):
        yield f"  {number}  {correction.change}"
        yield f"     {correction.path}"


def _notes(claim: ClaimExplanation) -> Iterator[str]:
    notes = list(claim.notes)
    evidence = claim.evidence
    if claim.verdict is not Verdict.ALLOCATED and evidence.scheduler_message:
        notes.append(f'the scheduler says "{evidence.scheduler_message}"')
    notes.extend(f"assumed: {assumption}" for assumption in evidence.assumed)
    if notes:
        yield ""
        yield from (f"note: {note}" for note in notes)
