"""A machine made for one test: cards behind the symbols of the NVML library, and the sysfs and procfs next to them.

Each card and each symbol can be made to fail by itself, which is what these tests are about.
"""

# The methods of Library are named after the symbols of nvml.h.
# ruff: noqa: N802, N815

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pynvml
import pytest

from dradriver import hardware
from dradriver.hardware import Inventory, Nvml, Roots

NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED


@dataclass
class Instance:
    """A GPU instance of a card and its compute instances: (id, start, slices)."""

    id: int
    profile: int
    start: int
    size: int
    computes: list[tuple[int, int, int]] = field(default_factory=list)
    memory_mib: int = 9728


@dataclass
class Card:
    """A GPU as its driver would tell it; `errors` by symbol, or by symbol and last argument."""

    bus: int
    minor: int
    name: str = "NVIDIA A100-SXM4-80GB"
    pci_id: int = 0x20B210DE
    brand: int = pynvml.NVML_BRAND_NVIDIA
    architecture: int = pynvml.NVML_DEVICE_ARCH_AMPERE
    capability: tuple[int, int] = (8, 0)
    memory_mib: int = 81920
    links: list[tuple[int, str | None]] = field(default_factory=list)  # type and remote; None for an inactive link
    max_links: int = 0
    module: int = 0
    fabric: tuple[int, int, bytes, int] | None = None  # state, status, cluster, clique
    mig: tuple[int, int] | None = (0, 0)
    # By profile index: id, slices, instances, memory, name, placements
    profiles: dict[int, tuple[int, int, int, int, bytes, list[tuple[int, int]]]] = field(default_factory=dict)
    instances: list[Instance] = field(default_factory=list)
    mig_indices: dict[int, tuple[int, int]] = field(default_factory=dict)  # of MIG devices; all of them if empty
    errors: dict[object, int | list[int]] = field(default_factory=dict)

    @property
    def uuid(self) -> str:
        return f"GPU-{self.bus:08x}"

    def devices(self) -> dict[int, tuple[int, int]]:
        """MIG devices by index: ids of GPU instance and compute instance."""
        pairs = [(instance.id, compute[0]) for instance in self.instances for compute in instance.computes]
        return self.mig_indices or dict(enumerate(pairs))

    def instance(self, number: int) -> Instance:
        return next(instance for instance in self.instances if instance.id == number)


class Refusal(Exception):  # noqa: N818 - an answer of the library, not an error of these tests
    """A code that the library answers in the place of success."""


@dataclass
class Library:
    """What pynvml takes for libnvidia-ml.so.1. Handles are numbers: card, GPU instance + 1, compute instance + 1."""

    cards: list[Card] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    called: list[str] = field(default_factory=list)
    init: int = 0
    driver: bytes = b"550.90.07"

    def __getattr__(self, symbol: str) -> Callable[..., int]:
        answer = getattr(type(self), f"_{symbol}", None)
        if answer is None or symbol in self.missing:
            raise AttributeError(symbol)

        def call(*args: Any) -> int:
            self.called.append(symbol)
            try:
                self._fail(symbol, args)
                answer(self, *args)
            except Refusal as refusal:
                return int(refusal.args[0])
            return 0

        return call

    def _fail(self, symbol: str, args: tuple[Any, ...]) -> None:
        if symbol.startswith(("nvmlInit", "nvmlShutdown", "nvmlSystem", "nvmlDeviceGetCount")):
            return
        if symbol == "nvmlDeviceGetHandleByIndex_v2":
            card, key = self.cards[args[0].value], None
        else:
            card, key = self._of(args[0])[0], getattr(args[1], "value", args[1])
        planned = card.errors.get(symbol, card.errors.get((symbol, key)) if isinstance(key, int) else None)
        code = (planned.pop(0) if planned else 0) if isinstance(planned, list) else planned
        if code:
            raise Refusal(code)

    def _of(self, handle: Any) -> tuple[Card, int, int]:
        number = ctypes.cast(handle, ctypes.c_void_p).value or 0
        return self.cards[(number >> 16) - 1], (number >> 8 & 0xFF) - 1, (number & 0xFF) - 1

    def _hand(self, room: Any, card: int, instance: int = -1, compute: int = -1) -> None:
        number = (card + 1) << 16 | (instance + 1) << 8 | (compute + 1)
        ctypes.cast(room, ctypes.POINTER(ctypes.c_void_p))[0] = number

    def _nvmlInitWithFlags(self, _flags: int) -> None:
        if self.init:
            raise Refusal(self.init)

    def _nvmlShutdown(self) -> None:
        pass

    def _nvmlSystemGetDriverVersion(self, room: Any, _size: Any) -> None:
        room.value = self.driver

    def _nvmlSystemGetCudaDriverVersion(self, room: Any) -> None:
        room._obj.value = 12040

    def _nvmlDeviceGetCount_v2(self, room: Any) -> None:
        room._obj.value = len(self.cards)

    def _nvmlDeviceGetHandleByIndex_v2(self, index: Any, room: Any) -> None:
        self._hand(room, index.value)

    def _nvmlDeviceGetUUID(self, handle: Any, room: Any, _size: Any) -> None:
        card, instance, compute = self._of(handle)
        room.value = (card.uuid if compute < 0 else f"MIG-{card.bus:x}-{instance}-{compute}").encode()

    def _nvmlDeviceGetName(self, handle: Any, room: Any, _size: Any) -> None:
        room.value = self._of(handle)[0].name.encode("latin-1")

    def _nvmlDeviceGetPciInfo_v3(self, handle: Any, room: Any) -> None:
        card = self._of(handle)[0]
        room._obj.busId, room._obj.pciDeviceId = f"00000000:{card.bus:02X}:00.0".encode(), card.pci_id

    def _nvmlDeviceGetMinorNumber(self, handle: Any, room: Any) -> None:
        room._obj.value = self._of(handle)[0].minor

    def _nvmlDeviceGetBrand(self, handle: Any, room: Any) -> None:
        room._obj.value = self._of(handle)[0].brand

    def _nvmlDeviceGetArchitecture(self, handle: Any, room: Any) -> None:
        room._obj.value = self._of(handle)[0].architecture

    def _nvmlDeviceGetCudaComputeCapability(self, handle: Any, major: Any, minor: Any) -> None:
        major._obj.value, minor._obj.value = self._of(handle)[0].capability

    def _nvmlDeviceGetMemoryInfo(self, handle: Any, room: Any) -> None:
        card, instance, compute = self._of(handle)
        room._obj.total = (card.memory_mib if compute < 0 else card.instance(instance).memory_mib) << 20

    def _nvmlDeviceGetEccMode(self, _handle: Any, current: Any, pending: Any) -> None:
        current._obj.value = pending._obj.value = 1

    def _nvmlDeviceGetMemoryBusWidth(self, _handle: Any, room: Any) -> None:
        room._obj.value = 5120

    def _nvmlDeviceGetModuleId(self, handle: Any, room: Any) -> None:
        room._obj.value = self._of(handle)[0].module

    def _link(self, handle: Any, link: int) -> tuple[int, str | None] | None:
        card = self._of(handle)[0]
        if not card.max_links:
            raise Refusal(NOT_SUPPORTED)
        if link >= card.max_links:
            raise Refusal(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return card.links[link] if link < len(card.links) else None

    def _nvmlDeviceGetNvLinkState(self, handle: Any, link: int, room: Any) -> None:
        room._obj.value = self._link(handle, link) is not None

    def _nvmlDeviceGetNvLinkRemoteDeviceType(self, handle: Any, link: int, room: Any) -> None:
        end = self._link(handle, link)
        assert end is not None
        room._obj.value = end[0]

    def _nvmlDeviceGetNvLinkRemotePciInfo_v2(self, handle: Any, link: int, room: Any) -> None:
        end = self._link(handle, link)
        assert end is not None
        room._obj.busId = (end[1] or "FFFFFFFF:FF:FF.0").encode()

    def _nvmlDeviceGetGpuFabricInfoV(self, handle: Any, room: Any) -> None:
        fabric = self._of(handle)[0].fabric
        if fabric is None:
            raise Refusal(NOT_SUPPORTED)
        info = room._obj
        info.state, info.status, cluster, info.cliqueId = fabric
        info.clusterUuid = type(info.clusterUuid)(*cluster)

    _nvmlDeviceGetGpuFabricInfo = _nvmlDeviceGetGpuFabricInfoV

    def _nvmlDeviceGetMigMode(self, handle: Any, current: Any, pending: Any) -> None:
        mode = self._of(handle)[0].mig
        if mode is None:
            raise Refusal(NOT_SUPPORTED)
        current._obj.value, pending._obj.value = mode

    def _nvmlDeviceGetGpuInstanceProfileInfo(self, handle: Any, index: int, room: Any) -> None:
        profile = self._of(handle)[0].profiles.get(index)
        if profile is None:
            raise Refusal(NOT_SUPPORTED if index < 16 else pynvml.NVML_ERROR_INVALID_ARGUMENT)
        info = room._obj
        info.id, info.sliceCount, info.instanceCount, info.memorySizeMB, name, _ = profile
        info.multiprocessorCount, info.copyEngineCount = 14 * info.sliceCount, info.sliceCount
        info.name = name

    _nvmlDeviceGetGpuInstanceProfileInfoV = _nvmlDeviceGetGpuInstanceProfileInfo

    def _profile(self, handle: Any, profile_id: int) -> tuple[Card, list[tuple[int, int]]]:
        card = self._of(handle)[0]
        return card, next(p[5] for p in card.profiles.values() if p[0] == profile_id)

    def _nvmlDeviceGetGpuInstancePossiblePlacements_v2(self, handle: Any, profile: int, room: Any, count: Any) -> None:
        _, places = self._profile(handle, profile)
        count._obj.value = len(places)
        for place, (start, size) in zip(room or (), places, strict=False):
            place.start, place.size = start, size

    def _nvmlDeviceGetGpuInstances(self, handle: Any, profile: int, room: Any, count: Any) -> None:
        card, _ = self._profile(handle, profile)
        found = [instance for instance in card.instances if instance.profile == profile]
        for position, instance in enumerate(found):
            self._hand(
                ctypes.byref(room, position * ctypes.sizeof(ctypes.c_void_p)), self.cards.index(card), instance.id
            )
        count._obj.value = len(found)

    def _nvmlGpuInstanceGetInfo(self, handle: Any, room: Any) -> None:
        card, number, _ = self._of(handle)
        instance = card.instance(number)
        info = room._obj
        info.id, info.profileId = instance.id, instance.profile
        info.placement.start, info.placement.size = instance.start, instance.size

    def _nvmlGpuInstanceGetComputeInstanceById(self, handle: Any, compute: int, room: Any) -> None:
        card, number, _ = self._of(handle)
        if compute not in [each[0] for each in card.instance(number).computes]:
            raise Refusal(pynvml.NVML_ERROR_NOT_FOUND)
        self._hand(room, self.cards.index(card), number, compute)

    def _nvmlComputeInstanceGetInfo_v2(self, handle: Any, room: Any) -> None:
        card, number, compute = self._of(handle)
        info = room._obj
        info.id, start, size = next(each for each in card.instance(number).computes if each[0] == compute)
        info.placement.start, info.placement.size = start, size

    def _nvmlDeviceGetMaxMigDeviceCount(self, handle: Any, room: Any) -> None:
        room._obj.value = 7 if (self._of(handle)[0].mig or (0, 0))[0] else 0

    def _nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, index: Any, room: Any) -> None:
        card = self._of(handle)[0]
        if index.value not in card.devices():
            raise Refusal(pynvml.NVML_ERROR_NOT_FOUND)
        self._hand(room, self.cards.index(card), *card.devices()[index.value])

    def _nvmlDeviceGetGpuInstanceId(self, handle: Any, room: Any) -> None:
        room._obj.value = self._of(handle)[1]

    def _nvmlDeviceGetComputeInstanceId(self, handle: Any, room: Any) -> None:
        room._obj.value = self._of(handle)[2]

    def _nvmlDeviceGetAttributes_v2(self, handle: Any, room: Any) -> None:
        card, number, compute = self._of(handle)
        instance = card.instance(number)
        slices = next(each[2] for each in instance.computes if each[0] == compute)
        info = room._obj
        info.multiprocessorCount, info.memorySizeMB, info.computeInstanceSliceCount = 14 * slices, 9984, slices


@dataclass
class Machine:
    """Cards, their library, and the trees next to them."""

    roots: Roots
    library: Library = field(default_factory=Library)
    opened: list[Nvml] = field(default_factory=list)

    def card(self, **told: Any) -> Card:
        """One more card, next on the PCI bus, whose minor number is not its index."""
        number = len(self.library.cards)
        card = Card(**({"bus": 0x10 + number, "minor": 7 - number} | told))
        self.library.cards.append(card)
        return card

    instance: ClassVar = Instance

    def on_bus(
        self, bus: int, driver: str | None = "nvidia", *, numa: str = "0", device_class: str = "0x030200", root: int = 0
    ) -> Path:
        """An NVIDIA function in sysfs."""
        address = f"0000:{bus:02x}:00.0"
        real = self.roots.sys / "devices" / f"pci0000:{root:02x}" / f"0000:{root:02x}:01.0" / address
        real.mkdir(parents=True)
        for name, text in (("vendor", "0x10de"), ("class", device_class), ("numa_node", numa)):
            (real / name).write_text(f"{text}\n")
        if driver is not None:
            drivers = self.roots.sys / "bus" / "pci" / "drivers" / driver
            drivers.mkdir(parents=True, exist_ok=True)
            (real / "driver").symlink_to(drivers)
        listed = self.roots.sys / "bus" / "pci" / "devices"
        listed.mkdir(parents=True, exist_ok=True)
        (listed / address).symlink_to(real)
        return real

    def nvml(self) -> Nvml:
        """NVML started on this machine."""
        self.opened.append(Nvml(library=self.library))
        return self.opened[-1]

    def read(self) -> Inventory:
        """What is read of this machine by a process that starts now."""
        return hardware.read(self.nvml(), self.roots)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(Roots.under(tmp_path))
    yield made
    for nvml in made.opened:
        nvml.close()
