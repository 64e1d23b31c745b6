"""Real parts in the place of the lab's own: the control plane, and a kubelet with containerd for each node."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dradriver import cluster
from dradriver.lab.identities import Identity
from dradriver.lab.places import Home, Kind, NodeHome, Plan
from dradriver.lab.realcluster import binaries, building, controlplanes, nodes
from dradriver.lab.realcluster.configuring import Places
from dradriver.lab.realcluster.ports import free_ports

_ASK_SECONDS = 1.0


def build(plan_kubernetes: str, kubelet: Kind, say: building.Say) -> None:
    """Build what a lab with a real control plane needs, minutes where it is new. Raises RealClusterError."""
    binaries.kubernetes(plan_kubernetes, say)
    if kubelet is Kind.REAL:
        binaries.containers(say)


def control_plane(
    home: Home, plan: Plan, admin: Identity, everyone: Iterable[Identity], lock: int | None
) -> controlplanes.ControlPlane:
    """The real control plane of a lab. Raises RealClusterError."""
    return controlplanes.ControlPlane(
        binaries.kubernetes(plan.kubernetes, _built),
        home.control_plane,
        everyone,
        admin=admin,
        heartbeats=plan.kinds.kubelet is Kind.REAL,
        inherited=() if lock is None else (lock,),
    )


class Machine:
    """One real node of the lab, with the interface that the lab has to its own kubelets."""

    def __init__(
        self,
        name: str,
        places: NodeHome,
        *,
        plane: controlplanes.ControlPlane,
        kubeconfig: Path,
        admin: cluster.Connection,
        lock: int | None,
    ) -> None:
        """Put its parts together.

        Args:
            name: Name of the node.
            places: Its directories, as they are for one of the lab's own kubelets.
            plane: The control plane.
            kubeconfig: The kubelet's.
            admin: A connection that may change nodes.
            lock: The lab's lock, for its processes to inherit.
        """
        base, short = places.state.parent / "machine", places.plugins.parent
        for made in (base, short):
            made.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = Places(base, short, places.cdi)
        self.places = replace(places, plugins=own.plugins, registry=own.registry)
        (self._health_port,) = free_ports(1)
        self._node = nodes.Node(
            name,
            plane.programs,
            binaries.containers(_built),
            own,
            kubeconfig=kubeconfig,
            credentials=plane.credentials,
            admin=admin,
            feature_gates=plane.gates,
            cgroup=f"{short.parent.name}-{short.name}",
            inherited=() if lock is None else (lock,),
        )
        self.start, self.stop = self._node.start, self._node.stop

    @property
    def flags(self) -> dict[str, object]:
        """What the plugin must be told beside the directories."""
        return {"health-port": self._health_port}

    def is_registered(self, _driver: str) -> bool:
        """Whether the plugin says that the kubelet took it and its slices are written."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._health_port}/readyz", timeout=_ASK_SECONDS):
                return True
        except OSError:
            return False

    def log(self, _pod_uid: str, _container: str) -> list[str] | None:
        """Nothing: kubectl asks the real kubelet."""
        return None


def _built(line: str) -> None:
    """Nothing is built here any more: `build` did it before the lab's process began."""
