"""Memory of GPUs and MIG devices."""
# ruff: noqa: D102, N802 - methods are named and documented as the C symbols of nvml.h

from __future__ import annotations

from typing import Any, Final

from dradriver.described.arguments import fill, pointed, put, versioned
from dradriver.described.codes import Code, Refusal
from dradriver.described.model import Ecc
from dradriver.described.symbols.area import Area

_MIB: Final = 1 << 20


class Memory(Area):
    """Frame buffer, BAR1 and ECC."""

    def nvmlDeviceGetMemoryInfo(self, device: Any, memory: Any) -> None:
        total, reserved = self._memory(device)
        fill(pointed(memory), total=total, free=total - reserved, used=reserved)  # v1 counts the reserve as used

    def nvmlDeviceGetMemoryInfo_v2(self, device: Any, memory: Any) -> None:
        total, reserved = self._memory(device)
        fill(versioned(memory, 2), total=total, reserved=reserved, free=total - reserved, used=0)

    def nvmlDeviceGetBAR1MemoryInfo(self, device: Any, memory: Any) -> None:
        size = self.machine.gpu(device).model.bar1_mib
        if size is None:
            raise Refusal(Code.NOT_SUPPORTED)
        fill(pointed(memory), bar1Total=size * _MIB, bar1Free=(size - 1) * _MIB, bar1Used=_MIB)

    def nvmlDeviceGetMemoryBusWidth(self, device: Any, bits: Any) -> None:
        width = self.machine.whole(device).model.memory_bus_bits
        if width is None:
            raise Refusal(Code.NOT_SUPPORTED)
        put(bits, width)

    def nvmlDeviceGetEccMode(self, device: Any, current: Any, pending: Any) -> None:
        ecc = self.machine.whole(device).model.ecc
        if ecc is Ecc.UNSUPPORTED:
            raise Refusal(Code.NOT_SUPPORTED)
        put(current, ecc is Ecc.ENABLED)
        put(pending, ecc is Ecc.ENABLED)

    def _memory(self, device: Any) -> tuple[int, int]:
        """Total and reserved bytes."""
        gpu = self.machine.gpu(device)
        if gpu.model.memory_mib is None:
            raise Refusal(Code.NOT_SUPPORTED)
        if self.machine.is_mig_device(device):
            _, instance, _ = self.machine.mig_device(device)
            total = instance.memory_mib or self.machine.profile(gpu, instance.profile).memory_mib
            return total * _MIB, gpu.model.reserved_mib * total // gpu.model.memory_mib * _MIB
        return gpu.model.memory_mib * _MIB, gpu.model.reserved_mib * _MIB
