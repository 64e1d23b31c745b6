"""The one adapter to NVML: the only module that imports `pynvml`. Foreign errors become values or ours here.

pynvml keeps one library for the whole process, so one Nvml lives at a time; it owns that library until closed.

Each query answers its value, or None where the GPU or the driver does not know the question or this process may not
ask it. Anything else is one of our errors.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from ctypes import byref, c_uint
from typing import Any, Final, NewType, TypeVar

import pynvml

from dradriver.hardware import answers
from dradriver.hardware.answers import InstanceInfo, PciFunction, ProfileInfo, Share
from dradriver.hardware.errors import GpuLostError, NvmlError, QueryError
from dradriver.hardware.inventory import Fabric, LinkPeer, Placement

T = TypeVar("T")

Handle = NewType("Handle", object)
"""NVML's name for a GPU, a MIG device, a GPU instance or a compute instance, good until NVML is shut down."""

LINKS: Final = range(pynvml.NVML_NVLINK_MAX_LINKS)
PROFILES: Final = range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT)

_NAMES: Final[dict[int, str]] = {
    getattr(pynvml, name): name.removeprefix("NVML_ERROR_") for name in dir(pynvml) if name.startswith("NVML_ERROR_")
}
_WHOLE: Final = {
    pynvml.NVML_ERROR_NO_PERMISSION: "this process may not talk to the driver: run it privileged",
    pynvml.NVML_ERROR_UNINITIALIZED: "NVML was shut down under this process: restart it",
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "libnvidia-ml.so.1 was not found: install the NVIDIA driver on this node, "
    "or make its library directory visible to this process",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA kernel driver is not loaded: load it (modprobe nvidia), "
    "or keep this process off nodes without GPUs",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "library and loaded kernel driver are of different versions: "
    "finish the driver upgrade (reload the kernel modules or reboot), then restart this process",
}
_LOST: Final = {
    pynvml.NVML_ERROR_GPU_IS_LOST: "it fell off the bus; see Xid messages in the kernel log, reboot or replace it",
    pynvml.NVML_ERROR_RESET_REQUIRED: "it waits for a reset; drain it, then nvidia-smi --gpu-reset or reboot",
}
_ABSENT: Final = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_NO_PERMISSION,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,  # a driver older than the symbol
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,  # a driver older than the struct
    }
)
_NO_SUCH: Final = _ABSENT | {pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.NVML_ERROR_NOT_FOUND}
"""Of a numbered list: what follows its end, and its holes."""

_MIB: Final = 1 << 20
_ATTEMPTS: Final = 3  # UNKNOWN comes and goes (NVIDIA/k8s-device-plugin#338)


class Nvml:
    """The NVML library of this process.

    `library` replaces what pynvml would load (an object with one callable attribute for each C symbol).
    """

    def __init__(self, library: object | None = None) -> None:
        # Set for MPS clients, it makes NVML list parts of GPUs in the place of GPUs.
        os.environ.pop("NVML_MPS_DEVICE_ENUMERATION", None)
        _use(library)
        try:
            pynvml.nvmlInitWithFlags(pynvml.NVML_INIT_FLAG_NO_GPUS)  # a node whose GPUs are all bound elsewhere is fine
        except pynvml.NVMLError as error:
            _use(None)
            raise _whole("nvmlInit", error.value) from error
        self._library: object = pynvml.nvmlLib

    def close(self) -> None:
        """Shut NVML down; harmless when that was done, or when another Nvml has taken over."""
        if pynvml.nvmlLib is self._library:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()
            _use(None)

    def driver_version(self) -> str | None:
        """As the driver writes it: 550.90.07."""
        return _ask(answers.text, pynvml.nvmlSystemGetDriverVersion)

    def cuda_version(self) -> str | None:
        """The newest CUDA the driver supports: 12.4."""
        return _ask(lambda version: f"{version // 1000}.{version % 1000 // 10}", pynvml.nvmlSystemGetCudaDriverVersion)

    def count(self) -> int:
        """How many GPUs the driver holds. Raises NvmlError where that cannot be told."""
        try:
            count = _ask(int, pynvml.nvmlDeviceGetCount)
        except QueryError as error:
            raise NvmlError(f"the GPUs cannot be counted: {error}") from error
        if count is None:
            raise NvmlError("the GPUs cannot be counted: this process may not ask the driver; run it privileged")
        return count

    def gpu(self, index: int) -> Handle | None:
        """The GPU at an index, which names it only until NVML is shut down."""
        return _ask(Handle, pynvml.nvmlDeviceGetHandleByIndex, index)

    def uuid(self, device: Handle) -> str | None:
        """`GPU-...`, or `MIG-...` of a MIG device."""
        return _ask(answers.text, pynvml.nvmlDeviceGetUUID, device)

    def name(self, gpu: Handle) -> str | None:
        """The marketing name, not unique, `NVIDIA Graphics Device` where the driver does not know the part."""
        return _ask(answers.text, pynvml.nvmlDeviceGetName, gpu)

    def pci(self, gpu: Handle) -> PciFunction | None:
        """Where the GPU sits."""
        return _ask(PciFunction.of, pynvml.nvmlDeviceGetPciInfo, gpu)

    def minor(self, gpu: Handle) -> int | None:
        """The N of /dev/nvidiaN, which need not be the index."""
        return _ask(int, pynvml.nvmlDeviceGetMinorNumber, gpu)

    def brand(self, gpu: Handle) -> str | None:
        """Nvidia, Tesla, GeForce, ..."""
        return _ask(answers.BRANDS.get, pynvml.nvmlDeviceGetBrand, gpu)

    def architecture(self, gpu: Handle) -> str | None:
        """Volta, Turing, Ampere, Ada Lovelace, Hopper, Blackwell, ..."""
        return _ask(answers.ARCHITECTURES.get, pynvml.nvmlDeviceGetArchitecture, gpu)

    def compute_capability(self, gpu: Handle) -> tuple[int, int] | None:
        """Major and minor."""
        return _ask(lambda pair: (int(pair[0]), int(pair[1])), pynvml.nvmlDeviceGetCudaComputeCapability, gpu)

    def memory_mib(self, device: Handle) -> int | None:
        """All of a GPU's or MIG device's memory, what the driver keeps for itself included."""
        return _ask(lambda memory: int(memory.total) // _MIB, pynvml.nvmlDeviceGetMemoryInfo, device)

    def ecc(self, gpu: Handle) -> bool | None:
        """Whether ECC is on now."""
        return _ask(lambda modes: bool(modes[0]), pynvml.nvmlDeviceGetEccMode, gpu)

    def memory_bus_bits(self, gpu: Handle) -> int | None:
        """Width of the memory bus, which tells GDDR from HBM."""
        return _ask(int, pynvml.nvmlDeviceGetMemoryBusWidth, gpu)

    def link_active(self, gpu: Handle, link: int) -> bool | None:
        """Whether an NVLink is up; None where the GPU has no such link."""
        return _ask(bool, pynvml.nvmlDeviceGetNvLinkState, gpu, link, absent=_NO_SUCH)

    def link_peer(self, gpu: Handle, link: int) -> LinkPeer | None:
        """What kind of device the NVLink leads to."""
        return _ask(
            lambda kind: answers.PEERS.get(kind, LinkPeer.OTHER), pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, gpu, link
        )

    def link_remote(self, gpu: Handle, link: int) -> str | None:
        """The PCI address the NVLink leads to: all ones for a switch that is no PCI device of this machine."""
        return _ask(lambda info: PciFunction.of(info).address, pynvml.nvmlDeviceGetNvLinkRemotePciInfo, gpu, link)

    def fabric(self, gpu: Handle) -> Fabric | None:
        """Membership in the NVLink fabric, by the newest struct the driver knows."""
        current = _ask(lambda info: info, _fabric_v2, gpu)
        return _ask(answers.fabric, _fabric_v1, gpu) if current is None else answers.fabric(current)

    def mig_mode(self, gpu: Handle) -> tuple[bool, bool] | None:
        """Whether MIG is on now, and after the next reset."""
        return _ask(lambda modes: (bool(modes[0]), bool(modes[1])), pynvml.nvmlDeviceGetMigMode, gpu)

    def profile(self, gpu: Handle, index: int) -> ProfileInfo | None:
        """A kind of GPU instance by NVML's profile index; None where this GPU has none of that index."""
        for version in (2, 1):  # the newer call may refuse while MIG is off, and is missing before R470
            info = _ask(
                ProfileInfo.of, pynvml.nvmlDeviceGetGpuInstanceProfileInfo, gpu, index, version, absent=_NO_SUCH
            )
            if info is not None:
                return info
        return None

    def placements(self, gpu: Handle, profile_id: int) -> tuple[Placement, ...] | None:
        """Where instances of a profile may sit, taken or not."""
        return _ask(
            lambda found: tuple(answers.placement(place) for place in found),
            _listed,
            pynvml.nvmlDeviceGetGpuInstancePossiblePlacements,
            pynvml.c_nvmlGpuInstancePlacement_t,
            gpu,
            profile_id,
        )

    def gpu_instances(self, gpu: Handle, profile_id: int, most: int) -> tuple[Handle, ...] | None:
        """The GPU instances of a profile, of which there are at most `most`, with or without compute instances."""
        return _ask(
            lambda found: tuple(Handle(instance) for instance in found),
            _filled,
            pynvml.nvmlDeviceGetGpuInstances,
            pynvml.c_nvmlGpuInstance_t * most,
            gpu,
            profile_id,
        )

    def gpu_instance_info(self, gpu_instance: Handle) -> InstanceInfo | None:
        """Which GPU instance this is and where it sits: its id does not tell."""
        return _ask(InstanceInfo.of, pynvml.nvmlGpuInstanceGetInfo, gpu_instance)

    def compute_instance_info(self, gpu_instance: Handle, compute_instance: int) -> InstanceInfo | None:
        """A compute instance by its id; None where it is gone."""
        handle = _ask(
            Handle,
            pynvml.nvmlGpuInstanceGetComputeInstanceById,
            gpu_instance,
            compute_instance,
            absent=_NO_SUCH,
        )
        return (
            None
            if handle is None
            else _ask(InstanceInfo.of, pynvml.nvmlComputeInstanceGetInfo, handle, absent=_NO_SUCH)
        )

    def mig_devices(self, gpu: Handle) -> range:
        """The indices at which there may be MIG devices, with holes."""
        return range(_ask(int, pynvml.nvmlDeviceGetMaxMigDeviceCount, gpu) or 0)

    def mig_device(self, gpu: Handle, index: int) -> Handle | None:
        """The MIG device at an index: one compute instance, perhaps one that is gone."""
        return _ask(Handle, pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, index, absent=_NO_SUCH)

    def gpu_instance_id(self, mig_device: Handle) -> int | None:
        """The GPU instance of a MIG device; None where the device is gone."""
        return _ask(int, pynvml.nvmlDeviceGetGpuInstanceId, mig_device, absent=_NO_SUCH)

    def compute_instance_id(self, mig_device: Handle) -> int | None:
        """The compute instance of a MIG device; None where the device is gone."""
        return _ask(int, pynvml.nvmlDeviceGetComputeInstanceId, mig_device, absent=_NO_SUCH)

    def share(self, mig_device: Handle) -> Share | None:
        """What a MIG device has."""
        return _ask(Share.of, pynvml.nvmlDeviceGetAttributes, mig_device)


def _ask(
    convert: Callable[[Any], T], query: Callable[..., Any], *arguments: object, absent: frozenset[int] = _ABSENT
) -> T | None:
    named = arguments[0] if arguments and callable(arguments[0]) else query  # what _listed and _filled are given
    call = getattr(named, "__name__", "a query").lstrip("_")
    code: int = pynvml.NVML_ERROR_UNKNOWN
    for _ in range(_ATTEMPTS):
        try:
            return convert(query(*arguments))
        except pynvml.NVMLError as error:
            code = error.value
        except ValueError as error:  # bytes that are no text, an address that is none
            raise QueryError(f"{call} gave an unreadable answer: {error}") from error
        if code != pynvml.NVML_ERROR_UNKNOWN:
            break
    if code in absent:
        return None
    if code in _WHOLE:
        raise _whole(call, code)
    if code in _LOST:
        raise GpuLostError(f"{_NAMES[code]} ({code}) in answer to {call}: {_LOST[code]}")
    raise QueryError(f"{call} answered {_NAMES.get(code, 'UNDOCUMENTED')} ({code})")


def _use(library: object | None) -> None:
    """Make pynvml call a library, or load the system's when it starts next."""
    pynvml.nvmlLib = library
    # pynvml resolves each symbol once per process: without this an earlier library would still be called.
    pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001 - pynvml has no public way


def _whole(call: str, code: int) -> NvmlError:
    remedy = _WHOLE.get(code, "see the kernel log (dmesg) and nvidia-smi on this node")
    return NvmlError(f"NVML answered {_NAMES.get(code, 'UNDOCUMENTED')} ({code}) to {call}: {remedy}")


def _fabric_v2(gpu: Handle) -> Any:
    info = pynvml.c_nvmlGpuFabricInfo_v2_t()
    pynvml.nvmlDeviceGetGpuFabricInfoV(gpu, byref(info))
    return info


def _fabric_v1(gpu: Handle) -> Any:
    info = pynvml.c_nvmlGpuFabricInfo_t()
    pynvml.nvmlDeviceGetGpuFabricInfo(gpu, byref(info))
    return info


def _listed(query: Callable[..., Any], element: Any, parent: Handle, profile_id: int) -> list[Any]:
    """What a query lists that tells the length when it is given no room."""
    count = c_uint(0)
    try:
        query(parent, profile_id, None, byref(count))
    except pynvml.NVMLError as error:
        if error.value != pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
            raise
    return _filled(query, element * count.value, parent, profile_id)


def _filled(query: Callable[..., Any], room: Any, parent: Handle, profile_id: int) -> list[Any]:
    found = room()
    count = c_uint(len(found))
    query(parent, profile_id, found, byref(count))
    return list(found)[: count.value]
