"""NVML's answers as values: what its structs hold, with nothing of ctypes left."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Final

from dradriver.hardware.inventory import Fabric, FabricState, LinkPeer, Placement

# The numbers are those of nvml.h; the words those that go-nvlib writes, so that selectors written for gpu.nvidia.com
# hold here.
BRANDS: Final = {
    1: "Quadro",
    2: "Tesla",
    3: "NVS",
    4: "Grid",
    5: "GeForce",
    6: "Titan",
    7: "NvidiaVApps",
    8: "NvidiaVPC",
    9: "NvidiaVCS",
    10: "NvidiaVWS",
    11: "NvidiaCloudGaming",
    12: "QuadroRTX",
    13: "NvidiaRTX",
    14: "Nvidia",
    15: "GeForceRTX",
    16: "TitanRTX",
}
ARCHITECTURES: Final = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}
PEERS: Final = {0: LinkPeer.GPU, 2: LinkPeer.SWITCH, 255: LinkPeer.UNKNOWN}
_FABRIC_STATES: Final = {1: FabricState.NOT_STARTED, 2: FabricState.IN_PROGRESS, 3: FabricState.COMPLETED}
_SUCCESS: Final = 0


@dataclass(frozen=True, slots=True)
class PciFunction:
    """Where a GPU sits on the PCI bus, and its device id in the high half, vendor in the low (0x233010DE)."""

    address: str
    id: int

    @classmethod
    def of(cls, info: Any) -> PciFunction:
        """From nvmlPciInfo_t, which writes the domain in eight digits. Raises ValueError where it is no address."""
        domain, bus, rest = text(info.busId).split(":")
        slot, function = rest.split(".")
        address = f"{int(domain, 16):04x}:{int(bus, 16):02x}:{int(slot, 16):02x}.{int(function, 16):x}"
        return cls(address, int(info.pciDeviceId))


@dataclass(frozen=True, slots=True)
class Engines:
    """What runs work in a GPU or in a part of one."""

    multiprocessors: int
    copy_engines: int
    decoders: int
    encoders: int
    jpeg_engines: int
    ofa_engines: int


@dataclass(frozen=True, slots=True)
class ProfileInfo:
    """A kind of GPU instance; old drivers give no name."""

    id: int
    slices: int
    instances: int
    memory_mib: int
    engines: Engines
    name: str | None

    @classmethod
    def of(cls, info: Any) -> ProfileInfo:
        """From nvmlGpuInstanceProfileInfo_t or its second version; the name comes with or without `MIG ` before it."""
        engines = Engines(
            info.multiprocessorCount,
            info.copyEngineCount,
            info.decoderCount,
            info.encoderCount,
            info.jpegCount,
            info.ofaCount,
        )
        name = text(getattr(info, "name", "")).removeprefix("MIG ").strip() or None
        return cls(info.id, info.sliceCount, info.instanceCount, info.memorySizeMB, engines, name)


@dataclass(frozen=True, slots=True)
class InstanceInfo:
    """A GPU instance or compute instance; the placement of the latter is in compute slices of the former."""

    id: int
    profile_id: int
    placement: Placement

    @classmethod
    def of(cls, info: Any) -> InstanceInfo:
        """From nvmlGpuInstanceInfo_t or nvmlComputeInstanceInfo_t."""
        return cls(info.id, info.profileId, placement(info.placement))


@dataclass(frozen=True, slots=True)
class Share:
    """What a MIG device has of its GPU."""

    engines: Engines
    memory_mib: int

    @classmethod
    def of(cls, info: Any) -> Share:
        """From nvmlDeviceAttributes_t."""
        engines = Engines(
            info.multiprocessorCount,
            info.sharedCopyEngineCount,
            info.sharedDecoderCount,
            info.sharedEncoderCount,
            info.sharedJpegCount,
            info.sharedOfaCount,
        )
        return cls(engines, info.memorySizeMB)


def placement(info: Any) -> Placement:
    """From nvmlGpuInstancePlacement_t or nvmlComputeInstancePlacement_t."""
    return Placement(info.start, info.size)


def fabric(info: Any) -> Fabric:
    """From nvmlGpuFabricInfo_t of any version with one clique."""
    cluster = bytes(info.clusterUuid)
    return Fabric(
        _FABRIC_STATES.get(info.state, FabricState.NOT_SUPPORTED),
        healthy=info.status == _SUCCESS,
        cluster_uuid=str(uuid.UUID(bytes=cluster)) if any(cluster) else None,
        clique_id=info.cliqueId,
    )


def text(answer: str | bytes) -> str:
    """The text pynvml gives, which it decodes in some calls and not in others. Raises UnicodeDecodeError."""
    return answer.decode() if isinstance(answer, bytes) else answer
