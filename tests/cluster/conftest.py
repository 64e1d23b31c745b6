"""Real clusters: a control plane of each version, a node on which pods run, our plugin there on described hardware."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from dradriver import api, cluster
from dradriver.lab import identities
from dradriver.lab.plugins import PluginProcess
from dradriver.lab.realcluster import accounts, binaries, building, images
from dradriver.lab.realcluster.configuring import Places
from dradriver.lab.realcluster.controlplanes import ControlPlane
from dradriver.lab.realcluster.nodes import Node

DRIVER = "gpu.gpupool.dev"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
SLEEP = ["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"]
AWAIT_SECONDS = 90.0
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  restartPolicy: {restart}
  containers:
    - name: main
      image: x
      resources: {{claims: [{{name: gpus}}]}}
  resourceClaims:
    - {{name: gpus, {source}: {claim}}}
---
"""
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: {kind}
metadata: {{name: {name}, namespace: {namespace}}}
spec: {spec}
---
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.cluster)


@dataclass
class RealCluster:
    """One control plane, one node called `gpu-node`, our plugin there; `kubectl` speaks as the administrator."""

    control_plane: ControlPlane
    node: Node
    directory: Path
    description: str
    plugin: PluginProcess = field(init=False)
    plugin_flags: dict[str, object] = field(init=False)
    served: cluster.Served = field(init=False)

    @property
    def admin(self) -> cluster.Connection:
        return self.control_plane.admin

    def start(self) -> None:
        self.control_plane.start()
        self.served = cluster.discover(self.admin)
        self.node.start()
        identity = accounts.bind_service_account(self.admin, identities.plugin(self.node.name, DRIVER))
        self.plugin_flags = self.flags(identity)
        self.plugin = self.start_plugin()

    def start_plugin(self, **flags: object) -> PluginProcess:
        """A plugin of this node, with these flags beside or in place of the usual ones."""
        given = self.plugin_flags | {name.replace("_", "-"): value for name, value in flags.items()}
        plugin = PluginProcess(self.node.name, given, self.directory / "plugin.log")
        plugin.start()
        return plugin

    def start_plugin_after_reboot(self) -> PluginProcess:
        """A plugin that reads another boot id than the one before."""
        boot_id = self.directory / "boot-id"
        boot_id.write_text(f"{uuid.uuid4()}\n")
        plugin = PluginProcess(self.node.name, self.plugin_flags, self.directory / "plugin.log")
        mount = f'mount --bind {boot_id} {BOOT_ID} && exec "$@"'
        plugin._command = ["unshare", "--mount", "sh", "-c", mount, "sh", *plugin._command]
        plugin.start()
        return plugin

    def stop(self) -> None:
        if hasattr(self, "plugin"):
            self.plugin.stop()
        try:
            self.node.stop()
        finally:
            self.control_plane.stop()

    def flags(self, identity: identities.Identity) -> dict[str, object]:
        return {
            "node-name": self.node.name,
            "kubeconfig": self.control_plane.write_kubeconfig(identity),
            "plugins-dir": self.node.places.plugins,
            "registrar-dir": self.node.places.registry,
            "cdi-dir": self.node.places.cdi,
            "state-dir": self.directory / "plugin-state",
            "dev-root": self.directory / "root",
            "nvml": self.description,
        }

    def slices(self) -> list[dict[str, Any]]:
        found, _ = self.admin.list(f"{self.served.prefix}/resourceslices")
        return [each for each in found if each["spec"]["driver"] == DRIVER]

    def devices(self) -> list[str]:
        return [device["name"] for each in self.slices() for device in each["spec"].get("devices") or ()]

    def manifest(self, kind: str, namespace: str, name: str, spec: str) -> str:
        """An object of resource.k8s.io/v1; `apply` writes it in the version that is served."""
        return CLAIM.format(kind=kind, name=name, namespace=namespace, spec=spec)

    def claim(self, namespace: str, name: str, **counts: int) -> str:
        """A claim of so many GPUs in each request."""
        requests = ", ".join(
            f"{{name: {request}, exactly: {{deviceClassName: gpu.gpupool.dev, count: {count}}}}}"
            for request, count in counts.items()
        )
        return self.manifest("ResourceClaim", namespace, name, f"{{devices: {{requests: [{requests}]}}}}")

    def template(self, namespace: str, name: str, count: int = 1) -> str:
        """A template of claims of so many GPUs."""
        request = f"{{name: gpus, exactly: {{deviceClassName: gpu.gpupool.dev, count: {count}}}}}"
        spec = f"{{spec: {{devices: {{requests: [{request}]}}}}}}"
        return self.manifest("ResourceClaimTemplate", namespace, name, spec)

    def pod_with(self, namespace: str, name: str, claim: str = "", *, restart: str = "Never") -> str:
        """A pod with a claim, or with one from template `one`."""
        source, given = ("resourceClaimName", claim) if claim else ("resourceClaimTemplateName", "one")
        return POD.format(namespace=namespace, name=name, source=source, claim=given, restart=restart)

    def seen(self, namespace: str, name: str, container: str = "main") -> list[str]:
        """The GPUs that a container sees, by its environment."""
        lines = self.kubectl("exec", "-n", namespace, name, "-c", container, "--", "env").splitlines()
        return sorted(line.partition("=")[0] for line in lines if line.startswith("GPUPOOL_DEVICE_"))

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        environment = {**os.environ, "KUBECONFIG": str(self.control_plane.kubeconfigs["admin"])}
        done = subprocess.run(
            [Path(sys.executable).with_name("kubectl"), *arguments],
            input=stdin,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def apply(self, manifest: Path | str, *, label: str | None = None) -> list[dict[str, Any]]:
        """Apply a manifest in the version that is served, pods with an image that is there and sleeps."""
        text = manifest if isinstance(manifest, str) else manifest.read_text()
        objects = [each for each in yaml.safe_load_all(text) if each]
        if label:
            key, value = label.split("=")
            objects = [each for each in objects if each["metadata"].get("labels", {}).get(key) == value]
        objects = [self._runnable(each) for each in objects]
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
        return objects

    def _runnable(self, body: dict[str, Any]) -> dict[str, Any]:
        if body["kind"] == "Pod":
            spec = body["spec"]
            spec.setdefault("terminationGracePeriodSeconds", 2)
            for container in (*spec["containers"], *spec.get("initContainers", ())):
                container.update(image=images.IMAGE, imagePullPolicy="Never")
                container.setdefault("command", SLEEP)
            return body
        if not body["apiVersion"].startswith(api.wire.GROUP):
            return body
        value = api.wire.read(body)
        if isinstance(value, api.DeviceClass):
            written = api.wire.write_class(value, self.served.resource)
        elif isinstance(value, api.ResourceClaimTemplate):
            written = api.wire.write_template(value, self.served.resource)
        else:
            assert isinstance(value, api.ResourceClaim)
            written = api.wire.write_claim(value, self.served.resource)
        return {**written, "metadata": body["metadata"]}

    def eventually(self, condition: Callable[[], Any], awaited: str, seconds: float = AWAIT_SECONDS) -> Any:
        """What `condition` gives once that is true; what happened, where it never is."""
        until = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > until:
                events = self.kubectl("get", "events", "-A", "--sort-by=.metadata.creationTimestamp")
                log = (self.directory / "plugin.log").read_text()[-3000:]
                pytest.fail(f"not within {seconds:.0f} s: {awaited}\n{events}\n{log}")
            time.sleep(0.1)
        return found

    def running(self, namespace: str, *names: str, seconds: float = AWAIT_SECONDS) -> list[dict[str, Any]]:
        """The pods, once all of them run."""

        def all_run() -> list[dict[str, Any]] | None:
            pods = [self.pod(namespace, name) for name in names]
            return pods if all(pod and pod["status"].get("phase") == "Running" for pod in pods) else None  # type: ignore[return-value]

        found: list[dict[str, Any]] = self.eventually(all_run, f"pods {names} in {namespace} run", seconds)
        return found

    def prepared(self) -> dict[str, list[str]]:
        """Devices in CDI files, by the claim's name."""
        key = f"{DRIVER}/claim-name"
        return {
            spec["annotations"][key]: [device["name"].split("-", 5)[-1] for device in spec["devices"]]
            for spec in self.cdi_files()
        }

    def eventually_here(self, condition: Callable[[], Any], awaited: str, seconds: float = AWAIT_SECONDS) -> None:
        """Wait without asking the API server, which may be away."""
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                pytest.fail(
                    f"not within {seconds:.0f} s: {awaited}\n{(self.directory / 'plugin.log').read_text()[-3000:]}"
                )
            time.sleep(0.1)

    def pod(self, namespace: str, name: str) -> dict[str, Any] | None:
        try:
            return self.admin.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        except cluster.NotFoundError:
            return None

    def cdi_files(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(self.node.places.cdi.glob("*.json"))]


@pytest.fixture(
    scope="session", params=[pytest.param(minor, id=version) for minor, version in building.VERSIONS.items()]
)
def real_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    programs, containers = binaries.kubernetes(request.param, print), binaries.containers(print)
    directory = tmp_path_factory.mktemp(f"cluster-{request.param}")
    short = Path(tempfile.mkdtemp(prefix="gpupool-"))
    places = Places(directory / "node", short, directory / "cdi")
    for made in (directory / "control-plane", places.base):
        made.mkdir(mode=0o700)
    name = "gpu-node"
    kubelet = identities.kubelet(name)
    control_plane = ControlPlane(programs, directory / "control-plane", [kubelet])
    node = Node(
        name,
        programs,
        containers,
        places,
        kubeconfig=control_plane.kubeconfigs[kubelet.name],
        credentials=control_plane.credentials,
        admin=control_plane.admin,
        feature_gates=control_plane.gates,
    )
    made = RealCluster(control_plane, node, directory, "hgx-h100")
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(short)


@pytest.fixture
def namespace(real_cluster: RealCluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own, with the classes there; all claims in it end with the test."""
    real_cluster.eventually(lambda: len(real_cluster.devices()) == 8, "eight devices in slices")
    real_cluster.apply(Path(__file__).parents[2] / "manifests" / "deviceclasses.yaml")
    name = request.node.originalname.removeprefix("test_").replace("_", "-")[:60].strip("-")
    real_cluster.kubectl("create", "namespace", name)
    yield name
    real_cluster.kubectl("delete", "namespace", name, "--timeout=60s")
    real_cluster.eventually(lambda: not real_cluster.cdi_files(), "no CDI file is left")
