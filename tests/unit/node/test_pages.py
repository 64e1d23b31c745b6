"""The documentation of the node plugin says what the code does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dradriver import api, described, hardware
from dradriver.node import settings

DOCS = Path(__file__).parents[3] / "docs"
TYPES = {str: "string", int: "int", bool: "bool", api.Version: "version"}


def _rows(page: str, first: str) -> list[list[str]]:
    """The cells of the table whose first heading is `first`, without backticks."""
    lines = iter((DOCS / page).read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line.startswith(f"| {first} |"):
            break
    next(lines)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("`") for cell in line.strip("|").split("|")])
    return rows


@pytest.fixture(scope="module")
def devices(tmp_path_factory: pytest.TempPathFactory) -> list[api.Device]:
    """All devices of the nodes that ship with the package."""

    def read() -> Iterator[api.Device]:
        for name in described.shipped():
            root = tmp_path_factory.mktemp(name)
            description = described.load(name, node="node-a")
            described.materialise(description, root)
            roots = hardware.Roots.under(root)
            nvml = hardware.Nvml(described.Library(description, root / "described"))
            inventory = hardware.read(nvml, roots)
            nvml.close()
            numbers = {gpu.uuid: number for number, gpu in enumerate(inventory.gpus)}
            yield from (each.device for each in hardware.offer(inventory, numbers, pool="node-a", roots=roots))

    return list(read())


def _text(value: api.AttributeValue) -> str:
    if isinstance(value, api.Version):
        return value.text
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_every_attribute_is_on_the_page_with_its_type_an_example_and_where_it_is(devices: list[api.Device]) -> None:
    kinds: dict[str, set[str]] = {}
    types: dict[str, set[str]] = {}
    values: dict[str, set[str]] = {}
    for device in devices:
        for key, value in device.attributes.items():
            kinds.setdefault(key, set()).add(str(device.attributes["type"]))
            types.setdefault(key, set()).add(TYPES[type(value)])
            values.setdefault(key, set()).add(_text(value))
    rows = _rows("attributes.md", "attribute")
    assert {row[0] for row in rows} == kinds.keys()
    for name, kind, on, example, _ in rows:
        assert {kind} == types[name]
        assert set(on.split(", ")) == kinds[name], name
        assert example in values[name], name


def test_what_is_never_absent_never_is(devices: list[api.Device]) -> None:
    for name, _, on, _, absent in _rows("attributes.md", "attribute"):
        if absent.startswith("never"):
            assert all(name in device.attributes for device in devices if device.attributes["type"] in on), name


def test_every_capacity_is_on_the_page_with_an_example(devices: list[api.Device]) -> None:
    values: dict[str, set[str]] = {}
    for device in devices:
        for key, capacity in device.capacity.items():
            values.setdefault(key, set()).add(str(capacity.value))
    rows = _rows("attributes.md", "capacity")
    assert {row[0] for row in rows} == values.keys()
    for name, _, example, _ in rows:
        assert example in values[name], name


def test_every_flag_is_on_the_page_with_its_variable_and_its_own_words() -> None:
    expected = [
        [f"--{option.replace('_', '-')}", f"GPUPOOL_{option.upper()}", text]
        for option, text in settings.OPTIONS.items()
    ]
    rows = _rows("node-plugin.md", "flag")
    assert rows[:-1] == expected
    assert rows[-1][:2] == ["-v", "GPUPOOL_V"]
