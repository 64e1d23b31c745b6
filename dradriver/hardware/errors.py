"""What can go wrong with hardware.

    HardwareError
    ├── NvmlError         NVML as a whole does not work
    ├── GpuLostError      this GPU cannot be used: it fell off the bus, or waits for a reset
    ├── QueryError        this one query failed; others may still be answered
    └── CapabilityError   the kernel does not say which device nodes give access to a MIG instance

Only NvmlError leaves the room: the others end as `LostGpu`, as sentences in `problems`, and as `Offer.missing`.
"""

from __future__ import annotations


class HardwareError(Exception):
    """Something about the machine could not be learnt."""


class NvmlError(HardwareError):
    """NVML as a whole does not work: no library, no driver, or driver and library of different versions."""


class GpuLostError(HardwareError):
    """The GPU cannot be used until it is reset or replaced."""


class QueryError(HardwareError):
    """One query of one GPU failed."""


class CapabilityError(HardwareError):
    """A capability that a MIG instance needs is not in the kernel's table."""
