"""The files that go with the described GPUs: dev, proc and sys."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from dradriver import described


def test_every_gpu_has_its_node_by_minor_number(tmp_path: Path) -> None:
    described.materialise(described.load("dgx-a100"), tmp_path)
    names = {node.name for node in (tmp_path / "dev").iterdir()}
    control = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "nvidia-caps"}
    assert names == control | {f"nvidia{minor}" for minor in range(8)}


def test_existing_mig_instances_have_their_capabilities(tmp_path: Path) -> None:
    described.materialise(described.load("a100-mig"), tmp_path)
    table = dict(
        line.rsplit(" ", 1) for line in (tmp_path / "proc/driver/nvidia-caps/mig-minors").read_text().splitlines()
    )
    # 3 + 135 per GPU + 9 per GPU instance, then one for each compute instance
    assert (table["config"], table["monitor"]) == ("1", "2")
    assert (table["gpu0/gi5/access"], table["gpu0/gi5/ci0/access"]) == ("48", "49")
    assert len(table) == 2 + 15 * 9
    nodes = {int(node.name.removeprefix("nvidia-cap")) for node in (tmp_path / "dev/nvidia-caps").iterdir()}
    assert nodes == {1, 2, 12, 13, 48, 49, 102, 103, 120, 121}
    access = tmp_path / "proc/driver/nvidia/capabilities/gpu0/mig/gi5/ci0/access"
    assert access.read_text().splitlines()[0] == "DeviceFileMinor: 49"


def test_nodes_without_mig_have_no_table_of_capabilities(tmp_path: Path) -> None:
    described.materialise(described.load("l4-4"), tmp_path)
    assert not (tmp_path / "proc/driver/nvidia-caps").exists()
    assert "550.90.07" in (tmp_path / "proc/driver/nvidia/version").read_text()


def test_the_bus_shows_where_each_gpu_sits_and_who_drives_it(write: Callable[..., Path], tmp_path: Path) -> None:
    root = tmp_path / "root"
    described.materialise(
        described.load(
            write(
                "each: {model: l4, pcie_root: 0000:16}\n"
                "gpus:\n"
                "  - {pci_address: 0000:17:00.0, numa_node: 1, pcie_switch: 0000:18:00.0}\n"
                "  - {pci_address: 0000:19:00.0, kernel_driver: vfio-pci}\n"
            )
        ),
        root,
    )
    first, second = (root / "sys/bus/pci/devices" / address for address in ("0000:17:00.0", "0000:19:00.0"))
    assert first.resolve() == root.resolve() / "sys/devices/pci0000:16/0000:16:01.0/0000:18:00.0/0000:17:00.0"
    figures = [(first / name).read_text() for name in ("vendor", "device", "class", "numa_node")]
    assert figures == ["0x10de\n", "0x27b8\n", "0x030200\n", "1\n"]
    assert (second / "numa_node").read_text() == "-1\n"
    assert [(each / "driver").resolve().name for each in (first, second)] == ["nvidia", "vfio-pci"]


def test_doing_it_again_changes_nothing(tmp_path: Path) -> None:
    def look() -> dict[str, tuple[int, int]]:
        return {
            str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns)
            for path in tmp_path.rglob("*")
            if not path.is_dir() and path.name != ".described"
        }

    described.materialise(described.load("a100-mig"), tmp_path)
    before = look()
    described.materialise(described.load("a100-mig"), tmp_path)
    assert look() == before


def test_another_description_takes_away_what_the_earlier_one_made_and_nothing_else(tmp_path: Path) -> None:
    described.materialise(described.load("hgx-h100"), tmp_path)
    (tmp_path / "dev/mine").touch()
    described.materialise(described.load("l4-4"), tmp_path)
    assert {node.name for node in (tmp_path / "dev").glob("nvidia[0-9]*")} == {f"nvidia{i}" for i in range(4)}
    assert {gpu.name for gpu in (tmp_path / "sys/bus/pci/devices").iterdir()} == {
        "0000:18:00.0",
        "0000:3b:00.0",
        "0000:86:00.0",
        "0000:af:00.0",
    }
    assert not (tmp_path / "sys/devices/pci0000:15").exists()
    assert (tmp_path / "dev/mine").exists()


def test_without_the_privilege_nodes_are_plain_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "mknod", refuse)
    described.materialise(described.load("l4-4"), tmp_path)
    mode = (tmp_path / "dev/nvidia3").stat().st_mode
    assert stat.S_ISREG(mode)
    assert stat.S_IMODE(mode) == 0o666


def test_with_the_privilege_nodes_are_character_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {}

    def note(path: Path, mode: int, device: int) -> None:
        made[path.name] = (stat.S_ISCHR(mode), os.major(device), os.minor(device))
        path.touch()

    monkeypatch.setattr(os, "mknod", note)
    described.materialise(described.load("dgx-a100"), tmp_path)
    assert made["nvidia7"] == (True, 195, 7)
    assert made["nvidiactl"] == (True, 195, 255)
    assert made["nvidia-modeset"] == (True, 195, 254)
    assert all(120 <= major <= 127 for name, (_, major, _) in made.items() if "uvm" in name or "cap" in name)


def test_the_machine_s_own_root_is_refused() -> None:
    with pytest.raises(described.DescriptionError, match="the root of this machine; give a directory of its own"):
        described.materialise(described.load("l4-4"), Path("/"))


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(described.DescriptionError, match="give a directory that can be written"):
        described.materialise(described.load("l4-4"), tmp_path / "file" / "root")
