"""`kubectl gpupool lab up` with real parts: they come up, run the story's claim, and leave nothing, killed or not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dradriver import api, cluster
from dradriver.lab.realcluster import building, images

Command = Callable[..., str]

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train", "namespace": "default"},
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": images.IMAGE, "resources": {"claims": [{"name": "gpus"}]}}],
        "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "four"}],
    },
}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "lab"
    lab(tmp_path / "lab", "down")


def lab(home: Path, action: str, *arguments: str, fails: bool = False) -> str:
    command = [str(Path(sys.executable).with_name("kubectl-gpupool")), "lab", action, f"--directory={home}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode != 0) is fails, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("minor", building.VERSIONS)
@pytest.mark.parametrize("kubelet", ["embedded", "real"])
def test_a_claim_runs_in_a_lab_with_real_parts(home: Path, minor: str, kubelet: str) -> None:
    lab(home, "up", "--control-plane=real", f"--kubelet={kubelet}", f"--kubernetes={minor}", "--nodes=hgx-h100,l4-4")
    connection = cluster.connect(cluster.Location(kubeconfig=str(home / "kubeconfig")))
    served = cluster.discover(connection)
    assert served.server_version == f"v{building.VERSIONS[minor]}"
    create(connection, served)
    pod = running(connection)
    assert pod["spec"]["nodeName"] == "hgx-h100"
    connection.close()
    assert "down" in lab(home, "down")
    assert not home.exists()


def test_a_killed_lab_with_real_nodes_is_brought_down(home: Path) -> None:
    lab(home, "up", "--control-plane=real", "--kubelet=real", "--nodes=hgx-h100")
    report = json.loads((home / "status.json").read_text())
    sockets = Path(json.loads((home / "plan.json").read_text())["sockets"])
    assert processes(sockets)
    os.kill(report["pid"], signal.SIGKILL)
    lab(home, "down")
    assert not home.exists()
    assert not processes(sockets)
    assert not list(Path("/sys/fs/cgroup").glob(f"*/{sockets.name}*"))


def test_real_kubelets_need_a_real_control_plane(home: Path) -> None:
    assert "--control-plane real" in lab(home, "up", "--kubelet=real", fails=True)


def test_without_go_one_line_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    said = lab(home, "up", "--control-plane=real", fails=True)
    assert "Go" in said
    assert "embedded" in said
    assert len(said.splitlines()) == 1


def create(connection: cluster.Connection, served: cluster.Served) -> None:
    expression = 'device.driver == "gpu.gpupool.dev" && device.attributes["gpu.gpupool.dev"].architecture == "Hopper"'
    request = {"name": "gpus", "exactly": {"deviceClassName": "hopper", "count": 4}}
    constraint = {"requests": ["gpus"], "matchAttribute": "gpu.gpupool.dev/nvlinkDomain"}
    group = {"apiVersion": f"{api.wire.GROUP}/v1"}
    template = api.wire.read_template(
        {
            **group,
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "four", "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": [request], "constraints": [constraint]}}},
        }
    )
    kind = {"metadata": {"name": "hopper"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
    connection.create(
        f"{served.prefix}/deviceclasses",
        {"apiVersion": f"{api.wire.GROUP}/{served.resource}", "kind": "DeviceClass", **kind},
    )
    written = api.wire.write_template(template, served.resource)
    connection.create(f"{served.prefix}/namespaces/default/resourceclaimtemplates", written)
    connection.create("/api/v1/namespaces/default/pods", POD)


def running(connection: cluster.Connection) -> dict[str, Any]:
    until = time.monotonic() + 60
    while True:
        pod = connection.get("/api/v1/namespaces/default/pods/train")
        if pod["status"].get("phase") == "Running":
            return pod
        assert time.monotonic() < until, pod["status"]
        time.sleep(0.1)


def processes(sockets: Path) -> list[str]:
    """Command lines that name a lab's directory of sockets."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = line.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(sockets) in words:
            found.append(words)
    return found
