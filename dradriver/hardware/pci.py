"""The PCI bus as sysfs shows it: where GPUs sit, and those that NVML does not list because another driver has them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_NVIDIA: Final = "0x10de"
_DISPLAYS: Final = ("0x0300", "0x0302")  # VGA and 3D controllers; class files hold six digits
_ROOT: Final = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class PciGpu:
    """An NVIDIA GPU on the bus, and the kernel driver that has it."""

    address: str
    driver: str | None


def gpus(sys: Path) -> tuple[PciGpu, ...]:
    """All physical NVIDIA GPUs of the machine, in PCI order; empty where sysfs cannot be read."""
    found = []
    try:
        functions = list(_functions(sys).iterdir())
    except OSError:
        return ()
    for function in functions:
        is_gpu = _read(function / "vendor") == _NVIDIA and _read(function / "class")[:6] in _DISPLAYS
        if is_gpu and not (function / "physfn").exists():  # else a virtual function, part of a GPU
            driver = function / "driver"
            found.append(PciGpu(function.name, driver.resolve().name if driver.exists() else None))
    return tuple(sorted(found, key=lambda gpu: order(gpu.address)))


def numa_node(sys: Path, address: str) -> int | None:
    """The NUMA node of the CPUs next to a device; firmware that does not say makes it -1, which is None here."""
    text = _read(_functions(sys) / address / "numa_node")
    return int(text) if text.isdecimal() else None


def root(sys: Path, address: str) -> str | None:
    """The root complex, `pci<domain>:<bus>`: the first such part of the device's real path."""
    parts = (_functions(sys) / address).resolve().parts
    return next((part for part in parts if _ROOT.fullmatch(part)), None)


def order(address: str) -> tuple[int, ...]:
    """What sorts PCI addresses by domain, bus, slot and function."""
    return tuple(int(part, 16) for part in re.split(r"[:.]", address))


def _functions(sys: Path) -> Path:
    return sys / "bus" / "pci" / "devices"


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
