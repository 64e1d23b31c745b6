"""Devices as a ResourceSlice describes them, in the shape of resource.k8s.io/v1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dradriver.api.nodes import NodeSelector
from dradriver.api.quantity import Quantity
from dradriver.api.semver import Version
from dradriver.api.taints import Taint

AttributeScalar: TypeAlias = bool | int | str | Version
AttributeValue: TypeAlias = AttributeScalar | tuple[bool, ...] | tuple[int, ...] | tuple[str, ...] | tuple[Version, ...]
"""One attribute; tuples are the list forms of Kubernetes 1.36+ (gate DRAListTypeAttributes)."""


@dataclass(frozen=True, slots=True)
class ValidRange:
    """Amounts of a shared capacity that may be asked: from `minimum` to `maximum` in `step`s."""

    minimum: Quantity
    maximum: Quantity | None = None
    step: Quantity | None = None


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """How a request for part of a capacity is completed and rounded (KEP-5075)."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: ValidRange | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """An amount a device has."""

    value: Quantity
    request_policy: RequestPolicy | None = None


@dataclass(frozen=True, slots=True)
class CounterSet:
    """Amounts that several devices draw from (KEP-4815)."""

    name: str
    counters: Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class CounterConsumption:
    """What a device takes from one counter set while it is allocated."""

    counter_set: str
    counters: Mapping[str, Quantity]
    compatibility_groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a pool.

    `attributes` and `capacity` are keyed as published: a bare id belongs to the domain of the slice's driver.
    """

    name: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    capacity: Mapping[str, Capacity] = field(default_factory=dict)
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[Taint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False
