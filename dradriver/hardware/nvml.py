"""The one adapter to NVML: the only module that imports `pynvml`. Foreign errors become values or NvmlError here.

pynvml keeps one library for the whole process, so one Nvml lives at a time; it owns that library until closed.
"""

from __future__ import annotations

import contextlib

import pynvml

_CODES: dict[int, str] = {
    getattr(pynvml, name): name.removeprefix("NVML_ERROR_") for name in dir(pynvml) if name.startswith("NVML_ERROR_")
}

_REMEDIES = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "libnvidia-ml.so.1 was not found: install the NVIDIA driver on this node, "
    "or make its library directory visible to this process",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA kernel driver is not loaded: load it (modprobe nvidia), "
    "or keep this process off nodes without GPUs",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "library and loaded kernel driver are of different versions: "
    "finish the driver upgrade (reload the kernel modules or reboot), then restart this process",
    pynvml.NVML_ERROR_NO_PERMISSION: "this process may not talk to the driver: run it privileged",
}


class NvmlError(Exception):
    """NVML as a whole does not work: no library, no driver, or driver and library of different versions."""


def _whole(call: str, code: int) -> NvmlError:
    remedy = _REMEDIES.get(code, "see the kernel log (dmesg) and nvidia-smi on this node")
    return NvmlError(f"NVML answered {_CODES.get(code, 'UNDOCUMENTED')} ({code}) to {call}: {remedy}")


class Nvml:
    """The NVML library of this process.

    `library` replaces what pynvml would load (an object with one callable attribute for each C symbol).
    """

    def __init__(self, library: object | None = None) -> None:
        pynvml.nvmlLib = library
        # pynvml resolves each symbol once per process: without this an earlier library would still be called.
        pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001 - pynvml has no public way
        try:
            pynvml.nvmlInitWithFlags(pynvml.NVML_INIT_FLAG_NO_GPUS)  # a node whose GPUs are all bound elsewhere is fine
        except pynvml.NVMLError as error:
            raise _whole("nvmlInit", error.value) from error

    def close(self) -> None:
        """Shut NVML down; harmless when it never started."""
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()
