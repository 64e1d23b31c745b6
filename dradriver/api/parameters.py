"""Opaque parameters of gpupool's driver: `gpu.gpupool.dev/v1alpha1` GpuConfig, MigConfig, ShareConfig (DESIGN 4.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dradriver.api.quantity import Quantity

API_VERSION = "gpu.gpupool.dev/v1alpha1"


class SharingStrategy(StrEnum):
    """How several processes share a device."""

    EXCLUSIVE = "Exclusive"
    TIME_SLICING = "TimeSlicing"
    MPS = "MPS"


class TimeSliceInterval(StrEnum):
    """The length of a time slice, in the driver's own words."""

    DEFAULT = "Default"
    SHORT = "Short"
    MEDIUM = "Medium"
    LONG = "Long"


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a device is shared; the fields beside `strategy` belong to one strategy each."""

    strategy: SharingStrategy = SharingStrategy.EXCLUSIVE
    interval: TimeSliceInterval | None = None
    active_thread_percentage: int | None = None
    memory_limit: Quantity | None = None


@dataclass(frozen=True, slots=True)
class GpuConfig:
    """Parameters of a whole GPU."""

    sharing: Sharing = field(default_factory=Sharing)


@dataclass(frozen=True, slots=True)
class MigConfig:
    """Parameters of a MIG instance; there is no time-slicing inside one."""

    sharing: Sharing = field(default_factory=Sharing)


@dataclass(frozen=True, slots=True)
class ShareConfig:
    """Parameters of a share of a GPU; none yet."""


def parse(parameters: Mapping[str, Any], *, strict: bool = True) -> GpuConfig | MigConfig | ShareConfig:
    """Read opaque parameters. When strict, unknown fields raise ParametersError with their path."""
    raise NotImplementedError
