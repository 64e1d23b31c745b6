"""MIG devices: one for each compute instance, found by an index that has holes."""
# ruff: noqa: D102, N802 - methods are named and documented as the C symbols of nvml.h

from __future__ import annotations

import uuid
from typing import Any

from dradriver.described.arguments import fill, number, pointed, put, put_handle
from dradriver.described.codes import Code, Refusal
from dradriver.described.gpu import Gpu
from dradriver.described.handles import MigDevice, WholeGpu
from dradriver.described.partitioning import ComputeInstance, GpuInstance, compute_profiles
from dradriver.described.symbols.area import Area


class MigDevices(Area):
    """Handles to MIG devices, and what they have."""

    def nvmlDeviceGetMaxMigDeviceCount(self, device: Any, count: Any) -> None:
        gpu = self.machine.whole(device)
        enabled = self.machine.partitioning(gpu).enabled
        put(count, self.machine.partitions(gpu).slices if enabled else 0)

    def nvmlDeviceIsMigDeviceHandle(self, device: Any, answer: Any) -> None:
        put(answer, self.machine.is_mig_device(device))

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: Any, index: Any, found: Any) -> None:
        gpu, wanted = self.machine.whole(device), number(index)
        partitions = self.machine.partitions(gpu)
        if not self.machine.partitioning(gpu).enabled or not 0 <= wanted < partitions.slices:
            raise Refusal(Code.INVALID_ARGUMENT)
        for _, compute in self.machine.partitioning(gpu).devices():
            if compute.device_index == wanted:
                put_handle(found, self.machine.handles.of(MigDevice(gpu.position, compute.serial)))
                return
        raise Refusal(Code.NOT_FOUND)

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, device: Any, parent: Any) -> None:
        gpu, *_ = self.machine.mig_device(device)
        put_handle(parent, self.machine.handles.of(WholeGpu(gpu.position)))

    def nvmlDeviceGetGpuInstanceId(self, device: Any, identity: Any) -> None:
        _, instance, _ = self.machine.mig_device(device)
        put(identity, instance.id)

    def nvmlDeviceGetComputeInstanceId(self, device: Any, identity: Any) -> None:
        *_, compute = self.machine.mig_device(device)
        put(identity, compute.id)

    def nvmlDeviceGetAttributes_v2(self, device: Any, attributes: Any) -> None:
        if not self.machine.is_mig_device(device):
            raise Refusal(Code.NOT_SUPPORTED)
        gpu, instance, compute = self.machine.mig_device(device)
        profile = self.machine.profile(gpu, instance.profile)
        fill(
            pointed(attributes),
            multiprocessorCount=compute_profiles(profile)[compute.profile].multiprocessors,
            sharedCopyEngineCount=profile.copy_engines,
            sharedDecoderCount=profile.decoders,
            sharedEncoderCount=profile.encoders,
            sharedJpegCount=profile.jpeg_engines,
            sharedOfaCount=profile.ofa_engines,
            gpuInstanceSliceCount=profile.slices,
            computeInstanceSliceCount=compute.size,
            memorySizeMB=instance.memory_mib or profile.memory_mib,
        )


def mig_uuid(gpu: Gpu, instance: GpuInstance, compute: ComputeInstance) -> str:
    """The UUID of a MIG device: the same again when an instance is made anew with the same ids, as the kernel does."""
    return f"MIG-{uuid.uuid5(uuid.UUID(gpu.uuid.removeprefix('GPU-')), f'{instance.id}/{compute.id}')}"
