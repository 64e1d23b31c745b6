"""Where GPUs are to each other and to the CPUs: PCIe levels, peer-to-peer, affinities."""
# ruff: noqa: D102, N802 - methods are named and documented as the C symbols of nvml.h

from __future__ import annotations

from typing import Any, Final

from dradriver.described.arguments import number, put, put_list, put_mask
from dradriver.described.codes import Code, Refusal
from dradriver.described.gpu import Gpu, Peer
from dradriver.described.handles import WholeGpu
from dradriver.described.model import Brand
from dradriver.described.symbols.area import Area

_CAPABILITIES: Final = range(5)  # NVML_P2P_CAPS_INDEX_READ, WRITE, NVLINK, ATOMICS, PCI
_OVER_NVLINK: Final = 2
_OK, _GPU_NOT_SUPPORTED, _NOT_SUPPORTED = 0, 2, 5  # nvmlGpuP2PStatus_t


class Topology(Area):
    """PCIe and NUMA; NVLink does not count here."""

    def nvmlDeviceGetTopologyCommonAncestor(self, one: Any, other: Any, level: Any) -> None:
        put(level, self._level(self.machine.whole(one), self._other(other)))

    def nvmlDeviceGetTopologyNearestGpus(self, device: Any, level: Any, count: Any, devices: Any) -> None:
        gpu, wanted = self.machine.whole(device), number(level)
        listed = self.machine.description.listed
        near = [other for other in listed if other is not gpu and self._level(gpu, other) == wanted]
        put_list(devices, count, [self.machine.handles.of(WholeGpu(each.position)) for each in near])

    def nvmlDeviceGetP2PStatus(self, one: Any, other: Any, capability: Any, status: Any) -> None:
        gpu, peer, wanted = self.machine.whole(one), self._other(other), number(capability)
        if wanted not in _CAPABILITIES:
            raise Refusal(Code.INVALID_ARGUMENT)
        put(status, self._p2p(gpu, peer, wanted))

    def nvmlDeviceOnSameBoard(self, one: Any, other: Any, same: Any) -> None:
        put(same, self.machine.whole(one) is self._other(other))

    def nvmlDeviceGetNumaNodeId(self, device: Any, node: Any) -> None:
        gpu = self.machine.whole(device)
        if gpu.gpu_numa_node is None:  # the GPU's own memory node: Grace alone has it
            raise Refusal(Code.NOT_SUPPORTED)
        put(node, gpu.gpu_numa_node)

    def nvmlDeviceGetMemoryAffinity(self, device: Any, size: Any, nodes: Any, scope: Any) -> None:
        del scope
        gpu = self.machine.whole(device)
        if gpu.numa_node is None:
            raise Refusal(Code.NOT_SUPPORTED)
        put_mask(nodes, size, [gpu.numa_node])

    def nvmlDeviceGetCpuAffinity(self, device: Any, size: Any, cpus: Any) -> None:
        gpu = self.machine.whole(device)
        if not gpu.cpus:
            raise Refusal(Code.NOT_SUPPORTED)
        put_mask(cpus, size, sorted(gpu.cpus))

    def nvmlDeviceGetCpuAffinityWithinScope(self, device: Any, size: Any, cpus: Any, scope: Any) -> None:
        del scope
        self.nvmlDeviceGetCpuAffinity(device, size, cpus)

    def nvmlDeviceGetCurrPcieLinkGeneration(self, device: Any, generation: Any) -> None:
        put(generation, self.machine.whole(device).model.pcie_generation)

    def nvmlDeviceGetMaxPcieLinkGeneration(self, device: Any, generation: Any) -> None:
        put(generation, self.machine.whole(device).model.pcie_generation)

    def nvmlDeviceGetCurrPcieLinkWidth(self, device: Any, width: Any) -> None:
        put(width, self.machine.whole(device).model.pcie_width)

    def nvmlDeviceGetMaxPcieLinkWidth(self, device: Any, width: Any) -> None:
        put(width, self.machine.whole(device).model.pcie_width)

    def _other(self, handle: Any) -> Gpu:
        gpu = self.machine.whole(handle)
        if self.machine.condition(gpu).lost:
            raise Refusal(Code.GPU_IS_LOST)
        return gpu

    def _level(self, one: Gpu, other: Gpu) -> int:
        return self.machine.description.levels[one.position][other.position]

    def _p2p(self, one: Gpu, other: Gpu, capability: int) -> int:
        if self.machine.partitioning(one).enabled or self.machine.partitioning(other).enabled:
            return _NOT_SUPPORTED  # MIG turns peer-to-peer off
        if capability == _OVER_NVLINK:
            return _OK if self._linked(one, other) else _NOT_SUPPORTED
        if one.model.brand is Brand.GEFORCE and not self._linked(one, other):
            return _GPU_NOT_SUPPORTED
        return _OK

    def _linked(self, one: Gpu, other: Gpu) -> bool:
        """Whether both have links up that lead to the other or to switches."""
        return all(
            any(link.peer is Peer.SWITCH or link.remote == to.pci_address for link in self._up(gpu))
            for gpu, to in ((one, other), (other, one))
        )

    def _up(self, gpu: Gpu) -> list[Any]:
        down = self.machine.condition(gpu).links_down
        return [link for i, link in enumerate(gpu.links) if link and i not in down]
