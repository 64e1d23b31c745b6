"""MIG: mode, profiles, placements and GPU instances. Making and destroying them is not part of this library yet."""
# ruff: noqa: D102, N802 - methods are named and documented as the C symbols of nvml.h

from __future__ import annotations

from typing import Any, Final

from dradriver.described.arguments import fill, fill_handle, number, pointed, put, put_handle, put_list, versioned
from dradriver.described.codes import Code, Refusal
from dradriver.described.gpu import Gpu
from dradriver.described.handles import GpuPart, WholeGpu
from dradriver.described.model import Profile
from dradriver.described.partitioning import GpuInstance
from dradriver.described.symbols.area import Area

_PROFILES: Final = range(18)  # NVML_GPU_INSTANCE_PROFILE_COUNT of nvml.h 13.3
_GRAPHICS: Final = 1 << 1  # NVML_GPU_INSTANCE_PROFILE_CAPS_GFX


class GpuInstances(Area):
    """What a GPU can be cut into, and is."""

    def nvmlDeviceGetMigMode(self, device: Any, current: Any, pending: Any) -> None:
        gpu = self.machine.whole(device)
        self.machine.partitions(gpu)
        found = self.machine.partitioning(gpu)
        put(current, found.enabled)
        put(pending, found.pending)

    def nvmlDeviceGetGpuInstanceProfileInfo(self, device: Any, index: Any, info: Any) -> None:
        _fill(pointed(info), self._by_index(device, index))

    def nvmlDeviceGetGpuInstanceProfileInfoV(self, device: Any, index: Any, info: Any) -> None:
        _fill(versioned(info, 2, 3), self._by_index(device, index))

    def nvmlDeviceGetGpuInstanceProfileInfoByIdV(self, device: Any, identity: Any, info: Any) -> None:
        _fill(versioned(info, 2, 3), self.machine.profile(self.machine.whole(device), number(identity)))

    def nvmlDeviceGetGpuInstancePossiblePlacements_v2(
        self, device: Any, identity: Any, placements: Any, count: Any
    ) -> None:
        profile = self.machine.profile(self.machine.whole(device), number(identity))
        put_list(placements, count, [{"start": start, "size": profile.size} for start in profile.starts])

    def nvmlDeviceGetGpuInstanceRemainingCapacity(self, device: Any, identity: Any, count: Any) -> None:
        gpu = self._enabled(device)
        put(count, self._remaining(gpu, self.machine.profile(gpu, number(identity))))

    def nvmlDeviceGetGpuInstances(self, device: Any, identity: Any, instances: Any, count: Any) -> None:
        gpu = self._enabled(device)
        profile = self.machine.profile(gpu, number(identity))
        found = [each for each in self.machine.partitioning(gpu).instances if each.profile == profile.id]
        put_list(instances, count, [self._handle(gpu, each) for each in found])

    def nvmlDeviceGetGpuInstanceById(self, device: Any, identity: Any, instance: Any) -> None:
        gpu = self._enabled(device)
        for each in self.machine.partitioning(gpu).instances:
            if each.id == number(identity):
                put_handle(instance, self._handle(gpu, each))
                return
        raise Refusal(Code.NOT_FOUND)

    def nvmlGpuInstanceGetInfo(self, instance: Any, info: Any) -> None:
        gpu, found = self.machine.gpu_instance(instance)
        struct = pointed(info)
        fill_handle(struct, "device", self.machine.handles.of(WholeGpu(gpu.position)))
        fill(struct, id=found.id, profileId=found.profile)
        fill(struct.placement, start=found.start, size=self.machine.profile(gpu, found.profile).size)

    def _enabled(self, device: Any) -> Gpu:
        gpu = self.machine.whole(device)
        self.machine.partitions(gpu)
        if not self.machine.partitioning(gpu).enabled:
            raise Refusal(Code.NOT_SUPPORTED)
        return gpu

    def _by_index(self, device: Any, index: Any) -> Profile:
        partitions = self.machine.partitions(self.machine.whole(device))
        if number(index) not in _PROFILES:
            raise Refusal(Code.INVALID_ARGUMENT)
        profile = partitions.by_index(number(index))
        if profile is None:
            raise Refusal(Code.NOT_SUPPORTED)
        return profile

    def _handle(self, gpu: Gpu, instance: GpuInstance) -> int:
        return self.machine.handles.of(GpuPart(gpu.position, instance.serial))

    def _remaining(self, gpu: Gpu, profile: Profile) -> int:
        """How many more of a profile fit: into free memory, free compute slices and free media engines."""
        partitions = self.machine.partitions(gpu)
        instances = self.machine.partitioning(gpu).instances
        kinds = [(each, self.machine.profile(gpu, each.profile)) for each in instances]
        if not _has_media(profile, [kind for _, kind in kinds]):
            return 0
        taken = [(each.start, each.start + kind.size) for each, kind in kinds]
        fitting = 0
        for start in profile.starts:
            if all(start + profile.size <= begin or start >= end for begin, end in taken):
                taken.append((start, start + profile.size))
                fitting += 1
        same = sum(kind is profile for _, kind in kinds)
        slices = partitions.slices - sum(kind.slices for _, kind in kinds)
        return max(0, min(fitting, slices // profile.slices, profile.instances - same))


def _has_media(profile: Profile, present: list[Profile]) -> bool:
    """One instance can have the extra media engines (+me); after one with all of them only those without fit."""
    if any(each.name.endswith("+me.all") for each in present):
        return profile.name.endswith("-me")
    if profile.name.endswith("+me.all"):
        return all(each.name.endswith("-me") for each in present)
    return not (profile.name.endswith("+me") and any(each.name.endswith("+me") for each in present))


def _fill(info: Any, profile: Profile) -> None:
    """Fill nvmlGpuInstanceProfileInfo_t of any version; the third has capabilities in place of isP2pSupported."""
    fill(
        info,
        id=profile.id,
        isP2pSupported=0,
        sliceCount=profile.slices,
        instanceCount=profile.instances,
        multiprocessorCount=profile.multiprocessors,
        copyEngineCount=profile.copy_engines,
        decoderCount=profile.decoders,
        encoderCount=profile.encoders,
        jpegCount=profile.jpeg_engines,
        ofaCount=profile.ofa_engines,
        memorySizeMB=profile.memory_mib,
        name=f"MIG {profile.name}".encode(),
        capabilities=_GRAPHICS if profile.graphics else 0,
    )
