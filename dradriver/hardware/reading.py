"""Reading the inventory: no failing query hides a GPU, and no failing GPU hides the node."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dradriver.hardware import pci
from dradriver.hardware.errors import GpuLostError, QueryError
from dradriver.hardware.inventory import Gpu, Inventory, Link, LinkPeer, LostGpu, Roots
from dradriver.hardware.nvml import LINKS, Handle, Nvml
from dradriver.hardware.partitions import read_mig
from dradriver.hardware.querying import Questions

_NVIDIA_DRIVER: Final = "nvidia"
_ALL_ONES: Final = "ffffffff:ff:ff"
"""The remote address of a switch that is no PCI function of this machine (NVLink 5, and some guests)."""


def read(nvml: Nvml, roots: Roots) -> Inventory:
    """Read what the machine has now. Raises NvmlError only where NVML as a whole does not answer."""
    questions = Questions()
    gpus: list[Gpu] = []
    lost: list[LostGpu] = []
    for index in range(nvml.count()):
        found = _gpu(nvml, index, roots)
        if isinstance(found, LostGpu):
            lost.append(found)
        elif twin := next((gpu for gpu in gpus if gpu.uuid == found.uuid), None):
            reason = (
                f"its UUID {found.uuid} is that of the GPU at {twin.pci_address}, so claims could not tell them apart"
            )
            lost.append(LostGpu(index, found.pci_address, reason))
        else:
            gpus.append(found)
    gpus.sort(key=lambda gpu: (pci.order(gpu.pci_address) if gpu.pci_address else (1 << 32,), gpu.nvml_index))
    lost, problems = _compared_with_bus(gpus, lost, pci.gpus(roots.sys))
    return Inventory(
        gpus=tuple(gpus),
        lost=tuple(lost),
        driver_version=questions.ask(nvml.driver_version),
        cuda_version=questions.ask(nvml.cuda_version),
        problems=(*questions.problems, *problems),
    )


def _gpu(nvml: Nvml, index: int, roots: Roots) -> Gpu | LostGpu:
    lost = LostGpu(index, None, "")
    try:
        handle = nvml.gpu(index)
        if handle is None:
            return replace(lost, reason="this process may not open it: run it privileged")
        questions = Questions()
        place = questions.ask(nvml.pci, handle)
        lost = replace(lost, pci_address=place.address if place else None)
        uuid = nvml.uuid(handle)
        if uuid is None:
            return replace(lost, reason="it does not tell its UUID, without which no claim can hold it")
        lost = replace(lost, uuid=uuid)
        memory_mib = questions.ask(nvml.memory_mib, handle)
        return Gpu(
            uuid=uuid,
            nvml_index=index,
            pci_address=place.address if place else None,
            minor=questions.ask(nvml.minor, handle),
            pci_id=place.id if place else None,
            name=questions.ask(nvml.name, handle),
            brand=questions.ask(nvml.brand, handle),
            architecture=questions.ask(nvml.architecture, handle),
            compute_capability=questions.ask(nvml.compute_capability, handle),
            memory_mib=memory_mib,
            ecc=questions.ask(nvml.ecc, handle),
            memory_bus_bits=questions.ask(nvml.memory_bus_bits, handle),
            numa_node=pci.numa_node(roots.sys, place.address) if place else None,
            pcie_root=pci.root(roots.sys, place.address) if place else None,
            links=_links(nvml, handle, questions),
            fabric=questions.ask(nvml.fabric, handle),
            mig=read_mig(nvml, handle, memory_mib, questions),
            problems=questions.problems,
        )
    except (GpuLostError, QueryError) as error:
        return replace(lost, reason=str(error))


def _links(nvml: Nvml, gpu: Handle, questions: Questions) -> tuple[Link, ...]:
    links = []
    for number in LINKS:
        active = questions.ask(nvml.link_active, gpu, number)
        if active:
            peer = questions.ask(nvml.link_peer, gpu, number) or LinkPeer.UNKNOWN
            remote = questions.ask(nvml.link_remote, gpu, number)
            if remote is not None and remote.startswith(_ALL_ONES):
                remote = None
                peer = LinkPeer.SWITCH if peer is LinkPeer.UNKNOWN else peer
            links.append(Link(number, active=True, peer=peer, remote=remote))
        elif active is not None:
            links.append(Link(number, active=False))
    return tuple(links)


def _compared_with_bus(
    gpus: list[Gpu], lost: list[LostGpu], on_bus: tuple[pci.PciGpu, ...]
) -> tuple[list[LostGpu], list[str]]:
    """GPUs that the bus shows and NVML does not, joined with those that NVML lost without telling where they sit."""
    listed = {gpu.pci_address for gpu in gpus} | {gpu.pci_address for gpu in lost}
    unplaced = any(gpu.pci_address is None for gpu in gpus)  # then which are missing cannot be told
    missing = [gpu for gpu in on_bus if gpu.address not in listed and not unplaced]
    nowhere = [gpu for gpu in lost if gpu.pci_address is None]
    ours = [gpu for gpu in missing if gpu.driver == _NVIDIA_DRIVER]
    if nowhere and len(nowhere) == len(ours):
        # NVML's indices do not follow PCI order, so only a single one keeps its index with its address.
        lost = [gpu for gpu in lost if gpu.pci_address is not None]
        lost += [
            replace(gone, pci_address=gpu.address, nvml_index=gone.nvml_index if len(ours) == 1 else None)
            for gone, gpu in zip(nowhere, ours, strict=True)
        ]
        missing = [gpu for gpu in missing if gpu not in ours]
    lost = [*lost, *(LostGpu(None, gpu.address, _absence(gpu)) for gpu in missing)]
    problems = [f"{len(gpus)} of {len(gpus) + len(lost)} GPUs can be used"] if lost else []
    return lost, problems


def _absence(gpu: pci.PciGpu) -> str:
    if gpu.driver is None:
        return "no kernel driver has it: bind it to nvidia to use it here"
    if gpu.driver == _NVIDIA_DRIVER:
        return "the nvidia driver has it but NVML does not list it: see the kernel log"
    return f"the kernel driver {gpu.driver} has it: bind it to nvidia to use it here"
