"""The MIG instances of a GPU at one moment, as plain values and as JSON.

Every instance carries a serial number that is never given again on that GPU: ids and UUIDs come back when an instance
is made anew in the same place, a handle to the old one must not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from dradriver.described.model import Profile

_DOUBLE_MEMORY: Final = 9  # NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2, whose compute instance is REV1
_REV1: Final = 7
_IDS_BY_SLICES: Final = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4, 8: 5, 6: 6}
"""Compute instance profiles, whose index and id are one number (NVML_COMPUTE_INSTANCE_PROFILE_*)."""


@dataclass(frozen=True, slots=True)
class ComputeInstance:
    """A part of a GPU instance that can run work: a MIG device. Start and size are in compute slices."""

    serial: int
    id: int
    device_index: int
    profile: int
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class GpuInstance:
    """A part of a GPU. `memory_mib` is given where it differs from the profile's."""

    serial: int
    id: int
    profile: int
    start: int
    memory_mib: int | None
    compute: tuple[ComputeInstance, ...]


@dataclass(frozen=True, slots=True)
class Partitioning:
    """MIG mode now and after the next reset, and the instances, by id."""

    enabled: bool = False
    pending: bool = False
    instances: tuple[GpuInstance, ...] = ()

    def devices(self) -> Iterator[tuple[GpuInstance, ComputeInstance]]:
        """All MIG devices."""
        return ((instance, compute) for instance in self.instances for compute in instance.compute)


@dataclass(frozen=True, slots=True)
class ComputeProfile:
    """A kind of compute instance inside one GPU instance."""

    id: int
    slices: int
    multiprocessors: int
    instances: int
    starts: tuple[int, ...]


def compute_profiles(profile: Profile) -> dict[int, ComputeProfile]:
    """The compute instance profiles of a GPU instance profile, by index, which is also their id."""
    if profile.index == _DOUBLE_MEMORY:
        return {_REV1: ComputeProfile(_REV1, 1, profile.multiprocessors, 1, (0,))}
    found = {}
    for slices, identity in _IDS_BY_SLICES.items():
        if slices == profile.slices or (slices <= min(4, profile.slices - 1) and (slices, profile.slices) != (3, 4)):
            step = 4 if slices == 3 else slices  # noqa: PLR2004 - three slices lie on the border of four
            starts = tuple(range(0, profile.slices - slices + 1, step))
            share = profile.multiprocessors * slices // profile.slices
            found[identity] = ComputeProfile(identity, slices, share, len(starts), starts)
    return found


def whole_profile(profile: Profile) -> ComputeProfile:
    """The compute instance profile that takes all of a GPU instance."""
    return max(compute_profiles(profile).values(), key=lambda each: each.slices)


def to_json(partitioning: Partitioning) -> dict[str, Any]:
    """As kept on disk."""
    return asdict(partitioning)


def from_json(value: Mapping[str, Any]) -> Partitioning:
    """As kept on disk. Raises KeyError, TypeError where it is not what `to_json` makes."""
    return Partitioning(
        bool(value["enabled"]),
        bool(value["pending"]),
        tuple(
            GpuInstance(**{**instance, "compute": tuple(ComputeInstance(**each) for each in instance["compute"])})
            for instance in value["instances"]
        ),
    )
