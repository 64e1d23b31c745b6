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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dradriver import api, described
from dradriver.lab.places import Home

UP_SECONDS = 60.0
DOWN_SECONDS = 20.0
POLL_SECONDS = 0.05
LAST_LINES = 12


class LabError(Exception):
    """The lab cannot do what was asked; the message says why and what to try."""


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One node: its name and the description of its hardware (a shipped name or a file)."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Status:
    """What runs: the supervisor's own report, `{}` while nothing is ready."""

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
        path = Path(source)
        plans.append(NodePlan(unique, str(path.resolve()) if path.exists() else source))
    return tuple(plans)


def up(home: Home, nodes: Sequence[NodePlan], kubernetes: str, say: Callable[[str], None]) -> Status:
    """Start a lab and wait until every node has registered and published. On LabError nothing is left running."""
    try:
        emulated = api.Kubernetes.release(kubernetes)
    except api.ApiError as error:
        raise LabError(str(error)) from error
    sockets = _prepared(home)
    plan = {
        "sockets": str(sockets),
        "kubernetes": str(emulated),
        "nodes": [{"name": node.name, "description": node.description} for node in nodes],
    }
    home.write(home.plan, plan)
    with home.log.open("ab") as log:
        supervisor = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "dradriver.lab.supervising", str(home.path)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )
    try:
        _wait_ready(home, supervisor, say)
    except BaseException:
        _end(home, supervisor.pid, supervisor)
        raise
    # It outlives this process on purpose, so nobody waits for it.
    supervisor.returncode = 0
    return status(home)


def _prepared(home: Home) -> Path:
    home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if home.is_locked():
        raise LabError("a lab is running already; stop it first:  kubectl gpupool lab down")
    home.remove()  # what a lab that was killed left behind
    return home.create()


def _wait_ready(home: Home, supervisor: subprocess.Popen[bytes], say: Callable[[str], None]) -> None:
    until = time.monotonic() + UP_SECONDS
    said: set[str] = set()
    while time.monotonic() < until:
        report = home.read(home.status)
        for line in report.get("progress", ()):
            if line not in said:
                said.add(line)
                say(line)
        if report.get("ready"):
            return
        if supervisor.poll() is not None:
            raise LabError(f"the lab ended while starting; it last said:\n{_last_lines(home)}")
        time.sleep(POLL_SECONDS)
    raise LabError(f"the lab was not ready after {UP_SECONDS:.0f} s; it last said:\n{_last_lines(home)}")


def status(home: Home) -> Status:
    """How the lab is."""
    running = home.is_locked()
    return Status(running, home.read(home.status) if running else {})


def down(home: Home) -> bool:
    """Stop the lab and remove what it made; False where none ran (leftovers are removed all the same)."""
    if not home.path.exists():
        return False
    running = home.is_locked()
    if running:
        pid = home.read(home.status).get("pid")
        if not isinstance(pid, int):
            raise LabError(f"a lab is starting in {home.path}; try again in a moment")
        _end(home, pid)
    home.remove()
    return running


def _end(home: Home, pid: int, child: subprocess.Popen[bytes] | None = None) -> None:
    """End the whole tree: ask, then kill its process group. The lock says whether anything of it lives."""
    for wanted in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, wanted) if wanted is signal.SIGTERM else os.killpg(pid, wanted)
        until = time.monotonic() + DOWN_SECONDS
        while time.monotonic() < until:
            if child is not None:
                child.poll()
            if not home.is_locked():
                return
            time.sleep(POLL_SECONDS)
    raise LabError(f"processes of the lab in {home.path} do not end; look for the process group {pid}")


def _last_lines(home: Home) -> str:
    try:
        lines = home.log.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return "nothing"
    return "\n".join(f"  {line}" for line in lines[-LAST_LINES:]) or "nothing"
