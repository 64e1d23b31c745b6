"""ResourceSlices: what a driver publishes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from dradriver.api.devices import CounterSet, Device
from dradriver.api.metadata import ObjectMeta
from dradriver.api.nodes import NodeSelector


class DeviceID(NamedTuple):
    """A device's identity in the cluster; its text form is `driver/pool/device`."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


@dataclass(frozen=True, slots=True)
class Pool:
    """Which pool a slice belongs to; readers take the highest generation and count its slices."""

    name: str
    generation: int = 1
    resource_slice_count: int = 1


@dataclass(frozen=True, slots=True)
class ResourceSlice:
    """One slice. Exactly one of node_name, node_selector, all_nodes, per_device_node_selection is set."""

    driver: str
    pool: Pool
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    skip_node_operations: tuple[str, ...] = ()
