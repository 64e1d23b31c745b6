"""Bringing a lab up and down, and asking how it is: what `kubectl gpupool lab` does.

The lab itself is one process tree (`dradriver.lab.supervising`) in a session of its own; this module only starts it,
reads its files and ends it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dradriver import api, described
from dradriver.lab import machines
from dradriver.lab.places import DEFAULT_KINDS, Home, Kind, Kinds, NodePlan
from dradriver.lab.realcluster import confining
from dradriver.lab.realcluster.errors import RealClusterError

UP_SECONDS = 60.0
REAL_UP_SECONDS = 240.0
DOWN_SECONDS = 20.0
KILL_SECONDS = 5.0
POLL_SECONDS = 0.05
LAST_LINES = 12


class LabError(Exception):
    """The lab cannot do what was asked; the message says why and what to try."""


@dataclass(frozen=True, slots=True)
class Status:
    """What runs: the supervisor's own report, `{}` where nothing does."""

    running: bool
    report: dict[str, Any]


def plan_nodes(words: Sequence[str]) -> tuple[NodePlan, ...]:
    """Nodes from words such as `hgx-h100`, `my.yaml` or `name=my.yaml`. Raises LabError."""
    plans: list[NodePlan] = []
    for word in words:
        name, equals, source = word.rpartition("=")
        try:
            description = described.load(source)
        except described.DescriptionError as error:
            raise LabError(str(error)) from error
        name = name if equals else description.name
        taken = {plan.name for plan in plans}
        unique = next(n for n in (name, *(f"{name}-{i}" for i in range(2, len(words) + 2))) if n not in taken)
        if not api.names.is_dns_subdomain(unique):
            raise LabError(f"{unique!r} cannot name a node (lower-case letters, digits, - and .); write NAME={source}")
        plans.append(NodePlan(unique, source if source in described.shipped() else str(Path(source).resolve())))
    return tuple(plans)


def up(
    home: Home,
    nodes: Sequence[NodePlan],
    kubernetes: str,
    say: Callable[[str], None],
    kinds: Kinds = DEFAULT_KINDS,
) -> Status:
    """Start a lab and wait until every node has registered and published. After a LabError nothing is left of it."""
    try:
        emulated = api.Kubernetes.release(kubernetes)
    except api.ApiError as error:
        raise LabError(str(error)) from error
    _build(str(emulated), kinds, say)
    with _held(home) as lock, _usable(home):
        home.create(str(emulated), tuple(nodes), kinds)
        with home.log.open("ab") as log:
            supervisor = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "dradriver.lab.supervising", str(home.path), str(lock)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                pass_fds=(lock,),
            )
        try:
            seconds = UP_SECONDS if kinds == DEFAULT_KINDS else REAL_UP_SECONDS
            _wait_ready(home, supervisor, say, seconds)
        except BaseException:
            _stop(supervisor)
            home.remove()
            raise
    # It outlives this process on purpose, so nobody waits for it.
    supervisor.returncode = 0
    return Status(running=True, report=home.read(home.status))


@contextmanager
def _usable(home: Home) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LabError(f"cannot use {home.path}: {error.strerror}; choose another --directory") from error


def _build(kubernetes: str, kinds: Kinds, say: Callable[[str], None]) -> None:
    """Have what a lab with real parts needs. Raises LabError where it cannot be had."""
    if kinds.control_plane is not Kind.REAL:
        if kinds.kubelet is Kind.REAL:
            raise LabError("a real kubelet needs a real control plane: --control-plane real --kubelet real")
        return
    try:
        machines.build(kubernetes, kinds.kubelet, say)
    except RealClusterError as error:
        raise LabError(f"{error}; or leave out --control-plane real: the embedded one needs nothing") from error


@contextmanager
def _held(home: Home) -> Iterator[int]:
    """The lock of a home that holds nothing. Raises LabError."""
    with _usable(home):
        home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = home.lock()
        if lock is None and not home.is_locked("supervisor.lock") and home.read(home.status):
            down(home)  # its supervisor was killed, plugins are left
            home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = home.lock()
    if lock is None:
        raise LabError(f"a lab is running already in {home.path}; stop it first:  kubectl gpupool lab down")
    try:
        if home.is_foreign():
            raise LabError(f"{home.path} has files that no lab made; choose an empty or new --directory")
        home.clear()  # what a lab that was killed left behind
        home.path.chmod(0o700)
        yield lock
    finally:
        os.close(lock)


def _wait_ready(home: Home, supervisor: subprocess.Popen[bytes], say: Callable[[str], None], seconds: float) -> None:
    until = time.monotonic() + seconds
    said = 0
    while time.monotonic() < until:
        report = home.read(home.status)
        for line in report.get("progress", ())[said:]:
            said += 1
            say(line)
        if report.get("ready"):
            return
        if _has_ended(supervisor):
            raise LabError(f"the lab ended while starting; it last said:\n{_last_lines(home.log)}")
        time.sleep(POLL_SECONDS)
    logs = [home.log, *sorted((home.path / "nodes").glob("*/plugin.log"))]
    last = "\n".join(f"{log}:\n{_last_lines(log)}" for log in logs)
    raise LabError(f"the lab was not ready after {seconds:.0f} s; its processes last said:\n{last}")


def status(home: Home) -> Status:
    """How the lab is. Raises LabError."""
    with _usable(home):
        running = home.is_locked("supervisor.lock")
        return Status(running, home.read(home.status) if running else {})


def down(home: Home) -> bool:
    """Stop the lab and remove what it made; False where none ran (leftovers are removed all the same)."""
    with _usable(home):
        if not home.path.is_dir() or home.is_foreign():
            return False
        lock = home.lock()
        running = lock is None
        if lock is None:
            lock = _end(home)
        try:
            home.remove()
        finally:
            os.close(lock)
        return running


def _end(home: Home) -> int:
    """End the whole tree: ask its supervisor, then kill the process group. Gives the lock, now free."""
    pid = home.read(home.status).get("pid")
    if not isinstance(pid, int):
        raise LabError(f"a lab is starting in {home.path}; try again in a moment")
    real_nodes = f"{home.plan().sockets.name}-"
    # While the lock is held something of the tree lives, and no other process can have got its group's number.
    if home.is_locked("supervisor.lock"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        lock = home.lock(seconds=DOWN_SECONDS)
        if lock is not None:
            return lock
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(RealClusterError):  # what does not end is seen by the lock that it holds
        confining.end_left(real_nodes)  # their containers are in no process group of ours
    lock = home.lock(seconds=KILL_SECONDS)
    if lock is None:
        raise LabError(f"processes of the lab in {home.path} do not end; look for the process group {pid}")
    return lock


def _stop(supervisor: subprocess.Popen[bytes]) -> None:
    """End a lab that does not come up."""
    os.kill(supervisor.pid, signal.SIGTERM)  # Popen's own methods would reap it, see _has_ended
    until = time.monotonic() + DOWN_SECONDS
    while not _has_ended(supervisor) and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(supervisor.pid, signal.SIGKILL)
    supervisor.wait()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended, without reaping it: until that, nobody else can get the number of its group."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _last_lines(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    return "\n".join(f"  {line}" for line in lines[-LAST_LINES:]) or "  nothing"
