"""NVLink domains: sets of GPUs of which any subset is fully connected (DESIGN 4.2)."""

from __future__ import annotations

from dradriver.hardware.inventory import Inventory


def domains(inventory: Inventory) -> tuple[tuple[str, ...], ...]:
    """GPU UUIDs by NVLink domain, each of at least two GPUs, disjoint, in PCI order; links decide, nothing else."""
    raise NotImplementedError
