"""Where a lab keeps its things: a private home, and a short directory for sockets (their paths end at 107 bytes).

Two locks tell what is alive, whatever was killed: `lock` is held by every process of the lab's tree, from before its
first file is written until after its last is removed; `supervisor.lock` by the supervisor alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from dradriver.lab.identities import write_private

SOCKETS = Path("/tmp")  # noqa: S108 - only here are paths short; the directory made in it is private
SOCKETS_PREFIX = "gpupool-"
POLL_SECONDS = 0.05


def default_home() -> Path:
    """The home of the lab that `kubectl gpupool lab` means unless told otherwise."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "gpupool" / "lab"


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One node: its name and the description of its hardware (a shipped name or a file)."""

    name: str
    description: str


class Kind(StrEnum):
    """Whether a part of the lab stands in for the real thing or is it."""

    EMBEDDED = "embedded"
    REAL = "real"


@dataclass(frozen=True, slots=True)
class Kinds:
    """What runs in a lab; real kubelets need a real control plane."""

    control_plane: Kind = Kind.EMBEDDED
    kubelet: Kind = Kind.EMBEDDED


DEFAULT_KINDS = Kinds()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a lab is to be: the version of Kubernetes, its nodes, its directory for sockets, what in it is real."""

    kubernetes: str
    nodes: tuple[NodePlan, ...]
    sockets: Path
    kinds: Kinds = DEFAULT_KINDS


@dataclass(frozen=True, slots=True)
class NodeHome:
    """One node's directories: `root` holds its made-up /dev, /proc and /sys."""

    root: Path
    state: Path
    cdi: Path
    plugins: Path
    registry: Path
    log: Path

    def create(self) -> None:
        """Make all of them."""
        for directory in (self.root, self.state, self.cdi, self.plugins, self.registry):
            directory.mkdir(parents=True, exist_ok=True)


@dataclass(frozen=True, slots=True)
class Home:
    """A lab's home directory."""

    path: Path

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.path / "kubeconfig"

    @property
    def kubeconfigs(self) -> Path:
        """Kubeconfigs of the other identities."""
        return self.path / "kubeconfigs"

    @property
    def certificates(self) -> Path:
        """The API server's certificates."""
        return self.path / "certificates"

    @property
    def control_plane(self) -> Path:
        """What a real control plane keeps."""
        return self.path / "control-plane"

    @property
    def log(self) -> Path:
        """What the supervisor says."""
        return self.path / "lab.log"

    @property
    def status(self) -> Path:
        """What runs, by the supervisor."""
        return self.path / "status.json"

    @property
    def _plan(self) -> Path:
        """What was asked for: written before and removed after everything else, so it marks a directory as ours."""
        return self.path / "plan.json"

    def node(self, name: str, sockets: Path, number: int) -> NodeHome:
        """Directories of one node; sockets are short: `<sockets>/<number>/{p,r}`."""
        base = self.path / "nodes" / name
        return NodeHome(
            root=base / "root",
            state=base / "state",
            cdi=base / "cdi",
            plugins=sockets / str(number) / "p",
            registry=sockets / str(number) / "r",
            log=base / "plugin.log",
        )

    def lock(self, name: str = "lock", seconds: float = 0) -> int | None:
        """Take a lock, waiting at most so long; its descriptor, or None where it stays held."""
        until = time.monotonic() + seconds
        while (descriptor := self._try_lock(self.path / name)) is None:
            if time.monotonic() >= until:
                return None
            time.sleep(POLL_SECONDS)
        return descriptor

    @staticmethod
    def _try_lock(path: Path) -> int | None:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except OSError:  # held, or removed by who held it
            pass
        os.close(descriptor)
        return None

    def is_locked(self, name: str = "lock") -> bool:
        """Whether a process of this lab, or its supervisor (`supervisor.lock`), is alive."""
        if not (self.path / name).exists():
            return False
        descriptor = self.lock(name)
        if descriptor is None:
            return True
        os.close(descriptor)
        return False

    def is_foreign(self) -> bool:
        """Whether the directory holds things that no lab made."""
        return self.path.is_dir() and not self._plan.exists() and any(e.name != "lock" for e in self.path.iterdir())

    def create(self, kubernetes: str, nodes: tuple[NodePlan, ...], kinds: Kinds = DEFAULT_KINDS) -> Plan:
        """Make the directories of a lab; the lock is held."""
        plan = Plan(kubernetes, nodes, SOCKETS / f"{SOCKETS_PREFIX}{secrets.token_hex(4)}", kinds)
        content = {
            "kubernetes": kubernetes,
            "nodes": [{"name": node.name, "description": node.description} for node in nodes],
            "sockets": str(plan.sockets),
            "controlPlane": kinds.control_plane,
            "kubelet": kinds.kubelet,
        }
        self.write(self._plan, content)
        plan.sockets.mkdir(mode=0o700)
        for directory in (self.kubeconfigs, self.certificates, self.control_plane):
            directory.mkdir(mode=0o700)
        return plan

    def plan(self) -> Plan:
        """What `create` was given."""
        content = self.read(self._plan)
        nodes = tuple(NodePlan(node["name"], node["description"]) for node in content["nodes"])
        kinds = Kinds(Kind(content["controlPlane"]), Kind(content["kubelet"]))
        return Plan(content["kubernetes"], nodes, Path(content["sockets"]), kinds)

    def read(self, path: Path) -> dict[str, Any]:
        """One of the JSON files above; empty where there is none."""
        try:
            content = json.loads(path.read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def write(self, path: Path, content: Mapping[str, Any]) -> None:
        """Write one of the JSON files above, whole or not at all."""
        write_private(path, json.dumps(content, indent=2).encode())

    def clear(self) -> None:
        """Remove what a lab made here, and only that, except for the lock, which is held."""
        sockets = Path(self.read(self._plan).get("sockets") or "/")
        if sockets.parent == SOCKETS and sockets.name.startswith(SOCKETS_PREFIX):
            shutil.rmtree(sockets, ignore_errors=True)
        if self._plan.exists():
            for directory in (self.path / "nodes", self.kubeconfigs, self.certificates, self.control_plane):
                shutil.rmtree(directory, ignore_errors=True)
            for file in (self.kubeconfig, self.log, self.status, self.path / "supervisor.lock", self._plan):
                file.unlink(missing_ok=True)

    def remove(self) -> None:
        """`clear`, and the lock and the directory too, if nothing else is in it."""
        self.clear()
        (self.path / "lock").unlink(missing_ok=True)
        if self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()
