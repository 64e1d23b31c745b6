"""A real node: containerd and kubelet as bare processes, in whose pods things really run.

Needs root. What it makes outside its directories is a cgroup and a mount namespace, both gone when it is stopped;
`stop` kills by cgroup, so that nothing of it outlives it. Pods have no network but their own loopback.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dradriver import cluster
from dradriver.lab.realcluster import configuring, confining, images
from dradriver.lab.realcluster.binaries import Containers, Kubernetes
from dradriver.lab.realcluster.configuring import Places
from dradriver.lab.realcluster.credentials import Credentials
from dradriver.lab.realcluster.errors import MissingError, StartError
from dradriver.lab.realcluster.ports import free_ports
from dradriver.lab.realcluster.processes import Process, wait_until

READY_SECONDS = 90.0
HOLD_SECONDS = 10.0
IMPORT_SECONDS = 60.0
_UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Node:
    """One node. `stop` also after a start that failed; `start` after a `stop` is what a reboot is for pods.

    `containerd` and `kubelet` are there from `start` on and may be stopped and started by whoever wants to see what
    then happens; pods go on meanwhile.
    """

    containerd: Process
    kubelet: Process

    def __init__(
        self,
        name: str,
        kubernetes: Kubernetes,
        containers: Containers,
        places: Places,
        *,
        kubeconfig: Path,
        credentials: Credentials,
        admin: cluster.Connection,
        feature_gates: Mapping[str, bool] | None = None,
        cgroup: str = "",
        inherited: Sequence[int] = (),
    ) -> None:
        """Describe the node.

        Args:
            name: Its name.
            kubernetes: Whose kubelet to run.
            containers: What runs containers.
            places: Its directories; `base` and `short` exist and are private.
            kubeconfig: The kubelet's own.
            credentials: The control plane's, of which the API server's certificate as a client is used.
            admin: A connection that may change nodes.
            feature_gates: The control plane's gates.
            cgroup: A name for its cgroup, unless a random one.
            inherited: Descriptors to pass on to every process.

        Raises:
            MissingError: this is not root.
        """
        if os.geteuid() != 0:
            raise MissingError("a real node needs root: run as root, or use the embedded kubelet")
        self.name = name
        self.places = places
        self._kubernetes = kubernetes
        self._containers = containers
        self._kubeconfig = kubeconfig
        self._credentials = credentials
        self._admin = admin
        self._gates = dict(feature_gates or {})
        self._inherited = inherited
        self._cgroup = confining.Cgroup(cgroup or f"gpupool-{secrets.token_hex(4)}")
        self._ready = places.base / "namespace-is-ready"
        self._directories = {path: places.constant(path) for path in confining.CONSTANT_DIRECTORIES}
        self._holder = Process(
            confining.namespace(self._cgroup, self._directories, self._ready),
            places.logs / "namespace.log",
            name="namespace",
            inherited=inherited,
        )

    def start(self) -> None:
        """Start it and wait until it is Ready. Raises StartError and MissingError."""
        self._make_directories()
        self._ready.unlink(missing_ok=True)
        self._cgroup.create()
        self._holder.start()
        wait_until(self._ready.exists, (self._holder,), HOLD_SECONDS, "mount namespace")
        self._start_containerd()
        self._start_kubelet()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until the kubelet says that the node is ready. Raises StartError."""
        wait_until(self._is_ready, (self.containerd, self.kubelet), READY_SECONDS, f"ready node {self.name}")

    def stop(self) -> None:
        """End it and all its pods. Raises StartError where something does not end."""
        if hasattr(self, "kubelet"):
            self.kubelet.stop()
        self._cgroup.end()
        for process in (self._holder, *([self.containerd] if hasattr(self, "containerd") else ())):
            process.stop()  # it was killed; this takes note

    def _make_directories(self) -> None:
        places, base = self.places, self.places.base
        for made in (
            places.logs,
            places.kubelet,
            places.cdi,
            base / "cni" / "bin",
            base / "cni" / "conf",
            base / "opt",
        ):
            made.mkdir(mode=0o700, parents=True, exist_ok=True)
        for constant, own in self._directories.items():
            own.mkdir(mode=0o700, parents=True, exist_ok=True)
            Path(constant).mkdir(mode=0o755, parents=True, exist_ok=True)
        for name in configuring.NETWORK_NAMES:
            plugin = base / "cni" / "bin" / name
            plugin.write_text(configuring.NETWORK_PLUGIN)
            plugin.chmod(0o755)
        (base / "cni" / "conf" / "10-gpupool.conflist").write_text(configuring.network())

    def _process(self, name: str, command: list[str | Path], environment: Mapping[str, str] | None = None) -> Process:
        holder = self._holder.pid
        if holder is None:
            self._holder.check()
            raise StartError(f"the namespace of node {self.name} is gone")
        joined = confining.joining(holder, self._cgroup, command)
        output = self.places.logs / f"{name}.log"
        return Process(joined, output, name=name, environment=environment, inherited=self._inherited)

    def _start_containerd(self) -> None:
        programs, base = self._containers, self.places.base
        configuration = base / "containerd.toml"
        configuration.write_text(configuring.containerd(self.places, programs.runc))
        environment = {"PATH": f"{programs.directory}:{_PATH}"}
        self.containerd = self._process("containerd", [programs.containerd, "--config", configuration], environment)
        self.containerd.start()
        wait_until(self._runtime_answers, (self.containerd,), READY_SECONDS, "answer of containerd")
        archive = base / "busybox.tar"
        images.write_image(programs.busybox, archive, os.uname().machine)
        done = self._ctr("--namespace", "k8s.io", "images", "import", str(archive))
        if done.returncode:
            raise StartError(f"containerd does not take the image {images.IMAGE}: {done.stderr.strip()}")

    def _start_kubelet(self) -> None:
        port, health_port = free_ports(2)
        configuration = self.places.base / "kubelet.yaml"
        configuration.write_text(
            configuring.kubelet(
                self.places,
                minor=self._kubernetes.minor,
                cgroup=self._cgroup.name,
                port=port,
                health_port=health_port,
                client=self._credentials.certificate,
                gates=self._gates,
            )
        )
        command: list[str | Path] = [
            *(self._kubernetes.kubelet, f"--config={configuration}", f"--kubeconfig={self._kubeconfig}"),
            *(f"--root-dir={self.places.kubelet}", f"--cert-dir={self.places.base / 'pki'}"),
            f"--hostname-override={self.name}",
            "--cloud-provider=external",  # else it takes the machine's address, never 127.0.0.1
        ]
        self.kubelet = self._process("kubelet", command, {"PATH": _PATH, "HOME": str(self.places.base)})
        self.kubelet.start()

    def _ctr(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self._containers.ctr), "--address", str(self.places.runtime_socket), *arguments]
        return subprocess.run(  # noqa: S603 - built by us
            command, capture_output=True, text=True, timeout=IMPORT_SECONDS, check=False
        )

    def _runtime_answers(self) -> bool:
        return self.places.runtime_socket.exists() and self._ctr("version").returncode == 0

    def _is_ready(self) -> bool:
        path = f"/api/v1/nodes/{self.name}"
        try:
            node = self._admin.get(path)
            if any(taint["key"] == _UNINITIALIZED for taint in node["spec"].get("taints") or ()):
                self._initialize(path, node)
                return False
        except cluster.ClusterError:
            return False
        conditions = node["status"].get("conditions") or ()
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _initialize(self, path: str, node: dict[str, Any]) -> None:
        """What a cloud's controller does for a new node: tell its address, then let pods in."""
        addresses = [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": self.name}]
        self._admin.merge(f"{path}/status", {"status": {"addresses": addresses}})
        taints = [taint for taint in node["spec"]["taints"] if taint["key"] != _UNINITIALIZED]
        version = node["metadata"]["resourceVersion"]
        self._admin.merge(path, {"spec": {"taints": taints or None}, "metadata": {"resourceVersion": version}})
