"""A real control plane as bare processes on loopback: etcd, API server, controller manager, scheduler.

Needs no root. Everything it keeps is in one private directory; stopped, only that is left. The parts trust tokens and
certificates made for this control plane alone.
"""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from dradriver import cluster
from dradriver.lab import identities
from dradriver.lab.certificates import Certificates, make_certificates
from dradriver.lab.identities import Identity, write_kubeconfig, write_private
from dradriver.lab.realcluster import accounts
from dradriver.lab.realcluster.binaries import Kubernetes
from dradriver.lab.realcluster.credentials import Credentials, make_credentials
from dradriver.lab.realcluster.ports import free_ports
from dradriver.lab.realcluster.processes import Process, wait_until

READY_SECONDS = 90.0
ETCD_STOP_SECONDS = 5.0
SERVER_STOP_SECONDS = 5.0
"""It waits for watches that last; nothing is lost by ending it."""
_ASK_SECONDS = 2.0
_RATES = ("--kube-api-qps=1000", "--kube-api-burst=2000")  # their defaults make about 10 claims a second
_FIRST_MINOR_WITH_LOCKED_GATE = 34
_FIRST_MINOR_WITH_V1BETA2 = 33


class ControlPlane:
    """One control plane. `start` once, `stop` once, also after a start that failed.

    `etcd`, `server`, `controllers` and `scheduler` may be stopped and started by whoever wants to see what then
    happens.
    """

    def __init__(
        self,
        programs: Kubernetes,
        directory: Path,
        everyone: Iterable[Identity] = (),
        *,
        admin: Identity | None = None,
        heartbeats: bool = True,
        feature_gates: Mapping[str, bool] | None = None,
        inherited: Sequence[int] = (),
    ) -> None:
        """Write certificates, tokens and kubeconfigs.

        Args:
            programs: What to run.
            directory: A private directory that exists.
            everyone: Who may talk to the server by a token of their own, apart from the administrator and the parts.
            admin: The administrator; made here where None.
            heartbeats: Whether nodes send any; False for nodes without a real kubelet, which would be given up.
            feature_gates: Gates to set on all parts.
            inherited: Descriptors to pass on to every process.
        """
        self.programs = programs
        self.directory = directory
        self.gates = dict(feature_gates or {})
        if programs.minor < _FIRST_MINOR_WITH_LOCKED_GATE:
            self.gates.setdefault("DynamicResourceAllocation", True)
        etcd_port, peer_port, server_port = free_ports(3)
        self.url = f"https://127.0.0.1:{server_port}"
        self._etcd_url = f"https://127.0.0.1:{etcd_port}"
        self.logs, self._kubeconfigs = directory / "logs", directory / "kubeconfigs"
        for made in (self.logs, self._kubeconfigs, directory / "etcd"):
            made.mkdir(mode=0o700, exist_ok=True)
        now = datetime.now(UTC)
        self.certificates: Certificates = make_certificates(directory, now)
        self.credentials: Credentials = make_credentials(directory, now)
        admin, parts = admin or identities.administrator(), accounts.control_plane()
        everyone = (admin, *parts, *everyone)
        write_private(directory / "tokens.csv", accounts.token_file(everyone))
        self.kubeconfigs = {identity.name: self.write_kubeconfig(identity) for identity in everyone}
        self.admin = cluster.connect(cluster.Location(kubeconfig=str(self.kubeconfigs[admin.name])))
        self._token = admin.token
        self._patience = [] if heartbeats else ["--node-monitor-grace-period=8760h"]
        self.etcd = self._process(programs.etcd, self._etcd(peer_port), inherited)
        self.server = self._process(programs.apiserver, self._apiserver(server_port), inherited)
        self.controllers = self._process(programs.controller_manager, self._controllers(parts[0]), inherited)
        self.scheduler = self._process(programs.scheduler, self._scheduler(parts[1]), inherited)

    @property
    def _processes(self) -> tuple[Process, ...]:
        return self.etcd, self.server, self.controllers, self.scheduler

    def start(self) -> None:
        """Start all parts and wait until pods could be created. Raises StartError."""
        self.etcd.start()
        self.server.start()
        self.wait_ready()
        self.controllers.start()
        self.scheduler.start()
        # Pods need the namespace's service account, which the controller manager makes.
        wait_until(self._has_default_account, self._processes, READY_SECONDS, "service account of namespace default")

    def wait_ready(self) -> None:
        """Wait until the API server is ready. Raises StartError."""
        wait_until(self._is_ready, (self.etcd, self.server), READY_SECONDS, "ready API server")

    def stop(self) -> None:
        """End all parts."""
        self.scheduler.stop()
        self.controllers.stop()
        self.server.stop(SERVER_STOP_SECONDS)
        self.etcd.stop(ETCD_STOP_SECONDS)
        self.admin.close()

    def write_kubeconfig(self, identity: Identity) -> Path:
        """Write the kubeconfig of an identity; the file."""
        path = self._kubeconfigs / identity.name
        write_kubeconfig(path, self.url, self.certificates.ca, identity)
        return path

    def _process(self, program: Path, flags: list[str], inherited: Sequence[int]) -> Process:
        return Process([program, *flags], self.logs / f"{program.name}.log", inherited=inherited)

    def _etcd(self, peer_port: int) -> list[str]:
        peer, certificate, key = f"https://127.0.0.1:{peer_port}", self.credentials.certificate, self.credentials.key
        flags = [
            *("--name=lab", f"--data-dir={self.directory / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn"),
            *(f"--listen-client-urls={self._etcd_url}", f"--advertise-client-urls={self._etcd_url}"),
            *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=lab={peer}"),
        ]
        for prefix in ("", "peer-"):
            flags += [f"--{prefix}cert-file={certificate}", f"--{prefix}key-file={key}", f"--{prefix}client-cert-auth"]
            flags.append(f"--{prefix}trusted-ca-file={certificate}")
        return flags

    def _apiserver(self, port: int) -> list[str]:
        certificate, key = self.credentials.certificate, self.credentials.key
        return [
            *(f"--etcd-servers={self._etcd_url}", f"--etcd-cafile={certificate}"),
            *(f"--etcd-certfile={certificate}", f"--etcd-keyfile={key}"),
            *("--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={port}"),
            "--endpoint-reconciler-type=none",  # it would refuse a loopback address, time and again
            *(f"--tls-cert-file={self.certificates.certificate}", f"--tls-private-key-file={self.certificates.key}"),
            *(f"--cert-dir={self.directory}", f"--token-auth-file={self.directory / 'tokens.csv'}"),
            *("--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"),
            *("--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.96.0.0/24"),
            f"--service-account-key-file={self.credentials.signing_key}",
            f"--service-account-signing-key-file={self.credentials.signing_key}",
            *(f"--kubelet-client-certificate={certificate}", f"--kubelet-client-key={key}"),
            *("--kubelet-preferred-address-types=InternalIP", "--allow-privileged=true"),
            *self._runtime_config(),
            *self._gate_flags(),
        ]

    def _controllers(self, identity: Identity) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfigs[identity.name]}",
            f"--service-account-private-key-file={self.credentials.signing_key}",
            f"--root-ca-file={self.directory / 'ca.crt'}",
            *("--use-service-account-credentials=true", "--leader-elect=false", "--secure-port=0"),
            *_RATES,
            *self._patience,
            *self._gate_flags(),
        ]

    def _scheduler(self, identity: Identity) -> list[str]:
        kubeconfig = f"--kubeconfig={self.kubeconfigs[identity.name]}"
        return [kubeconfig, "--leader-elect=false", "--secure-port=0", *_RATES, *self._gate_flags()]

    def _runtime_config(self) -> list[str]:
        minor = self.programs.minor
        if minor >= _FIRST_MINOR_WITH_LOCKED_GATE:
            return []
        versions = ["v1beta1"] + (["v1beta2"] if minor >= _FIRST_MINOR_WITH_V1BETA2 else [])
        return ["--runtime-config=" + ",".join(f"resource.k8s.io/{version}=true" for version in versions)]

    def _gate_flags(self) -> list[str]:
        gates = ",".join(f"{name}={str(value).lower()}" for name, value in self.gates.items())
        return [f"--feature-gates={gates}"] if gates else []

    def _is_ready(self) -> bool:
        request = urllib.request.Request(f"{self.url}/readyz", headers={"Authorization": f"Bearer {self._token}"})  # noqa: S310 - our own https address
        trust = ssl.create_default_context(cadata=self.certificates.ca.decode())
        try:
            with urllib.request.urlopen(request, timeout=_ASK_SECONDS, context=trust) as answer:  # noqa: S310 - as above
                return bool(answer.status == 200)  # noqa: PLR2004 - OK
        except (OSError, urllib.error.URLError):
            return False

    def _has_default_account(self) -> bool:
        try:
            self.admin.get("/api/v1/namespaces/default/serviceaccounts/default")
        except cluster.ClusterError:
            return False
        return True
