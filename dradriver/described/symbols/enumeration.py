"""Finding GPUs: how many there are, and handles to them."""
# ruff: noqa: D102, N802 - methods are named and documented as the C symbols of nvml.h

from __future__ import annotations

from typing import Any

from dradriver.described.arguments import number, put, put_handle, text
from dradriver.described.codes import Code, Refusal
from dradriver.described.gpu import Gpu
from dradriver.described.handles import MigDevice, WholeGpu
from dradriver.described.symbols.area import Area
from dradriver.described.symbols.mig_devices import mig_uuid


class Enumeration(Area):
    """GPUs by index, UUID and PCI address."""

    def nvmlDeviceGetCount_v2(self, count: Any) -> None:
        put(count, len(self.machine.description.listed))

    def nvmlDeviceGetHandleByIndex_v2(self, index: Any, device: Any) -> None:
        listed = self.machine.description.listed
        if not 0 <= number(index) < len(listed):
            raise Refusal(Code.INVALID_ARGUMENT)
        self._put(device, listed[number(index)], "nvmlDeviceGetHandleByIndex_v2")

    def nvmlDeviceGetHandleByUUID(self, uuid: Any, device: Any) -> None:
        wanted = text(uuid)
        for gpu in self.machine.description.listed:
            if gpu.uuid == wanted:
                self._put(device, gpu, "nvmlDeviceGetHandleByUUID")
                return
            for instance, compute in self.machine.partitioning(gpu).devices():
                if mig_uuid(gpu, instance, compute) == wanted:
                    self.machine.check(gpu, "nvmlDeviceGetHandleByUUID")
                    put_handle(device, self.machine.handles.of(MigDevice(gpu.position, compute.serial)))
                    return
        raise Refusal(Code.NOT_FOUND)

    def nvmlDeviceGetHandleByPciBusId_v2(self, address: Any, device: Any) -> None:
        wanted = _parts(text(address))
        for gpu in self.machine.description.listed:
            if _parts(gpu.pci_address) == wanted:
                self._put(device, gpu, "nvmlDeviceGetHandleByPciBusId_v2")
                return
        raise Refusal(Code.NOT_FOUND)

    def nvmlDeviceGetIndex(self, device: Any, index: Any) -> None:
        if self.machine.is_mig_device(device):
            put(index, self.machine.mig_device(device)[2].device_index)
        else:
            put(index, self.machine.description.listed.index(self.machine.whole(device)))

    def nvmlDeviceGetMinorNumber(self, device: Any, minor: Any) -> None:
        put(minor, self.machine.whole(device).minor)

    def _put(self, device: Any, gpu: Gpu, symbol: str) -> None:
        self.machine.check(gpu, symbol)
        put_handle(device, self.machine.handles.of(WholeGpu(gpu.position)))


def _parts(address: str) -> tuple[int, int, int]:
    """Domain, bus and slot; NVML takes addresses without the domain, and with four or eight digits of it."""
    try:
        *domain, bus, slot = address.partition(".")[0].split(":")
        return int("".join(domain) or "0", 16), int(bus, 16), int(slot, 16)
    except ValueError as error:
        raise Refusal(Code.INVALID_ARGUMENT) from error
