"""From a described node, through pynvml, to what is published of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dradriver import described, hardware
from dradriver.hardware import Inventory, Offer, Roots

NAMES = {
    "a100-mig": ["gpu-0-mig-2g10gb-0", "gpu-0-mig-1g5gb-2", "gpu-0-mig-1g5gb-3", "gpu-0-mig-3g20gb-4"],
    "dgx-a100": [f"gpu-{n}" for n in range(8)],
    "gb200-tray": [f"gpu-{n}" for n in range(4)],
    "h100-nvl-4": [f"gpu-{n}" for n in range(4)],
    "hgx-h100": [f"gpu-{n}" for n in range(8)],
    "l4-4": [f"gpu-{n}" for n in range(4)],
}
DOMAINS = {
    "a100-mig": [None] * 4,
    "dgx-a100": ["n.nvl0"] * 8,
    "gb200-tray": ["n.nvl0"] * 4,
    "h100-nvl-4": ["n.nvl0", "n.nvl0", "n.nvl2", "n.nvl2"],
    "hgx-h100": ["n.nvl0"] * 8,
    "l4-4": [None] * 4,
}
GIGABYTES = {
    "a100-80gb-pcie": 80,
    "a100-pcie-40gb": 40,
    "a100-sxm4-40gb": 40,
    "a100-sxm4-80gb": 80,
    "a30": 24,
    "b200": 180,
    "b300": 288,
    "gb200": 186,
    "gb300": 288,
    "gh200-144gb": 144,
    "gh200-96gb": 96,
    "h100-nvl": 94,
    "h100-pcie": 80,
    "h100-sxm5-80gb": 80,
    "h20-96gb": 96,
    "h200-sxm-141gb": 141,
    "l4": 24,
    "l40s": 48,
    "rtx-3090": 24,
    "rtx-4090": 24,
    "rtx-pro-6000-blackwell-server": 96,
    "rtx-pro-6000-blackwell-workstation": 96,
    "t4": 16,
    "v100-sxm2-16gb": 16,
    "v100-sxm2-32gb": 32,
}


@contextmanager
def reading(name: str | Path, root: Path) -> Iterator[tuple[Inventory, list[Offer]]]:
    description = described.load(name)
    described.materialise(description, root)
    roots = Roots.under(root)
    nvml = hardware.Nvml(library=described.Library(description, root / "state"))
    try:
        inventory = hardware.read(nvml, roots)
        numbers = {gpu.uuid: number for number, gpu in enumerate(inventory.gpus)}
        yield inventory, list(hardware.offer(inventory, numbers, pool="n", roots=roots))
    finally:
        nvml.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_node_is_read_without_a_complaint(name: str, tmp_path: Path) -> None:
    with reading(name, tmp_path) as (inventory, offers):
        assert (inventory.problems, inventory.lost) == ((), ())
        assert [gpu.problems for gpu in inventory.gpus] == [()] * len(inventory.gpus)
        assert [offer.device.name for offer in offers] == NAMES[name]
        assert [offer.device.attributes.get("nvlinkDomain") for offer in offers] == DOMAINS[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_nodes_that_a_device_needs_are_there(name: str, tmp_path: Path) -> None:
    with reading(name, tmp_path) as (_, offers):
        assert [offer.missing for offer in offers] == [None] * len(offers)
        assert all((tmp_path / node.lstrip("/")).exists() for offer in offers for node in offer.nodes)
        kinds = {3 if offer.device.attributes["type"] == "mig" else 1 for offer in offers}
        assert {len(offer.nodes) for offer in offers} == kinds


def test_each_model_has_the_memory_people_speak_of() -> None:
    assert sorted(GIGABYTES) == list(described.models())


@pytest.mark.parametrize("model", GIGABYTES)
def test_a_described_model_is_read_and_published(model: str, tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text(json.dumps({"driver": "580.95.05", "cuda": "13.0", "gpus": {"count": 1, "model": model}}))
    with reading(file, tmp_path) as (inventory, offers):
        assert inventory.gpus[0].problems == ()
        (offer,) = offers
        attributes = offer.device.attributes
        assert attributes["nominalMemoryGB"] == GIGABYTES[model]
        assert {"productName", "brand", "architecture", "cudaComputeCapability", "driverVersion"} <= attributes.keys()
        assert ("multiprocessors" in offer.device.capacity) == attributes["migCapable"]
