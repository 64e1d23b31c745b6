"""A described node as plain values: what `load` makes, and what the library and the trees of files are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dradriver.described.codes import Code
from dradriver.described.gpu import Gpu
from dradriver.described.wiring import Level

NVIDIA_DRIVER: Final = "nvidia"


@dataclass(frozen=True, slots=True)
class Description:
    """One node's hardware and driver. `node` is what its UUIDs and serial numbers are made from."""

    name: str
    file: str
    node: str
    driver: str
    cuda: tuple[int, int]
    gpus: tuple[Gpu, ...]
    levels: tuple[tuple[Level, ...], ...]
    """PCIe distance of two GPUs, by their positions."""
    calls: Mapping[str, Code] = field(default_factory=dict)
    """C symbol → what it answers whatever it is asked about."""
    absent: frozenset[str] = frozenset()
    """C symbols that this driver's library does not have."""

    @property
    def listed(self) -> tuple[Gpu, ...]:
        """The GPUs that NVML lists, by NVML index: those the nvidia driver has."""
        return tuple(gpu for gpu in self.gpus if gpu.kernel_driver == NVIDIA_DRIVER)
