"""One GPU of a described node, and what may be wrong with it: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from dradriver.described.codes import Code
from dradriver.described.model import Model
from dradriver.described.partitioning import Partitioning


class Peer(IntEnum):
    """nvmlNvLinkDeviceType_t."""

    GPU = 0
    SWITCH = 2


@dataclass(frozen=True, slots=True)
class Link:
    """One NVLink that leads somewhere. No `remote` is a switch without PCI function: NVML answers all ones."""

    peer: Peer
    remote: str | None


class FabricState(IntEnum):
    """nvmlGpuFabricState_t."""

    not_supported = 0
    not_started = 1
    in_progress = 2
    completed = 3


class FabricHealth(IntEnum):
    """nvmlGpuFabricInfo_v3_t.healthSummary."""

    not_supported = 0
    healthy = 1
    unhealthy = 2
    limited = 3


@dataclass(frozen=True, slots=True)
class Fabric:
    """Registration with the NVLink fabric."""

    state: FabricState
    status: Code = Code.SUCCESS
    cluster: bytes = bytes(16)
    clique: int = 0
    health: FabricHealth = FabricHealth.not_supported


@dataclass(frozen=True, slots=True)
class Platform:
    """Where the GPU sits in its rack."""

    chassis_serial: str = ""
    slot: int = 0
    tray: int = 0
    host: int = 1
    peer_type: int = 1


@dataclass(frozen=True, slots=True)
class Condition:
    """What is wrong with a GPU. None and absence leave what is there otherwise."""

    lost: bool | None = None
    calls: Mapping[str, Code] = field(default_factory=dict)
    """C symbol → what it answers."""
    links_down: frozenset[int] = frozenset()
    fabric: Fabric | None = None

    def under(self, above: Condition) -> Condition:
        """This condition with another on top."""
        return Condition(
            self.lost if above.lost is None else above.lost,
            {**self.calls, **above.calls},
            self.links_down | above.links_down,
            above.fabric or self.fabric,
        )


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. `position` is its place in the description; its NVML index counts those the nvidia driver has."""

    position: int
    model: Model
    uuid: str
    serial: str
    pci_address: str
    pcie_root: str
    pcie_switch: str | None
    numa_node: int | None
    gpu_numa_node: int | None
    cpus: frozenset[int]
    minor: int
    module_id: int
    kernel_driver: str
    platform: Platform
    fabric: Fabric
    links: tuple[Link | None, ...]
    """By link number; None leads nowhere and is down."""
    partitioning: Partitioning
    condition: Condition
