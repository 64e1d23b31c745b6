"""One lab, put together: API server, claim controller, scheduler, kubelets in threads; node plugins as processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dradriver import api, cluster
from dradriver.lab import identities
from dradriver.lab.apiserver import ApiServer
from dradriver.lab.certificates import make_certificates
from dradriver.lab.claiming import ClaimController
from dradriver.lab.kubelets import WIPE_SECONDS, Kubelet
from dradriver.lab.places import Home, NodeHome, NodePlan, Plan
from dradriver.lab.plugins import LONGEST_RESTART_SECONDS, PluginProcess
from dradriver.lab.scheduling import Scheduler

DRIVER = "gpu.gpupool.dev"


class Lab:
    """Owns everything that runs. `start` once, `stop` once, also after a start that failed."""

    def __init__(
        self,
        home: Home,
        plan: Plan,
        *,
        lock: int | None = None,
        wipe_seconds: float = WIPE_SECONDS,
        longest_restart: float = LONGEST_RESTART_SECONDS,
    ) -> None:
        """Put the parts together.

        Args:
            home: Directories, made by `Home.create`, which gave `plan`.
            plan: What the lab is to be.
            lock: The lab's lock, for its processes to inherit.
            wipe_seconds: How long a plugin may be away before the kubelet deletes its slices.
            longest_restart: The longest pause, in seconds, before a plugin that ended is started again.
        """
        self._home = home
        self.kubernetes = api.Kubernetes.release(plan.kubernetes)
        self._nodes = {node: home.node(node.name, plan.sockets, i) for i, node in enumerate(plan.nodes)}
        self.places = {node.name: places for node, places in self._nodes.items()}
        self._lock = lock
        self._wipe_seconds = wipe_seconds
        self._longest_restart = longest_restart
        self._admin = identities.administrator()
        self._controller_identity = identities.controllers()
        self._node_identities = {
            node.name: (identities.kubelet(node.name), identities.plugin(node.name, DRIVER)) for node in self._nodes
        }
        everyone = [self._admin, self._controller_identity]
        everyone += [identity for both in self._node_identities.values() for identity in both]
        certificates = make_certificates(home.certificates, datetime.now(UTC))
        self.server = ApiServer(self.kubernetes, everyone, certificates, logs=self._log)
        for identity in everyone:
            identities.write_kubeconfig(self._kubeconfig(identity), self.server.url, certificates.ca, identity)
        self.connection = self._connect(self._admin)
        self.kubelets: dict[str, Kubelet] = {}
        self.plugins: dict[str, PluginProcess] = {}
        self._controllers: list[ClaimController | Scheduler] = []
        self._slices: cluster.Reflector | None = None

    def start(self) -> None:
        """Start everything; plugins come up in their own time, see `waiting`."""
        self.server.start()
        served = cluster.discover(self.connection)
        self._slices = cluster.Reflector(self.connection, f"{served.prefix}/resourceslices")
        self._slices.start()
        for node, places in self._nodes.items():
            kubelet_identity, plugin_identity = self._node_identities[node.name]
            places.create()
            kubelet = Kubelet(
                self._connect(kubelet_identity), served, node.name, places, wipe_seconds=self._wipe_seconds
            )
            self.kubelets[node.name] = kubelet
            kubelet.start()  # before the plugin: it deletes the node's slices
            plugin = PluginProcess(
                node.name,
                self._flags(node, places, plugin_identity),
                places.log,
                lock=self._lock,
                longest_restart=self._longest_restart,
            )
            self.plugins[node.name] = plugin
            plugin.start()
        inner = self._connect(self._controller_identity)
        self._controllers = [ClaimController(inner, served), Scheduler(inner, served, self.kubernetes)]
        for controller in self._controllers:
            controller.start()

    def stop(self) -> None:
        """End everything: plugins first, so that they find a server, then what calls it, then the server."""
        _at_once(plugin.stop for plugin in self.plugins.values())
        _at_once(kubelet.stop for kubelet in self.kubelets.values())
        _at_once(controller.stop for controller in self._controllers)
        if self._slices:
            self._slices.stop()
        self.server.stop()

    def devices(self, node: str) -> int | None:
        """How many devices a node offers; None before its plugin is registered and its slices are written."""
        slices = self._slices.items() if self._slices else ()
        found = [len(entry["spec"].get("devices") or ()) for entry in slices if entry["spec"].get("nodeName") == node]
        return sum(found) if found and self.kubelets[node].is_registered(DRIVER) else None

    def _flags(self, node: NodePlan, places: NodeHome, identity: identities.Identity) -> dict[str, object]:
        return {
            "node-name": node.name,
            "kubeconfig": self._kubeconfig(identity),
            "plugins-dir": places.plugins,
            "registrar-dir": places.registry,
            "cdi-dir": places.cdi,
            "state-dir": places.state,
            "dev-root": places.root,
            "nvml": node.description,
            "metrics-port": 0,
            "health-port": 0,
        }

    def _kubeconfig(self, identity: identities.Identity) -> Path:
        return self._home.kubeconfig if identity is self._admin else self._home.kubeconfigs / identity.name

    def _connect(self, identity: identities.Identity) -> cluster.Connection:
        return cluster.connect(cluster.Location(kubeconfig=str(self._kubeconfig(identity))))

    def _log(self, pod: dict[str, Any], container: str) -> str | None:
        kubelet = self.kubelets.get(pod["spec"].get("nodeName", ""))
        lines = kubelet.log(pod["metadata"]["uid"], container) if kubelet else None
        return None if lines is None else "".join(f"{line}\n" for line in lines)


def _at_once(calls: Iterator[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
