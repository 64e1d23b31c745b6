"""The user's own CEL, with the parts that left devices behind and the values those parts met.

The part on which most conjuncts had been passed already comes first: its devices are the nearest misses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from dradriver import api
from dradriver.allocator import Assessment, Cluster, Finding, Reason
from dradriver.cel import Span
from dradriver.explain.explanations import Expression, Seen

SELECTOR_REASONS = (Reason.CLASS_SELECTOR, Reason.REQUEST_SELECTOR, Reason.SELECTOR_ERROR)


@dataclass(slots=True)
class _Part:
    """One part of one expression, and what it met."""

    values: Counter[str | None] = field(default_factory=Counter)
    paths: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    devices: int = 0


def expressions(
    cluster: Cluster, claim: api.ResourceClaim, assessment: Assessment, *, written_flat: bool
) -> tuple[Expression, ...]:
    """Every part of a request's selectors that left devices behind; `written_flat` for claims read as v1beta1."""
    found: list[tuple[int, Expression]] = []
    for position, request in enumerate(claim.spec.requests):
        for name, option, path in _options(position, request, written_flat=written_flat):
            findings = assessment.requests.get(name, {})
            for (in_class, selector, span), part in _parts(findings).items():
                where = f"{path}.selectors[{selector}].cel.expression"
                selectors = option.selectors
                if in_class:
                    device_class = cluster.classes.get(option.device_class_name)
                    selectors = device_class.selectors if device_class else ()
                    where = f"class {option.device_class_name}: spec.selectors[{selector}].cel.expression"
                text = selectors[selector].expression or ""
                stage = (0 if in_class else 10_000) + selector * 1000 + span.start // 10
                found.append((stage, _expression(where, text, span, part)))
    return tuple(expression for _, expression in sorted(found, key=lambda item: -item[0]))


def _options(
    position: int, request: api.DeviceRequest, *, written_flat: bool
) -> list[tuple[str, api.ExactDeviceRequest | api.DeviceSubRequest, str]]:
    base = f"spec.devices.requests[{position}]"
    if request.exactly is not None:
        return [(request.name, request.exactly, base if written_flat else f"{base}.exactly")]
    return [
        (f"{request.name}/{option.name}", option, f"{base}.firstAvailable[{number}]")
        for number, option in enumerate(request.first_available)
    ]


def _parts(findings: Mapping[api.DeviceID, Finding]) -> dict[tuple[bool, int, Span], _Part]:
    parts: dict[tuple[bool, int, Span], _Part] = {}
    for finding in findings.values():
        trace = finding.trace
        if (
            finding.reason not in SELECTOR_REASONS
            or finding.selector is None
            or trace is None
            or trace.deciding is None
        ):
            continue
        part = parts.setdefault((finding.in_class, finding.selector, trace.deciding), _Part())
        part.devices += 1
        if not isinstance(trace.outcome, bool):
            part.errors[str(trace.outcome)] += 1
        for observation in trace.observations[:1]:
            part.values[show(observation.value) if observation.present else None] += 1
            part.paths[observation.path] += 1
    return parts


def _expression(where: str, text: str, span: Span, part: _Part) -> Expression:
    seen = tuple(Seen(value, count) for value, count in part.values.most_common())
    error = part.errors.most_common(1)[0][0] if part.errors else ""
    path = part.paths.most_common(1)[0][0] if part.paths else ""
    return Expression(where, text, span, seen, path, error, part.devices)


def show(value: object) -> str:
    """A value as it would be written in an expression, quantities and versions plain."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, api.Quantity | api.Version):
        return value.text
    return str(value)
