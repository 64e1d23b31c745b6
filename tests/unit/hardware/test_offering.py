"""What is published of a machine: names, attributes, capacities, and the device nodes a container gets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dradriver import api, hardware
from dradriver.hardware import (
    Fabric,
    FabricState,
    Gpu,
    Inventory,
    Link,
    LinkPeer,
    MigInstance,
    MigProfile,
    MigState,
    Offer,
    Placement,
    Roots,
)

BIG = MigProfile("7g.80gb", 4, 0, 7, 80384, (Placement(0, 8),), 132, 8, 7, 0, 7, 1)
SMALL = MigProfile("1g.10gb+me", 7, 20, 1, 9856, (Placement(0, 1),), 16, 1, 1, 0, 1, 1)
H100 = Gpu(
    uuid="GPU-h100",
    nvml_index=5,
    pci_address="0000:1b:00.0",
    minor=3,
    pci_id=0x233010DE,
    name="NVIDIA H100 80GB HBM3",
    brand="Nvidia",
    architecture="Hopper",
    compute_capability=(9, 0),
    memory_mib=81559,
    ecc=True,
    memory_bus_bits=5120,
    numa_node=1,
    pcie_root="pci0000:15",
    fabric=Fabric(FabricState.COMPLETED, healthy=True, cluster_uuid=None, clique_id=0),
    mig=MigState(capable=True, profiles=(SMALL, BIG)),
)
NOWHERE = Roots(Path("/nowhere"), Path("/nowhere"), Path("/nowhere"))


def offers(*gpus: Gpu, roots: Roots = NOWHERE) -> list[Offer]:
    inventory = Inventory(gpus, driver_version="550.90.07", cuda_version="12.4")
    numbers = {gpu.uuid: number for number, gpu in enumerate(gpus, start=2)}
    return list(hardware.offer(inventory, numbers, pool="node-a", roots=roots))


def amounts(device: api.Device) -> dict[str, str]:
    return {name: str(capacity.value) for name, capacity in device.capacity.items()}


def test_a_whole_gpu_with_all_it_tells() -> None:
    (offer,) = offers(H100)
    assert offer.device.name == "gpu-2"
    assert offer.device.attributes == {
        "type": "gpu",
        "uuid": "GPU-h100",
        "index": 2,
        "productName": "NVIDIA H100 80GB HBM3",
        "brand": "Nvidia",
        "architecture": "Hopper",
        "cudaComputeCapability": api.Version("9.0.0"),
        "driverVersion": api.Version("550.90.7"),
        "cudaDriverVersion": api.Version("12.4.0"),
        "nominalMemoryGB": 80,
        "nvlinkPeers": 0,
        "nvlinkLinks": 0,
        "migCapable": True,
        "migEnabled": False,
        "sharingEnforcement": "hardware",
        "sharingEnforcementLevel": 4,
        "resource.kubernetes.io/pciBusID": "0000:1b:00.0",
        "resource.kubernetes.io/pcieRoot": "pci0000:15",
        "resource.kubernetes.io/numaNode": 1,
    }
    assert amounts(offer.device) == {
        "memory": "81559Mi",
        "multiprocessors": "132",
        "copyEngines": "8",
        "decoders": "7",
        "encoders": "0",
        "jpegEngines": "7",
        "ofaEngines": "1",
    }
    assert (offer.gpu_uuid, offer.uuid) == ("GPU-h100", "GPU-h100")
    assert (offer.nodes, offer.missing) == (("/dev/nvidia3",), None)


def test_a_gpu_that_tells_next_to_nothing_is_published_without_those_keys() -> None:
    (offer,) = hardware.offer(Inventory((Gpu("GPU-x", 0, minor=0),)), {"GPU-x": 0}, pool="node-a", roots=NOWHERE)
    assert offer.device.attributes == {
        "type": "gpu",
        "uuid": "GPU-x",
        "index": 0,
        "nvlinkPeers": 0,
        "nvlinkLinks": 0,
        "migCapable": False,
        "migEnabled": False,
        "sharingEnforcement": "hardware",
        "sharingEnforcementLevel": 4,
    }
    assert offer.device.capacity == {}


def test_zero_is_told_and_not_left_out() -> None:
    (offer,) = offers(replace(H100, numa_node=0))
    assert offer.device.attributes["resource.kubernetes.io/numaNode"] == 0


def test_a_gpu_that_cannot_do_mig_has_memory_alone() -> None:
    (offer,) = offers(replace(H100, mig=MigState()))
    assert amounts(offer.device) == {"memory": "81559Mi"}


def test_a_gpu_without_a_minor_number_says_why_its_node_is_not_known() -> None:
    (offer,) = offers(replace(H100, minor=None))
    assert offer.nodes == ()
    assert "minor" in (offer.missing or "")


def test_a_gpu_without_a_number_is_not_offered_and_numbers_give_the_order() -> None:
    gpus = tuple(replace(H100, uuid=f"GPU-{k}", pci_address=f"0000:0{k}:00.0") for k in range(3))
    found = hardware.offer(Inventory(gpus), {"GPU-0": 9, "GPU-2": 4}, pool="node-a", roots=NOWHERE)
    assert [offer.device.name for offer in found] == ["gpu-4", "gpu-9"]


def test_strings_and_versions_fit_what_a_server_accepts() -> None:
    inventory = Inventory((replace(H100, name="N" * 96),), driver_version="575.64", cuda_version="13.0")
    (offer,) = hardware.offer(inventory, {"GPU-h100": 0}, pool="node-a", roots=NOWHERE)
    assert offer.device.attributes["productName"] == "N" * 64
    assert offer.device.attributes["driverVersion"] == api.Version("575.64.0")
    assert offer.device.attributes["cudaDriverVersion"] == api.Version("13.0.0")


@pytest.mark.parametrize(
    ("fabric", "published"),
    [
        (Fabric(FabricState.COMPLETED, True, "f5b9c2f0-0000-0000-0000-000000000001", 32766), True),
        (Fabric(FabricState.COMPLETED, True, None, 0), False),  # inside one box
        (Fabric(FabricState.COMPLETED, False, "f5b9c2f0-0000-0000-0000-000000000001", 2), False),
        (Fabric(FabricState.IN_PROGRESS, True, "f5b9c2f0-0000-0000-0000-000000000001", 2), False),
        (Fabric(FabricState.NOT_SUPPORTED), False),
        (None, False),
    ],
)
def test_the_fabric_is_published_once_registered_with_success(fabric: Fabric | None, *, published: bool) -> None:
    (offer,) = offers(replace(H100, fabric=fabric))
    expected = "f5b9c2f0-0000-0000-0000-000000000001.32766" if published else None
    assert offer.device.attributes.get("nvlinkFabric") == expected


# --- MIG -------------------------------------------------------------------------------------------------------------

INSTANCE = MigInstance("MIG-a", 9, 0, "1g.10gb+me", Placement(2, 1), 9856, 16, 1, 1, 0, 1, 1, compute_slices=1)


def in_mig_mode(*instances: MigInstance, pending: bool = False) -> Gpu:
    mode = MigState(True, True, pending, (SMALL, BIG), instances)
    links = tuple(Link(n, active=True, peer=LinkPeer.SWITCH) for n in range(18))
    return replace(H100, mig=mode, links=links)


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    table = tmp_path / "proc" / "driver" / "nvidia-caps" / "mig-minors"
    table.parent.mkdir(parents=True)
    table.write_text(
        "config 1\nmonitor 2\n"
        "gpu3/gi9/access 489\ngpu3/gi9/ci0/access 490\n"
        "gpu5/gi9/access 759\ngpu5/gi9/ci0/access 760\n"
    )
    return Roots.under(tmp_path)


def test_a_mig_instance_with_all_it_tells(roots: Roots) -> None:
    (offer,) = offers(in_mig_mode(INSTANCE), roots=roots)
    assert offer.device.name == "gpu-2-mig-1g10gb-pme-2"
    assert offer.device.attributes == {
        "type": "mig",
        "uuid": "MIG-a",
        "parentUUID": "GPU-h100",
        "profile": "1g.10gb+me",
        "index": 2,
        "productName": "NVIDIA H100 80GB HBM3",
        "brand": "Nvidia",
        "architecture": "Hopper",
        "cudaComputeCapability": api.Version("9.0.0"),
        "driverVersion": api.Version("550.90.7"),
        "cudaDriverVersion": api.Version("12.4.0"),
        "nominalMemoryGB": 10,
        "nvlinkPeers": 0,
        "nvlinkLinks": 0,
        "migCapable": True,
        "migEnabled": True,
        "sharingEnforcement": "hardware",
        "sharingEnforcementLevel": 4,
        "resource.kubernetes.io/pciBusID": "0000:1b:00.0",
        "resource.kubernetes.io/pcieRoot": "pci0000:15",
        "resource.kubernetes.io/numaNode": 1,
    }
    assert amounts(offer.device) == {
        "memory": "9856Mi",
        "multiprocessors": "16",
        "copyEngines": "1",
        "decoders": "1",
        "encoders": "0",
        "jpegEngines": "1",
        "ofaEngines": "1",
    }
    assert (offer.gpu_uuid, offer.uuid) == ("GPU-h100", "MIG-a")
    assert offer.nodes == ("/dev/nvidia3", "/dev/nvidia-caps/nvidia-cap489", "/dev/nvidia-caps/nvidia-cap490")
    assert offer.missing is None


@pytest.mark.parametrize(
    ("profile", "start", "name"),
    [
        ("1g.5gb", 6, "gpu-2-mig-1g5gb-6"),
        ("7g.79gb", 0, "gpu-2-mig-7g79gb-0"),
        ("1g.24gb+me.all", 3, "gpu-2-mig-1g24gb-pmeall-3"),
        ("2g.48gb+gfx", 6, "gpu-2-mig-2g48gb-pgfx-6"),
        ("1g.24gb-me", 9, "gpu-2-mig-1g24gb-nme-9"),
    ],
)
def test_names_of_mig_devices(profile: str, start: int, name: str) -> None:
    (offer,) = offers(in_mig_mode(replace(INSTANCE, profile=profile, placement=Placement(start, 1))))
    assert offer.device.name == name


def test_compute_instances_that_share_a_gpu_instance_differ_in_name_and_are_not_isolated() -> None:
    part = replace(INSTANCE, profile="1c.3g.20gb", placement=Placement(0, 4), whole=False, compute_slices=1)
    found = offers(in_mig_mode(part, replace(part, uuid="MIG-b", compute_instance=1, compute_start=1)))
    assert [offer.device.name for offer in found] == ["gpu-2-mig-1c3g20gb-0-c0", "gpu-2-mig-1c3g20gb-0-c1"]
    assert {offer.device.attributes["sharingEnforcement"] for offer in found} == {"none"}
    assert {offer.device.attributes["sharingEnforcementLevel"] for offer in found} == {0}
    assert {offer.device.attributes["nominalMemoryGB"] for offer in found} == {20}


def test_a_mig_device_has_no_domain_and_no_fabric() -> None:
    fabric = Fabric(FabricState.COMPLETED, True, "f5b9c2f0-0000-0000-0000-000000000001", 2)
    found = offers(replace(in_mig_mode(INSTANCE), fabric=fabric), replace(H100, uuid="GPU-2", fabric=fabric))
    assert [sorted(o.device.attributes.keys() & {"nvlinkDomain", "nvlinkFabric"}) for o in found] == [
        [],
        ["nvlinkFabric"],
    ]


def test_keys_of_gpus_and_mig_devices_differ_only_where_they_exist_to_be_matched() -> None:
    gpu, mig = offers(replace(H100, uuid="GPU-1"), in_mig_mode(INSTANCE))
    assert mig.device.attributes.keys() - gpu.device.attributes.keys() == {"parentUUID", "profile"}
    assert gpu.device.attributes.keys() <= mig.device.attributes.keys()
    assert {type(mig.device.attributes[key]) is type(value) for key, value in gpu.device.attributes.items()} == {True}


def test_a_gpu_in_mig_mode_without_instances_offers_nothing() -> None:
    assert offers(in_mig_mode()) == []


def test_nothing_of_mig_is_offered_while_the_mode_is_about_to_change() -> None:
    assert offers(in_mig_mode(INSTANCE, pending=True)) == []
    (whole,) = offers(replace(H100, mig=replace(H100.mig, pending=True)))
    assert whole.device.attributes["migEnabled"] is False


def test_a_capability_that_the_table_lacks_is_named(roots: Roots) -> None:
    (offer,) = offers(in_mig_mode(replace(INSTANCE, compute_instance=1)), roots=roots)
    assert str(roots.proc / "driver/nvidia-caps/mig-minors") in (offer.missing or "")
    assert "gpu3/gi9/ci1/access" in (offer.missing or "")


def test_without_a_table_the_device_is_published_and_its_path_named() -> None:
    (offer,) = offers(in_mig_mode(INSTANCE))
    assert offer.nodes == ("/dev/nvidia3",)
    assert "/nowhere/driver/nvidia-caps/mig-minors" in (offer.missing or "")


# --- the memory people speak of --------------------------------------------------------------------------------------

# Name, PCI device id, architecture, compute capability, bus width, ECC, MiB that NVML totals, and what people say.
MODELS = [
    ("NVIDIA A100 80GB PCIe", 0x20B5, "Ampere", (8, 0), 5120, True, 81920, 80),
    ("NVIDIA A100-PCIE-40GB", 0x20F1, "Ampere", (8, 0), 5120, True, 40960, 40),
    ("NVIDIA A100-SXM4-40GB", 0x20B0, "Ampere", (8, 0), 5120, True, 40960, 40),
    ("NVIDIA A100-SXM4-80GB", 0x20B2, "Ampere", (8, 0), 5120, True, 81920, 80),
    ("NVIDIA A30", 0x20B7, "Ampere", (8, 0), 3072, True, 24576, 24),
    ("NVIDIA B200", 0x2901, "Blackwell", (10, 0), 8192, True, 183359, 180),
    ("NVIDIA B300 SXM6 AC", 0x3182, "Blackwell", (10, 3), 8192, True, 275040, 288),
    ("NVIDIA GB200", 0x2941, "Blackwell", (10, 0), 8192, True, 189471, 186),
    ("NVIDIA GB300", 0x31C2, "Blackwell", (10, 3), 8192, True, 284208, 288),
    ("NVIDIA GB300", 0x31C3, "Blackwell", (10, 3), 8192, True, 284208, 288),
    ("NVIDIA GH200 144G HBM3e", 0x2348, "Hopper", (9, 0), 6144, True, 146831, 144),
    ("NVIDIA GH200 480GB", 0x2342, "Hopper", (9, 0), 6144, True, 97871, 96),
    ("NVIDIA H100 NVL", 0x2321, "Hopper", (9, 0), 6144, True, 95830, 94),
    ("NVIDIA H100 PCIe", 0x2331, "Hopper", (9, 0), 5120, True, 81559, 80),
    ("NVIDIA H100 80GB HBM3", 0x2330, "Hopper", (9, 0), 5120, True, 81559, 80),
    ("NVIDIA H20", 0x2329, "Hopper", (9, 0), 6144, True, 97871, 96),
    ("NVIDIA H200", 0x2335, "Hopper", (9, 0), 6144, True, 143771, 141),
    ("NVIDIA L4", 0x27B8, "Ada Lovelace", (8, 9), 192, True, 23034, 24),
    ("NVIDIA L40S", 0x26B9, "Ada Lovelace", (8, 9), 384, True, 46068, 48),
    ("NVIDIA GeForce RTX 3090", 0x2204, "Ampere", (8, 6), 384, None, 24576, 24),
    ("NVIDIA GeForce RTX 4090", 0x2684, "Ada Lovelace", (8, 9), 384, False, 24564, 24),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 0x2BB5, "Blackwell", (12, 0), 512, True, 97887, 96),
    ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 0x2BB1, "Blackwell", (12, 0), 512, True, 97887, 96),
    ("Tesla T4", 0x1EB8, "Turing", (7, 5), 256, True, 15360, 16),
    ("Tesla V100-SXM2-16GB", 0x1DB1, "Volta", (7, 0), 4096, True, 16384, 16),
    ("Tesla V100-SXM2-32GB", 0x1DB5, "Volta", (7, 0), 4096, True, 32768, 32),
    # Other parts, drivers and ECC modes
    ("NVIDIA A10", 0x2236, "Ampere", (8, 6), 384, True, 23028, 24),
    ("NVIDIA Graphics Device", 0x233F, "Hopper", (9, 0), 6144, True, 95830, 94),
    ("NVIDIA L40S", 0x26B9, "Ada Lovelace", (8, 9), 384, False, 49140, 48),
    ("Tesla T4", 0x1EB8, "Turing", (7, 5), 256, True, 15109, 16),
    ("Tesla T4", 0x1EB8, "Turing", (7, 5), 256, False, 16384, 16),
    ("Tesla V100-SXM2-16GB", 0x1DB1, "Volta", (7, 0), 4096, True, 16160, 16),
    ("Tesla V100-SXM2-32GB", 0x1DB5, "Volta", (7, 0), 4096, True, 32510, 32),
    ("A100-SXM4-40GB", 0x20B0, "Ampere", (8, 0), 5120, True, 40536, 40),
    ("NVIDIA A100-SXM4-80GB", 0x20B2, "Ampere", (8, 0), 5120, True, 81251, 80),
    ("NVIDIA A30", 0x20B7, "Ampere", (8, 0), 3072, True, 24258, 24),
]


@pytest.mark.parametrize("bus_told", [True, False])
@pytest.mark.parametrize(("name", "pci", "architecture", "capability", "bus", "ecc", "mib", "gigabytes"), MODELS)
def test_nominal_memory_is_what_people_call_it(
    *,
    name: str,
    pci: int,
    architecture: str,
    capability: tuple[int, int],
    bus: int,
    ecc: bool | None,
    mib: int,
    gigabytes: int,
    bus_told: bool,
) -> None:
    gpu = Gpu(
        uuid="GPU-x",
        nvml_index=0,
        name=name,
        pci_id=pci << 16 | 0x10DE,
        architecture=architecture,
        compute_capability=capability,
        memory_bus_bits=bus if bus_told else None,
        ecc=ecc,
        memory_mib=mib,
    )
    (offer,) = offers(gpu)
    assert offer.device.attributes["nominalMemoryGB"] == gigabytes
    assert amounts(offer.device)["memory"] == str(api.Quantity.of_mib(mib))
