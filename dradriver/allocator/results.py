"""What a finished search writes into claims: devices, configuration, and the nodes they tie a claim to.

Source: dynamic-resource-allocation `allocator_*.go`, Allocate and createNodeSelector.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import NAMESPACE_OID, uuid5

from dradriver import api
from dradriver.allocator.pools import Candidate
from dradriver.allocator.requesting import Wanted, full_name
from dradriver.allocator.sharing import Consumed
from dradriver.allocator.variants import Rules


class Pick(NamedTuple):
    """A device given to a request; `consumed` is what a share takes of it, None for a whole device."""

    wanted: Wanted
    candidate: Candidate
    consumed: Consumed | None = None


def allocation(
    claim: api.ResourceClaim,
    chosen: Sequence[Wanted],
    picks: Sequence[Pick],
    node: api.Node,
    rules: Rules,
) -> api.Allocation:
    """The allocation of one claim: `chosen` is the option taken for each request, `picks` the devices in order."""
    return api.Allocation(
        results=tuple(_result(claim, number, pick, rules) for number, pick in enumerate(picks)),
        config=_config(claim, chosen, rules),
        node_selector=_node_selector([pick.candidate for pick in picks], node, rules),
    )


def _result(claim: api.ResourceClaim, number: int, pick: Pick, rules: Rules) -> api.AllocatedDevice:
    wanted, candidate = pick.wanted, pick.candidate
    conditions = rules.conditions
    return api.AllocatedDevice(
        request=wanted.name,
        driver=candidate.id.driver,
        pool=candidate.id.pool,
        device=candidate.id.device,
        admin_access=wanted.admin_access,
        tolerations=wanted.spec.tolerations if rules.tolerations_kept else (),
        binding_conditions=candidate.device.binding_conditions if conditions else (),
        binding_failure_conditions=candidate.device.binding_failure_conditions if conditions else (),
        share_id=None if pick.consumed is None else _share_id(claim, number, candidate),
        consumed_capacity=pick.consumed or {},
        skip_node_operations=candidate.slice.skip_node_operations if rules.optional_operations else (),
    )


def _share_id(claim: api.ResourceClaim, number: int, candidate: Candidate) -> str:
    """A UUID of its own for every share; upstream's are random."""
    return str(uuid5(NAMESPACE_OID, f"{claim.metadata.uid or full_name(claim)}/{number}/{candidate.id}"))


def _config(claim: api.ResourceClaim, chosen: Sequence[Wanted], rules: Rules) -> tuple[api.AllocatedConfiguration, ...]:
    by_class: dict[str, tuple[api.DeviceClass, list[str]]] = {}
    for wanted in chosen:
        if wanted.device_class is not None:
            by_class.setdefault(wanted.device_class.metadata.name, (wanted.device_class, []))[1].append(wanted.name)
    from_class = [
        api.AllocatedConfiguration(api.ConfigSource.FROM_CLASS, opaque, tuple(names))
        for device_class, names in by_class.values()
        for opaque in device_class.config
    ]
    from_claim = [
        api.AllocatedConfiguration(api.ConfigSource.FROM_CLAIM, config.opaque, config.requests)
        for config in claim.spec.config
        for _ in range(_times(config, chosen, rules))
    ]
    return tuple(_shortened(config, chosen, rules) for config in (*from_class, *from_claim))


def _times(config: api.ClaimConfiguration, chosen: Sequence[Wanted], rules: Rules) -> int:
    if not config.requests or rules.whole_config:
        return 1
    named = sum(_named(wanted, config.requests) for wanted in chosen)
    return min(named, 1) if rules.configured_once else named


def _shortened(
    config: api.AllocatedConfiguration, chosen: Sequence[Wanted], rules: Rules
) -> api.AllocatedConfiguration:
    if rules.configured_once and all(_named(wanted, config.requests) for wanted in chosen):
        return api.AllocatedConfiguration(config.source, config.opaque)
    return config


def _named(wanted: Wanted, requests: Sequence[str]) -> bool:
    return wanted.request in requests or wanted.name in requests


def _node_selector(candidates: Iterable[Candidate], node: api.Node, rules: Rules) -> api.NodeSelector | None:
    """The nodes the devices tie a claim to: one node, the merged terms of their selectors, or None for all."""
    fields: list[api.NodeSelectorRequirement] = []
    expressions: list[api.NodeSelectorRequirement] = []
    for candidate in candidates:
        source = candidate.device if candidate.slice.per_device_node_selection else candidate.slice
        if source.node_name or (rules.binds_to_node and candidate.device.binds_to_node):
            only = api.NodeSelectorRequirement("metadata.name", "In", (node.name,))
            return api.NodeSelector((api.NodeSelectorTerm(match_fields=(only,)),))
        # Validation allows one term; more cannot be merged into one.
        if source.node_selector is not None and len(source.node_selector.terms) == 1:
            _merge(source.node_selector.terms[0].match_fields, fields)
            _merge(source.node_selector.terms[0].match_expressions, expressions)
    if not fields and not expressions:
        return None
    return api.NodeSelector((api.NodeSelectorTerm(tuple(expressions), tuple(fields)),))


def _merge(new: Iterable[api.NodeSelectorRequirement], into: list[api.NodeSelectorRequirement]) -> None:
    for requirement in new:
        if not any(_same(requirement, known) for known in into):
            into.append(requirement)


def _same(one: api.NodeSelectorRequirement, other: api.NodeSelectorRequirement) -> bool:
    return (one.key, one.operator, set(one.values)) == (other.key, other.operator, set(other.values))
