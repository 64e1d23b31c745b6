"""What keeps a real node in its place: a cgroup that finds all its processes, a mount namespace that holds its mounts.

containerd's shims and containers outlive whoever started them, so a node is ended by killing all that is in its cgroup;
its mounts go with the last process of its namespace. The directories that kubelet and containerd have by constant and
not by configuration are the node's own in that namespace; empty ones are made on the machine to hang them on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dradriver.lab.realcluster.errors import MissingError, StartError

POLL_SECONDS = 0.02
END_SECONDS = 15.0
CONSTANT_DIRECTORIES = ("/var/lib/kubelet", "/var/log/containers", "/run/containerd")
_ROOT = Path("/sys/fs/cgroup")
_TRACKING = "pids"
"""The hierarchy of cgroup v1 whose membership tells what belongs to the node; kubelet and runc use them all."""
_V2_CONTROLLERS = ("cpu", "cpuset", "memory", "pids")
_ENTER = 'echo $$ > "$0" && exec "$@"'
_HOLD = """
echo $$ > "$0" && mount --make-rshared / || exit 1
ready="$1"; shift
while [ $# -gt 0 ]; do mount --bind "$1" "$2" || exit 1; shift 2; done
: > "$ready" && exec sleep 2147483647
"""


class Cgroup:
    """A cgroup of one name at the top of every hierarchy, v1 or v2."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._tops = [hierarchy / name for hierarchy in _hierarchies()]  # of both kinds: runc uses v2 beside v1
        tracking = [top for top in self._tops if top.parent.name == _TRACKING]
        tracking += [top for top in self._tops if _is_v2(top.parent)]
        if not tracking:
            raise MissingError(f"no cgroup hierarchy {_TRACKING} under {_ROOT}: a real node needs cgroups")
        self._tracking = tracking[0]
        self._own = self._tracking / "node"  # v2 wants processes in leaves

    def create(self) -> None:
        """Make it. Raises MissingError where that is not allowed."""
        try:
            for top in self._tops:
                if _is_v2(top.parent):
                    _delegate(top.parent)
                top.mkdir()
            self._own.mkdir()
        except OSError as error:
            raise MissingError(f"cannot make a cgroup {error.filename}: {error.strerror}") from error

    @property
    def entrance(self) -> Path:
        """The file that takes a process in."""
        return self._own / "cgroup.procs"

    def entering(self, command: Sequence[str | Path]) -> list[str]:
        """A command line that runs `command` inside."""
        return ["/bin/sh", "-c", _ENTER, str(self.entrance), *map(str, command)]

    def end(self) -> None:
        """Kill everything in it and remove it. Raises StartError where something does not go."""
        until = time.monotonic() + END_SECONDS
        while time.monotonic() < until:
            for pid in self._pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if self._remove():
                return
            time.sleep(POLL_SECONDS)
        raise StartError(f"cgroup {self.name} does not empty: processes {sorted(self._pids())}")

    def _pids(self) -> set[int]:
        found: set[int] = set()
        for directory in (self._tracking, *self._tracking.glob("**/")):
            with contextlib.suppress(OSError):  # it went meanwhile
                found |= {int(word) for word in (directory / "cgroup.procs").read_text().split()}
        return found

    def _remove(self) -> bool:
        for top in self._tops:
            for directory in sorted([*top.glob("**/")], reverse=True):  # children before parents
                with contextlib.suppress(OSError):  # busy: a later round
                    directory.rmdir()
        return not any(top.exists() for top in self._tops)


def end_left(prefix: str) -> None:
    """End what is left of nodes whose cgroups' names begin so. Raises StartError where something does not go."""
    names = {directory.name for hierarchy in _hierarchies() for directory in hierarchy.glob(f"{prefix}*")}
    for name in sorted(names):
        Cgroup(name).end()


def namespace(cgroup: Cgroup, directories: Mapping[str, Path], ready: Path) -> list[str]:
    """A command line whose process holds a mount namespace in which `directories` are others; it makes `ready`."""
    pairs = [str(word) for constant, own in directories.items() for word in (own, constant)]
    hold = ["/bin/sh", "-c", _HOLD, str(cgroup.entrance), str(ready), *pairs]
    return ["unshare", "--mount", "--propagation", "private", *hold]


def joining(holder: int, cgroup: Cgroup, command: Sequence[str | Path]) -> list[str]:
    """A command line that runs `command` in the cgroup and in the namespace that a process holds."""
    return ["nsenter", f"--target={holder}", "--mount", "--", *cgroup.entering(command)]


def _hierarchies() -> Iterator[Path]:
    """Mount points of all hierarchies."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place, _, kind = line.partition(" - ")
        if kind.split()[0] in ("cgroup", "cgroup2"):
            yield Path(place.split()[4])


def _is_v2(hierarchy: Path) -> bool:
    return (hierarchy / "cgroup.controllers").exists()


def _delegate(hierarchy: Path) -> None:
    available = (hierarchy / "cgroup.controllers").read_text().split()
    if wanted := " ".join(f"+{name}" for name in _V2_CONTROLLERS if name in available):
        (hierarchy / "cgroup.subtree_control").write_text(wanted)
