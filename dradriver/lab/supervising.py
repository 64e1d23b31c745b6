"""The lab's own process: API server, claim controller, scheduler and kubelets in threads, node plugins as processes.

Started by `dradriver.lab.running`; ends on SIGTERM or SIGINT. Plugins that end are started again. All processes hold
the lab's lock. `python -m dradriver.lab.supervising HOME` reads `plan.json` there and reports in `status.json`.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dradriver import api, cluster
from dradriver.lab import identities
from dradriver.lab.apiserver import ApiServer
from dradriver.lab.certificates import make_certificates
from dradriver.lab.claiming import ClaimController
from dradriver.lab.kubelets import Kubelet, NodePlaces
from dradriver.lab.places import Home, NodeHome
from dradriver.lab.registering import KNOWN_SERVICES
from dradriver.lab.scheduling import Scheduler

log = logging.getLogger(__name__)

DRIVER = "gpu.gpupool.dev"
READY_POLL_SECONDS = 0.05
FIRST_RESTART_SECONDS = 0.1
LONGEST_RESTART_SECONDS = 5.0
STEADY_SECONDS = 10.0
PLUGIN_STOP_SECONDS = 5.0


class Plugin:
    """One node's plugin process, started again whenever it ends."""

    def __init__(self, name: str, command: list[str], places: NodeHome, lock: int) -> None:
        self.name = name
        self._command = command
        self._places = places
        self._lock = lock
        self._stopping = threading.Event()
        self.process = self._spawn()
        self._thread = threading.Thread(target=self._watch, name=f"plugin-{name}", daemon=True)
        self._thread.start()

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self._places.log.open("ab") as output:
            return subprocess.Popen(  # noqa: S603 - our own program
                self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=(self._lock,)
            )

    def _watch(self) -> None:
        pause = FIRST_RESTART_SECONDS
        while not self._stopping.is_set():
            started = time.monotonic()
            code = self.process.wait()
            if time.monotonic() - started > STEADY_SECONDS:
                pause = FIRST_RESTART_SECONDS
            if self._stopping.wait(pause):
                return
            log.warning("plugin ended, starting it again node=%s status=%d", self.name, code)
            pause = min(pause * 2, LONGEST_RESTART_SECONDS)
            self.process = self._spawn()

    def stop(self) -> None:
        """End the process: ask, then kill."""
        self._stopping.set()
        self.process.terminate()
        try:
            self.process.wait(PLUGIN_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._thread.join(PLUGIN_STOP_SECONDS)


class Supervisor:
    """Everything of one lab, wired."""

    def __init__(self, home: Home, lock: int) -> None:
        plan = home.read(home.plan)
        self._home = home
        self._lock = lock
        self._nodes: list[dict[str, str]] = plan["nodes"]
        self._sockets = Path(plan["sockets"])
        self._kubernetes = api.Kubernetes.release(plan["kubernetes"])
        self._progress: list[str] = []
        self._started = time.monotonic()
        self._plugins: dict[str, Plugin] = {}
        self._kubelets: dict[str, Kubelet] = {}
        self._controllers: list[ClaimController | Scheduler] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        """Start everything, report, and stay until told to stop."""
        server = self._start_server()
        try:
            self._start_nodes(server)
            self._wait_ready()
            while not self.stopping.wait(1.0):
                self._report(ready=True)
        finally:
            self._stop(server)

    def _start_server(self) -> ApiServer:
        certificates = make_certificates(self._home.path / "certificates", datetime.now(UTC))
        self._admin = identities.administrator()
        self._inner = identities.controllers()
        self._kubelet_identities = {node["name"]: identities.kubelet(node["name"]) for node in self._nodes}
        self._plugin_identities = {node["name"]: identities.plugin(node["name"], DRIVER) for node in self._nodes}
        everyone = (
            self._admin, self._inner, *self._kubelet_identities.values(), *self._plugin_identities.values(),
        )  # fmt: skip
        server = ApiServer(self._kubernetes, everyone, certificates, logs=self._pod_log)
        server.start()
        for identity in everyone:
            path = self._kubeconfig(identity)
            identities.write_kubeconfig(path, server.url, certificates.ca, identity)
        self._say(f"API server of Kubernetes {self._kubernetes} at {server.url}")
        return server

    def _kubeconfig(self, identity: identities.Identity) -> Path:
        return self._home.kubeconfig if identity is self._admin else self._home.kubeconfigs / identity.name

    def _connect(self, identity: identities.Identity) -> cluster.Connection:
        return cluster.connect(cluster.Location(kubeconfig=str(self._kubeconfig(identity))))

    def _start_nodes(self, server: ApiServer) -> None:
        del server
        for number, node in enumerate(self._nodes):
            places = self._home.node(node["name"], self._sockets, number)
            for directory in (places.root, places.state, places.cdi, places.plugins, places.registry):
                directory.mkdir(parents=True, exist_ok=True)
            command = self._command(node, places)
            self._plugins[node["name"]] = Plugin(node["name"], command, places, self._lock)
        inner = self._connect(self._inner)
        served = cluster.discover(inner)
        self._controllers = [ClaimController(inner, served), Scheduler(inner, served, self._kubernetes)]
        for controller in self._controllers:
            controller.start()
        for number, node in enumerate(self._nodes):
            places = self._home.node(node["name"], self._sockets, number)
            kubelet = Kubelet(
                self._connect(self._kubelet_identities[node["name"]]),
                served,
                node["name"],
                NodePlaces(places.plugins, places.registry, places.cdi),
                services_known=KNOWN_SERVICES,
            )
            kubelet.start()
            self._kubelets[node["name"]] = kubelet

    def _command(self, node: dict[str, str], places: NodeHome) -> list[str]:
        flags = {
            "node-name": node["name"],
            "kubeconfig": self._kubeconfig(self._plugin_identities[node["name"]]),
            "plugins-dir": places.plugins,
            "registrar-dir": places.registry,
            "cdi-dir": places.cdi,
            "state-dir": places.state,
            "dev-root": places.root,
            "nvml": node["description"],
            "metrics-port": 0,
            "health-port": 0,
        }
        return [sys.executable, "-m", "dradriver.main", *(f"--{name}={value}" for name, value in flags.items())]

    def _wait_ready(self) -> None:
        """Wait until every plugin is registered and its node has slices; how long is up to whoever started us."""
        connection = self._connect(self._admin)
        path = f"{cluster.discover(connection).prefix}/resourceslices"
        waiting = {node["name"] for node in self._nodes}
        while waiting and not self.stopping.wait(READY_POLL_SECONDS):
            slices, _ = connection.list(path)
            for name in sorted(waiting):
                devices = [len(s["spec"].get("devices") or ()) for s in slices if s["spec"].get("nodeName") == name]
                if devices and self._kubelets[name].is_registered(DRIVER):
                    waiting.discard(name)
                    self._say(f"node {name}: {sum(devices)} devices")
        self._report(ready=not waiting)

    def _pod_log(self, pod: dict[str, Any], container: str) -> str | None:
        kubelet = self._kubelets.get(pod["spec"].get("nodeName", ""))
        lines = kubelet.log(pod["metadata"]["uid"], container) if kubelet else None
        return None if lines is None else "".join(f"{line}\n" for line in lines)

    def _say(self, line: str) -> None:
        self._progress.append(f"{time.monotonic() - self._started:5.1f} s  {line}")
        self._report(ready=False)

    def _report(self, *, ready: bool) -> None:
        nodes = [
            {**node, "plugin": self._plugins[node["name"]].process.pid if node["name"] in self._plugins else None}
            for node in self._nodes
        ]
        report = {
            "pid": os.getpid(),
            "ready": ready,
            "progress": self._progress,
            "kubernetes": str(self._kubernetes),
            "kubeconfig": str(self._home.kubeconfig),
            "nodes": nodes,
        }
        if report != self._home.read(self._home.status):
            self._home.write(self._home.status, report)

    def _stop(self, server: ApiServer) -> None:
        stoppers = [threading.Thread(target=plugin.stop) for plugin in self._plugins.values()]
        stoppers += [threading.Thread(target=kubelet.stop) for kubelet in self._kubelets.values()]
        stoppers += [threading.Thread(target=controller.stop) for controller in self._controllers]
        for thread in stoppers:
            thread.start()
        for thread in stoppers:
            thread.join()
        server.stop()


def main() -> int:
    """Run the lab whose home is the first argument."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    home = Home(Path(sys.argv[1]))
    lock = home.lock()
    if lock is None:
        print("a lab runs here already", file=sys.stderr)  # noqa: T201 - the log is standard error
        return 1
    supervisor = Supervisor(home, lock)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: supervisor.stopping.set())
    supervisor.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
