"""From inventory to what is published: devices with their attributes and capacities, and the nodes they need.

Keys mean the same and have the same type on every device. A missing key aborts the scheduling of a pod whose selector
asks for it, so a key is left out only where it exists to be matched (nvlinkDomain, nvlinkFabric, pcieRoot, numaNode,
parentUUID, profile) or where the machine did not tell.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dradriver import api
from dradriver.hardware.capabilities import Capabilities
from dradriver.hardware.errors import CapabilityError
from dradriver.hardware.inventory import Gpu, Inventory, MigInstance, MigProfile, Roots
from dradriver.hardware.topology import domains, peers

_MAX_STRING: Final = 64  # of an attribute's value (k8s.io/api resource/v1, DeviceAttributeMaxValueLength)
_MAX_POOL: Final = 40  # of a pool name inside a domain's name
_DIGEST: Final = 8
_ENFORCED_BY_HARDWARE: Final[dict[str, api.AttributeValue]] = {
    "sharingEnforcement": "hardware",
    "sharingEnforcementLevel": 4,
}
_NOT_ENFORCED: Final[dict[str, api.AttributeValue]] = {"sharingEnforcement": "none", "sharingEnforcementLevel": 0}
_ENGINES: Final = {
    "multiprocessors": "multiprocessors",
    "copyEngines": "copy_engines",
    "decoders": "decoders",
    "encoders": "encoders",
    "jpegEngines": "jpeg_engines",
    "ofaEngines": "ofa_engines",
}
_GDDR_BUS_BITS: Final = 384  # the widest; HBM starts at 1024
_GDDR_CAPABILITIES: Final = frozenset({(7, 5), (8, 6), (8, 9)})  # Turing, Ampere but for A100 and A30, Ada
_ECC_IN_MEMORY: Final = ("Turing", "Ampere", "Ada Lovelace")
_SOLD_AS: Final = {0x3182: 288, 0x31C2: 288, 0x31C3: 288}  # B300 and GB300 keep more for themselves than rounding hides


@dataclass(frozen=True, slots=True)
class Offer:
    """A device to publish and what a container needs to use it.

    `uuid` is the GPU's or MIG instance's; `nodes` are container paths (`/dev/nvidia3`,
    `/dev/nvidia-caps/nvidia-cap66`), which exist on the node under its dev root when the device can be used;
    `missing` says why they could not be told (a capability that is not in the kernel's table).
    """

    device: api.Device
    gpu_uuid: str
    uuid: str
    nodes: tuple[str, ...]
    missing: str | None = None


def offer(inventory: Inventory, numbers: Mapping[str, int], *, pool: str, roots: Roots) -> tuple[Offer, ...]:
    """Offers of all usable devices, by GPU in the order of `numbers` (GPU UUID → the `<n>` of its name).

    A GPU in MIG mode offers its instances, any other itself. What is in neither state yet (a mode that changes at the
    next reset, MIG mode without instances) offers nothing of MIG; the GPU's `problems` say so. A GPU without a number
    is not offered.
    """
    graph = peers(inventory)
    domain_of = {
        uuid: _domain(pool, min(numbers[member] for member in members))
        for group in domains(inventory)
        if (members := [member for member in group if member in numbers])
        for uuid in members
    }
    capabilities = Capabilities.read(roots.proc)
    offers: list[Offer] = []
    numbered = [(numbers[gpu.uuid], position) for position, gpu in enumerate(inventory.gpus) if gpu.uuid in numbers]
    for number, position in sorted(numbered):
        gpu = inventory.gpus[position]
        common = _attributes(inventory, gpu, number)
        if not gpu.mig.enabled:
            reached = len(graph[position])
            offers.append(_whole(gpu, number, common | dict(_nvlink(gpu, reached, domain_of.get(gpu.uuid)))))
        elif not gpu.mig.pending:
            offers += (_part(gpu, number, instance, common, capabilities) for instance in gpu.mig.instances)
    return tuple(offers)


def _whole(gpu: Gpu, number: int, attributes: dict[str, api.AttributeValue]) -> Offer:
    own: dict[str, api.AttributeValue] = {"type": "gpu", "uuid": gpu.uuid, **_ENFORCED_BY_HARDWARE}
    if (gigabytes := _nominal_memory_gb(gpu)) is not None:
        own["nominalMemoryGB"] = gigabytes
    capacity = _capacity(gpu.memory_mib, _most(gpu.mig.profiles))
    device = api.Device(f"gpu-{number}", attributes=attributes | own, capacity=capacity)
    if gpu.minor is None:
        return Offer(device, gpu.uuid, gpu.uuid, (), f"{gpu.uuid} does not tell its minor number, so no /dev/nvidia<N>")
    return Offer(device, gpu.uuid, gpu.uuid, (f"/dev/nvidia{gpu.minor}",))


def _part(
    gpu: Gpu,
    number: int,
    instance: MigInstance,
    attributes: dict[str, api.AttributeValue],
    capabilities: Capabilities,
) -> Offer:
    name = f"gpu-{number}-mig-{_label(instance.profile)}-{instance.placement.start}"
    own: dict[str, api.AttributeValue] = {
        "type": "mig",
        "uuid": instance.uuid,
        "parentUUID": gpu.uuid,
        "profile": instance.profile,
        "nvlinkPeers": 0,
        "nvlinkLinks": 0,
    }
    if not instance.whole:  # siblings share the memory of one GPU instance
        name += f"-c{instance.compute_start}"
    own |= _ENFORCED_BY_HARDWARE if instance.whole else _NOT_ENFORCED
    if said := re.search(r"(\d+)gb", instance.profile):
        own["nominalMemoryGB"] = int(said[1])
    engines = {key: getattr(instance, field) for key, field in _ENGINES.items()}
    device = api.Device(name, attributes=attributes | own, capacity=_capacity(instance.memory_mib, engines))
    if gpu.minor is None:
        return Offer(device, gpu.uuid, instance.uuid, (), f"{gpu.uuid} does not tell its minor number")
    nodes: tuple[str, ...] = (f"/dev/nvidia{gpu.minor}",)
    try:
        nodes += capabilities.nodes(gpu.minor, instance.gpu_instance, instance.compute_instance)
    except CapabilityError as error:
        return Offer(device, gpu.uuid, instance.uuid, nodes, str(error))
    return Offer(device, gpu.uuid, instance.uuid, nodes)


def _attributes(inventory: Inventory, gpu: Gpu, number: int) -> dict[str, api.AttributeValue]:
    """What a GPU and its MIG instances have in common."""
    capability = gpu.compute_capability
    told: dict[str, api.AttributeValue | None] = {
        "index": number,
        "productName": gpu.name[:_MAX_STRING] if gpu.name else None,
        "brand": gpu.brand,
        "architecture": gpu.architecture,
        "cudaComputeCapability": api.Version.padded(f"{capability[0]}.{capability[1]}") if capability else None,
        "driverVersion": api.Version.padded(inventory.driver_version) if inventory.driver_version else None,
        "cudaDriverVersion": api.Version.padded(inventory.cuda_version) if inventory.cuda_version else None,
        "migCapable": gpu.mig.capable,
        "migEnabled": gpu.mig.enabled,
        "resource.kubernetes.io/pciBusID": gpu.pci_address,
        "resource.kubernetes.io/pcieRoot": gpu.pcie_root,
        "resource.kubernetes.io/numaNode": gpu.numa_node,
    }
    return {key: value for key, value in told.items() if value is not None}


def _nvlink(gpu: Gpu, reached: int, domain: str | None) -> Iterator[tuple[str, api.AttributeValue]]:
    yield "nvlinkPeers", reached
    yield "nvlinkLinks", sum(link.active for link in gpu.links)
    if domain is not None:
        yield "nvlinkDomain", domain
    if gpu.fabric is not None and gpu.fabric.domain is not None:
        yield "nvlinkFabric", gpu.fabric.domain


def _domain(pool: str, lowest: int) -> str:
    """A domain's name, unique in the cluster: a long pool name is cut and keeps apart by its digest."""
    if len(pool) > _MAX_POOL:
        digest = hashlib.sha256(pool.encode()).hexdigest()[:_DIGEST]
        pool = f"{pool[: _MAX_POOL - _DIGEST - 1]}-{digest}"
    return f"{pool}.nvl{lowest}"


def _label(profile: str) -> str:
    """A profile name as part of a DNS label: 1g.24gb+me.all becomes 1g24gb-pmeall, 1g.24gb-me 1g24gb-nme."""
    return profile.lower().replace(".", "").replace("-", "-n").replace("+", "-p")


def _most(profiles: tuple[MigProfile, ...]) -> dict[str, int | None]:
    """The most of each kind of engine that one instance can have: what MIG can hand out of this GPU."""
    counts = {key: [getattr(profile, field) for profile in profiles] for key, field in _ENGINES.items()}
    return {key: max((n for n in found if n is not None), default=None) for key, found in counts.items()}


def _capacity(memory_mib: int | None, engines: Mapping[str, int | None]) -> dict[str, api.Capacity]:
    capacity = {} if memory_mib is None else {"memory": api.Capacity(api.Quantity.of_mib(memory_mib))}
    return capacity | {
        key: api.Capacity(api.Quantity.parse(str(amount))) for key, amount in engines.items() if amount is not None
    }


def _nominal_memory_gb(gpu: Gpu) -> int | None:
    """What people call the memory: 80 for 81559 MiB, 16 for a T4 that keeps a sixteenth of its GDDR for ECC."""
    if gpu.pci_id is not None and (sold_as := _SOLD_AS.get(gpu.pci_id >> 16)):
        return sold_as
    if gpu.memory_mib is None:
        return None
    if gpu.ecc and gpu.architecture in _ECC_IN_MEMORY and _has_gddr(gpu):
        return -(-gpu.memory_mib * 16 // (15 * 1024))
    return -(-gpu.memory_mib // 1024)


def _has_gddr(gpu: Gpu) -> bool:
    if gpu.memory_bus_bits is None:
        return gpu.compute_capability in _GDDR_CAPABILITIES
    return gpu.memory_bus_bits <= _GDDR_BUS_BITS
