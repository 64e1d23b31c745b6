"""MIG: compute instances inside a GPU instance."""
# ruff: noqa: D102, N802 - methods are named and documented as the C symbols of nvml.h

from __future__ import annotations

from typing import Any, Final

from dradriver.described.arguments import fill, fill_handle, number, pointed, put, put_handle, put_list, versioned
from dradriver.described.codes import Code, Refusal
from dradriver.described.gpu import Gpu
from dradriver.described.handles import ComputePart, GpuPart, WholeGpu
from dradriver.described.model import Profile
from dradriver.described.partitioning import ComputeInstance, ComputeProfile, GpuInstance, compute_profiles
from dradriver.described.symbols.area import Area

_PROFILES: Final = range(9)  # NVML_COMPUTE_INSTANCE_PROFILE_COUNT
_SHARED: Final = 0  # NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, the only one


class ComputeInstances(Area):
    """What a GPU instance can be cut into, and is."""

    def nvmlGpuInstanceGetComputeInstanceProfileInfo(self, instance: Any, index: Any, engines: Any, info: Any) -> None:
        _fill(pointed(info), *self._by_index(instance, index, engines))

    def nvmlGpuInstanceGetComputeInstanceProfileInfoV(self, instance: Any, index: Any, engines: Any, info: Any) -> None:
        _fill(versioned(info, 2, 3), *self._by_index(instance, index, engines))

    def nvmlGpuInstanceGetComputeInstanceRemainingCapacity(self, instance: Any, identity: Any, count: Any) -> None:
        _, found, _, profile = self._profile(instance, identity)
        taken = [(each.start, each.start + each.size) for each in found.compute]
        free = [s for s in profile.starts if all(s + profile.slices <= a or s >= b for a, b in taken)]
        put(count, len(free))

    def nvmlGpuInstanceGetComputeInstancePossiblePlacements(
        self, instance: Any, identity: Any, placements: Any, count: Any
    ) -> None:
        *_, profile = self._profile(instance, identity)
        put_list(placements, count, [{"start": start, "size": profile.slices} for start in profile.starts])

    def nvmlGpuInstanceGetComputeInstances(self, instance: Any, identity: Any, computes: Any, count: Any) -> None:
        gpu, found, _, profile = self._profile(instance, identity)
        of_this = [each for each in found.compute if each.profile == profile.id]
        put_list(computes, count, [self._handle(gpu, each) for each in of_this])

    def nvmlGpuInstanceGetComputeInstanceById(self, instance: Any, identity: Any, compute: Any) -> None:
        gpu, found = self.machine.gpu_instance(instance)
        for each in found.compute:
            if each.id == number(identity):
                put_handle(compute, self._handle(gpu, each))
                return
        raise Refusal(Code.NOT_FOUND)

    def nvmlComputeInstanceGetInfo_v2(self, compute: Any, info: Any) -> None:
        gpu, instance, found = self.machine.compute_instance(compute)
        struct = pointed(info)
        fill_handle(struct, "device", self.machine.handles.of(WholeGpu(gpu.position)))
        fill_handle(struct, "gpuInstance", self.machine.handles.of(GpuPart(gpu.position, instance.serial)))
        fill(struct, id=found.id, profileId=found.profile)
        fill(struct.placement, start=found.start, size=found.size)

    def _by_index(self, instance: Any, index: Any, engines: Any) -> tuple[Profile, ComputeProfile]:
        gpu, found = self.machine.gpu_instance(instance)
        if number(index) not in _PROFILES or number(engines) != _SHARED:
            raise Refusal(Code.INVALID_ARGUMENT)
        whole = self.machine.profile(gpu, found.profile)
        profile = compute_profiles(whole).get(number(index))
        if profile is None:
            raise Refusal(Code.NOT_SUPPORTED)
        return whole, profile

    def _profile(self, instance: Any, identity: Any) -> tuple[Gpu, GpuInstance, Profile, ComputeProfile]:
        gpu, found = self.machine.gpu_instance(instance)
        whole = self.machine.profile(gpu, found.profile)
        profile = compute_profiles(whole).get(number(identity))
        if profile is None:
            raise Refusal(Code.INVALID_ARGUMENT)
        return gpu, found, whole, profile

    def _handle(self, gpu: Gpu, compute: ComputeInstance) -> int:
        return self.machine.handles.of(ComputePart(gpu.position, compute.serial))


def _fill(info: Any, whole: Profile, profile: ComputeProfile) -> None:
    fill(
        info,
        id=profile.id,
        sliceCount=profile.slices,
        instanceCount=profile.instances,
        multiprocessorCount=profile.multiprocessors,
        sharedCopyEngineCount=whole.copy_engines,
        sharedDecoderCount=whole.decoders,
        sharedEncoderCount=whole.encoders,
        sharedJpegCount=whole.jpeg_engines,
        sharedOfaCount=whole.ofa_engines,
        name=f"MIG {'' if profile.slices == whole.slices else f'{profile.slices}c.'}{whole.name}".encode(),
    )
