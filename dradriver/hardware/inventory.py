"""The inventory: plain values that say what a node's hardware is. None means the machine did not tell."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Roots:
    """Where the node's `/dev`, `/proc` and `/sys` are; described hardware has its own under one directory."""

    dev: Path = Path("/dev")
    proc: Path = Path("/proc")
    sys: Path = Path("/sys")

    @classmethod
    def under(cls, directory: Path) -> Roots:
        """`dev`, `proc` and `sys` inside one directory."""
        return cls(directory / "dev", directory / "proc", directory / "sys")


class LinkPeer(StrEnum):
    """What sits at the other end of an NVLink."""

    GPU = "gpu"
    SWITCH = "switch"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Link:
    """One NVLink of a GPU. `remote` is the peer's PCI address; switches may not have one."""

    number: int
    active: bool
    peer: LinkPeer = LinkPeer.UNKNOWN
    remote: str | None = None


class FabricState(StrEnum):
    """How far the registration with the NVLink fabric is."""

    NOT_SUPPORTED = "notSupported"
    NOT_STARTED = "notStarted"
    IN_PROGRESS = "inProgress"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True)
class Fabric:
    """Membership in a multi-node NVLink fabric; ids count only when completed with success and a non-zero UUID."""

    state: FabricState
    healthy: bool = False
    cluster_uuid: str | None = None
    clique_id: int | None = None

    @property
    def domain(self) -> str | None:
        """`<clusterUUID>.<cliqueId>`; None while registering, after it failed, and inside one box (a zero UUID)."""
        if self.state is not FabricState.COMPLETED or not self.healthy or self.cluster_uuid is None:
            return None
        return f"{self.cluster_uuid}.{self.clique_id}"


@dataclass(frozen=True, slots=True)
class Placement:
    """An interval of memory slices, in the GPU's own units (eighths, quarters or twelfths)."""

    start: int
    size: int


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A kind of GPU instance this GPU can make. `index` and `id` are NVML's two name spaces, never to be mixed."""

    name: str
    index: int
    id: int
    slices: int
    memory_mib: int
    placements: tuple[Placement, ...] = ()
    multiprocessors: int | None = None
    copy_engines: int | None = None
    decoders: int | None = None
    encoders: int | None = None
    jpeg_engines: int | None = None
    ofa_engines: int | None = None


@dataclass(frozen=True, slots=True)
class MigInstance:
    """One compute instance inside its GPU instance: what a container can use. Placement is the GPU instance's."""

    uuid: str
    gpu_instance: int
    compute_instance: int
    profile: str
    placement: Placement
    memory_mib: int | None = None
    multiprocessors: int | None = None
    copy_engines: int | None = None
    decoders: int | None = None
    encoders: int | None = None
    jpeg_engines: int | None = None
    ofa_engines: int | None = None
    whole: bool = True
    """Whether the compute instance is its whole GPU instance."""
    compute_start: int = 0
    compute_slices: int | None = None


@dataclass(frozen=True, slots=True)
class Orphan:
    """A GPU instance without a usable compute instance: no MIG device shows it, yet it takes its slices."""

    gpu_instance: int
    profile: str
    placement: Placement


@dataclass(frozen=True, slots=True)
class MigState:
    """MIG on one GPU. `capable` means that profiles are listed, not that a mode can be read."""

    capable: bool = False
    enabled: bool = False
    pending: bool = False
    """Whether the mode after the next reset differs from `enabled`."""
    profiles: tuple[MigProfile, ...] = ()
    instances: tuple[MigInstance, ...] = ()
    orphans: tuple[Orphan, ...] = ()


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as the machine tells it."""

    uuid: str
    nvml_index: int
    pci_address: str | None = None
    """`dddd:bb:dd.f`, lower case hexadecimal."""
    minor: int | None = None
    pci_id: int | None = None
    """Device id in the high half, vendor id in the low: 0x233010DE."""
    name: str | None = None
    brand: str | None = None
    architecture: str | None = None
    compute_capability: tuple[int, int] | None = None
    memory_mib: int | None = None
    ecc: bool | None = None
    memory_bus_bits: int | None = None
    numa_node: int | None = None
    pcie_root: str | None = None
    """`pci<domain>:<bus>` of the root complex."""
    links: tuple[Link, ...] = ()
    fabric: Fabric | None = None
    mig: MigState = MigState()
    problems: tuple[str, ...] = ()
    """Sentences about figures that could not be read, for the log."""


@dataclass(frozen=True, slots=True)
class LostGpu:
    """A GPU the machine has but cannot use: fallen off the bus, bound elsewhere, or failing."""

    nvml_index: int | None
    pci_address: str | None
    reason: str
    uuid: str | None = None
    """Told only by a GPU that failed while it was read."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """All of a node's hardware at one moment, GPUs in PCI order."""

    gpus: tuple[Gpu, ...] = ()
    lost: tuple[LostGpu, ...] = ()
    driver_version: str | None = None
    cuda_version: str | None = None
    problems: tuple[str, ...] = ()
