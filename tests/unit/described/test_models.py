"""What each model answers, against the table of public captures, through the real pynvml."""

from __future__ import annotations

import math
from collections.abc import Callable
from ctypes import byref, c_uint
from pathlib import Path

import pynvml
import pytest

from dradriver import described

# model | name | PCI id | compute capability | architecture | MiB | NVLinks | MIG slices (0: no MIG)
TABLE = """
v100-sxm2-16gb      | Tesla V100-SXM2-16GB        | 1DB1 | 7.0  | 5  | 16384  | 6  | 0
v100-sxm2-32gb      | Tesla V100-SXM2-32GB        | 1DB5 | 7.0  | 5  | 32768  | 6  | 0
t4                  | Tesla T4                    | 1EB8 | 7.5  | 6  | 15360  | 0  | 0
a100-sxm4-40gb      | NVIDIA A100-SXM4-40GB       | 20B0 | 8.0  | 7  | 40960  | 12 | 7
a100-pcie-40gb      | NVIDIA A100-PCIE-40GB       | 20F1 | 8.0  | 7  | 40960  | 12 | 7
a100-sxm4-80gb      | NVIDIA A100-SXM4-80GB       | 20B2 | 8.0  | 7  | 81920  | 12 | 7
a100-80gb-pcie      | NVIDIA A100 80GB PCIe       | 20B5 | 8.0  | 7  | 81920  | 12 | 7
a30                 | NVIDIA A30                  | 20B7 | 8.0  | 7  | 24576  | 4  | 4
rtx-3090            | NVIDIA GeForce RTX 3090     | 2204 | 8.6  | 7  | 24576  | 4  | 0
l4                  | NVIDIA L4                   | 27B8 | 8.9  | 8  | 23034  | 0  | 0
l40s                | NVIDIA L40S                 | 26B9 | 8.9  | 8  | 46068  | 0  | 0
rtx-4090            | NVIDIA GeForce RTX 4090     | 2684 | 8.9  | 8  | 24564  | 0  | 0
h100-sxm5-80gb      | NVIDIA H100 80GB HBM3       | 2330 | 9.0  | 9  | 81559  | 18 | 7
h100-pcie           | NVIDIA H100 PCIe            | 2331 | 9.0  | 9  | 81559  | 12 | 7
h100-nvl            | NVIDIA H100 NVL             | 2321 | 9.0  | 9  | 95830  | 12 | 7
h20-96gb            | NVIDIA H20                  | 2329 | 9.0  | 9  | 97871  | 18 | 7
h200-sxm-141gb      | NVIDIA H200                 | 2335 | 9.0  | 9  | 143771 | 18 | 7
gh200-96gb          | NVIDIA GH200 480GB          | 2342 | 9.0  | 9  | 97871  | 18 | 7
gh200-144gb         | NVIDIA GH200 144G HBM3e     | 2348 | 9.0  | 9  | 146831 | 18 | 7
b200                | NVIDIA B200                 | 2901 | 10.0 | 10 | 183359 | 18 | 7
gb200               | NVIDIA GB200                | 2941 | 10.0 | 10 | 189471 | 18 | 7
b300                | NVIDIA B300 SXM6 AC         | 3182 | 10.3 | 10 | 275040 | 18 | 7
gb300               | NVIDIA GB300                | 31C2 | 10.3 | 10 | 284208 | 18 | 7
rtx-pro-6000-blackwell-server|NVIDIA RTX PRO 6000 Blackwell Server Edition|2BB5|12.0|10|97887|0|4
rtx-pro-6000-blackwell-workstation|NVIDIA RTX PRO 6000 Blackwell Workstation Edition|2BB1|12.0|10|97887|0|4
"""
ROWS = [tuple(cell.strip() for cell in line.split("|")) for line in TABLE.strip().splitlines()]

# Profile id → (index, slices, starts, size), as `nvidia-smi mig -lgipp` prints them.
SEVEN_SLICES = {
    19: (0, 1, [0, 1, 2, 3, 4, 5, 6], 1),
    20: (7, 1, [0, 1, 2, 3, 4, 5, 6], 1),
    15: (9, 1, [0, 2, 4, 6], 2),
    14: (1, 2, [0, 2, 4], 2),
    9: (2, 3, [0, 4], 4),
    5: (3, 4, [0], 4),
    0: (4, 7, [0], 8),
}
A30 = {
    14: (0, 1, [0, 1, 2, 3], 1),
    21: (7, 1, [0, 1, 2, 3], 1),
    5: (1, 2, [0, 2], 2),
    6: (8, 2, [0, 2], 2),
    0: (3, 4, [0], 4),
}
RTX_PRO = {
    14: (0, 1, [0, 3, 6, 9], 3),
    21: (7, 1, [0, 3, 6, 9], 3),
    47: (10, 1, [0, 3, 6, 9], 3),
    65: (15, 1, [0, 3, 6, 9], 3),
    67: (13, 1, [0, 3, 6, 9], 3),
    5: (1, 2, [0, 6], 6),
    35: (11, 2, [0, 6], 6),
    64: (16, 2, [0, 6], 6),
    66: (14, 2, [0, 6], 6),
    0: (3, 4, [0], 12),
    32: (12, 4, [0], 12),
}


def test_the_table_holds_every_model() -> None:
    assert {row[0] for row in ROWS} == set(described.models())
    assert len(ROWS) == 25


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_model_answers_its_figures(row: tuple[str, ...], node: Callable[[str], Path]) -> None:
    model, name, pci_id, capability, architecture, mib, links, _ = row
    node(f"gpus: {{count: 1, model: {model}}}")
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceGetName(gpu) == name
    assert pynvml.nvmlDeviceGetPciInfo(gpu).pciDeviceId == int(pci_id + "10DE", 16)
    assert ".".join(map(str, pynvml.nvmlDeviceGetCudaComputeCapability(gpu))) == capability
    assert pynvml.nvmlDeviceGetArchitecture(gpu) == int(architecture)
    assert pynvml.nvmlDeviceGetMemoryInfo(gpu).total == int(mib) << 20
    states = [state for state in (_link_state(gpu, link) for link in range(36)) if state is not None]
    assert states == [0] * int(links)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_model_lists_its_mig_profiles(row: tuple[str, ...], node: Callable[[str], Path]) -> None:
    model, mib, slices = row[0], int(row[5]), int(row[7])
    node(f"gpus: {{count: 1, model: {model}}}")
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    found = {}
    for index in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu, index)
        except pynvml.NVMLError_NotSupported:
            continue
        found[info.id] = (index, info.sliceCount, *_placements(gpu, info.id))
        name = info.name.removeprefix("MIG ")
        assert name.split("gb")[0] == f"{info.sliceCount}g.{_gigabytes(info.memorySizeMB, mib)}"
        assert pynvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu, index, version=1).id == info.id
    expected = {0: {}, 7: SEVEN_SLICES, 4: A30 if model == "a30" else RTX_PRO}[slices]
    assert found == expected


@pytest.mark.parametrize(
    ("model", "profile", "figures"),
    [  # MiB, multiprocessors, copy engines, decoders, encoders, jpeg, ofa
        ("a100-sxm4-40gb", 9, (20096, 42, 3, 2, 0, 0, 0)),
        ("a100-sxm4-40gb", 20, (4864, 14, 1, 1, 0, 1, 1)),
        ("a30", 0, (24000, 56, 4, 4, 0, 1, 1)),
        ("h100-sxm5-80gb", 19, (9984, 16, 1, 1, 0, 1, 0)),
        ("b200", 14, (45312, 36, 4, 2, 0, 2, 0)),
        ("rtx-pro-6000-blackwell-server", 65, (24192, 46, 1, 4, 4, 4, 1)),
    ],
)
def test_a_profile_has_what_was_captured(
    model: str, profile: int, figures: tuple[int, ...], node: Callable[[str], Path]
) -> None:
    node(f"gpus: {{count: 1, model: {model}}}")
    info = pynvml.c_nvmlGpuInstanceProfileInfo_v2_t()
    fetch = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetGpuInstanceProfileInfoByIdV")
    assert fetch(pynvml.nvmlDeviceGetHandleByIndex(0), profile, byref(info)) == pynvml.NVML_SUCCESS
    engines = (info.multiprocessorCount, info.copyEngineCount, info.decoderCount, info.encoderCount)
    assert (info.memorySizeMB, *engines, info.jpegCount, info.ofaCount) == figures


@pytest.mark.parametrize(
    ("model", "supported", "refused"),
    [
        ("t4", pynvml.nvmlDeviceGetRetiredPagesPendingStatus, pynvml.nvmlDeviceGetRemappedRows),
        ("h100-nvl", pynvml.nvmlDeviceGetRemappedRows, pynvml.nvmlDeviceGetRetiredPagesPendingStatus),
        ("gb200", pynvml.nvmlDeviceGetC2cModeInfoV, pynvml.nvmlDeviceGetRetiredPagesPendingStatus),
        ("l4", pynvml.nvmlDeviceGetEccMode, pynvml.nvmlDeviceGetMigMode),
        ("rtx-3090", pynvml.nvmlDeviceGetBAR1MemoryInfo, pynvml.nvmlDeviceGetEccMode),
        ("a100-pcie-40gb", pynvml.nvmlDeviceGetMigMode, pynvml.nvmlDeviceGetNumaNodeId),
    ],
)
def test_what_a_part_does_not_know_it_does_not_support(
    model: str,
    supported: Callable[..., object],
    refused: Callable[..., object],
    node: Callable[[str], Path],
    code: Callable[..., int],
) -> None:
    node(f"gpus: {{count: 1, model: {model}}}")
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    supported(gpu)
    assert code(refused, gpu) == pynvml.NVML_ERROR_NOT_SUPPORTED


def _link_state(gpu: object, link: int) -> int | None:
    try:
        return int(pynvml.nvmlDeviceGetNvLinkState(gpu, link))
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_InvalidArgument):
        return None


def _placements(gpu: object, profile: int) -> tuple[list[int], int]:
    count = c_uint(0)
    pynvml.nvmlDeviceGetGpuInstancePossiblePlacements(gpu, profile, None, byref(count))
    array = (pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
    pynvml.nvmlDeviceGetGpuInstancePossiblePlacements(gpu, profile, array, byref(count))
    (size,) = {each.size for each in array}
    return [each.start for each in array], size


def _gigabytes(profile: int, total: int) -> int:
    """The number in a profile's name: its eighths of the card's gigabytes, rounded half up."""
    return math.floor(math.ceil(8 * profile / total) / 8 * math.ceil(total / 1024) + 0.5)
