"""The one adapter to NVML: the only module that imports `pynvml`. Foreign errors become values or NvmlError here."""

from __future__ import annotations


class NvmlError(Exception):
    """NVML as a whole does not work: no library, no driver, or driver and library of different versions."""


class Nvml:
    """The NVML library of this process.

    `library` replaces what pynvml would load (an object with one callable attribute for each C symbol).
    """

    def __init__(self, library: object | None = None) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Shut NVML down; harmless when it never started."""
        raise NotImplementedError
