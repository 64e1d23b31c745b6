"""An API server of the lab in this process, with kubectl and connections to it under each identity."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest

from dradriver import api, cluster
from dradriver.lab import certificates, identities
from dradriver.lab.apiserver import ApiServer
from dradriver.lab.claiming import ClaimController
from dradriver.lab.kubelets import Kubelet
from dradriver.lab.labs import Lab
from dradriver.lab.places import Home, NodeHome
from dradriver.lab.running import plan_nodes
from dradriver.lab.scheduling import Scheduler
from dradriver.protocol import dra_v1_pb2, pluginregistration_pb2, services

DRIVER = "gpu.gpupool.dev"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=20, help="how often test_kill.py kills a node plugin")
    parser.addoption(
        "--seed", type=int, default=None, help="seed of test_kill.py's chances (default: another each time)"
    )


@dataclass(frozen=True)
class Server:
    """A running server; identities are called admin, controllers, kubelet-node-a, plugin-node-a and reader."""

    api_server: ApiServer
    directory: Path
    authority: Path

    def connect(self, identity: str = "admin") -> cluster.Connection:
        return cluster.connect(cluster.Location(kubeconfig=str(self.directory / identity), request_timeout=10))

    def environment(self, identity: str = "admin") -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": str(self.directory / identity), "HOME": str(self.directory)}

    def kubectl(
        self, *arguments: str, identity: str = "admin", stdin: str = "", fails: bool = False
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [kubectl_path(), *arguments],
            input=stdin,
            env=self.environment(identity),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done


def kubectl_path() -> str:
    beside = Path(sys.executable).with_name("kubectl")
    found = os.environ.get("KUBECTL") or (str(beside) if beside.exists() else shutil.which("kubectl"))
    if found is None:
        pytest.skip("kubectl is not installed")
    return found


@pytest.fixture(scope="session")
def server_certificates(tmp_path_factory: pytest.TempPathFactory) -> certificates.Certificates:
    return certificates.make_certificates(tmp_path_factory.mktemp("certificates"), datetime.now(UTC))


@pytest.fixture
def apiserver(
    request: pytest.FixtureRequest, tmp_path: Path, server_certificates: certificates.Certificates
) -> Iterator[Server]:
    """A server of the Kubernetes given by indirect parametrization (version, or version and gates), else of 1.37."""
    reader = identities.Identity("reader", "reader", rules=(identities.Rule(("get", "list"), ("pods",)),))
    everyone = [identities.administrator(), identities.controllers(), reader]
    for node in ("node-a", "node-b"):
        everyone += [identities.kubelet(node), identities.plugin(node, DRIVER)]
    wanted = getattr(request, "param", "1.37")
    kubernetes = api.Kubernetes.release(*((wanted,) if isinstance(wanted, str) else wanted))
    server = ApiServer(kubernetes, everyone, server_certificates, bookmark_seconds=0.3)
    for identity in everyone:
        identities.write_kubeconfig(tmp_path / identity.name, server.url, server_certificates.ca, identity)
    server.start()
    yield Server(server, tmp_path, server_certificates.certificate.with_name("ca.crt"))
    server.stop()


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory whose name leaves room for sockets."""
    path = Path(tempfile.mkdtemp(prefix="gp", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def eventually() -> Callable[..., Any]:
    """Ask until the answer is true, and give it; bounded."""

    def ask(question: Callable[[], Any], seconds: float = 15) -> Any:
        until = time.monotonic() + seconds
        while not (answer := question()):
            assert time.monotonic() < until, "waited in vain"
            time.sleep(0.02)
        return answer

    return ask


@dataclass(frozen=True)
class Objects:
    """What a person does to a cluster of Kubernetes 1.34 or newer, in the namespace default."""

    connection: cluster.Connection
    claims: str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    templates: str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
    slices: str = "/apis/resource.k8s.io/v1/resourceslices"
    classes: str = "/apis/resource.k8s.io/v1/deviceclasses"
    pods: str = "/api/v1/namespaces/default/pods"

    def add_class(self, name: str = DRIVER, driver: str = DRIVER) -> None:
        selector = {"cel": {"expression": f"device.driver == '{driver}'"}}
        self.connection.create(self.classes, {"metadata": {"name": name}, "spec": {"selectors": [selector]}})

    def add_slice(self, node: str, devices: int = 2, driver: str = DRIVER) -> None:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {
            "driver": driver,
            "nodeName": node,
            "pool": pool,
            "devices": [{"name": f"gpu-{n}"} for n in range(devices)],
        }
        self.connection.create(self.slices, {"metadata": {"name": f"{node}-{driver}"}, "spec": spec})

    @staticmethod
    def wanted(count: int = 1, *, classes: Sequence[str] = (DRIVER,)) -> dict[str, Any]:
        """Spec of a claim with one request for each class, called r0, r1, ..."""
        requests = [
            {"name": f"r{n}", "exactly": {"deviceClassName": name, "count": count}} for n, name in enumerate(classes)
        ]
        return {"devices": {"requests": requests}}

    def add_claim(self, name: str, spec: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.connection.create(self.claims, {"metadata": {"name": name}, "spec": spec or self.wanted()})

    def add_template(self, name: str, spec: dict[str, Any] | None = None) -> dict[str, Any]:
        body = {"metadata": {"name": name}, "spec": {"spec": spec or self.wanted()}}
        return self.connection.create(self.templates, body)

    def add_pod(
        self,
        name: str,
        *claims: str,
        templates: Sequence[str] = (),
        containers: dict[str, list[dict[str, str]]] | None = None,
        **spec: Any,
    ) -> dict[str, Any]:
        """A pod; its own name for a claim is the claim's or template's. Containers map to their claim references."""
        entries = [{"name": claim, "resourceClaimName": claim} for claim in claims]
        entries += [{"name": template, "resourceClaimTemplateName": template} for template in templates]
        given = {"main": [{"name": entry["name"]} for entry in entries]} if containers is None else containers
        bodies = [{"name": key, "image": "i", "resources": {"claims": uses}} for key, uses in given.items()]
        body = {"metadata": {"name": name}, "spec": {"containers": bodies, "resourceClaims": entries, **spec}}
        return self.connection.create(self.pods, body)

    def pod(self, name: str) -> dict[str, Any] | None:
        return self._get(f"{self.pods}/{name}")

    def claim(self, name: str) -> dict[str, Any] | None:
        return self._get(f"{self.claims}/{name}")

    def _get(self, path: str) -> dict[str, Any] | None:
        try:
            return self.connection.get(path)
        except cluster.NotFoundError:
            return None

    def allocated(self, claim: str) -> list[str]:
        """`pool/device` of everything a claim has; empty without an allocation."""
        allocation = ((self.claim(claim) or {}).get("status") or {}).get("allocation") or {}
        return [f"{result['pool']}/{result['device']}" for result in allocation.get("devices", {}).get("results", ())]

    def runs(self, pod: str) -> bool:
        return ((self.pod(pod) or {}).get("status") or {}).get("phase") == "Running"

    def finish(self, pod: str) -> None:
        """What a pod's containers ending by themselves leads to."""
        self.connection.merge(f"{self.pods}/{pod}/status", {"status": {"phase": "Succeeded"}})

    def delete_pod(self, pod: str, *, force: bool = False) -> None:
        self.connection.delete(f"{self.pods}/{pod}", grace_seconds=0 if force else None)

    def unschedulable(self, pod: str) -> str:
        """What the scheduler said of a pod that waits; empty if nothing."""
        conditions = ((self.pod(pod) or {}).get("status") or {}).get("conditions") or ()
        return next(
            (c.get("message", "") for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), ""
        )

    def events(self, about: str, reason: str) -> list[str]:
        """Messages of the events about an object."""
        found, _ = self.connection.list("/api/v1/namespaces/default/events")
        return [e["message"] for e in found if e["involvedObject"]["name"] == about and e["reason"] == reason]


@pytest.fixture
def objects(apiserver: Server) -> Objects:
    return Objects(apiserver.connect())


@pytest.fixture
def controller(apiserver: Server) -> Iterator[ClaimController]:
    connection = apiserver.connect("controllers")
    running = ClaimController(connection, cluster.discover(connection))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def scheduler(apiserver: Server) -> Iterator[Scheduler]:
    connection = apiserver.connect("controllers")
    running = Scheduler(connection, cluster.discover(connection), api.Kubernetes.release("1.37"))
    running.start()
    yield running
    running.stop()


class ScriptedDriver:
    """A node plugin that does as it is told: one registration socket, one DRA socket, CDI files of its own.

    Attributes:
        calls: Every call as (method, names of its claims), in order.
        failures: Errors by (method, claim), one taken at each call; `None` leaves the claim out of the answer.
        told: What the kubelet said of each registration.
        hold: While cleared, calls wait.
    """

    def __init__(self, directory: Path, driver: str, objects: Objects, *, versions: Sequence[str]) -> None:
        self.driver = driver
        self._objects = objects
        self._versions = versions
        self._cdi = directory / "cdi"
        self._service_path = directory / "p" / f"{driver}.sock"
        self._registration_path = directory / "r" / f"{driver}-reg.sock"
        self.calls: list[tuple[str, list[str]]] = []
        self.failures: dict[tuple[str, str], list[str | None]] = {}
        self.told: list[tuple[bool, str]] = []
        self.hold = threading.Event()
        self.hold.set()
        self._servers: list[grpc.Server] = []

    def start(self) -> None:
        dra: dict[str, Any] = {
            "NodePrepareResources": lambda request, _: self._prepare(request),
            "NodeUnprepareResources": lambda request, _: self._unprepare(request),
        }
        registration: dict[str, Any] = {"GetInfo": lambda *_: self._info(), "NotifyRegistrationStatus": self._notify}
        self._serve(self._service_path, services.handler(services.DRA_V1, dra))
        self._serve(self._registration_path, services.handler(services.REGISTRATION, registration))

    def stop(self) -> None:
        for server in self._servers:
            server.stop(0).wait(5)
        self._servers.clear()
        for path in (self._service_path, self._registration_path):
            path.unlink(missing_ok=True)

    def made(self, method: str) -> list[list[str]]:
        """The claims of each call of a method."""
        return [claims for name, claims in self.calls if name == method]

    def _serve(self, path: Path, handler: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        server = grpc.server(ThreadPoolExecutor(4))
        server.add_generic_rpc_handlers([handler])
        server.add_insecure_port(f"unix:{path}")
        server.start()
        self._servers.append(server)

    def _info(self) -> pluginregistration_pb2.PluginInfo:
        return pluginregistration_pb2.PluginInfo(
            type=services.PLUGIN_TYPE,
            name=self.driver,
            endpoint=str(self._service_path),
            supported_versions=self._versions,
        )

    def _notify(self, status: Any, _: Any) -> pluginregistration_pb2.RegistrationStatusResponse:
        self.told.append((status.plugin_registered, status.error))
        return pluginregistration_pb2.RegistrationStatusResponse()

    def _called(self, method: str, request: Any) -> Iterator[tuple[Any, str]]:
        """Each claim to answer for, with its error ('' for none)."""
        self.calls.append((method, sorted(claim.name for claim in request.claims)))
        self.hold.wait(20)
        for claim in request.claims:
            scripted = self.failures.get((method, claim.name), [])
            error = scripted.pop(0) if scripted else ""
            if error is not None:  # else the claim is left out of the answer
                yield claim, error

    def _prepare(self, request: Any) -> dra_v1_pb2.NodePrepareResourcesResponse:
        response = dra_v1_pb2.NodePrepareResourcesResponse()
        for claim, error in self._called("NodePrepareResources", request):
            answer = response.claims[claim.uid]
            answer.error = error
            if error:
                continue
            found = self._objects.claim(claim.name) or {}
            results = found["status"]["allocation"]["devices"]["results"]
            mine = [result for result in results if result["driver"] == self.driver]
            devices = [(result["request"], result["device"]) for result in mine]
            self._write(claim.uid, [name for _, name in devices])
            for asked, name in devices:
                ids = [f"k8s.{self.driver}/claim={claim.uid}-{name}"]
                answer.devices.add(request_names=[asked], pool_name="node-a", device_name=name, cdi_device_ids=ids)
        return response

    def _unprepare(self, request: Any) -> dra_v1_pb2.NodeUnprepareResourcesResponse:
        response = dra_v1_pb2.NodeUnprepareResourcesResponse()
        for claim, error in self._called("NodeUnprepareResources", request):
            response.claims[claim.uid].error = error
            if not error:
                self._file(claim.uid).unlink(missing_ok=True)
        return response

    def _file(self, uid: str) -> Path:
        return self._cdi / f"{self.driver}-{uid}.json"

    def _write(self, uid: str, names: Sequence[str]) -> None:
        devices = [
            {"name": f"{uid}-{name}", "containerEdits": {"env": [f"{name.upper().replace('-', '_')}={self.driver}"]}}
            for name in names
        ]
        spec = {"cdiVersion": "0.6.0", "kind": f"k8s.{self.driver}/claim", "devices": devices}
        self._file(uid).write_text(json.dumps(spec))


@dataclass(frozen=True)
class ScriptedNode:
    """node-a: its kubelet, and drivers to start on it."""

    directory: Path
    objects: Objects
    connection: cluster.Connection
    drivers: list[ScriptedDriver] = field(default_factory=list)
    kubelets: list[Kubelet] = field(default_factory=list)

    def start_kubelet(self, *, wipe_seconds: float = 30) -> Kubelet:
        at = self.directory
        places = NodeHome(at / "root", at / "state", at / "cdi", at / "p", at / "r", at / "log")
        places.create()
        served = cluster.discover(self.connection)
        kubelet = Kubelet(self.connection, served, "node-a", places, wipe_seconds=wipe_seconds)
        self.kubelets.append(kubelet)
        kubelet.start()
        return kubelet

    def start_driver(self, name: str = DRIVER, *, versions: Sequence[str] = ("v1.DRAPlugin",)) -> ScriptedDriver:
        driver = ScriptedDriver(self.directory, name, self.objects, versions=versions)
        self.drivers.append(driver)
        driver.start()
        return driver

    def stop(self) -> None:
        for driver in self.drivers:
            driver.hold.set()
        for kubelet in self.kubelets:
            kubelet.stop()
        for driver in self.drivers:
            driver.stop()


@pytest.fixture
def node(apiserver: Server, objects: Objects, short_path: Path) -> Iterator[ScriptedNode]:
    """A node without kubelet and drivers yet."""
    made = ScriptedNode(short_path, objects, apiserver.connect("kubelet-node-a"))
    yield made
    made.stop()


@pytest.fixture
def start_lab(tmp_path: Path, eventually: Callable[..., Any]) -> Iterator[Callable[..., Lab]]:
    """A lab in this process, its node plugins as processes: shipped descriptions as nodes, all ready."""
    home = Home(tmp_path / "lab")
    labs: list[Lab] = []

    def start(*descriptions: str, kubernetes: str = "1.37", **options: Any) -> Lab:
        home.path.mkdir()
        nodes = plan_nodes(descriptions)
        plan = home.create(kubernetes, nodes)
        lab = Lab(home, plan, **options)
        labs.append(lab)
        lab.start()
        eventually(lambda: all(lab.devices(node.name) for node in nodes), seconds=30)
        return lab

    yield start
    for lab in labs:
        lab.stop()
    home.remove()


@pytest.fixture
def as_person() -> type[Objects]:
    """What a person does, for tests that bring their own server."""
    return Objects
