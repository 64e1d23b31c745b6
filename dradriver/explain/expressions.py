"""The user's own CEL, with the parts that left devices behind and the values those parts met.

The part on which most conjuncts had been passed already comes first: its devices are the nearest misses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dradriver import api, cel
from dradriver.allocator import Assessment, Cluster, Finding
from dradriver.explain.explanations import Expression, Seen
from dradriver.explain.paths import Paths


@dataclass(slots=True)
class _Part:
    """One part of one expression, and what it met."""

    values: Counter[str | None] = field(default_factory=Counter)
    paths: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    devices: int = 0


def expressions(
    cluster: Cluster, claim: api.ResourceClaim, assessment: Assessment, paths: Paths
) -> tuple[Expression, ...]:
    """Every part of the selectors of a claim that left devices behind, or does not compile."""
    found: list[tuple[tuple[bool, int, int], Expression]] = []
    for name, option, path in paths.options(claim):
        for where, in_class, index, selector in _selectors(cluster, option, path):
            text = selector.expression or ""
            program = cluster.selectors.program(text)
            if isinstance(program, cel.CompileError):
                found.append(
                    ((True, 0, 0), Expression(where, text, _visible(program.span, text), (), "", str(program)))
                )
                continue
            for span, part in _parts(assessment.requests.get(name, {}), index, in_class=in_class).items():
                found.append(((not in_class, index, span.start), _expression(where, text, span, part)))
    return tuple(expression for _, expression in sorted(found, key=lambda item: item[0], reverse=True))


def _selectors(
    cluster: Cluster, option: api.ExactDeviceRequest | api.DeviceSubRequest, path: str
) -> Iterator[tuple[str, bool, int, api.Selector]]:
    device_class = cluster.classes.get(option.device_class_name)
    for index, selector in enumerate(device_class.selectors if device_class else ()):
        where = f"class {option.device_class_name}: spec.selectors[{index}].cel.expression"
        yield where, True, index, selector
    for index, selector in enumerate(option.selectors):
        yield f"{path}.selectors[{index}].cel.expression", False, index, selector


def _visible(span: cel.Span, text: str) -> cel.Span:
    """A span of at least one code point: an expression that ends too early is marked at its end."""
    start = min(span.start, max(0, len(text) - 1))
    return cel.Span(start, max(span.end, start + 1))


def _parts(findings: Mapping[api.DeviceID, Finding], selector: int, *, in_class: bool) -> dict[cel.Span, _Part]:
    parts: dict[cel.Span, _Part] = {}
    for finding in findings.values():
        trace = finding.trace
        if trace is None or trace.deciding is None or (finding.selector, finding.in_class) != (selector, in_class):
            continue
        part = parts.setdefault(trace.deciding, _Part())
        part.devices += 1
        if not isinstance(trace.outcome, bool):
            part.errors[str(trace.outcome)] += 1
            part.missing.update([trace.outcome.missing_key] if trace.outcome.missing_key else ())
        for observation in trace.observations[:1]:
            part.values[show(observation.value) if observation.present else None] += 1
            part.paths[observation.path] += 1
    return parts


def _expression(where: str, text: str, span: cel.Span, part: _Part) -> Expression:
    seen = tuple(Seen(value, count) for value, count in part.values.most_common())
    error = part.errors.most_common(1)[0][0] if part.errors else ""
    path = part.paths.most_common(1)[0][0] if part.paths else ""
    missing = part.missing.most_common(1)[0][0] if part.missing else ""
    return Expression(where, text, span, seen, path, error, part.devices, missing)


def show(value: object) -> str:
    """A value as it would be written in an expression, quantities and versions plain."""
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(show, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, api.Quantity | api.Version):
        return value.text
    return str(value)
