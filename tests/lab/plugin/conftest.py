"""`gpupool-node` as a process on node-a, before an API server of the lab; the test is its kubelet."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest

from dradriver import cluster
from dradriver.protocol import dra_v1_pb2, pluginregistration_pb2, services

NODE = "node-a"
DRIVER = "gpu.gpupool.dev"


@dataclass
class Node:
    """The directories of node-a, the plugin's processes on them, and what a kubelet and a scheduler do to it."""

    root: Path
    kubeconfig: Path
    admin: cluster.Connection
    prefix: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def log(self) -> str:
        return self.root.joinpath("log").read_text()

    @property
    def socket(self) -> Path:
        return self.root / "p" / DRIVER / "dra.sock"

    @property
    def registration(self) -> Path:
        return self.root / "r" / f"{DRIVER}-reg.sock"

    @property
    def journal(self) -> Path:
        return self.root / "s" / "journal"

    def start(self, *flags: str, nvml: str = "l4-4") -> subprocess.Popen[bytes]:
        """Start the plugin; flags win over those that it is given anyway."""
        command = [sys.executable, "-m", "dradriver.main", "--node-name", NODE, "--kubeconfig", str(self.kubeconfig)]
        command += ["--nvml", nvml, "--dev-root", str(self.root / "root"), "--plugins-dir", str(self.root / "p")]
        command += ["--registrar-dir", str(self.root / "r"), "--cdi-dir", str(self.root / "c")]
        command += ["--state-dir", str(self.root / "s"), *flags]
        with self.root.joinpath("log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env={})
        self.processes.append(process)
        return process

    def limit_files(self, size: int | None) -> None:
        """The longest file that the plugin may write, its log included; None for any."""
        limit = resource.RLIM_INFINITY if size is None else size
        resource.prlimit(self.processes[-1].pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    def stop(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait(10)

    def register(self) -> pluginregistration_pb2.PluginInfo:
        with grpc.insecure_channel(f"unix:{self.registration}") as channel:
            get_info = services.caller(channel, services.REGISTRATION, "GetInfo")
            info: pluginregistration_pb2.PluginInfo = get_info(
                pluginregistration_pb2.InfoRequest(), timeout=10, wait_for_ready=True
            )
            notify = services.caller(channel, services.REGISTRATION, "NotifyRegistrationStatus")
            notify(pluginregistration_pb2.RegistrationStatus(plugin_registered=True), timeout=5)
            return info

    def call(self, method: str, *claims: Mapping[str, Any], seconds: float = 45, socket: Path | None = None) -> Any:
        """Answers by claim UID, of claims as the server gave them."""
        request = getattr(dra_v1_pb2, f"{method}Request")(
            claims=[
                dra_v1_pb2.Claim(uid=m["uid"], name=m["name"], namespace=m["namespace"])
                for m in (claim["metadata"] for claim in claims)
            ]
        )
        with grpc.insecure_channel(f"unix:{socket or self.socket}") as channel:
            call = services.caller(channel, services.DRA_V1, method)
            answers = call(request, timeout=seconds, wait_for_ready=True).claims
        assert set(answers) == {claim["metadata"]["uid"] for claim in claims}
        return answers

    def prepare(self, claim: Mapping[str, Any], **how: Any) -> str:
        """The error; empty when prepared."""
        return str(self.call("NodePrepareResources", claim, **how)[claim["metadata"]["uid"]].error)

    def unprepare(self, claim: Mapping[str, Any], **how: Any) -> str:
        """The error; empty when released."""
        return str(self.call("NodeUnprepareResources", claim, **how)[claim["metadata"]["uid"]].error)

    def claims_path(self, name: str = "") -> str:
        return f"{self.prefix}/namespaces/default/resourceclaims" + (f"/{name}" if name else "")

    def add_claim(
        self, name: str, *devices: str, pool: str = NODE, admin: bool = False, config: Sequence[Mapping[str, Any]] = ()
    ) -> dict[str, Any]:
        """A claim that the scheduler has given these devices, each by a request of its own."""
        results = [
            {
                "request": f"r{n}",
                "driver": DRIVER,
                "pool": pool,
                "device": device,
                **({"adminAccess": True} if admin else {}),
            }
            for n, device in enumerate(devices)
        ]
        wanted = {"deviceClassName": DRIVER, "count": 1, "adminAccess": admin or None}
        requests = [
            {"name": f"r{n}", **(wanted if self.prefix.endswith("v1beta1") else {"exactly": wanted})}
            for n in range(max(len(devices), 1))
        ]
        made = self.admin.create(
            self.claims_path(), {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}
        )
        made["status"] = {"allocation": {"devices": {"results": results, "config": list(config)}}}
        return self.admin.replace(f"{self.claims_path(name)}/status", made)

    def slices(self) -> list[dict[str, Any]]:
        return self.admin.list(f"{self.prefix}/resourceslices")[0]

    def published(self) -> list[str]:
        """Names of the devices published, `!` behind those that are tainted."""
        devices = [device for item in self.slices() for device in item["spec"].get("devices") or ()]
        return sorted(device["name"] + "!" * bool((device.get("basic") or device).get("taints")) for device in devices)

    def cdi_files(self) -> set[str]:
        """UIDs of the claims with a file; other files by their name."""
        prefix = f"k8s.{DRIVER}-claim_"
        return {path.name.removeprefix(prefix).removesuffix(".json") for path in (self.root / "c").glob("*")}

    def cdi_specs(self) -> list[dict[str, Any]]:
        """What is in the CDI files."""
        return [json.loads(path.read_bytes()) for path in (self.root / "c").iterdir()]

    def fault(self, text: str) -> None:
        """Put a file of faults in place."""
        directory = self.root / "root" / "described"
        directory.joinpath(".new").write_text(text)
        directory.joinpath(".new").replace(directory / "faults.yaml")

    def wait(self, question: Callable[[], Any], seconds: float = 30) -> Any:
        until = time.monotonic() + seconds
        while not (answer := question()):
            assert time.monotonic() < until, f"waited in vain; the plugin's log:\n{self.log}"
            time.sleep(0.02)
        return answer


@pytest.fixture
def node(apiserver: Any, short_path: Path) -> Iterator[Node]:
    """node-a without a plugin yet."""
    admin = apiserver.connect("admin")
    admin.create("/api/v1/nodes", {"metadata": {"name": NODE}})
    allowed = {"resource.kubernetes.io/admin-access": "true"}
    admin.merge("/api/v1/namespaces/default", {"metadata": {"labels": allowed}})
    node = Node(short_path, apiserver.directory / f"plugin-{NODE}", admin, cluster.discover(admin).prefix)
    yield node
    node.stop()
    admin.close()
    assert "Traceback" not in node.log


@pytest.fixture
def running(node: Node) -> Node:
    """node-a with four L4 published."""
    node.start()
    node.wait(lambda: node.published() == [f"gpu-{n}" for n in range(4)])
    return node
