"""The object in the place of libnvidia-ml.so.1: handles, codes, links, fabric, topology, and old drivers."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from ctypes import byref
from pathlib import Path

import pynvml
import pytest

from dradriver import described

TWO = "gpus: {count: 2, model: h100-nvl}\n"


def test_every_symbol_is_one_that_pynvml_asks_for() -> None:
    source = Path(pynvml.__file__).read_text(encoding="utf-8")
    asked = set(re.findall(r'_nvmlGetFunctionPointer\("(\w+)"\)', source))
    from dradriver.described.symbols import NAMES  # noqa: PLC0415 - not part of the door

    assert NAMES - asked <= {"nvmlInit_v2"}


def test_nothing_in_the_room_brings_pynvml() -> None:
    program = "import sys, dradriver.described; sys.exit('pynvml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=30).returncode == 0


def test_nothing_works_before_nvml_is_started(write: Callable[..., Path], tmp_path: Path) -> None:
    library = described.Library(described.load(write(TWO)), tmp_path / "state")
    assert library.nvmlDeviceGetCount_v2(None) == pynvml.NVML_ERROR_UNINITIALIZED
    assert library.nvmlShutdown() == pynvml.NVML_ERROR_UNINITIALIZED


def test_versions_are_those_of_the_description(node: Callable[[str], Path]) -> None:
    node("driver: 550.90.07\ncuda: 12.4\n" + TWO)
    assert pynvml.nvmlSystemGetDriverVersion() == "550.90.07"
    assert pynvml.nvmlSystemGetCudaDriverVersion() == 12040
    assert pynvml.nvmlSystemGetCudaDriverVersion_v2() == 12040
    assert pynvml.nvmlSystemGetNVMLVersion() == "12.550.90.07"
    assert pynvml.nvmlSystemGetDriverBranch().branch == "r550_00"
    assert pynvml.nvmlErrorString(pynvml.NVML_ERROR_GPU_IS_LOST) == "GPU is lost"
    assert pynvml.nvmlErrorString(pynvml.NVML_ERROR_NOT_FOUND) == "Not Found"


def test_a_gpu_is_found_by_index_uuid_and_pci_address(node: Callable[[str], Path]) -> None:
    node(TWO)
    assert pynvml.nvmlDeviceGetCount() == 2
    gpu = pynvml.nvmlDeviceGetHandleByIndex(1)
    for same in (
        pynvml.nvmlDeviceGetHandleByUUID(pynvml.nvmlDeviceGetUUID(gpu)),
        pynvml.nvmlDeviceGetHandleByPciBusId("00000000:15:00.0"),
        pynvml.nvmlDeviceGetHandleByPciBusId("0000:15:00.0"),
    ):
        assert pynvml.nvmlDeviceGetIndex(same) == 1
    info = pynvml.nvmlDeviceGetPciInfo(gpu)
    assert (info.busId, info.busIdLegacy, info.bus) == ("00000000:15:00.0", "0000:15:00.0", 0x15)


@pytest.mark.parametrize(
    ("call", "argument", "expected"),
    [
        (pynvml.nvmlDeviceGetHandleByIndex, 2, pynvml.NVML_ERROR_INVALID_ARGUMENT),
        (pynvml.nvmlDeviceGetHandleByUUID, "GPU-none", pynvml.NVML_ERROR_NOT_FOUND),
        (pynvml.nvmlDeviceGetHandleByPciBusId, "0000:77:00.0", pynvml.NVML_ERROR_NOT_FOUND),
        (pynvml.nvmlDeviceGetHandleByPciBusId, "nonsense", pynvml.NVML_ERROR_INVALID_ARGUMENT),
        (pynvml.nvmlDeviceGetName, pynvml.c_nvmlDevice_t(), pynvml.NVML_ERROR_INVALID_ARGUMENT),
    ],
)
def test_what_does_not_exist_is_refused_as_nvml_does(
    call: Callable[..., object],
    argument: object,
    expected: int,
    node: Callable[[str], Path],
    code: Callable[..., int],
) -> None:
    node(TWO)
    assert code(call, argument) == expected


def test_no_handle_survives_a_shutdown_or_names_another_thing_later(
    node: Callable[[str], Path], code: Callable[..., int]
) -> None:
    node(TWO)
    before = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()
    after = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert code(pynvml.nvmlDeviceGetUUID, before) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert pynvml.nvmlDeviceGetUUID(after)


def test_nvml_stays_up_until_its_last_user_shuts_it_down(node: Callable[[str], Path]) -> None:
    node(TWO)
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlInit()
    pynvml.nvmlShutdown()
    assert pynvml.nvmlDeviceGetUUID(gpu)


def test_a_symbol_that_an_old_driver_lacks_is_function_not_found(node: Callable[[str], Path]) -> None:
    node(TWO + "symbols: {absent: [nvmlDeviceGetMemoryInfo_v2]}")
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    with pytest.raises(pynvml.NVMLError_FunctionNotFound):
        pynvml.nvmlDeviceGetMemoryInfo(gpu, version=pynvml.nvmlMemory_v2)
    assert pynvml.nvmlDeviceGetMemoryInfo(gpu).total == 95830 << 20


def test_a_symbol_that_nobody_described_is_function_not_found(node: Callable[[str], Path]) -> None:
    node(TWO)
    with pytest.raises(pynvml.NVMLError_FunctionNotFound):
        pynvml.nvmlEventSetCreate()


def test_the_two_memory_calls_agree_on_the_total_and_tell_the_reserve_apart(node: Callable[[str], Path]) -> None:
    node("gpus: {count: 1, model: gb200}")
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    first = pynvml.nvmlDeviceGetMemoryInfo(gpu)
    second = pynvml.nvmlDeviceGetMemoryInfo(gpu, version=pynvml.nvmlMemory_v2)
    assert first.total == second.total == 189471 << 20
    assert (first.used, second.used, second.reserved) == (742 << 20, 0, 742 << 20)


def test_a_struct_of_an_unknown_version_is_refused(node: Callable[[str], Path], code: Callable[..., int]) -> None:
    node("gpus: {count: 1, model: gb200}")
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert code(pynvml.nvmlDeviceGetMemoryInfo, gpu, 0x09000028) == pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH
    info = pynvml.c_nvmlGpuFabricInfo_v3_t()
    info.version = 7
    assert code(pynvml.nvmlDeviceGetGpuFabricInfoV, gpu, byref(info)) == pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH


def test_figures_of_a_model_can_be_said_otherwise_for_one_gpu(node: Callable[[str], Path]) -> None:
    node(
        "each: {model: a100-sxm4-40gb}\n"
        "gpus:\n"
        "  - {pci_address: 0000:07:00.0, memory_mib: 40536, name: A100-SXM4-40GB}\n"
        "  - {pci_address: 0000:08:00.0, partitions: {profiles: {1g.5gb: {memory_mib: 4992}}}}\n"
    )
    first, second = map(pynvml.nvmlDeviceGetHandleByIndex, range(2))
    assert pynvml.nvmlDeviceGetName(first) == "A100-SXM4-40GB"
    assert pynvml.nvmlDeviceGetMemoryInfo(first).total == 40536 << 20
    assert pynvml.nvmlDeviceGetGpuInstanceProfileInfo(first, 0).memorySizeMB == 4864
    assert pynvml.nvmlDeviceGetGpuInstanceProfileInfo(second, 0).memorySizeMB == 4992


def test_gpus_with_another_kernel_driver_are_not_listed(node: Callable[[str], Path]) -> None:
    node(
        "each: {model: l4}\n"
        "gpus:\n"
        "  - {pci_address: 0000:07:00.0, kernel_driver: vfio-pci}\n"
        "  - {pci_address: 0000:08:00.0}\n"
    )
    assert pynvml.nvmlDeviceGetCount() == 1
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceGetPciInfo(gpu).bus == 8
    assert pynvml.nvmlDeviceGetMinorNumber(gpu) == 1


def test_switched_gpus_have_their_links_at_the_switches_in_an_order_of_their_own(start: Callable[..., Path]) -> None:
    start(described.load("hgx-h100"))
    orders = set()
    for index in range(8):
        gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
        remotes = [pynvml.nvmlDeviceGetNvLinkRemotePciInfo(gpu, link).busId for link in range(18)]
        assert all(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(gpu, link) == 2 for link in range(18))
        assert sorted(remotes.count(each) for each in set(remotes)) == [4, 4, 5, 5]
        orders.add(tuple(remotes))
    assert len(orders) == 4


def test_bridged_gpus_have_all_links_at_each_other(start: Callable[..., Path]) -> None:
    start(described.load("h100-nvl-4"))
    gpu, partner, stranger = map(pynvml.nvmlDeviceGetHandleByIndex, range(3))
    assert {pynvml.nvmlDeviceGetNvLinkRemotePciInfo(gpu, link).bus for link in range(12)} == {0x3D}
    assert {pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(gpu, link) for link in range(12)} == {0}
    assert pynvml.nvmlDeviceGetP2PStatus(gpu, partner, 2) == pynvml.NVML_P2P_STATUS_OK
    assert pynvml.nvmlDeviceGetP2PStatus(gpu, stranger, 2) == pynvml.NVML_P2P_STATUS_NOT_SUPPORTED


def test_hidden_switches_have_the_all_ones_address(start: Callable[..., Path]) -> None:
    start(described.load("gb200-tray"))
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    info = pynvml.nvmlDeviceGetNvLinkRemotePciInfo(gpu, 17)
    assert info.busId == "FFFFFFFF:FF:FF.0"
    assert pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(gpu, 17) == 2
    assert pynvml.nvmlDeviceGetNvLinkVersion(gpu, 0) == pynvml.NVML_NVLINK_VERSION_5_0


def test_links_end_where_the_gpu_has_no_more(start: Callable[..., Path], code: Callable[..., int]) -> None:
    start(described.load("dgx-a100"))
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceGetNvLinkState(gpu, 11) == 1
    assert code(pynvml.nvmlDeviceGetNvLinkState, gpu, 12) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_a_matrix_tells_links_and_pcie_levels(node: Callable[[str], Path]) -> None:
    node(
        "gpus: {count: 4, model: a100-80gb-pcie}\n"
        "links: {matrix: [[X, NV12, NODE, SYS], [NV12, X, NODE, SYS], [NODE, NODE, X, NV10], [SYS, SYS, NV10, X]]}\n"
    )
    gpus = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(4)]
    up = [sum(pynvml.nvmlDeviceGetNvLinkState(gpu, link) for link in range(12)) for gpu in gpus]
    assert up == [12, 12, 10, 10]
    assert pynvml.nvmlDeviceGetTopologyCommonAncestor(gpus[0], gpus[2]) == pynvml.NVML_TOPOLOGY_NODE
    assert pynvml.nvmlDeviceGetTopologyCommonAncestor(gpus[0], gpus[3]) == pynvml.NVML_TOPOLOGY_SYSTEM


def test_a_gpu_off_the_fabric_has_no_link_up(node: Callable[[str], Path]) -> None:
    node(
        "gpus: {count: 3, model: b200}\n"
        "links: {switches: hidden, matrix: [[X, NODE, NV18], [NODE, X, SYS], [NV18, SYS, X]]}\n"
    )
    gpus = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(3)]
    up = [sum(pynvml.nvmlDeviceGetNvLinkState(gpu, link) for link in range(18)) for gpu in gpus]
    assert up == [18, 0, 18]


def test_levels_follow_switch_root_and_numa_node(start: Callable[..., Path]) -> None:
    start(described.load("dgx-a100"))
    gpus = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(8)]
    assert pynvml.nvmlDeviceGetTopologyCommonAncestor(gpus[0], gpus[0]) == pynvml.NVML_TOPOLOGY_INTERNAL
    assert pynvml.nvmlDeviceGetTopologyCommonAncestor(gpus[0], gpus[1]) == pynvml.NVML_TOPOLOGY_SINGLE
    assert pynvml.nvmlDeviceGetTopologyCommonAncestor(gpus[0], gpus[2]) == pynvml.NVML_TOPOLOGY_SYSTEM
    near = pynvml.nvmlDeviceGetTopologyNearestGpus(gpus[4], pynvml.NVML_TOPOLOGY_SINGLE)
    assert [pynvml.nvmlDeviceGetIndex(each) for each in near] == [5]
    assert [pynvml.nvmlDeviceGetMinorNumber(gpu) for gpu in gpus] == [2, 3, 0, 1, 6, 7, 4, 5]


def test_affinities_are_bits_of_numa_nodes_and_cpus(start: Callable[..., Path]) -> None:
    start(described.load("gb200-tray"))
    gpus = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(4)]
    assert [pynvml.nvmlDeviceGetNumaNodeId(gpu) for gpu in gpus] == [2, 10, 18, 26]
    assert list(pynvml.nvmlDeviceGetMemoryAffinity(gpus[3], 1, 0)) == [1 << 1]
    assert list(pynvml.nvmlDeviceGetCpuAffinity(gpus[0], 2)) == [(1 << 64) - 1, 0xFF]
    assert [pynvml.nvmlDeviceGetModuleId(gpu, pynvml.c_uint()) for gpu in gpus] == [2, 1, 4, 3]
    assert pynvml.nvmlDeviceGetAddressingMode(gpus[0]) == pynvml.NVML_DEVICE_ADDRESSING_MODE_ATS


@pytest.mark.parametrize(
    ("name", "state", "clique", "summary"), [("hgx-h100", 3, 0, 0), ("gb200-tray", 3, 2, 1), ("h100-nvl-4", 0, 0, 0)]
)
def test_the_fabric_is_told_in_every_version_of_its_struct(
    name: str, state: int, clique: int, summary: int, start: Callable[..., Path]
) -> None:
    start(described.load(name))
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    first, second = pynvml.c_nvmlGpuFabricInfo_t(), pynvml.c_nvmlGpuFabricInfo_v2_t()
    third, fourth = pynvml.c_nvmlGpuFabricInfo_v3_t(), pynvml.c_nvmlGpuFabricInfo_v4_t()
    pynvml.nvmlDeviceGetGpuFabricInfo(gpu, byref(first))
    pynvml.nvmlDeviceGetGpuFabricInfoV(gpu, byref(second))
    pynvml.nvmlDeviceGetGpuFabricInfoV(gpu, byref(third))
    pynvml.nvmlDeviceGetGpuFabricInfo_v4(gpu, byref(fourth))
    for info in (first, second, third, fourth):
        assert (info.state, info.status) == (state, pynvml.NVML_SUCCESS)
        assert any(info.clusterUuid) is (name == "gb200-tray")  # all zero on a board with switches of its own
    assert [info.cliqueId for info in (first, second, third)] == [clique] * 3
    assert (fourth.numCliques, fourth.cliques[0].id) == (1, clique)
    assert third.healthSummary == fourth.healthSummary == summary


def test_ampere_has_no_fabric(start: Callable[..., Path], code: Callable[..., int]) -> None:
    start(described.load("dgx-a100"))
    info = pynvml.c_nvmlGpuFabricInfo_t()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert code(pynvml.nvmlDeviceGetGpuFabricInfo, gpu, byref(info)) == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_blackwell_tells_its_place_in_the_rack(start: Callable[..., Path]) -> None:
    start(described.load("gb200-tray"))
    info = pynvml.c_nvmlPlatformInfo_v2_t()
    pynvml.nvmlDeviceGetPlatformInfo(pynvml.nvmlDeviceGetHandleByIndex(2), byref(info))
    raw = bytes(info)
    assert raw[20:33] == b"1820325150041"
    assert tuple(raw[36:41]) == (14, 4, 1, 1, 4)  # slot, tray, host, peer type, module


def test_an_idle_gpu_has_small_figures_and_no_processes(start: Callable[..., Path]) -> None:
    start(described.load("l4-4"))
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceGetPowerManagementLimit(gpu) == 72_000
    assert 0 < pynvml.nvmlDeviceGetPowerUsage(gpu) < 72_000
    assert pynvml.nvmlDeviceGetTemperature(gpu, 0) == pynvml.nvmlDeviceGetTemperatureV(gpu, 0)
    assert pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu == 0
    assert pynvml.nvmlDeviceGetComputeRunningProcesses(gpu) == []
    assert pynvml.nvmlDeviceGetNumGpuCores(gpu) == 58 * 128
    assert pynvml.nvmlDeviceGetMemoryBusWidth(gpu) == 192
    assert len(pynvml.nvmlDeviceGetSerial(gpu)) == 13
