"""What the machine has: GPUs, MIG instances, NVLink and PCIe topology, as plain values, and what to publish of them.

`pynvml` is imported in `hardware.nvml` alone. Each figure may be absent and each GPU may fail by itself.
"""

from dradriver.hardware.errors import NvmlError
from dradriver.hardware.inventory import (
    Fabric,
    FabricState,
    Gpu,
    Inventory,
    Link,
    LinkPeer,
    LostGpu,
    MigInstance,
    MigProfile,
    MigState,
    Orphan,
    Placement,
    Roots,
)
from dradriver.hardware.nvml import Nvml
from dradriver.hardware.offering import Offer, offer
from dradriver.hardware.reading import read
from dradriver.hardware.topology import domains

__all__ = [
    "Fabric",
    "FabricState",
    "Gpu",
    "Inventory",
    "Link",
    "LinkPeer",
    "LostGpu",
    "MigInstance",
    "MigProfile",
    "MigState",
    "Nvml",
    "NvmlError",
    "Offer",
    "Orphan",
    "Placement",
    "Roots",
    "domains",
    "offer",
    "read",
]
