"""Reading through the real pynvml: what a healthy machine tells, and what ends the reading of all of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pynvml
import pytest

from dradriver import hardware
from dradriver.hardware import (
    Fabric,
    FabricState,
    Gpu,
    Link,
    LinkPeer,
    MigProfile,
    MigState,
    Nvml,
    NvmlError,
    Placement,
)

HALF = {2: (9, 3, 2, 40192, b"MIG 3g.40gb", [(0, 4), (4, 4)])}


def test_all_that_a_healthy_gpu_tells(machine: Any) -> None:
    machine.card(
        minor=3,
        links=[(pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH, "00000000:C4:00.0"), (0, "00000000:11:00.0")],
        max_links=3,
        fabric=(3, 0, bytes(16), 0),
        profiles=HALF,
    )
    machine.on_bus(0x10, numa="1", root=0x0E)
    inventory = machine.read()
    assert (inventory.driver_version, inventory.cuda_version) == ("550.90.07", "12.4")
    assert (inventory.lost, inventory.problems) == ((), ())
    assert inventory.gpus == (
        Gpu(
            uuid="GPU-00000010",
            nvml_index=0,
            pci_address="0000:10:00.0",
            minor=3,
            pci_id=0x20B210DE,
            name="NVIDIA A100-SXM4-80GB",
            brand="Nvidia",
            architecture="Ampere",
            compute_capability=(8, 0),
            memory_mib=81920,
            ecc=True,
            memory_bus_bits=5120,
            numa_node=1,
            pcie_root="pci0000:0e",
            links=(
                Link(0, active=True, peer=LinkPeer.SWITCH, remote="0000:c4:00.0"),
                Link(1, active=True, peer=LinkPeer.GPU, remote="0000:11:00.0"),
                Link(2, active=False),
            ),
            fabric=Fabric(FabricState.COMPLETED, healthy=True, cluster_uuid=None, clique_id=0),
            mig=MigState(
                capable=True,
                profiles=(
                    MigProfile("3g.40gb", 2, 9, 3, 40192, (Placement(0, 4), Placement(4, 4)), 42, 3, 0, 0, 0, 0),
                ),
            ),
        ),
    )


def test_gpus_come_in_pci_order_whatever_nvml_calls_them(machine: Any) -> None:
    for bus, module in ((0x9B, 1), (0x0A, 4), (0x83, 2)):
        machine.card(bus=bus, module=module)
    assert [(gpu.pci_address, gpu.nvml_index) for gpu in machine.read().gpus] == [
        ("0000:0a:00.0", 1),
        ("0000:83:00.0", 2),
        ("0000:9b:00.0", 0),
    ]


def test_a_gpu_whose_place_is_not_told_is_read_and_comes_last(machine: Any) -> None:
    machine.card(errors={"nvmlDeviceGetPciInfo_v3": pynvml.NVML_ERROR_NOT_SUPPORTED})
    machine.card()
    machine.on_bus(0x10)
    inventory = machine.read()
    assert [gpu.pci_address for gpu in inventory.gpus] == ["0000:11:00.0", None]
    assert inventory.lost == ()


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_UNKNOWN])
def test_a_gpu_that_does_not_tell_its_uuid_cannot_be_held_and_is_lost(machine: Any, code: int) -> None:
    machine.card(errors={"nvmlDeviceGetUUID": code})
    (lost,) = machine.read().lost
    assert (lost.pci_address, lost.uuid) == ("0000:10:00.0", None)
    assert "UUID" in lost.reason


def test_of_two_gpus_with_one_uuid_the_second_is_lost(machine: Any) -> None:
    machine.card(bus=0x10)
    machine.card(bus=0x10)
    inventory = machine.read()
    assert (len(inventory.gpus), len(inventory.lost)) == (1, 1)
    assert "could not tell them apart" in inventory.lost[0].reason


def test_a_gpu_lost_half_way_is_known_by_its_uuid(machine: Any) -> None:
    machine.card(errors={"nvmlDeviceGetName": pynvml.NVML_ERROR_GPU_IS_LOST})
    (lost,) = machine.read().lost
    assert (lost.nvml_index, lost.pci_address, lost.uuid) == (0, "0000:10:00.0", "GPU-00000010")


def test_a_gpu_this_process_may_not_open_is_lost(machine: Any) -> None:
    machine.card(errors={"nvmlDeviceGetHandleByIndex_v2": pynvml.NVML_ERROR_NO_PERMISSION})
    (lost,) = machine.read().lost
    assert "privileged" in lost.reason


def test_a_name_that_is_no_text_is_a_problem_of_that_figure(machine: Any) -> None:
    machine.card(name="Bro\xffken")
    (gpu,) = machine.read().gpus
    assert gpu.name is None
    assert "nvmlDeviceGetName gave an unreadable answer" in gpu.problems[0]


def test_sysfs_shows_no_virtual_functions_and_no_other_devices_as_gpus(machine: Any) -> None:
    machine.card()
    machine.on_bus(0x10)
    machine.on_bus(0x11, device_class="0x040300")  # the audio function
    machine.on_bus(0x12, device_class="0x068000")  # an NVSwitch
    (machine.on_bus(0x13, "vfio-pci") / "physfn").symlink_to(machine.roots.sys)
    (machine.on_bus(0x14) / "vendor").write_text("0x1002\n")
    assert machine.read().lost == ()


def test_a_vga_controller_is_a_gpu_too(machine: Any) -> None:
    machine.on_bus(0x10, "nouveau", device_class="0x030000")
    assert "nouveau" in machine.read().lost[0].reason


def test_without_sysfs_there_is_no_numa_node_and_no_root(machine: Any) -> None:
    machine.card()
    (gpu,) = machine.read().gpus
    assert (gpu.numa_node, gpu.pcie_root) == (None, None)


# --- MIG -------------------------------------------------------------------------------------------------------------


def test_compute_instances_smaller_than_their_gpu_instance(machine: Any) -> None:
    card = machine.card(profiles=HALF, mig=(1, 1))
    card.instances.append(machine.instance(2, 9, 4, 4, [(0, 0, 1), (1, 1, 2)], memory_mib=40192))
    instances = machine.read().gpus[0].mig.instances
    assert [(each.profile, each.whole, each.compute_start, each.compute_slices) for each in instances] == [
        ("1c.3g.40gb", False, 0, 1),
        ("2c.3g.40gb", False, 1, 2),
    ]
    assert {each.placement for each in instances} == {Placement(4, 4)}
    assert [each.multiprocessors for each in instances] == [14, 28]


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_NO_PERMISSION, pynvml.NVML_ERROR_UNKNOWN])
def test_a_gpu_in_mig_mode_that_does_not_tell_its_mode_is_not_taken_for_a_whole_one(machine: Any, code: int) -> None:
    card = machine.card(profiles=HALF, mig=(1, 1), errors={"nvmlDeviceGetMigMode": code})
    card.instances.append(machine.instance(2, 9, 4, 4, [(0, 0, 3)]))
    mig = machine.read().gpus[0].mig
    assert (mig.enabled, mig.pending, len(mig.instances)) == (True, False, 1)


def test_figures_of_an_instance_that_tells_none_are_those_of_its_profile(machine: Any) -> None:
    refused = pynvml.NVML_ERROR_NOT_SUPPORTED
    card = machine.card(profiles=HALF, mig=(1, 1), errors={"nvmlDeviceGetAttributes_v2": refused})
    card.errors["nvmlDeviceGetMemoryInfo"] = refused
    card.instances.append(machine.instance(2, 9, 4, 4, [(0, 0, 3)]))
    (instance,) = machine.read().gpus[0].mig.instances
    assert (instance.memory_mib, instance.multiprocessors, instance.copy_engines) == (40192, 42, 3)


def test_indices_of_profiles_and_of_mig_devices_may_have_holes(machine: Any) -> None:
    place = [(0, 2)]
    profiles = {0: (19, 1, 7, 4864, b"1g.5gb", place), 9: (15, 1, 4, 9984, b"MIG 1g.10gb", place)}
    card = machine.card(profiles=profiles, mig=(1, 1), mig_indices={6: (8, 0)})
    card.instances.append(machine.instance(8, 15, 0, 2, [(0, 0, 1)]))
    mig = machine.read().gpus[0].mig
    assert [(profile.index, profile.id, profile.name) for profile in mig.profiles] == [
        (0, 19, "1g.5gb"),
        (9, 15, "1g.10gb"),
    ]
    assert [instance.profile for instance in mig.instances] == ["1g.10gb"]


@pytest.mark.parametrize(
    ("index", "slices", "memory", "name"),
    [
        (7, 1, 4864, "1g.5gb+me"),
        (8, 2, 9984, "2g.10gb+me"),
        (9, 1, 9984, "1g.10gb"),
        (10, 1, 4864, "1g.5gb+gfx"),
        (14, 2, 9984, "2g.10gb-me"),
        (15, 1, 4864, "1g.5gb+me.all"),
    ],
)
def test_an_unnamed_profile_is_named_by_its_kind_and_share(
    machine: Any, index: int, slices: int, memory: int, name: str
) -> None:
    machine.card(memory_mib=40960, profiles={index: (20, slices, 1, memory, b"", [(0, 1)])})
    assert machine.read().gpus[0].mig.profiles[0].name == name


# --- NVML as a whole -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "modprobe nvidia"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "finish the driver upgrade"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "privileged"),
        (pynvml.NVML_ERROR_UNKNOWN, "kernel log"),
        (4711, "kernel log"),
    ],
)
def test_nvml_that_does_not_start_says_why_and_what_to_do(machine: Any, code: int, remedy: str) -> None:
    machine.library.init = code
    with pytest.raises(NvmlError, match=remedy):
        Nvml(library=machine.library)


def test_a_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(pynvml, "CDLL", absent)
    with pytest.raises(NvmlError, match=r"libnvidia-ml\.so\.1 was not found: install the NVIDIA driver"):
        Nvml()


def test_what_is_asked_after_closing_is_an_error_of_nvml_as_a_whole(machine: Any) -> None:
    nvml = machine.nvml()
    nvml.close()
    nvml.close()
    with pytest.raises(NvmlError, match="UNINITIALIZED"):
        hardware.read(nvml, machine.roots)


def test_a_second_library_takes_over_and_the_first_does_not_shut_it_down(machine: Any, tmp_path: Path) -> None:
    machine.card()
    first = machine.nvml()
    assert len(hardware.read(first, machine.roots).gpus) == 1
    other = type(machine)(hardware.Roots.under(tmp_path / "other"))
    second = other.nvml()
    first.close()
    assert hardware.read(second, other.roots).gpus == ()
    second.close()
    assert pynvml.nvmlLib is None


def test_a_variable_for_clients_of_mps_does_not_reach_nvml(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVML_MPS_DEVICE_ENUMERATION", "1")
    machine.nvml()
    assert "NVML_MPS_DEVICE_ENUMERATION" not in os.environ


def test_versions_that_are_not_told_are_absent(machine: Any) -> None:
    machine.library.missing |= {"nvmlSystemGetDriverVersion", "nvmlSystemGetCudaDriverVersion"}
    inventory = machine.read()
    assert (inventory.driver_version, inventory.cuda_version) == (None, None)
