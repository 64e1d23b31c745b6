"""An API server of the lab in this process, with kubectl and connections to it under each identity."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dradriver import api, cluster
from dradriver.lab import certificates, identities
from dradriver.lab.apiserver import ApiServer

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
