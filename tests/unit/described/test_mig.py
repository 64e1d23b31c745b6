"""MIG instances as described: enumeration, handles, capacities, and what the mode turns off."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_uint
from pathlib import Path

import pynvml
import pytest

from dradriver import described

MIG = "gpus: [{{model: a100-sxm4-40gb, pci_address: 0000:07:00.0, mig: {mig}}}]\n"


@pytest.fixture
def mig(node: Callable[[str], Path]) -> Callable[[str], object]:
    """Starts pynvml on one A100 with the instances given; gives its handle."""

    def mig(instances: str) -> object:
        node(MIG.format(mig=instances))
        return pynvml.nvmlDeviceGetHandleByIndex(0)

    return mig


def test_mig_devices_are_what_the_description_says(start: Callable[..., Path]) -> None:
    start(described.load("a100-mig"))
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceGetMigMode(gpu) == [1, 1]
    assert pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu) == 7
    devices = [pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index) for index in range(4)]
    names = [pynvml.nvmlDeviceGetName(device).rpartition(" ")[2] for device in devices]
    assert names == ["3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"]
    assert [pynvml.nvmlDeviceGetGpuInstanceId(device) for device in devices] == [1, 5, 13, 11]
    assert [pynvml.nvmlDeviceGetComputeInstanceId(device) for device in devices] == [0] * 4
    uuids = [pynvml.nvmlDeviceGetUUID(device) for device in devices]
    assert len(set(uuids)) == 4
    assert all(uuid.startswith("MIG-") for uuid in uuids)
    found = pynvml.nvmlDeviceGetHandleByUUID(uuids[1])
    assert pynvml.nvmlDeviceIsMigDeviceHandle(found).value == 1
    assert pynvml.nvmlDeviceIsMigDeviceHandle(gpu).value == 0
    parent = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(found)
    assert pynvml.nvmlDeviceGetUUID(parent) == pynvml.nvmlDeviceGetUUID(gpu)
    assert pynvml.nvmlDeviceGetMemoryInfo(devices[0]).total == 20096 << 20
    attributes = pynvml.nvmlDeviceGetAttributes(devices[0])
    assert (attributes.multiprocessorCount, attributes.gpuInstanceSliceCount, attributes.memorySizeMB) == (42, 3, 20096)


def test_gpu_instances_tell_their_placement_which_their_id_does_not(start: Callable[..., Path]) -> None:
    start(described.load("a100-mig"))
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    placed = {}
    for profile in (9, 14, 19):
        for instance in _gpu_instances(gpu, profile):
            info = pynvml.nvmlGpuInstanceGetInfo(instance)
            placed[info.id] = (info.profileId, info.placement.start, info.placement.size)
            assert pynvml.nvmlDeviceGetIndex(info.device) == 0
    assert placed == {1: (9, 4, 4), 5: (14, 0, 2), 13: (19, 2, 1), 11: (19, 3, 1)}


def test_a_compute_instance_tells_its_parents(mig: Callable[[str], object]) -> None:
    gpu = mig("[{profile: 3g.20gb, start: 0, compute: [{slices: 2, start: 0}, {slices: 1, start: 2}]}]")
    (instance,) = _gpu_instances(gpu, 9)
    info = pynvml.nvmlComputeInstanceGetInfo(pynvml.nvmlGpuInstanceGetComputeInstanceById(instance, 1))
    assert (info.id, info.profileId, info.placement.start, info.placement.size) == (1, 0, 2, 1)
    assert pynvml.nvmlGpuInstanceGetInfo(info.gpuInstance).profileId == 9
    devices = [pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index) for index in range(2)]
    shares = [pynvml.nvmlDeviceGetAttributes(device) for device in devices]
    assert [(each.computeInstanceSliceCount, each.multiprocessorCount) for each in shares] == [(2, 28), (1, 14)]


def test_a_gpu_instance_without_compute_instance_is_no_mig_device(
    mig: Callable[[str], object], code: Callable[..., int]
) -> None:
    gpu = mig("[{profile: 3g.20gb, start: 0, compute: []}]")
    assert len(_gpu_instances(gpu, 9)) == 1
    assert code(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, 0) == pynvml.NVML_ERROR_NOT_FOUND


def test_indices_of_mig_devices_have_holes_and_an_end(mig: Callable[[str], object], code: Callable[..., int]) -> None:
    gpu = mig("[{profile: 1g.5gb, start: 0, device_index: 2}, {profile: 1g.5gb, start: 1, memory_mib: 4992}]")
    assert code(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, 1) == pynvml.NVML_ERROR_NOT_FOUND
    assert code(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, 7) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    at = {index: pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index) for index in (0, 2)}
    assert pynvml.nvmlDeviceGetMemoryInfo(at[0]).total == 4992 << 20
    assert pynvml.nvmlDeviceGetMemoryInfo(at[2]).total == 4864 << 20
    assert pynvml.nvmlDeviceGetIndex(at[2]) == 2


@pytest.mark.parametrize(
    ("instances", "left"),
    [
        ("[]", {19: 7, 20: 1, 15: 4, 14: 3, 9: 2, 5: 1, 0: 1}),
        ("[{profile: 3g.20gb, start: 0}]", {19: 3, 20: 1, 15: 2, 14: 1, 9: 1, 5: 0, 0: 0}),
        ("[{profile: 3g.20gb, start: 4}]", {19: 4, 20: 1, 15: 2, 14: 2, 9: 1, 5: 1, 0: 0}),
        ("[{profile: 1g.5gb+me, start: 6}]", {19: 6, 20: 0, 15: 3, 14: 3, 9: 1, 5: 1, 0: 0}),
    ],
)
def test_capacity_left_follows_placements_slices_and_media_engines(
    instances: str, left: dict[int, int], mig: Callable[[str], object]
) -> None:
    gpu = mig(instances)
    assert {each: pynvml.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, each) for each in left} == left


def test_after_an_instance_with_all_media_engines_only_those_without_fit(node: Callable[[str], Path]) -> None:
    node(
        "gpus: [{model: rtx-pro-6000-blackwell-server, pci_address: 0000:07:00.0, "
        "mig: [{profile: 1g.24gb+me.all, start: 0}]}]\n"
    )
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    left = {each: pynvml.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, each) for each in (14, 47, 65, 67, 5, 66)}
    assert left == {14: 0, 47: 0, 65: 0, 67: 3, 5: 0, 66: 1}


def test_compute_profiles_of_a_double_memory_instance_are_of_the_revised_kind(mig: Callable[[str], object]) -> None:
    gpu = mig("[{profile: 1g.10gb, start: 6}]")
    (instance,) = _gpu_instances(gpu, 15)
    found = []
    for index in range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        try:
            found.append(pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, index, 0).id)
        except pynvml.NVMLError_NotSupported:
            continue
    assert found == [pynvml.NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1]
    compute = pynvml.nvmlGpuInstanceGetComputeInstanceById(instance, 0)
    assert pynvml.nvmlComputeInstanceGetInfo(compute).profileId == 7


def test_mig_mode_turns_off_what_it_does(start: Callable[..., Path], code: Callable[..., int]) -> None:
    start(described.load("a100-mig"))
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert code(pynvml.nvmlDeviceGetUtilizationRates, gpu) == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert code(pynvml.nvmlDeviceGetAttributes, gpu) == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert pynvml.nvmlDeviceGetP2PStatus(gpu, gpu, 0) == pynvml.NVML_P2P_STATUS_NOT_SUPPORTED


def test_a_mode_may_wait_for_a_reset(mig: Callable[[str], object], code: Callable[..., int]) -> None:
    gpu = mig("{mode: disabled, pending: enabled}")
    assert pynvml.nvmlDeviceGetMigMode(gpu) == [0, 1]
    assert pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu) == 0
    assert code(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, 0) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def _gpu_instances(gpu: object, profile: int) -> list[object]:
    array = (pynvml.c_nvmlGpuInstance_t * 8)()
    count = c_uint(8)
    pynvml.nvmlDeviceGetGpuInstances(gpu, profile, array, byref(count))
    return list(array)[: count.value]
