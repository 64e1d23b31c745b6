"""Rules of node selectors (kubernetes `pkg/apis/core/validation`)."""

from __future__ import annotations

from collections.abc import Iterator

from dradriver.api import names
from dradriver.api.nodes import NodeSelector, NodeSelectorRequirement
from dradriver.api.validation.problems import (
    Problem,
    dns_subdomain,
    forbidden,
    invalid,
    label_key,
    label_value,
    required,
    unsupported,
)

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def check_node_selector(path: str, selector: NodeSelector) -> Iterator[Problem]:
    """Every rule a node selector breaks."""
    if not selector.terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(selector.terms):
        place = f"{path}.nodeSelectorTerms[{index}]"
        for at, requirement in enumerate(term.match_expressions):
            yield from _check_expression(f"{place}.matchExpressions[{at}]", requirement)
        for at, requirement in enumerate(term.match_fields):
            yield from _check_field(f"{place}.matchFields[{at}]", requirement)


def _check_expression(path: str, requirement: NodeSelectorRequirement) -> Iterator[Problem]:
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if requirement.values:
                yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        case "Gt" | "Lt":
            if len(requirement.values) != 1:
                yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        case _:
            yield unsupported(f"{path}.operator", requirement.operator, _OPERATORS)
    yield from label_key(f"{path}.key", requirement.key)
    for index, value in enumerate(requirement.values):
        yield from label_value(f"{path}.values[{index}]", value)


def _check_field(path: str, requirement: NodeSelectorRequirement) -> Iterator[Problem]:
    if requirement.operator not in ("In", "NotIn"):
        yield unsupported(f"{path}.operator", requirement.operator, ("In", "NotIn"))
    elif len(requirement.values) != 1:
        yield required(f"{path}.values", "must be only one value when `operator` is 'In' or 'NotIn' for node field")
    if requirement.key != "metadata.name":
        yield invalid(f"{path}.key", requirement.key, "not a valid field selector key")
    for index, value in enumerate(requirement.values):
        yield from dns_subdomain(f"{path}.values[{index}]", value, names.SUBDOMAIN_LIMIT)
