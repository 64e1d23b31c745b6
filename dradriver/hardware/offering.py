"""From inventory to what is published: devices with the attributes and capacities of DESIGN 4.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dradriver import api
from dradriver.hardware.inventory import Inventory, Roots


@dataclass(frozen=True, slots=True)
class Offer:
    """A device to publish and what a container needs to use it.

    `uuid` is the GPU's or MIG instance's; `nodes` are container paths (`/dev/nvidia3`,
    `/dev/nvidia-caps/nvidia-cap66`), which exist on the node under its dev root when the device can be used;
    `missing` says why they could not be told (a capability file that is not there).
    """

    device: api.Device
    gpu_uuid: str
    uuid: str
    nodes: tuple[str, ...]
    missing: str | None = None


def offer(inventory: Inventory, numbers: Mapping[str, int], *, pool: str, roots: Roots) -> tuple[Offer, ...]:
    """Offers of all usable devices, by GPU in the order of `numbers` (GPU UUID → the `<n>` of its name)."""
    raise NotImplementedError
