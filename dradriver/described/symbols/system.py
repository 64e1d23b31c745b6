"""Starting, stopping, error texts, and the versions of the driver."""
# ruff: noqa: D102, N802 - methods are named and documented as the C symbols of nvml.h

from __future__ import annotations

from typing import Any, Final

from dradriver.described.arguments import number, pointed, put, put_text, versioned
from dradriver.described.codes import Code
from dradriver.described.symbols.area import Area

_BRANCH_ROOM: Final = 80
_TEXTS: Final = {
    Code.NO_PERMISSION: "Insufficient Permissions",
    Code.GPU_IS_LOST: "GPU is lost",
    Code.LIB_RM_VERSION_MISMATCH: "Driver/library version mismatch",
    Code.IN_USE: "In use by another client",
    Code.UNKNOWN: "Unknown Error",
}


class System(Area):
    """The node as a whole."""

    def nvmlInitWithFlags(self, flags: Any) -> None:
        del flags  # 1: no GPU is no error, which it is not here either
        self.machine.start()

    def nvmlInit_v2(self) -> None:
        self.machine.start()

    def nvmlShutdown(self) -> None:
        self.machine.stop()

    def nvmlErrorString(self, result: Any) -> bytes:
        value = number(result)
        code = Code(value) if value in Code.__members__.values() else Code.UNKNOWN
        return _TEXTS.get(code, code.name.replace("_", " ").title()).encode()

    def nvmlSystemGetDriverVersion(self, version: Any, length: Any) -> None:
        put_text(version, length, self.machine.description.driver)

    def nvmlSystemGetNVMLVersion(self, version: Any, length: Any) -> None:
        put_text(version, length, f"{self.machine.description.cuda[0]}.{self.machine.description.driver}")

    def nvmlSystemGetDriverBranch(self, info: Any, length: Any) -> None:
        del length
        struct = versioned(info, 1)
        struct.branch = f"r{self.machine.description.driver.partition('.')[0]}_00".encode()[:_BRANCH_ROOM]

    def nvmlSystemGetCudaDriverVersion(self, version: Any) -> None:
        major, minor = self.machine.description.cuda
        put(version, major * 1000 + minor * 10)

    def nvmlSystemGetCudaDriverVersion_v2(self, version: Any) -> None:
        self.nvmlSystemGetCudaDriverVersion(pointed(version))
