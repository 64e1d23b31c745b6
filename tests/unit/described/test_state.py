"""State on disk: shared by processes, kept over restarts, retired handles, and faults while it runs."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest

from dradriver import described
from dradriver.described.partitioning import Partitioning
from dradriver.described.store import Store

EMPTIES = """
import sys
from dataclasses import replace
from pathlib import Path
from dradriver import described
from dradriver.described.store import Store

description = described.load("a100-mig")
store = Store(description, Path(sys.argv[1]))
store.change(description.gpus[0].uuid, lambda now: replace(now, instances=now.instances[int(sys.argv[2]):]))
"""


def test_what_one_process_changes_another_sees_and_its_handles_are_retired(
    start: Callable[..., Path], code: Callable[..., int]
) -> None:
    state = start(described.load("a100-mig"))
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    gone, stays = (pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index) for index in (0, 1))
    uuid = pynvml.nvmlDeviceGetUUID(gone)
    subprocess.run([sys.executable, "-c", EMPTIES, str(state), "1"], check=True, timeout=60)
    assert code(pynvml.nvmlDeviceGetUUID, gone) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert code(pynvml.nvmlDeviceGetHandleByUUID, uuid) == pynvml.NVML_ERROR_NOT_FOUND
    assert code(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, 0) == pynvml.NVML_ERROR_NOT_FOUND
    assert pynvml.nvmlDeviceGetGpuInstanceId(stays) == 5


def test_an_instance_made_anew_has_its_uuid_again_but_not_its_handle(
    start: Callable[..., Path], code: Callable[..., int]
) -> None:
    description = described.load("a100-mig")
    state = start(description)
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    before = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
    uuid = pynvml.nvmlDeviceGetUUID(before)

    def anew(now: Partitioning) -> Partitioning:
        first, *others = now.instances
        (compute,) = first.compute
        again = replace(first, serial=101, compute=(replace(compute, serial=102),))
        return replace(now, instances=(again, *others))

    Store(description, state).change(description.gpus[0].uuid, anew)
    after = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
    assert pynvml.nvmlDeviceGetUUID(after) == uuid
    assert code(pynvml.nvmlDeviceGetUUID, before) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_a_restart_finds_what_was_there_not_what_was_described(start: Callable[..., Path]) -> None:
    state = start(described.load("a100-mig"))
    subprocess.run([sys.executable, "-c", EMPTIES, str(state), "4"], check=True, timeout=60)
    assert start(described.load("a100-mig")) == state
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, 19) == 7


def test_processes_that_change_at_once_lose_no_change(tmp_path: Path) -> None:
    programs = [subprocess.Popen([sys.executable, "-c", EMPTIES, str(tmp_path), "1"]) for _ in range(3)]
    assert [program.wait(timeout=60) for program in programs] == [0, 0, 0]
    description = described.load("a100-mig")
    left = Store(description, tmp_path).partitioning(description.gpus[0].uuid).instances
    assert [instance.id for instance in left] == [11]


def test_a_change_that_fails_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    description = described.load("a100-mig")
    store = Store(description, tmp_path)
    before = (tmp_path / "instances.json").read_bytes()

    def fails(now: Partitioning) -> Partitioning:
        raise RuntimeError(f"{len(now.instances)} instances are in use")

    with pytest.raises(RuntimeError, match="4 instances"):
        store.change(description.gpus[0].uuid, fails)
    assert (tmp_path / "instances.json").read_bytes() == before


def test_gpus_that_the_description_lost_are_forgotten(tmp_path: Path) -> None:
    Store(described.load("dgx-a100", node="one"), tmp_path)
    Store(described.load("dgx-a100", node="two"), tmp_path)
    kept = json.loads((tmp_path / "instances.json").read_text())["gpus"]
    assert set(kept) == {gpu.uuid for gpu in described.load("dgx-a100", node="two").gpus}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 9}', '{"format": 1, "gpus": {"GPU-x": {"enabled": 1}}}'])
def test_a_damaged_state_is_told_with_its_file_and_the_remedy(text: str, tmp_path: Path) -> None:
    (tmp_path / "instances.json").write_text(text)
    with pytest.raises(described.DescriptionError, match=r"instances\.json.*delete it"):
        described.Library(described.load("l4-4"), tmp_path)


def test_a_state_damaged_while_it_runs_changes_nothing_and_is_told_once(
    start: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    state = start(described.load("a100-mig"))
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceGetMigMode(gpu) == [1, 1]
    (state / "instances.json").write_text("{")
    with caplog.at_level(logging.WARNING):
        assert pynvml.nvmlDeviceGetMigMode(gpu) == [1, 1]
        assert pynvml.nvmlDeviceGetMigMode(gpu) == [1, 1]
    (told,) = caplog.messages
    assert "instances.json" in told


def test_a_state_directory_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(described.DescriptionError, match="give a directory that can be written"):
        described.Library(described.load("l4-4"), tmp_path / "file" / "state")


def test_a_described_gpu_can_be_lost_from_the_start(node: Callable[[str], Path], code: Callable[..., int]) -> None:
    node("each: {model: l4}\ngpus: [{pci_address: 0000:07:00.0, lost: true}, {pci_address: 0000:08:00.0}]")
    assert pynvml.nvmlDeviceGetCount() == 2
    assert code(pynvml.nvmlDeviceGetHandleByIndex, 0) == pynvml.NVML_ERROR_GPU_IS_LOST
    assert pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(1)) == "NVIDIA L4"


def test_calls_can_be_described_to_fail_for_one_gpu_or_all(
    node: Callable[[str], Path], code: Callable[..., int]
) -> None:
    node(
        "each: {model: l4}\n"
        "gpus:\n"
        "  - {pci_address: 0000:07:00.0, calls: {nvmlDeviceGetMemoryInfo: NOT_SUPPORTED}}\n"
        "  - {pci_address: 0000:08:00.0}\n"
        "calls: {nvmlDeviceGetSerial: NO_PERMISSION}\n"
    )
    first, second = map(pynvml.nvmlDeviceGetHandleByIndex, range(2))
    assert code(pynvml.nvmlDeviceGetMemoryInfo, first) == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert pynvml.nvmlDeviceGetMemoryInfo(second).total == 23034 << 20
    assert code(pynvml.nvmlDeviceGetSerial, second) == pynvml.NVML_ERROR_NO_PERMISSION


def test_a_driver_that_does_not_match_refuses_to_start(write: Callable[..., Path], start: Callable[..., Path]) -> None:
    description = described.load(
        write("gpus: {count: 1, model: l4}\ncalls: {nvmlInitWithFlags: LIB_RM_VERSION_MISMATCH}")
    )
    with pytest.raises(pynvml.NVMLError_LibRmVersionMismatch):
        start(description)


def test_a_gpu_breaks_and_recovers_while_it_runs(start: Callable[..., Path], code: Callable[..., int]) -> None:
    state = start(described.load("hgx-h100"))
    gpu, other = pynvml.nvmlDeviceGetHandleByIndex(3), pynvml.nvmlDeviceGetHandleByIndex(0)
    faults = state / "faults.yaml"
    faults.write_text("gpus: {3: {lost: true}}")
    assert code(pynvml.nvmlDeviceGetUUID, gpu) == pynvml.NVML_ERROR_GPU_IS_LOST
    assert code(pynvml.nvmlDeviceGetHandleByIndex, 3) == pynvml.NVML_ERROR_GPU_IS_LOST
    assert code(pynvml.nvmlDeviceGetTopologyCommonAncestor, other, gpu) == pynvml.NVML_ERROR_GPU_IS_LOST
    assert pynvml.nvmlDeviceGetUUID(other)
    faults.unlink()
    assert pynvml.nvmlDeviceGetUUID(gpu)


def test_faults_name_gpus_by_uuid_and_pci_address_too(start: Callable[..., Path], code: Callable[..., int]) -> None:
    description = described.load("hgx-h100")
    state = start(description)
    first, second = pynvml.nvmlDeviceGetHandleByIndex(0), pynvml.nvmlDeviceGetHandleByIndex(1)
    (state / "faults.yaml").write_text(
        f"gpus:\n"
        f"  {description.gpus[0].uuid}: {{calls: {{nvmlDeviceGetName: UNKNOWN}}}}\n"
        f"  {description.gpus[1].pci_address}: {{links_down: [0, 17], fabric: {{state: in_progress}}}}\n"
    )
    assert code(pynvml.nvmlDeviceGetName, first) == pynvml.NVML_ERROR_UNKNOWN
    assert sum(pynvml.nvmlDeviceGetNvLinkState(second, link) for link in range(18)) == 16
    info = pynvml.c_nvmlGpuFabricInfo_v2_t()
    pynvml.nvmlDeviceGetGpuFabricInfoV(second, pynvml.byref(info))
    assert info.state == 2


def test_a_fault_can_put_right_what_the_description_breaks(node: Callable[[str], Path]) -> None:
    state = node("gpus: [{model: l4, pci_address: 0000:07:00.0, lost: true, calls: {nvmlDeviceGetName: UNKNOWN}}]")
    (state / "faults.yaml").write_text("gpus: {0: {lost: false, calls: {nvmlDeviceGetName: SUCCESS}}}")
    assert pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0)) == "NVIDIA L4"


def test_the_whole_driver_can_fail_while_it_runs(start: Callable[..., Path], code: Callable[..., int]) -> None:
    state = start(described.load("l4-4"))
    (state / "faults.yaml").write_text("calls: {nvmlDeviceGetCount_v2: LIB_RM_VERSION_MISMATCH}")
    assert code(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH


def test_faults_that_are_wrong_change_nothing_and_are_told_once(
    start: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    state = start(described.load("l4-4"))
    (state / "faults.yaml").write_text("gpus: {9: {lost: true}}")
    with caplog.at_level(logging.WARNING):
        assert pynvml.nvmlDeviceGetCount() == 4
        assert pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0)) == "NVIDIA L4"
    (told,) = caplog.messages
    assert "faults.yaml" in told
    assert "gpus.9" in told


def test_faults_that_are_wrong_at_the_start_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "faults.yaml").write_text("gpu: {}")
    with pytest.raises(described.DescriptionError, match=r"faults\.yaml: gpu: unknown key 'gpu'; did you mean gpus\?"):
        described.Library(described.load("l4-4"), tmp_path)


def test_a_change_of_equal_size_within_one_tick_of_the_clock_is_seen(
    start: Callable[..., Path], code: Callable[..., int]
) -> None:
    state = start(described.load("l4-4"))
    gpus = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(2)]
    for lost, fine in ((0, 1), (1, 0)):
        new = state / "faults.new"
        new.write_text(f"gpus: {{{lost}: {{lost: true}}}}")
        os.utime(new, ns=(0, 0))
        new.replace(state / "faults.yaml")
        assert code(pynvml.nvmlDeviceGetName, gpus[lost]) == pynvml.NVML_ERROR_GPU_IS_LOST
        assert pynvml.nvmlDeviceGetName(gpus[fine])
