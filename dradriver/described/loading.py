"""From a YAML document to a Description; docs/described-hardware.md shows every key.

Keys of a node: `driver`, `cuda`, `gpus`, `each`, `links`, `fabric`, `platform`, `calls`, `symbols`.
`gpus` is a list, or a mapping with `count` and what all have. A GPU is its `model`, the keys below and any key of its
model; `each`, `fabric` and `platform` of the node stand under those of each GPU.
"""

from __future__ import annotations

import functools
import re
import uuid
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

from dradriver.described import conditions, documents, layouts, model, wiring
from dradriver.described.description import NVIDIA_DRIVER, Description
from dradriver.described.documents import Fields
from dradriver.described.errors import DescriptionError, choices, shown
from dradriver.described.gpu import Gpu, Platform
from dradriver.described.model import Model
from dradriver.described.symbols import NAMES
from dradriver.described.wiring import ADDRESS, LIKE_ADDRESS, Seat

_SEED: Final = uuid.UUID("6f1e2b0a-6a5f-4e57-9c8e-0d3b6d1f4c52")
_MAX_GPUS: Final = 32  # the kernel's table of MIG capabilities ends there
_SUFFIXES: Final = (".yaml", ".yml")
_ROOT: Final = r"[0-9a-f]{4,8}:[0-9a-f]{2}"
_VERSION: Final = r"\d{2,4}\.\d{1,3}(\.\d{1,3})?"


def shipped() -> tuple[str, ...]:
    """Names of the descriptions in the package."""
    return _names("nodes")


def models() -> tuple[str, ...]:
    """Names of the models in the package."""
    return _names("models")


def load(name_or_path: str | Path, *, node: str | None = None) -> Description:
    """Read a description.

    Args:
        name_or_path: the name of a shipped description, or a path (what holds a `/` or ends in .yaml or .yml).
        node: what UUIDs and serial numbers are made from, so that two nodes of one description have different GPUs;
            default: the description's name.

    Raises:
        DescriptionError: naming the file, the key, the value seen and the remedy.
    """
    text = str(name_or_path)
    if text in shipped():
        source = resources.files("dradriver.described") / "nodes" / f"{text}.yaml"
        return _description(documents.parse(source.read_text("utf-8"), text), text, text, Path(), node)
    path = Path(text)
    if "/" not in text and not text.endswith(_SUFFIXES):
        remedy = f"{choices(text, shipped())} (or give the path of a .yaml file)"
        raise DescriptionError(text, "", "no description of this name", remedy)
    return _description(documents.read(path), text, path.stem, path.parent, node)


@functools.cache
def _model(name: str) -> object:
    """The document of a shipped model, which many GPUs share and nobody changes."""
    source = resources.files("dradriver.described") / "models" / f"{name}.yaml"
    return documents.parse(source.read_text("utf-8"), name)


@functools.cache
def _names(folder: str) -> tuple[str, ...]:
    files = (resources.files("dradriver.described") / folder).iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


def _description(document: object, file: str, name: str, folder: Path, node: str | None) -> Description:
    fields = Fields(document, file)
    read = [_GpuReader(fields, each, folder) for each in _gpus(fields)]
    _differ(read, "pci_address", "minor", "uuid")
    links = fields.section("links", optional=True)
    wired = wiring.wire(links, [gpu.seat for gpu in read])
    seed = node or name
    symbols = fields.section("symbols", optional=True)
    absent = symbols.items("absent", default=())
    for i, symbol in enumerate(absent):
        conditions.check_symbol(symbols, f"absent[{i}]", str(symbol), NAMES)
    symbols.done()
    major, minor = fields.text("cuda", pattern=r"\d{1,2}\.\d{1,2}", like="a CUDA version such as 12.4").split(".")
    description = Description(
        name=name,
        file=file,
        node=seed,
        driver=fields.text("driver", pattern=_VERSION, like="a driver version such as 580.95.05"),
        cuda=(int(major), int(minor)),
        gpus=tuple(gpu.gpu(position, seed, wired.links[position]) for position, gpu in enumerate(read)),
        levels=wired.levels,
        calls=conditions.calls(fields),
        absent=frozenset(map(str, absent)),
    )
    fields.done()
    return description


def _gpus(fields: Fields) -> list[Fields]:
    """The GPUs of a node, each with what it has in common with the others under what it says itself."""
    given = fields.raw("gpus")
    common = {key: fields.raw(key) for key in ("fabric", "platform") if key in fields}
    each = _mapping(fields, "each")
    if isinstance(given, dict):
        section = fields.section("gpus")
        count = section.number("count", least=0, most=_MAX_GPUS)
        every = {key: value for key, value in given.items() if key != "count"}
        entries: list[tuple[str, dict[str, Any]]] = [
            ("gpus", documents.merged(_placed(i, count), every)) for i in range(count)
        ]
    else:
        listed = fields.sections("gpus")
        if len(listed) > _MAX_GPUS:
            raise fields.error("gpus", f"{len(listed)} GPUs", f"at most {_MAX_GPUS} on a node")
        entries = [(f"gpus[{i}]", {key: entry.raw(key) for key in entry.keys()}) for i, entry in enumerate(listed)]  # noqa: SIM118 - no mapping
    return [
        Fields(documents.merged(documents.merged(common, each), entry), fields.file, path) for path, entry in entries
    ]


def _mapping(fields: Fields, key: str) -> dict[str, Any]:
    section = fields.section(key, optional=True)
    return {each: section.raw(each) for each in section.keys()}  # noqa: SIM118 - Fields is no mapping


def _placed(position: int, count: int) -> dict[str, Any]:
    """Where a GPU sits that is only counted: on a root of its own, the halves of them on two NUMA nodes."""
    bus = 0x10 + 4 * position
    return {
        "pci_address": f"0000:{bus + 1:02x}:00.0",
        "pcie_root": f"0000:{bus:02x}",
        "numa_node": 2 * position // count if count > 1 else 0,
    }


def _differ(gpus: list[_GpuReader], *keys: str) -> None:
    for key in keys:
        seen: dict[object, str] = {}
        for position, gpu in enumerate(gpus):
            value = gpu.fields.raw(key)
            if key == "minor" and value is None:
                value = position
            if value is not None and value in seen:
                raise gpu.fields.error(key, f"{shown(value)} is also that of {seen[value]}", "give each its own")
            seen[value] = gpu.fields.path


class _GpuReader:
    """One GPU's keys; read in two steps, since links need to know where every GPU sits."""

    def __init__(self, node: Fields, fields: Fields, folder: Path) -> None:
        self.fields = self._with_model(node, fields, folder)
        self.model: Model = model.parse(self.fields)
        fields = self.fields
        address = fields.text("pci_address", pattern=ADDRESS, like=LIKE_ADDRESS)
        self.seat = Seat(
            address=address,
            root=fields.text("pcie_root", address.rpartition(":")[0], pattern=_ROOT, like="a root such as 0000:15"),
            switch=fields.text("pcie_switch", None, pattern=ADDRESS, like=LIKE_ADDRESS),
            numa_node=fields.number("numa_node", None, most=1023),
            links=self.model.nvlinks,
        )

    def gpu(self, position: int, seed: str, links: tuple[Any, ...]) -> Gpu:
        """The GPU at a position. Raises DescriptionError, also for keys nobody knows."""
        fields = self.fields
        identity = uuid.uuid5(_SEED, f"{seed}/{position}")
        seat = self.seat
        gpu = Gpu(
            position=position,
            model=self.model,
            uuid=fields.text(
                "uuid", f"GPU-{identity}", pattern=r"GPU-[0-9a-f-]{36}", like="a GPU UUID (GPU-8-4-4-4-12)"
            ),
            serial=fields.text("serial", str(1650000000000 + identity.int % 10**10), pattern=".{1,29}"),
            pci_address=seat.address,
            pcie_root=seat.root,
            pcie_switch=seat.switch,
            numa_node=seat.numa_node,
            gpu_numa_node=fields.number("gpu_numa_node", None, most=1023),
            cpus=_cpus(fields),
            minor=fields.number("minor", position, most=_MAX_GPUS - 1),
            module_id=fields.number("module_id", position + 1, least=1, most=255),
            kernel_driver=fields.text("kernel_driver", NVIDIA_DRIVER, pattern=r"[a-z0-9_-]+", like="a driver's name"),
            platform=_platform(fields.section("platform", optional=True)),
            fabric=conditions.fabric(fields.section("fabric", optional=True), self.model, links),
            links=links,
            partitioning=layouts.partitioning(fields, self.model.partitions),
            condition=conditions.condition(fields),
        )
        fields.done()
        return gpu

    @staticmethod
    def _with_model(node: Fields, fields: Fields, folder: Path) -> Fields:
        """The GPU's keys on top of those of its model, which is a name or the path of a file."""
        name = fields.text("model", like="the name of a model, or the path of a model file")
        below: object
        if name in models():
            below = _model(name)
        elif name.endswith(_SUFFIXES):
            below = documents.read(folder / name)
        else:
            raise fields.error("model", f"{shown(name)} is no model", choices(name, models()))
        if not isinstance(below, Mapping):
            raise DescriptionError(str(folder / name), "", "no mapping", "write it as `key: value` lines")
        above = {key: fields.raw(key) for key in fields.keys()}  # noqa: SIM118 - Fields is no mapping
        both = Fields(documents.merged(below, above), node.file, fields.path)
        both.raw("model")
        return both


def _platform(fields: Fields) -> Platform:
    found = Platform(
        chassis_serial=fields.text("chassis_serial", "", pattern=".{0,13}", like="at most 13 characters"),
        slot=fields.number("slot", 0, most=255),
        tray=fields.number("tray", 0, most=255),
        host=fields.number("host", 1, most=255),
        peer_type=fields.number("peer_type", 1, most=255),
    )
    fields.done()
    return found


def _cpus(fields: Fields) -> frozenset[int]:
    text = fields.text(
        "cpus", "", pattern=r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", like="CPUs such as 0-55,112-167"
    )
    ranges = [re.split("-", part) for part in text.split(",") if part]
    return frozenset(cpu for part in ranges for cpu in range(int(part[0]), int(part[-1]) + 1))
