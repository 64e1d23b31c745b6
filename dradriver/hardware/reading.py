"""Reading the inventory: no failing query hides a GPU, and no failing GPU hides the node."""

from __future__ import annotations

from dradriver.hardware.inventory import Inventory, Roots
from dradriver.hardware.nvml import Nvml


def read(nvml: Nvml, roots: Roots) -> Inventory:
    """Read what the machine has now. Raises NvmlError only where NVML as a whole does not answer."""
    raise NotImplementedError
