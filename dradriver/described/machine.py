"""The machine behind the symbols: what handles name, what is wrong with it now, and whether NVML is started."""

from __future__ import annotations

import threading
from typing import Any, Protocol

from dradriver.described import arguments
from dradriver.described.codes import Code, Refusal
from dradriver.described.description import Description
from dradriver.described.gpu import Condition, Gpu
from dradriver.described.handles import ComputePart, GpuPart, Handles, MigDevice, WholeGpu
from dradriver.described.model import Partitions, Profile
from dradriver.described.partitioning import ComputeInstance, GpuInstance, Partitioning
from dradriver.described.store import Store


class Faulting(Protocol):
    """What knows what is wrong with the node now."""

    def condition(self, gpu: Gpu) -> Condition:
        """What is wrong with a GPU."""

    def answer(self, symbol: str) -> Code | None:
        """What a symbol answers whatever it is asked about; None where it works."""


class Machine:
    """One described node as one process sees it. Each look-up raises Refusal with what NVML would answer."""

    def __init__(self, description: Description, store: Store, faults: Faulting) -> None:
        self.description = description
        self.handles = Handles()
        self._store = store
        self._faults = faults
        self._starting = threading.Lock()
        self._started = 0

    def start(self) -> None:
        """NVML counts its users."""
        with self._starting:
            self._started += 1

    def stop(self) -> None:
        """The last user's shutdown retires every handle."""
        with self._starting:
            if not self._started:
                raise Refusal(Code.UNINITIALIZED)
            self._started -= 1
            if not self._started:
                self.handles.retire_all()

    def admit(self, symbol: str) -> None:
        """Refuse a call that is made too early, or that a fault makes fail whatever it is about."""
        if not self._started:
            raise Refusal(Code.UNINITIALIZED)
        self.answer(symbol)

    def answer(self, symbol: str) -> None:
        """Refuse a call that a fault makes fail whatever it is about."""
        code = self._faults.answer(symbol)
        if code is not None:
            raise Refusal(code)

    def check(self, gpu: Gpu, symbol: str) -> None:
        """Refuse a call about a GPU that is lost, or that a fault makes fail."""
        condition = self.condition(gpu)
        code = condition.calls.get(symbol)
        if code:
            raise Refusal(code)
        if condition.lost and code is None:
            raise Refusal(Code.GPU_IS_LOST)

    def condition(self, gpu: Gpu) -> Condition:
        """What is wrong with a GPU now."""
        return self._faults.condition(gpu)

    def gpu(self, handle: Any) -> Gpu:
        """The GPU that a handle is about: itself, or that of the instance it names."""
        return self.description.gpus[self.handles.target(arguments.handle(handle)).position]

    def whole(self, handle: Any) -> Gpu:
        """The GPU that a handle names; the handle of a part of one is refused."""
        target = self.handles.target(arguments.handle(handle))
        if not isinstance(target, WholeGpu):
            raise Refusal(Code.INVALID_ARGUMENT)
        return self.description.gpus[target.position]

    def is_mig_device(self, handle: Any) -> bool:
        """Whether a handle names a MIG device, gone or not."""
        return isinstance(self.handles.target(arguments.handle(handle)), MigDevice)

    def mig_device(self, handle: Any) -> tuple[Gpu, GpuInstance, ComputeInstance]:
        """The MIG device that a handle names."""
        return self._compute(handle, MigDevice)

    def compute_instance(self, handle: Any) -> tuple[Gpu, GpuInstance, ComputeInstance]:
        """The compute instance that a handle names."""
        return self._compute(handle, ComputePart)

    def gpu_instance(self, handle: Any) -> tuple[Gpu, GpuInstance]:
        """The GPU instance that a handle names."""
        target = self.handles.target(arguments.handle(handle))
        if isinstance(target, GpuPart):
            gpu = self.description.gpus[target.position]
            for instance in self.partitioning(gpu).instances:
                if instance.serial == target.serial:
                    return gpu, instance
        raise Refusal(Code.INVALID_ARGUMENT)

    def partitioning(self, gpu: Gpu) -> Partitioning:
        """The MIG instances of a GPU now."""
        return self._store.partitioning(gpu.uuid)

    def partitions(self, gpu: Gpu) -> Partitions:
        """What MIG can make of a GPU."""
        if gpu.model.partitions is None:
            raise Refusal(Code.NOT_SUPPORTED)
        return gpu.model.partitions

    def profile(self, gpu: Gpu, identity: int) -> Profile:
        """The profile of an id."""
        profile = self.partitions(gpu).by_id(identity)
        if profile is None:
            raise Refusal(Code.INVALID_ARGUMENT)
        return profile

    def _compute(self, handle: Any, kind: type[MigDevice | ComputePart]) -> tuple[Gpu, GpuInstance, ComputeInstance]:
        target = self.handles.target(arguments.handle(handle))
        if isinstance(target, kind):
            gpu = self.description.gpus[target.position]
            for instance, compute in self.partitioning(gpu).devices():
                if compute.serial == target.serial:
                    return gpu, instance, compute
        raise Refusal(Code.INVALID_ARGUMENT)
