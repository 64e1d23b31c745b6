"""What CDI files make of a container."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dradriver.lab import containers

KIND = "k8s.gpu.gpupool.dev/claim"


@pytest.fixture
def device_node(tmp_path: Path) -> Path:
    path = tmp_path / "dev" / "nvidia0"
    path.parent.mkdir()
    path.touch()
    return path


@pytest.fixture
def cdi(tmp_path: Path) -> Path:
    path = tmp_path / "cdi"
    path.mkdir()
    return path


def write(cdi: Path, name: str, devices: dict[str, dict[str, Any]], **edits: Any) -> None:
    entries = [{"name": device, "containerEdits": given} for device, given in devices.items()]
    spec = {"cdiVersion": "0.6.0", "kind": KIND, "devices": entries, "containerEdits": edits}
    (cdi / name).write_text(json.dumps(spec))


def test_a_container_gets_the_edits_of_its_devices_and_of_their_files_once(cdi: Path, device_node: Path) -> None:
    nodes = {"deviceNodes": [{"path": "/dev/nvidia0", "hostPath": str(device_node)}]}
    write(cdi, "a.json", {"u-gpu-0": nodes, "u-gpu-1": {"env": ["ONE=1"]}}, env=["ALL=void"])
    write(cdi, "b.json", {"v-gpu-2": {"env": ["TWO=2"]}})
    seen = containers.view(cdi, [f"{KIND}=u-gpu-0", f"{KIND}=u-gpu-1", f"{KIND}=u-gpu-0"])
    assert seen.device_nodes == {"/dev/nvidia0": str(device_node)}
    assert seen.environment == {"ALL": "void", "ONE": "1"}
    assert seen.files == [cdi / "a.json"]
    assert list(seen.lines()) == [
        f"cdi file    {cdi}/a.json",
        "env         ALL=void",
        "env         ONE=1",
        "device node /dev/nvidia0",
    ]


def test_no_devices_are_no_edits(cdi: Path) -> None:
    write(cdi, "a.json", {"u-gpu-0": {"env": ["ONE=1"]}}, env=["ALL=void"])
    assert list(containers.view(cdi, []).lines()) == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"kind": "k8s.gpu.gpupool.dev/claim"}'])
def test_a_name_that_no_file_defines_is_unresolvable(cdi: Path, content: str) -> None:
    (cdi / "a.json").write_text(content)
    with pytest.raises(containers.UnresolvableError, match=f"unresolvable CDI devices {KIND}=u-gpu-0"):
        containers.view(cdi, [f"{KIND}=u-gpu-0"])


def test_a_name_that_two_files_define_is_in_conflict(cdi: Path) -> None:
    for name in ("a.json", "b.json"):
        write(cdi, name, {"u-gpu-0": {}})
    with pytest.raises(containers.UnresolvableError, match=f"conflicting CDI devices {KIND}=u-gpu-0"):
        containers.view(cdi, [f"{KIND}=u-gpu-0"])


@pytest.mark.parametrize(
    ("edits", "missing"),
    [
        ({"deviceNodes": [{"path": "/dev/nvidia7", "hostPath": "/nowhere/dev/nvidia7"}]}, "/nowhere/dev/nvidia7"),
        ({"deviceNodes": [{"path": "/nowhere/nvidia7"}]}, "/nowhere/nvidia7"),
        ({"mounts": [{"hostPath": "/nowhere/lib", "containerPath": "/lib/x"}]}, "/nowhere/lib"),
    ],
)
def test_what_is_not_on_the_host_is_named(cdi: Path, edits: dict[str, Any], missing: str) -> None:
    write(cdi, "a.json", {"u-gpu-0": edits})
    with pytest.raises(containers.UnresolvableError, match=missing):
        containers.view(cdi, [f"{KIND}=u-gpu-0"])
