"""The first step of the story on real clusters: slices, allocation, a pod that runs with its GPUs, and its end."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

Cluster = Any

DRIVER = "gpu.gpupool.dev"
MANIFESTS = Path(__file__).parents[2] / "manifests"


def test_a_pod_runs_with_four_gpus_of_one_nvlink_domain(real_cluster: Cluster) -> None:
    real_cluster.eventually(lambda: len(real_cluster.devices()) == 8, "eight devices in slices")
    real_cluster.apply(MANIFESTS / "deviceclasses.yaml")
    real_cluster.apply(MANIFESTS / "samples" / "story.yaml", label="step=1")

    pod = real_cluster.eventually(lambda: _running(real_cluster), "pod story/train runs")

    (claim,) = claims(real_cluster)
    allocated = sorted(result["device"] for result in claim["status"]["allocation"]["devices"]["results"])
    assert len(set(allocated)) == 4
    assert claim["status"]["reservedFor"][0]["uid"] == pod["metadata"]["uid"]

    (spec,) = real_cluster.cdi_files()
    assert spec["annotations"][f"{DRIVER}/claim-uid"] == claim["metadata"]["uid"]
    seen = real_cluster.kubectl("exec", "-n", "story", "train", "--", "env").splitlines()
    edits = [spec["containerEdits"], *(device["containerEdits"] for device in spec["devices"])]
    assert [line for edit in edits for line in edit["env"] if line not in seen] == []
    assert len([line for line in seen if line.startswith("GPUPOOL_DEVICE_GPU_")]) == 4

    nodes = [node for edit in edits for node in edit.get("deviceNodes", ())]
    listed = real_cluster.kubectl(
        "exec", "-n", "story", "train", "--", "stat", "-c", "%n %t:%T", *(n["path"] for n in nodes)
    )
    assert dict(line.split() for line in listed.splitlines()) == {node["path"]: _number(node) for node in nodes}
    everything = real_cluster.kubectl("exec", "-n", "story", "train", "--", "ls", "/dev").split()
    assert len([name for name in everything if name.removeprefix("nvidia").isdigit()]) == 4

    real_cluster.kubectl("delete", "pod", "-n", "story", "train", "--timeout=60s")
    real_cluster.eventually(lambda: not claims(real_cluster), "the generated claim is gone")
    real_cluster.eventually(lambda: not real_cluster.cdi_files(), "the CDI file is gone")


def claims(real_cluster: Cluster) -> list[dict[str, Any]]:
    found, _ = real_cluster.admin.list(f"{real_cluster.served.prefix}/namespaces/story/resourceclaims")
    return found


def _running(real_cluster: Cluster) -> dict[str, Any] | None:
    pod = real_cluster.pod("story", "train")
    return pod if pod and pod["status"].get("phase") == "Running" else None


def _number(node: dict[str, str]) -> str:
    found = Path(node["hostPath"]).stat()
    assert stat.S_ISCHR(found.st_mode)
    return f"{os.major(found.st_rdev):x}:{os.minor(found.st_rdev):x}"
