"""Where a lab keeps its things: a private home, and a short directory for sockets (their paths end at 107 bytes).

The lock file is held by every process of the lab's tree, so "locked" means "something of it is alive".
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dradriver.lab.identities import write_private


def default_home() -> Path:
    """The home of the lab that `kubectl gpupool lab` means unless told otherwise."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "gpupool" / "lab"


@dataclass(frozen=True, slots=True)
class NodeHome:
    """One node's directories: `root` holds its made-up /dev, /proc and /sys."""

    root: Path
    state: Path
    cdi: Path
    plugins: Path
    registry: Path
    log: Path


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
    def log(self) -> Path:
        """What the supervisor says."""
        return self.path / "lab.log"

    @property
    def plan(self) -> Path:
        """What was asked for, written before the supervisor starts."""
        return self.path / "plan.json"

    @property
    def status(self) -> Path:
        """What runs, written when it is ready."""
        return self.path / "status.json"

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

    def create(self) -> Path:
        """Make the home and a directory for sockets; gives the latter."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)
        self.kubeconfigs.mkdir(mode=0o700, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="gpupool-", dir="/tmp"))

    def lock(self) -> int | None:
        """Take the lock; the descriptor to pass to every process of the lab, None where it is held already."""
        descriptor = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        return descriptor

    def is_locked(self) -> bool:
        """Whether a process of this lab is alive."""
        if not (self.path / "lock").exists():
            return False
        descriptor = self.lock()
        if descriptor is None:
            return True
        os.close(descriptor)
        return False

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

    def remove(self) -> None:
        """Remove everything this lab made, and only that."""
        sockets = self.read(self.plan).get("sockets")
        if sockets and Path(sockets).name.startswith("gpupool-"):
            shutil.rmtree(sockets, ignore_errors=True)
        for entry in ("nodes", "kubeconfigs", "certificates"):
            shutil.rmtree(self.path / entry, ignore_errors=True)
        for file in (self.kubeconfig, self.log, self.plan, self.status):
            file.unlink(missing_ok=True)
