"""The device nodes that let a process use a MIG instance.

The kernel numbers them; the numbers have moved between drivers, so the table is read and never computed. Its lines are
`gpu<minor>/gi<g>/access <cap>` and `gpu<minor>/gi<g>/ci<c>/access <cap>`, by the minor number of the GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dradriver.hardware.errors import CapabilityError


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The table at one moment."""

    table: Path
    minors: dict[str, int]

    @classmethod
    def read(cls, proc: Path) -> Capabilities:
        """The table as the kernel shows it now; empty where there is none."""
        table = proc / "driver" / "nvidia-caps" / "mig-minors"
        try:
            lines = table.read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            lines = []
        return cls(
            table,
            {path: int(cap) for path, _, cap in (line.strip().partition(" ") for line in lines) if cap.isdecimal()},
        )

    def nodes(self, minor: int, gpu_instance: int, compute_instance: int) -> tuple[str, str]:
        """Container paths of the two nodes of a MIG instance. Raises CapabilityError."""
        instance = f"gpu{minor}/gi{gpu_instance}"
        return self._node(f"{instance}/access"), self._node(f"{instance}/ci{compute_instance}/access")

    def _node(self, path: str) -> str:
        if path not in self.minors:
            raise CapabilityError(
                f"{self.table} does not list {path}: check that the nvidia driver is loaded and that this instance "
                "still exists (nvidia-smi mig -lgi)"
            )
        return f"/dev/nvidia-caps/nvidia-cap{self.minors[path]}"
