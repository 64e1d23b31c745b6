"""Handles: what NVML gives to name a GPU, a MIG device, a GPU instance or a compute instance.

A number is given once in the life of the process and never again, whatever it named: what holds one that is retired
gets INVALID_ARGUMENT. Numbers look like addresses and mean nothing.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from typing import Final, TypeAlias

from dradriver.described.codes import Code, Refusal

_ADDRESSES: Final = itertools.count(0x7F30_0000_0040, 0x40)


@dataclass(frozen=True, slots=True)
class WholeGpu:
    """A GPU, by its position in the description."""

    position: int


@dataclass(frozen=True, slots=True)
class MigDevice:
    """A MIG device, by the serial number of its compute instance."""

    position: int
    serial: int


@dataclass(frozen=True, slots=True)
class GpuPart:
    """A GPU instance, by its serial number."""

    position: int
    serial: int


@dataclass(frozen=True, slots=True)
class ComputePart:
    """A compute instance, by its serial number."""

    position: int
    serial: int


Target: TypeAlias = WholeGpu | MigDevice | GpuPart | ComputePart


class Handles:
    """The handles of one library that are good now. One thing has one handle until NVML is shut down."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._targets: dict[int, Target] = {}
        self._numbers: dict[Target, int] = {}

    def of(self, target: Target) -> int:
        """The number that names a thing."""
        with self._lock:
            number = self._numbers.get(target)
            if number is None:
                number = self._numbers[target] = next(_ADDRESSES)
                self._targets[number] = target
            return number

    def target(self, number: int | None) -> Target:
        """What a number names. Raises Refusal(INVALID_ARGUMENT) for a number that is not, or no longer, good."""
        with self._lock:
            target = self._targets.get(number or 0)
        if target is None:
            raise Refusal(Code.INVALID_ARGUMENT)
        return target

    def retire_all(self) -> None:
        """NVML is shut down: nothing that was given is good any more."""
        with self._lock:
            self._targets.clear()
            self._numbers.clear()
