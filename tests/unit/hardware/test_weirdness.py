"""What real machines did to drivers, and what reading makes of it. Each test is named after its kind of report."""

from __future__ import annotations

from typing import Any

import pynvml
import pytest

from dradriver import hardware
from dradriver.hardware import FabricState, Inventory, Link, LinkPeer, NvmlError, Offer, Orphan, Placement

GPU, SWITCH = pynvml.NVML_NVLINK_DEVICE_TYPE_GPU, pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH
LOST = pynvml.NVML_ERROR_GPU_IS_LOST
UNKNOWN = pynvml.NVML_ERROR_UNKNOWN
NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
NO_PERMISSION = pynvml.NVML_ERROR_NO_PERMISSION
CLUSTER = bytes(range(16))

# id, slices, instances, memory, name, placements
A100 = {
    0: (19, 1, 7, 9728, b"MIG 1g.10gb", [(n, 1) for n in range(7)]),
    1: (14, 2, 3, 19968, b"MIG 2g.20gb", [(0, 2), (2, 2), (4, 2)]),
    2: (9, 3, 2, 40192, b"MIG 3g.40gb", [(0, 4), (4, 4)]),
    4: (0, 7, 1, 80896, b"MIG 7g.80gb", [(0, 8)]),
}


def offers(machine: Any, inventory: Inventory | None = None) -> list[Offer]:
    inventory = inventory or machine.read()
    numbers = {gpu.uuid: number for number, gpu in enumerate(inventory.gpus)}
    return list(hardware.offer(inventory, numbers, pool="node-a", roots=machine.roots))


def instance(machine: Any, number: int, profile: int, start: int, **more: Any) -> None:
    """One more GPU instance of the newest card, with one compute instance of its size."""
    size, slices = {19: (1, 1), 14: (2, 2), 9: (4, 3)}[profile]
    kind = next(p for p in A100.values() if p[0] == profile)
    told = {"computes": [(0, 0, slices)], "memory_mib": kind[3]} | more
    made = machine.instance(id=number, profile=profile, start=start, size=size, **told)
    machine.library.cards[-1].instances.append(made)


# --- health ----------------------------------------------------------------------------------------------------------


def test_gpu_lost_kills_node(machine: Any) -> None:
    for n in range(8):
        machine.card()
        machine.on_bus(0x10 + n)
    machine.library.cards[3].errors["nvmlDeviceGetHandleByIndex_v2"] = LOST
    inventory = machine.read()
    assert [gpu.pci_address for gpu in inventory.gpus] == [f"0000:{0x10 + n:02x}:00.0" for n in range(8) if n != 3]
    (lost,) = inventory.lost
    assert (lost.nvml_index, lost.pci_address) == (3, "0000:13:00.0")
    assert "GPU_IS_LOST" in lost.reason
    assert inventory.problems == ("7 of 8 GPUs can be used",)


@pytest.mark.parametrize(
    "symbol",
    [
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetPciInfo_v3",
        "nvmlDeviceGetName",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetNvLinkState",
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetGpuInstanceProfileInfoV",
    ],
)
def test_gpu_lost_while_it_is_read_takes_only_itself_away(machine: Any, symbol: str) -> None:
    machine.card()
    machine.card(errors={symbol: LOST})
    inventory = machine.read()
    assert [gpu.nvml_index for gpu in inventory.gpus] == [0]
    assert [lost.nvml_index for lost in inventory.lost] == [1]


def test_two_lost_gpus_are_found_on_the_bus_and_counted_once(machine: Any) -> None:
    for n in range(4):
        machine.card(errors={"nvmlDeviceGetHandleByIndex_v2": LOST} if n in {1, 2} else {})
        machine.on_bus(0x10 + n)
    inventory = machine.read()
    assert [(lost.nvml_index, lost.pci_address) for lost in inventory.lost] == [
        (None, "0000:11:00.0"),
        (None, "0000:12:00.0"),
    ]
    assert inventory.problems == ("2 of 4 GPUs can be used",)


ASKED = [
    "nvmlDeviceGetPciInfo_v3",
    "nvmlDeviceGetMinorNumber",
    "nvmlDeviceGetName",
    "nvmlDeviceGetBrand",
    "nvmlDeviceGetArchitecture",
    "nvmlDeviceGetCudaComputeCapability",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetEccMode",
    "nvmlDeviceGetMemoryBusWidth",
    "nvmlDeviceGetNvLinkState",
    "nvmlDeviceGetNvLinkRemoteDeviceType",
    "nvmlDeviceGetNvLinkRemotePciInfo_v2",
    "nvmlDeviceGetGpuFabricInfoV",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetGpuInstanceProfileInfoV",
    "nvmlDeviceGetGpuInstancePossiblePlacements_v2",
]


@pytest.mark.parametrize("symbol", ASKED)
@pytest.mark.parametrize("code", [UNKNOWN, pynvml.NVML_ERROR_CORRUPTED_INFOROM, NOT_SUPPORTED, NO_PERMISSION, 4711])
def test_panic_on_one_gpu(machine: Any, symbol: str, code: int) -> None:
    links = [(SWITCH, None)] * 2
    machine.card(links=links, max_links=2, profiles=A100, errors={symbol: code})
    machine.card(links=links, max_links=2, profiles=A100)
    machine.library.cards[1].fabric = machine.library.cards[0].fabric = (3, 0, CLUSTER, 1)
    first, second = machine.read().gpus if symbol != ASKED[0] else reversed(machine.read().gpus)
    assert first.uuid == "GPU-00000010"
    assert second.problems == ()
    failed = code not in {NOT_SUPPORTED, NO_PERMISSION}
    assert len(first.problems) == failed
    assert len(offers(machine)) == 2


@pytest.mark.parametrize(
    "symbol",
    [
        "nvmlDeviceGetMaxMigDeviceCount",
        "nvmlDeviceGetMigDeviceHandleByIndex",
        "nvmlDeviceGetGpuInstances",
        "nvmlGpuInstanceGetInfo",
        "nvmlGpuInstanceGetComputeInstanceById",
        "nvmlDeviceGetGpuInstanceId",
    ],
)
@pytest.mark.parametrize("code", [UNKNOWN, NO_PERMISSION])
def test_panic_on_one_gpu_in_mig_mode(machine: Any, symbol: str, code: int) -> None:
    machine.card(profiles=A100, mig=(1, 1), errors={symbol: code})
    instance(machine, 7, 19, 0)
    machine.card()
    inventory = machine.read()
    assert len(inventory.gpus) == 2
    assert inventory.gpus[0].problems
    assert [offer.device.name for offer in offers(machine, inventory)] == ["gpu-1"]


def test_unknown_error_flap(machine: Any) -> None:
    machine.card(errors={"nvmlDeviceGetName": [UNKNOWN, UNKNOWN], "nvmlDeviceGetHandleByIndex_v2": [UNKNOWN]})
    (gpu,) = machine.read().gpus
    assert (gpu.name, gpu.problems) == ("NVIDIA A100-SXM4-80GB", ())


def test_an_unknown_error_that_stays_is_asked_a_bounded_number_of_times(machine: Any) -> None:
    machine.card(errors={"nvmlDeviceGetName": UNKNOWN})
    (gpu,) = machine.read().gpus
    assert gpu.name is None
    assert gpu.problems == ("nvmlDeviceGetName answered UNKNOWN (999); left out",)
    assert machine.library.called.count("nvmlDeviceGetName") == 3


@pytest.mark.parametrize("symbol", ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetName"])
def test_mismatch_but_ready(machine: Any, symbol: str) -> None:
    machine.card(errors={symbol: pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH})
    with pytest.raises(NvmlError, match=r"LIB_RM_VERSION_MISMATCH.*finish the driver upgrade"):
        machine.read()


@pytest.mark.parametrize("symbol", ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetMemoryInfo"])
def test_reset_required(machine: Any, symbol: str) -> None:
    machine.card()
    machine.card(errors={symbol: pynvml.NVML_ERROR_RESET_REQUIRED})
    inventory = machine.read()
    assert len(inventory.gpus) == 1
    assert "RESET_REQUIRED" in inventory.lost[0].reason
    assert "--gpu-reset" in inventory.lost[0].reason


def test_hypervisor(machine: Any) -> None:
    # A guest is not told what its links lead to: only an address of all ones stands for a switch.
    unknown = pynvml.NVML_NVLINK_DEVICE_TYPE_UNKNOWN
    for _ in range(2):
        machine.card(links=[(unknown, "00000000:00:00.0")] * 4, max_links=4)
    assert hardware.domains(machine.read()) == ()
    for card in machine.library.cards:
        card.links = [(unknown, None)] * 4
    assert hardware.domains(machine.read()) == (("GPU-00000010", "GPU-00000011"),)


# --- MIG -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "published"), [((0, 1), ["gpu-0"]), ((1, 0), []), ((1, 1), ["gpu-0-mig-1g10gb-0"])])
def test_mig_mode_pending(machine: Any, mode: tuple[int, int], published: list[str]) -> None:
    machine.card(profiles=A100, mig=mode)
    instance(machine, 7, 19, 0)
    inventory = machine.read()
    (gpu,) = inventory.gpus
    assert (gpu.mig.enabled, gpu.mig.pending) == (bool(mode[0]), mode[0] != mode[1])
    assert any("after the next reset" in problem for problem in gpu.problems) == gpu.mig.pending
    assert [offer.device.name for offer in offers(machine, inventory)] == published


def test_mig_shown_enabled_after_disable(machine: Any) -> None:
    card = machine.card(profiles=A100, mig=(1, 1))
    nvml = machine.nvml()
    assert hardware.read(nvml, machine.roots).gpus[0].mig.enabled
    card.mig = (1, 0)
    assert hardware.read(nvml, machine.roots).gpus[0].mig.pending
    card.mig = (0, 0)
    mig = hardware.read(nvml, machine.roots).gpus[0].mig
    assert (mig.capable, mig.enabled, mig.pending) == (True, False, False)


def test_leftover_unknown_mig(machine: Any) -> None:
    # Instances made by somebody else are read and published as they are; reading destroys and creates nothing.
    machine.card(profiles=A100, mig=(1, 1))
    instance(machine, 1, 9, 0)
    instance(machine, 5, 14, 4)
    assert [offer.device.name for offer in offers(machine)] == ["gpu-0-mig-3g40gb-0", "gpu-0-mig-2g20gb-4"]
    assert not [symbol for symbol in machine.library.called if "Create" in symbol or "Destroy" in symbol]


def test_gi_without_ci(machine: Any) -> None:
    machine.card(profiles=A100, mig=(1, 1))
    instance(machine, 9, 19, 2, computes=[])
    instance(machine, 7, 19, 0)
    (gpu,) = machine.read().gpus
    assert gpu.mig.orphans == (Orphan(9, "1g.10gb", Placement(2, 1)),)
    assert [each.gpu_instance for each in gpu.mig.instances] == [7]
    assert any("GPU instance 9 (1g.10gb at 2)" in problem for problem in gpu.problems)


def test_stale_mig_index(machine: Any) -> None:
    # The session still shows devices of a destroyed GPU instance (7, 0) and compute instance (9, 1).
    machine.card(profiles=A100, mig=(1, 1), mig_indices={0: (7, 0), 2: (9, 1), 5: (9, 0)})
    instance(machine, 9, 19, 2)
    (gpu,) = machine.read().gpus
    assert [(each.gpu_instance, each.compute_instance, each.uuid) for each in gpu.mig.instances] == [
        (9, 0, "MIG-10-9-0")
    ]
    assert gpu.problems == ()


def test_new_mig_not_seen(machine: Any) -> None:
    machine.card(profiles=A100, mig=(1, 1))
    nvml = machine.nvml()
    (before,) = hardware.read(nvml, machine.roots).gpus
    assert (before.mig.instances, any("there is no MIG instance" in p for p in before.problems)) == ((), True)
    instance(machine, 7, 19, 0)
    assert len(hardware.read(nvml, machine.roots).gpus[0].mig.instances) == 1


def test_placement_permuted(machine: Any) -> None:
    machine.card(profiles=A100, mig=(1, 1))
    instance(machine, 13, 19, 2)
    instance(machine, 5, 14, 0)
    instance(machine, 1, 9, 4)
    mig = machine.read().gpus[0].mig
    assert [(each.gpu_instance, each.placement) for each in mig.instances] == [
        (5, Placement(0, 2)),
        (13, Placement(2, 1)),
        (1, Placement(4, 4)),
    ]


@pytest.mark.parametrize(
    ("said", "total", "memory", "name"),
    [
        (b"MIG 1g.24gb", 189471, 24192, "1g.24gb"),
        (b"1g.23gb", 189471, 23552, "1g.23gb"),
        (b"", 183359, 22528, "1g.23gb"),  # 22.00 GiB of a B200
        (b"", 183359, 20992, "1g.23gb"),  # 20.50 GiB of another
        (b"", 97887, 23674, "1g.24gb"),  # 23.12 GiB of an RTX PRO 6000
        (b"", 97887, 24187, "1g.24gb"),
        (b"", 40960, 4864, "1g.5gb"),
        (b"", 95830, 11008, "1g.12gb"),
    ],
)
def test_profile_names_differ(machine: Any, said: bytes, total: int, memory: int, name: str) -> None:
    machine.card(memory_mib=total, profiles={0: (19, 1, 7, memory, said, [(0, 1)])})
    (profile,) = machine.read().gpus[0].mig.profiles
    assert (profile.name, profile.memory_mib) == (name, memory)


def test_mig_total_differs_per_instance(machine: Any) -> None:
    machine.card(profiles=A100, mig=(1, 1))
    instance(machine, 1, 9, 0, memory_mib=20224)
    instance(machine, 2, 9, 4, memory_mib=20096)
    assert [str(offer.device.capacity["memory"].value) for offer in offers(machine)] == ["20224Mi", "20096Mi"]


def test_caps_missing(machine: Any) -> None:
    machine.card(profiles=A100, mig=(1, 1), minor=4)
    instance(machine, 7, 19, 0)
    (offer,) = offers(machine)
    assert "mig-minors does not list gpu4/gi7/access" in (offer.missing or "")
    assert not any("nvidia-cap" in node for node in offer.nodes)


def test_cap_minors_move(machine: Any) -> None:
    machine.card(profiles=A100, mig=(1, 1), minor=4)
    instance(machine, 7, 19, 0)
    table = machine.roots.proc / "driver" / "nvidia-caps" / "mig-minors"
    table.parent.mkdir(parents=True)
    inventory = machine.read()
    for first in (66, 606):
        table.write_text(f"gpu4/gi7/access {first}\ngpu4/gi7/ci0/access {first + 1}\n")
        (offer,) = offers(machine, inventory)
        caps = [f"/dev/nvidia-caps/nvidia-cap{first + n}" for n in (0, 1)]
        assert list(offer.nodes) == ["/dev/nvidia4", *caps]


def test_h100_sm_differs(machine: Any) -> None:
    other = {4: (0, 8, 1, 80896, b"MIG 7g.80gb", [(0, 8)])}  # eight slices of 14 multiprocessors
    machine.card(profiles=A100)
    machine.card(profiles=other)
    assert [str(offer.device.capacity["multiprocessors"].value) for offer in offers(machine)] == ["98", "112"]


def test_uuid_query_permission(machine: Any) -> None:
    # Instances are found by their ids; asking for a device by its MIG UUID needs rights that may be missing.
    machine.card(profiles=A100, mig=(1, 1))
    instance(machine, 7, 19, 0)
    assert [each.uuid for each in machine.read().gpus[0].mig.instances] == ["MIG-10-7-0"]
    assert "nvmlDeviceGetHandleByUUID" not in machine.library.called


def test_mig_mode_string(machine: Any) -> None:
    # "Disabled" on a V100 is no proof: a GPU can do MIG when it lists profiles.
    machine.card(mig=(0, 0), profiles={})
    machine.card(mig=None, profiles=A100)
    assert [gpu.mig.capable for gpu in machine.read().gpus] == [False, True]


def test_mig_parent_permission(machine: Any) -> None:
    machine.card(errors={"nvmlDeviceGetMemoryInfo": NO_PERMISSION})
    (gpu,) = machine.read().gpus
    assert (gpu.memory_mib, gpu.problems) == (None, ())


# --- enumeration -----------------------------------------------------------------------------------------------------


def test_minor_not_index(machine: Any) -> None:
    machine.card(minor=5)
    machine.card(minor=2)
    assert [offer.nodes for offer in offers(machine)] == [("/dev/nvidia5",), ("/dev/nvidia2",)]


def test_vfio_bound_invisible(machine: Any) -> None:
    machine.card()
    machine.on_bus(0x10)
    machine.on_bus(0x11, "vfio-pci")
    machine.on_bus(0x12, None)
    inventory = machine.read()
    assert len(inventory.gpus) == 1
    assert [(lost.pci_address, lost.reason.partition(":")[0]) for lost in inventory.lost] == [
        ("0000:11:00.0", "the kernel driver vfio-pci has it"),
        ("0000:12:00.0", "no kernel driver has it"),
    ]


def test_vfio_bound_invisible_and_none_left(machine: Any) -> None:
    machine.on_bus(0x11, "vfio-pci")
    inventory = machine.read()
    assert (inventory.gpus, len(inventory.lost)) == ((), 1)
    assert offers(machine, inventory) == []


def test_hot_plug(machine: Any) -> None:
    machine.card()
    nvml = machine.nvml()
    assert len(hardware.read(nvml, machine.roots).gpus) == 1
    machine.card()
    assert len(hardware.read(nvml, machine.roots).gpus) == 2
    machine.library.cards.pop()
    assert len(hardware.read(nvml, machine.roots).gpus) == 1


def test_missing_gpu(machine: Any) -> None:
    for n in range(8):
        machine.on_bus(0x10 + n)
        if n != 5:
            machine.card(bus=0x10 + n, fabric=(2, 0, bytes(16), 0))
    inventory = machine.read()
    assert [lost.pci_address for lost in inventory.lost] == ["0000:15:00.0"]
    assert "NVML does not list it" in inventory.lost[0].reason
    assert inventory.problems == ("7 of 8 GPUs can be used",)


def test_unknown_name(machine: Any) -> None:
    # The driver is too old for the part: the name is shown, and B300 is known by its PCI id alone.
    unknown = pynvml.NVML_DEVICE_ARCH_UNKNOWN
    machine.card(name="NVIDIA Graphics Device", pci_id=0x318210DE, memory_mib=275040, architecture=unknown)
    (offer,) = offers(machine)
    assert offer.device.attributes["productName"] == "NVIDIA Graphics Device"
    assert offer.device.attributes["nominalMemoryGB"] == 288
    assert "architecture" not in offer.device.attributes


# --- memory ----------------------------------------------------------------------------------------------------------


def test_memory_not_supported(machine: Any) -> None:
    machine.card(errors={"nvmlDeviceGetMemoryInfo": NOT_SUPPORTED})
    (offer,) = offers(machine)
    assert "memory" not in offer.device.capacity
    assert "nominalMemoryGB" not in offer.device.attributes


def test_memory_total_varies(machine: Any) -> None:
    card = machine.card()
    nvml = machine.nvml()
    for total in (81920, 81251):
        card.memory_mib = total
        assert hardware.read(nvml, machine.roots).gpus[0].memory_mib == total


# --- fabric ----------------------------------------------------------------------------------------------------------


def test_fabric_crash(machine: Any) -> None:
    machine.card(fabric=(2, 0, CLUSTER, 1))
    (gpu,) = machine.read().gpus
    assert gpu.fabric is not None
    assert (gpu.fabric.state, gpu.fabric.domain) == (FabricState.IN_PROGRESS, None)


def test_fabric_complete_but_error(machine: Any) -> None:
    error = pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES
    machine.card(fabric=(3, error, CLUSTER, 1))
    (gpu,) = machine.read().gpus
    assert gpu.fabric is not None
    assert (gpu.fabric.state, gpu.fabric.healthy, gpu.fabric.domain) == (FabricState.COMPLETED, False, None)


def test_links_up_fabric_dead(machine: Any) -> None:
    links = [(SWITCH, None)] * 18
    machine.card(links=links, max_links=18, fabric=(3, 0, CLUSTER, 32766))
    machine.card(links=links, max_links=18, fabric=(2, 0, CLUSTER, 32766))
    fabrics = [offer.device.attributes.get("nvlinkFabric") for offer in offers(machine)]
    assert fabrics == ["00010203-0405-0607-0809-0a0b0c0d0e0f.32766", None]


# --- NVLink ----------------------------------------------------------------------------------------------------------


def test_one_gpu_off_fabric(machine: Any) -> None:
    for n in range(8):
        machine.card(links=[] if n == 2 else [(SWITCH, None)] * 18, max_links=18, module=8 - n)
    inventory = machine.read()
    assert hardware.domains(inventory) == (tuple(f"GPU-000000{0x10 + n:02x}" for n in range(8) if n != 2),)
    off = offers(machine, inventory)[2].device.attributes
    assert (off["nvlinkLinks"], off["nvlinkPeers"], "nvlinkDomain" in off) == (0, 0, False)


def test_remote_invalid(machine: Any) -> None:
    # An HGX B200 gives all ones for every link; a board of A100 gives the switches, but for one link that fails.
    machine.card(links=[(SWITCH, None)] * 2, max_links=2)
    machine.card(
        links=[(SWITCH, "00000000:C3:00.0")] * 2,
        max_links=2,
        errors={("nvmlDeviceGetNvLinkRemotePciInfo_v2", 1): pynvml.NVML_ERROR_INVALID_ARGUMENT},
    )
    inventory = machine.read()
    assert inventory.gpus[0].links == tuple(Link(n, active=True, peer=LinkPeer.SWITCH) for n in (0, 1))
    assert [link.remote for link in inventory.gpus[1].links] == ["0000:c3:00.0", None]
    assert len(hardware.domains(inventory)) == 1


def test_degraded_bridge(machine: Any) -> None:
    machine.card(links=[(GPU, "00000000:11:00.0")] * 10, max_links=12)
    machine.card(links=[(GPU, "00000000:10:00.0")] * 10, max_links=12)
    found = offers(machine)
    assert [offer.device.attributes["nvlinkLinks"] for offer in found] == [10, 10]
    assert {offer.device.attributes["nvlinkDomain"] for offer in found} == {"node-a.nvl0"}


def test_nvlink_with_mig(machine: Any) -> None:
    links = [(SWITCH, None)] * 12
    machine.card(links=links, max_links=12)
    machine.card(links=links, max_links=12)
    machine.card(links=links, max_links=12, profiles=A100, mig=(1, 1))
    instance(machine, 7, 19, 0)
    *whole, part = offers(machine)
    assert [offer.device.attributes["nvlinkPeers"] for offer in whole] == [1, 1]
    assert (part.device.attributes["nvlinkPeers"], part.device.attributes["nvlinkLinks"]) == (0, 0)
    assert "nvlinkDomain" not in part.device.attributes


# --- topology, driver ------------------------------------------------------------------------------------------------


def test_mixed_models(machine: Any) -> None:
    machine.card(name="NVIDIA A100-SXM4-40GB", memory_mib=40960, profiles=A100)
    machine.card(name="Tesla T4", memory_mib=15360, mig=None, capability=(7, 5), architecture=6)
    names = [(gpu.name, gpu.architecture, gpu.mig.capable) for gpu in machine.read().gpus]
    assert names == [("NVIDIA A100-SXM4-40GB", "Ampere", True), ("Tesla T4", "Turing", False)]


def test_numa_odd(machine: Any) -> None:
    for n, node in enumerate(("3", "2", "-1", "0")):
        machine.card()
        machine.on_bus(0x10 + n, numa=node)
    inventory = machine.read()
    assert [gpu.numa_node for gpu in inventory.gpus] == [3, 2, None, 0]
    published = [o.device.attributes.get("resource.kubernetes.io/numaNode") for o in offers(machine, inventory)]
    assert published == [3, 2, None, 0]


def test_volta_driver(machine: Any) -> None:
    # A driver of the R450 time: newer symbols are not in its library.
    machine.library.missing |= {
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetGpuFabricInfo",
        "nvmlDeviceGetGpuInstanceProfileInfoV",
        "nvmlDeviceGetMemoryBusWidth",
        "nvmlDeviceGetNvLinkRemoteDeviceType",
    }
    machine.card(profiles=A100, links=[(GPU, "00000000:11:00.0")] * 2, max_links=6)
    machine.card(profiles=A100, links=[(GPU, "00000000:10:00.0")] * 2, max_links=6)
    inventory = machine.read()
    assert [gpu.problems for gpu in inventory.gpus] == [(), ()]
    assert [profile.name for profile in inventory.gpus[0].mig.profiles] == ["1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb"]
    assert hardware.domains(inventory) == (("GPU-00000010", "GPU-00000011"),)


# --- whatever a driver answers ---------------------------------------------------------------------------------------

WHOLE = {
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
}


@pytest.mark.parametrize("code", [*({*range(2, 31)} - WHOLE - {pynvml.NVML_ERROR_LIBRARY_NOT_FOUND}), UNKNOWN, 4711])
def test_no_answer_of_one_gpu_changes_what_is_read_of_another(machine: Any, code: int) -> None:
    links = [(SWITCH, None)] * 2
    for _ in range(2):
        machine.card(profiles=A100, mig=(1, 1), links=links, max_links=2, fabric=(3, 0, CLUSTER, 1))
        instance(machine, 7, 19, 0)
    nvml = machine.nvml()
    healthy = hardware.read(nvml, machine.roots)
    asked = [
        symbol for symbol in dict.fromkeys(machine.library.called) if not symbol.startswith(("nvmlInit", "nvmlSys"))
    ]
    assert len(asked) > 25  # else nothing was tried
    for symbol in asked:
        machine.library.cards[0].errors = {symbol: code}
        inventory = hardware.read(nvml, machine.roots)
        assert healthy.gpus[1] in inventory.gpus
        assert len(inventory.gpus) + len(inventory.lost) == 2
        assert all(offer.device.name for offer in offers(machine, inventory))
