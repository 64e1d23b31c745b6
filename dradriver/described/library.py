"""What pynvml believes to be libnvidia-ml.so.1: an object with one callable attribute for each C symbol.

Every wrapper, struct version and error path of the real module runs on it; only what lies behind the symbols is
described. A symbol that the described driver does not have is an AttributeError, as with ctypes, and becomes
FunctionNotFound.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from dradriver.described.codes import Code, Refusal
from dradriver.described.description import Description
from dradriver.described.faults import FaultFile
from dradriver.described.machine import Machine
from dradriver.described.store import Store
from dradriver.described.symbols import AREAS

_STARTING: Final = frozenset({"nvmlInit_v2", "nvmlInitWithFlags", "nvmlShutdown", "nvmlErrorString"})
"""What may be called before NVML is started."""
_OF_GPUS: Final = ("nvmlDevice", "nvmlGpuInstance", "nvmlComputeInstance")
_FINDING: Final = ("nvmlDeviceGetCount", "nvmlDeviceGetHandleBy")
"""What takes no handle."""


class Library:
    """The library of one described node.

    Args:
        description: the node.
        state: a directory for its MIG instances and `faults.yaml`; made where it is missing.

    Raises:
        DescriptionError: where the directory cannot be used, or holds a state or faults that cannot be read.
    """

    def __init__(self, description: Description, state: Path) -> None:
        self._machine = Machine(description, Store(description, state), FaultFile(description, state))
        self._methods: dict[str, Callable[..., Any]] = {
            name: getattr(area, name)
            for area in (kind(self._machine) for kind in AREAS)
            for name in dir(area)
            if name.startswith("nvml") and name not in description.absent
        }

    def __getattr__(self, symbol: str) -> Callable[..., Any]:
        method = self.__dict__.get("_methods", {}).get(symbol)
        if method is None:
            raise AttributeError(f"described libnvidia-ml.so.1: undefined symbol: {symbol}")

        def call(*arguments: Any) -> Any:
            try:
                self._admit(symbol, arguments)
                answer = method(*arguments)
            except Refusal as refusal:
                return int(refusal.code)
            return int(Code.SUCCESS) if answer is None else answer

        return call

    def _admit(self, symbol: str, arguments: tuple[Any, ...]) -> None:
        if symbol in _STARTING:
            self._machine.answer(symbol)
            return
        self._machine.admit(symbol)
        if symbol.startswith(_OF_GPUS) and not symbol.startswith(_FINDING):
            self._machine.check(self._machine.gpu(arguments[0]), symbol)
