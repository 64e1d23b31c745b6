"""What a container gets from a claim's CDI file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dradriver import api
from dradriver.node import libraries
from dradriver.node.cdi import CdiDirectory, Mount
from dradriver.node.claims import PreparedClaim
from dradriver.node.errors import CdiError

Make = Callable[..., PreparedClaim]


def _read(node: Any, claim: PreparedClaim) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(node.cdi().path(claim.uid).read_bytes())
    return data


def test_the_file_is_what_a_runtime_resolves(node: Any, make_prepared: Make) -> None:
    claim = make_prepared("train", "gpu-0", "gpu-3")
    node.cdi().write(claim)
    spec = _read(node, claim)
    assert (spec["cdiVersion"], spec["kind"]) == ("0.6.0", "k8s.gpu.gpupool.dev/claim")
    assert spec["containerEdits"] == {
        "env": ["NVIDIA_VISIBLE_DEVICES=void"],
        "deviceNodes": [{"path": "/dev/nvidiactl", "hostPath": f"{node.root}/dev/nvidiactl"}],
    }
    assert spec["devices"][1] == {
        "name": "uid-train-gpu-3",
        "containerEdits": {
            "env": ["GPUPOOL_DEVICE_GPU_3=GPU-3"],
            "deviceNodes": [{"path": "/dev/nvidia3", "hostPath": f"{node.root}/dev/nvidia3"}],
        },
    }
    ids = [node.cdi().ids(claim, device) for device in claim.devices]
    assert ids == [(f"{spec['kind']}={device['name']}",) for device in spec["devices"]]


def test_annotations_say_whose_claim_it_is(node: Any, make_prepared: Make) -> None:
    claim = make_prepared("train", "gpu-0")
    node.cdi().write(claim)
    annotations = _read(node, claim)["annotations"]
    assert annotations["gpu.gpupool.dev/claim-namespace"] == "team"
    assert annotations["gpu.gpupool.dev/claim-name"] == "train"
    assert annotations["gpu.gpupool.dev/claim-uid"] == "uid-train"
    assert node.cdi().recorded(claim.uid) == claim


def test_on_the_host_itself_paths_are_not_repeated(tmp_path: Path, make_prepared: Make) -> None:
    claim = make_prepared("train", "gpu-0")
    always = replace(claim, devices=(replace(claim.devices[0], nodes=("/dev/null",)),))
    cdi = CdiDirectory(tmp_path, "gpu.gpupool.dev", Path("/"))
    cdi.write(always)
    (device,) = json.loads(cdi.path(claim.uid).read_bytes())["devices"]
    assert device["containerEdits"]["deviceNodes"] == [{"path": "/dev/null"}]


def test_two_shares_of_one_device_have_names_of_their_own(node: Any, make_prepared: Make) -> None:
    claim = make_prepared("train", "gpu-0")
    shares = tuple(replace(claim.devices[0], share_id=share) for share in ("aa-1", "bb-2"))
    node.cdi().write(replace(claim, devices=shares))
    spec = _read(node, claim)
    assert [device["name"] for device in spec["devices"]] == ["uid-train-gpu-0-aa-1", "uid-train-gpu-0-bb-2"]
    variables = [device["containerEdits"]["env"][0].partition("=")[0] for device in spec["devices"]]
    assert variables == ["GPUPOOL_DEVICE_GPU_0_AA_1", "GPUPOOL_DEVICE_GPU_0_BB_2"]


def test_a_missing_node_keeps_the_file_that_was_there(node: Any, make_prepared: Make) -> None:
    claim = make_prepared("train", "gpu-0")
    node.cdi().write(claim)
    before = _read(node, claim)
    (node.root / "dev" / "nvidia0").unlink()
    with pytest.raises(CdiError, match="nvidia0"):
        node.cdi().write(claim)
    assert _read(node, claim) == before


def test_a_claim_without_devices_of_ours_has_no_file(node: Any, make_prepared: Make) -> None:
    claim = make_prepared("none")
    node.cdi().write(claim)
    assert node.cdi().present() == ()


def test_a_file_that_tells_nothing_is_not_believed(node: Any, make_prepared: Make) -> None:
    claim = make_prepared("train", "gpu-0")
    cdi = node.cdi()
    cdi.write(claim)
    cdi.path(api.UID("other")).write_bytes(cdi.path(claim.uid).read_bytes())
    assert cdi.recorded(api.UID("other")) is None
    cdi.path(claim.uid).write_text("{")
    assert cdi.recorded(claim.uid) is None


def test_libraries_of_the_loaded_driver_are_mounted_where_cuda_images_look(
    node: Any, make_prepared: Make, tmp_path: Path
) -> None:
    directory = tmp_path / "usr/lib/x86_64-linux-gnu"
    directory.mkdir(parents=True)
    for name in ("libcuda.so.550.90.07", "libcuda.so.535.1", "libother.so.1"):
        (directory / name).touch()
    mounts = libraries.find(tmp_path, "550.90.07")
    library = directory / "libcuda.so.550.90.07"
    assert mounts == (
        Mount(library, "/usr/local/nvidia/lib64/libcuda.so.550.90.07"),
        Mount(library, "/usr/local/nvidia/lib64/libcuda.so.1"),
    )
    assert libraries.find(tmp_path, None) == ()
    claim = make_prepared("train", "gpu-0")
    node.cdi().write(claim, mounts)
    assert _read(node, claim)["containerEdits"]["mounts"][0]["hostPath"] == str(library)
