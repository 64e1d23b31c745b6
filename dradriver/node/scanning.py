"""What the node has now: the hardware read again and again, as offers by device name.

A GPU may fall off the bus at any time, and the driver may not be loaded yet when the plugin starts: then there is
nothing to offer, and the next scan looks again.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from dradriver import hardware
from dradriver.node import logs
from dradriver.node.numbering import Numbers

log = logs.Logger("scanning")

_CLOSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Scan:
    """One look at the hardware; `offers` are in the order in which they are to be published."""

    offers: Mapping[str, hardware.Offer] = field(default_factory=dict)
    driver_version: str | None = None
    problem: str | None = None
    """Why nothing could be read at all."""


class Scanner:
    """Reads the hardware. Only one thread calls `scan`, which a driver that hangs would hold; the rest is for all."""

    def __init__(
        self,
        opening: Callable[[], hardware.Nvml],
        roots: hardware.Roots,
        numbers: Numbers,
        *,
        pool: str,
        held: Callable[[], Mapping[str, str]],
    ) -> None:
        """`held` tells the UUIDs of GPUs that prepared claims hold, each with the name of a device on it."""
        self._opening = opening
        self._roots = roots
        self._numbers = numbers
        self._pool = pool
        self._held = held
        self._looked = threading.Condition()
        self._looks = 0  # begun so far
        self._lock = threading.Lock()  # around what uses NVML
        self._nvml: hardware.Nvml | None = None
        self._told: frozenset[str] = frozenset()
        self.latest: Scan | None = None
        self._latest_number = 0

    def scan(self) -> Scan:
        """Look now; what cannot be read is told in the log once, when it begins."""
        with self._looked:
            self._looks += 1
            number = self._looks
        with self._lock:
            try:
                scan = self._read()
            except hardware.NvmlError as error:
                self._close()
                self._tell({f"{error}"})
                scan = Scan(problem=str(error))
        with self._looked:
            self.latest, self._latest_number = scan, number
            self._looked.notify_all()
        return scan

    def next(self, seconds: float, ask: Callable[[], None]) -> Scan:
        """A look that begins after this call, for which `ask` wakes the scanning thread; the latest if none in time."""
        with self._looked:
            wanted = self._looks + 1
            ask()
            self._looked.wait_for(lambda: self._latest_number >= wanted, seconds)
            return self.latest or Scan(problem="the hardware has not been read yet")

    def close(self) -> None:
        """Shut NVML down, unless the driver hangs."""
        if self._lock.acquire(timeout=_CLOSE_SECONDS):
            self._close()
            self._lock.release()

    def _close(self) -> None:
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None

    def _read(self) -> Scan:
        if self._nvml is None:
            self._nvml = self._opening()
        inventory = hardware.read(self._nvml, self._roots)
        numbers = self._numbers.assign(inventory.gpus, self._held())
        offers = hardware.offer(inventory, numbers, pool=self._pool, roots=self._roots)
        names = Counter(offer.device.name for offer in offers)
        self._tell(
            {
                *(f"{count} devices are named {name}: one is left out" for name, count in names.items() if count > 1),
                *inventory.problems,
                *(f"GPU {gpu.uuid}: {problem}" for gpu in inventory.gpus for problem in gpu.problems),
                *(f"GPU at {lost.pci_address or lost.nvml_index} is lost: {lost.reason}" for lost in inventory.lost),
                *(f"device {offer.device.name}: {offer.missing}" for offer in offers if offer.missing is not None),
            }
        )
        return Scan({offer.device.name: offer for offer in offers}, inventory.driver_version)

    def _tell(self, problems: Collection[str]) -> None:
        for problem in sorted(set(problems) - self._told):
            log.info("hardware problem", problem=problem)
        self._told = frozenset(problems)
