"""NVLinks one by one."""
# ruff: noqa: D102, N802 - methods are named and documented as the C symbols of nvml.h

from __future__ import annotations

from typing import Any, Final

from dradriver.described.arguments import fill, number, pointed, put, versioned
from dradriver.described.codes import Code, Refusal
from dradriver.described.gpu import Gpu, Link, Peer
from dradriver.described.model import Architecture
from dradriver.described.symbols.area import Area
from dradriver.described.symbols.identity import fill_pci

_CAPABILITIES: Final = range(6)  # NVML_NVLINK_CAP_P2P_SUPPORTED to _VALID
_COUNTERS: Final = range(4)  # NVML_NVLINK_ERROR_DL_REPLAY to _CRC_DATA
_SWITCH_ID: Final = 0x22A310DE
_ALL_ONES: Final = 0xFFFFFFFF


class Links(Area):
    """State and far end of each NVLink."""

    def nvmlDeviceGetNvLinkState(self, device: Any, link: Any, active: Any) -> None:
        put(active, self._up(*self._link(device, link)))

    def nvmlDeviceGetNvLinkVersion(self, device: Any, link: Any, version: Any) -> None:
        gpu, _ = self._link(device, link)
        put(version, gpu.model.nvlink_version)

    def nvmlDeviceGetNvLinkCapability(self, device: Any, link: Any, capability: Any, result: Any) -> None:
        gpu, index = self._link(device, link)
        if number(capability) not in _CAPABILITIES:
            raise Refusal(Code.INVALID_ARGUMENT)
        put(result, self._up(gpu, index))

    def nvmlDeviceGetNvLinkErrorCounter(self, device: Any, link: Any, counter: Any, value: Any) -> None:
        self._link(device, link)
        if number(counter) not in _COUNTERS:
            raise Refusal(Code.INVALID_ARGUMENT)
        put(value, 0)

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, device: Any, link: Any, kind: Any) -> None:
        put(kind, self._remote(device, link).peer)

    def nvmlDeviceGetNvLinkRemotePciInfo_v2(self, device: Any, link: Any, info: Any) -> None:
        remote = self._remote(device, link)
        if remote.peer is Peer.GPU:
            fill_pci(pointed(info), next(g for g in self.machine.description.gpus if g.pci_address == remote.remote))
        else:
            _fill_switch(pointed(info), remote.remote)

    def nvmlDeviceGetNvLinkInfo(self, device: Any, info: Any) -> None:
        self._blackwell(device)
        fill(versioned(info, 1, 2), isNvleEnabled=0)

    def nvmlDeviceGetNvlinkBwMode(self, device: Any, mode: Any) -> None:
        self._blackwell(device)
        fill(versioned(mode, 1), bIsBest=1, bwMode=0)

    def _blackwell(self, device: Any) -> None:
        model = self.machine.whole(device).model
        if model.architecture < Architecture.Blackwell or not model.nvlinks:
            raise Refusal(Code.NOT_SUPPORTED)

    def _link(self, device: Any, link: Any) -> tuple[Gpu, int]:
        gpu, index = self.machine.whole(device), number(link)
        if not gpu.links:
            raise Refusal(Code.NOT_SUPPORTED)
        if not 0 <= index < len(gpu.links):
            raise Refusal(Code.INVALID_ARGUMENT)
        return gpu, index

    def _up(self, gpu: Gpu, index: int) -> bool:
        return gpu.links[index] is not None and index not in self.machine.condition(gpu).links_down

    def _remote(self, device: Any, link: Any) -> Link:
        gpu, index = self._link(device, link)
        found = gpu.links[index]
        if found is None or not self._up(gpu, index):
            raise Refusal(Code.NOT_SUPPORTED)
        return found


def _fill_switch(info: Any, address: str | None) -> None:
    """Fill nvmlPciInfo_t for a switch: all ones where it is no PCI function of this machine (NVLink 5)."""
    if address is None:
        ones = b"FFFFFFFF:FF:FF.0"
        fill(info, busIdLegacy=b"FFFF:FF:FF.0", domain=_ALL_ONES, bus=0xFF, device=0xFF, busId=ones)
        fill(info, pciDeviceId=_ALL_ONES, pciSubSystemId=_ALL_ONES)
        return
    domain, bus, slot = (int(part, 16) for part in address.partition(".")[0].split(":"))
    legacy = f"{domain & 0xFFFF:04X}:{bus:02X}:{slot:02X}.0".encode()
    current = f"{domain:08X}:{bus:02X}:{slot:02X}.0".encode()
    fill(info, busIdLegacy=legacy, domain=domain, bus=bus, device=slot, busId=current)
    fill(info, pciDeviceId=_SWITCH_ID, pciSubSystemId=0)
