"""An API server of the lab in this process, with kubectl and connections to it under each identity."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dradriver import api, cluster
from dradriver.lab import certificates, identities
from dradriver.lab.apiserver import ApiServer
from dradriver.lab.claiming import ClaimController
from dradriver.lab.scheduling import Scheduler

DRIVER = "gpu.gpupool.dev"


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
