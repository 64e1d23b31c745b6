"""One lab, put together: control plane and kubelets, our own in threads or real ones; node plugins as processes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dradriver import api, cluster
from dradriver.lab import identities, machines
from dradriver.lab.certificates import make_certificates
from dradriver.lab.controlplanes import ControlPlane, EmbeddedControlPlane, at_once
from dradriver.lab.kubelets import WIPE_SECONDS, Kubelet
from dradriver.lab.places import Home, Kind, NodePlan, Plan
from dradriver.lab.plugins import LONGEST_RESTART_SECONDS, PluginProcess
from dradriver.lab.realcluster import accounts
from dradriver.lab.realcluster.controlplanes import ControlPlane as RealControlPlane

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
        self._kinds = plan.kinds
        self._lock = lock
        self._wipe_seconds = wipe_seconds
        self._longest_restart = longest_restart
        self._admin = identities.administrator()
        self._controller_identity = identities.controllers()
        self._node_identities = {
            node.name: (identities.kubelet(node.name), identities.plugin(node.name, DRIVER)) for node in self._nodes
        }
        self.control_plane = self._make_control_plane(plan)
        for identity in self._identities:
            self._write_kubeconfig(identity)
        self.connection = self._connect(self._admin)
        self.kubelets: dict[str, Kubelet] = {}
        self.plugins: dict[str, PluginProcess] = {}
        self.machines: dict[str, machines.Machine] = {}
        self._slices: cluster.Reflector | None = None

    def start(self) -> None:
        """Start everything; plugins come up in their own time, see `devices`. Raises RealClusterError."""
        self.control_plane.start()
        served = cluster.discover(self.connection)
        self._slices = cluster.Reflector(self.connection, f"{served.prefix}/resourceslices")
        self._slices.start()
        for node in self._nodes:
            self._start_kubelet(node, served)  # before the plugin: it deletes the node's slices
            plugin = PluginProcess(
                node.name,
                self._flags(node),
                self.places[node.name].log,
                lock=self._lock,
                longest_restart=self._longest_restart,
            )
            self.plugins[node.name] = plugin
            plugin.start()

    def stop(self) -> None:
        """End everything: plugins first, so that they find a server, then what calls it, then the server."""
        at_once(plugin.stop for plugin in self.plugins.values())
        at_once(kubelet.stop for kubelet in self.kubelets.values())
        at_once(machine.stop for machine in self.machines.values())
        if self._slices:
            self._slices.stop()
        self.control_plane.stop()

    def devices(self, node: str) -> int | None:
        """How many devices a node offers; None before its plugin is registered and its slices are written."""
        slices = self._slices.items() if self._slices else ()
        found = [len(entry["spec"].get("devices") or ()) for entry in slices if entry["spec"].get("nodeName") == node]
        kubelet = self.machines[node] if node in self.machines else self.kubelets[node]
        return sum(found) if found and kubelet.is_registered(DRIVER) else None

    @property
    def _identities(self) -> list[identities.Identity]:
        """Everyone who has a token of the lab's making."""
        return [
            self._admin,
            self._controller_identity,
            *(identity for both in self._node_identities.values() for identity in both),
        ]

    def _make_control_plane(self, plan: Plan) -> ControlPlane:
        if plan.kinds.control_plane is Kind.REAL:
            kubelets = [kubelet for kubelet, _ in self._node_identities.values()]
            return machines.control_plane(self._home, plan, self._admin, kubelets, self._lock)
        return EmbeddedControlPlane(
            self.kubernetes,
            self._identities,
            make_certificates(self._home.certificates, datetime.now(UTC)),
            logs=self._log,
            connecting=lambda: self._connect(self._controller_identity),
        )

    def _start_kubelet(self, node: NodePlan, served: cluster.Served) -> None:
        places, (kubelet_identity, plugin_identity) = self.places[node.name], self._node_identities[node.name]
        places.create()
        if isinstance(self.control_plane, RealControlPlane) and self._kinds.kubelet is Kind.REAL:
            machine = machines.Machine(
                node.name,
                places,
                plane=self.control_plane,
                kubeconfig=self._kubeconfig(kubelet_identity),
                admin=self.connection,
                lock=self._lock,
            )
            self.machines[node.name], self.places[node.name] = machine, machine.places
            machine.start()
        else:
            connection = self._connect(kubelet_identity)
            kubelet = Kubelet(connection, served, node.name, places, wipe_seconds=self._wipe_seconds)
            self.kubelets[node.name] = kubelet
            kubelet.start()
        if self._kinds.control_plane is Kind.REAL:  # now that the node is there, to which its token is bound
            self._write_kubeconfig(accounts.bind_service_account(self.connection, plugin_identity))

    def _flags(self, node: NodePlan) -> dict[str, object]:
        places, (_, identity) = self.places[node.name], self._node_identities[node.name]
        flags: dict[str, object] = {
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
        return flags | (self.machines[node.name].flags if node.name in self.machines else {})

    def _write_kubeconfig(self, identity: identities.Identity) -> None:
        plane = self.control_plane
        identities.write_kubeconfig(self._kubeconfig(identity), plane.url, plane.certificates.ca, identity)

    def _kubeconfig(self, identity: identities.Identity) -> Path:
        return self._home.kubeconfig if identity.name == self._admin.name else self._home.kubeconfigs / identity.name

    def _connect(self, identity: identities.Identity) -> cluster.Connection:
        return cluster.connect(cluster.Location(kubeconfig=str(self._kubeconfig(identity))))

    def _log(self, pod: dict[str, Any], container: str) -> str | None:
        kubelet = self.kubelets.get(pod["spec"].get("nodeName", ""))
        lines = kubelet.log(pod["metadata"]["uid"], container) if kubelet else None
        return None if lines is None else "".join(f"{line}\n" for line in lines)
