"""Node selectors: which nodes a slice, a device or an allocation is tied to (core/v1 semantics)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NodeSelectorRequirement:
    """One test of a label or field; `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Requirements that must all hold; a term without any matches nothing."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Terms of which one must hold."""

    terms: tuple[NodeSelectorTerm, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """What allocation needs to know of a node; `declared_features` are those of its status."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    declared_features: tuple[str, ...] = ()


def selects(selector: NodeSelector, node: Node) -> bool:
    """Tell whether a node selector picks a node.

    Source: component-helpers `scheduling/corev1/nodeaffinity`; only `metadata.name` exists as a field.
    """
    return any(_term_holds(term, node) for term in selector.terms)


def _term_holds(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.name}
    return all(_requirement_holds(r, node.labels) for r in term.match_expressions) and all(
        _requirement_holds(r, fields) for r in term.match_fields
    )


def _requirement_holds(requirement: NodeSelectorRequirement, values: Mapping[str, str]) -> bool:
    seen = values.get(requirement.key)
    match requirement.operator:
        case "In":
            return seen is not None and seen in requirement.values
        case "NotIn":
            return seen is None or seen not in requirement.values
        case "Exists":
            return seen is not None
        case "DoesNotExist":
            return seen is None
        case "Gt" | "Lt":
            return _compares(seen, requirement)
        case _:
            return False


def _compares(seen: str | None, requirement: NodeSelectorRequirement) -> bool:
    if seen is None or len(requirement.values) != 1:
        return False
    try:
        left, right = int(seen), int(requirement.values[0])
    except ValueError:
        return False
    return left > right if requirement.operator == "Gt" else left < right
