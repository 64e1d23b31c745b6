"""What a GPU is: names, numbers and where it sits on the PCI bus."""
# ruff: noqa: D102, N802 - methods are named and documented as the C symbols of nvml.h

from __future__ import annotations

from typing import Any, Final

from dradriver.described.arguments import fill, pointed, put, put_text, versioned
from dradriver.described.codes import Code, Refusal
from dradriver.described.gpu import Gpu
from dradriver.described.symbols.area import Area
from dradriver.described.symbols.mig_devices import mig_uuid

_PART_NUMBER: Final = "900-2G500-0000-000"
_VBIOS: Final = "96.00.00.00.01"


class Identity(Area):
    """Answers about one GPU that never change."""

    def nvmlDeviceGetName(self, device: Any, name: Any, length: Any) -> None:
        gpu = self.machine.gpu(device)
        if not self.machine.is_mig_device(device):
            put_text(name, length, gpu.model.name)
            return
        _, instance, _ = self.machine.mig_device(device)
        put_text(name, length, f"{gpu.model.name} MIG {self.machine.profile(gpu, instance.profile).name}")

    def nvmlDeviceGetUUID(self, device: Any, uuid: Any, length: Any) -> None:
        if self.machine.is_mig_device(device):
            put_text(uuid, length, mig_uuid(*self.machine.mig_device(device)))
        else:
            put_text(uuid, length, self.machine.whole(device).uuid)

    def nvmlDeviceGetPciInfo_v3(self, device: Any, info: Any) -> None:
        fill_pci(pointed(info), self.machine.gpu(device))

    def nvmlDeviceGetBrand(self, device: Any, brand: Any) -> None:
        put(brand, self.machine.gpu(device).model.brand.number)

    def nvmlDeviceGetArchitecture(self, device: Any, architecture: Any) -> None:
        put(architecture, self.machine.gpu(device).model.architecture)

    def nvmlDeviceGetCudaComputeCapability(self, device: Any, major: Any, minor: Any) -> None:
        capability = self.machine.gpu(device).model.compute_capability
        put(major, capability[0])
        put(minor, capability[1])

    def nvmlDeviceGetSerial(self, device: Any, serial: Any, length: Any) -> None:
        put_text(serial, length, self.machine.whole(device).serial)

    def nvmlDeviceGetBoardPartNumber(self, device: Any, number: Any, length: Any) -> None:
        self.machine.whole(device)
        put_text(number, length, _PART_NUMBER)

    def nvmlDeviceGetVbiosVersion(self, device: Any, version: Any, length: Any) -> None:
        self.machine.whole(device)
        put_text(version, length, _VBIOS)

    def nvmlDeviceGetGspFirmwareVersion(self, device: Any, version: Any) -> None:
        self.machine.whole(device)
        pointed(version).value = self.machine.description.driver.encode()

    def nvmlDeviceGetModuleId(self, device: Any, module: Any) -> None:
        put(module, self.machine.whole(device).module_id)

    def nvmlDeviceGetNumGpuCores(self, device: Any, cores: Any) -> None:
        put(cores, self.machine.whole(device).model.cores)

    def nvmlDeviceGetAddressingMode(self, device: Any, info: Any) -> None:
        mode = self.machine.whole(device).model.addressing_mode
        if mode is None:
            raise Refusal(Code.NOT_SUPPORTED)
        fill(versioned(info, 1), value=mode)


def fill_pci(info: Any, gpu: Gpu) -> None:
    """Fill nvmlPciInfo_t, whose domain has eight digits in the newer of its two texts and four in the older."""
    domain, bus, slot = (int(part, 16) for part in gpu.pci_address.partition(".")[0].split(":"))
    fill(
        info,
        busIdLegacy=f"{domain & 0xFFFF:04X}:{bus:02X}:{slot:02X}.0".encode(),
        domain=domain,
        bus=bus,
        device=slot,
        pciDeviceId=gpu.model.pci_id,
        pciSubSystemId=gpu.model.subsystem_id,
        busId=f"{domain:08X}:{bus:02X}:{slot:02X}.0".encode(),
    )
