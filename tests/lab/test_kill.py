"""The node plugins survive kill -9 at random points: no claim lost, no device held twice, no CDI file without a claim.

Pods with claims come and go without pause on two nodes while the nodes' plugins are killed: while they serve nothing,
while they start, and in the middle of Prepare and Unprepare. `--rounds` says how often, `--seed` repeats the chances
(not the timing).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dradriver import cluster
from dradriver.lab import containers, preparing
from dradriver.node import journal

Ask = Callable[..., Any]

NODES = ("l4-4", "a100-mig")
PREPARE, UNPREPARE = "NodePrepareResources", "NodeUnprepareResources"
ROUNDS_BETWEEN_CHECKS = 5
MOST_PODS = 9
SETTLE_SECONDS = 45


class Traffic:
    """Pods and claims that come and go, in a thread of its own; `check` looks for what is never to be, at each step."""

    def __init__(self, objects: Any, rng: random.Random, check: Callable[[], list[str]]) -> None:
        self._objects = objects
        self._rng = rng
        self._check = check
        self._pods: dict[str, str | None] = {}
        """Pods that exist, and the claim to delete with each."""
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.made = 0
        self.errors: list[object] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(30)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        with self._lock:
            yield

    def delete_all(self) -> None:
        with self._lock:
            for pod in tuple(self._pods):
                self._delete(pod, force=False)

    def _run(self) -> None:
        while not self._stopping.wait(self._rng.uniform(0, 0.08)):
            try:
                with self._lock:
                    self._step()
                self.errors += self._check()
            except Exception as error:  # noqa: BLE001 - the test asserts that there was none
                self.errors.append(error)
            if self.errors:
                return

    def _step(self) -> None:
        full = len(self._pods) / MOST_PODS
        if self._rng.random() < full:
            self._delete(self._rng.choice(list(self._pods)), force=self._rng.random() < 0.5)
        else:
            self._create()

    def _create(self) -> None:
        self.made += 1
        pod, chance = f"p{self.made}", self._rng.random()
        shared = [claim for claim in self._pods.values() if claim]
        if chance < 0.6:
            self._objects.add_pod(pod, templates=[self._rng.choice(["one", "two"])])
            self._pods[pod] = None
        elif chance < 0.75 and shared:
            self._objects.add_pod(pod, self._rng.choice(shared))
            self._pods[pod] = None
        else:
            self._objects.add_claim(f"c{self.made}", self._objects.wanted(self._rng.choice([1, 1, 2])))
            self._objects.add_pod(pod, f"c{self.made}")
            self._pods[pod] = f"c{self.made}"

    def _delete(self, pod: str, *, force: bool) -> None:
        claim = self._pods.pop(pod)
        with contextlib.suppress(cluster.NotFoundError):
            self._objects.delete_pod(pod, force=force)
        if claim:
            with contextlib.suppress(cluster.NotFoundError):
                self._objects.connection.delete(f"{self._objects.claims}/{claim}")


class Calls:
    """Every call of the kubelets, so that a plugin can be killed in the middle of one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._begun = threading.Condition()
        self._running: Counter[object] = Counter()
        self._killed: dict[object, float] = {}
        self.cut: Counter[str] = Counter()
        """Calls that a kill cut short, by method."""
        original = preparing.Claims._call

        def call(claims: preparing.Claims, endpoint: Any, method: str, records: list[Any]) -> Any:
            started = time.monotonic()
            with self._begun:
                self._running[claims] += 1
                self._begun.notify_all()
            try:
                return original(claims, endpoint, method, records)
            except preparing.NotReadyError:
                if self._killed.get(claims, 0) >= started:
                    self.cut[method] += 1
                raise
            finally:
                with self._begun:
                    self._running[claims] -= 1

        monkeypatch.setattr(preparing.Claims, "_call", call)

    def wait_for_one(self, kubelet: Any, seconds: float) -> None:
        with self._begun:
            self._begun.wait_for(lambda: self._running[kubelet._claims], seconds)

    def killing(self, kubelet: Any) -> None:
        self._killed[kubelet._claims] = time.monotonic()


class Observer:
    """What is true of the nodes, seen from outside the plugins."""

    def __init__(self, lab: Any, objects: Any) -> None:
        self._lab = lab
        self._objects = objects
        self._devices = {node: lab.devices(node) for node in NODES}

    def held_twice(self) -> list[str]:
        """Devices that two CDI files of a node give out at the same moment. To be empty at every moment."""
        found = []
        for node in NODES:
            holders: dict[str, Path] = {}
            for path, uuids in self._cdi(node):
                for uuid in uuids:
                    other = holders.setdefault(uuid, path)
                    if other != path and other.exists() and path.exists():
                        found.append(f"{node}: {uuid} is in {other.name} and {path.name}")
        return found

    def problems(self) -> list[str]:
        """What is not as it should be once everything has come to rest."""
        assert not (twice := self.held_twice()), "\n".join(twice)
        pods, _ = self._objects.connection.list(self._objects.pods)
        claims, _ = self._objects.connection.list(self._objects.claims)
        found = [f"pod {pod['metadata']['name']} is not settled" for pod in pods if not _settled(pod)]
        running = {pod["metadata"]["uid"] for pod in pods if pod["status"].get("phase") == "Running"}
        found += self._lost_or_given_twice(claims, running)
        for node in NODES:
            if self._lab.devices(node) != self._devices[node]:
                found.append(f"{node}: slices are not complete")
            found += self._node_problems(node)
        return found

    def _lost_or_given_twice(self, claims: list[dict[str, Any]], running: set[str]) -> list[str]:
        found: list[str] = []
        holders: dict[str, str] = {}
        for claim in claims:
            status, name = claim.get("status") or {}, claim["metadata"]["name"]
            if not any(entry["uid"] in running for entry in status.get("reservedFor") or ()):
                continue
            for result in status["allocation"]["devices"]["results"]:
                device = f"{result['pool']}/{result['device']}"
                if device in holders:
                    found.append(f"{device} is given to {holders[device]} and {name}")
                holders[device] = name
                if claim["metadata"]["uid"] not in self._journal(result["pool"]):
                    found.append(f"claim {name} runs and is lost on {result['pool']}")
        return found

    def _node_problems(self, node: str) -> Iterator[str]:
        records = dict(self._lab.kubelets[node]._claims._records)
        files = {path.stem.rpartition("_")[2] for path, _ in self._cdi(node)}
        prepared = self._journal(node)
        if files != prepared:
            yield f"{node}: CDI files {sorted(files)}, journal {sorted(prepared)}"
        if prepared != records.keys():
            yield f"{node}: journal {sorted(prepared)}, the kubelet prepared {sorted(records)}"
        for record in records.values():
            names = [name for devices in record.drivers.values() for _, ids in devices or () for name in ids]
            try:
                containers.view(self._lab.places[node].cdi, names)
            except containers.UnresolvableError as error:
                yield f"{node}: {error}"

    def _cdi(self, node: str) -> Iterator[tuple[Path, list[str]]]:
        for path in self._lab.places[node].cdi.glob("*.json"):
            with contextlib.suppress(FileNotFoundError):
                environment = [
                    entry
                    for device in json.loads(path.read_bytes())["devices"]
                    for entry in device["containerEdits"].get("env") or ()
                ]
                yield path, [entry.partition("=")[2] for entry in environment if entry.startswith("GPUPOOL_DEVICE_")]

    def _journal(self, node: str) -> set[str]:
        """UIDs of the claims that a node's journal has as prepared."""
        held: set[str] = set()
        replay = journal.decode((self._lab.places[node].state / "journal").read_bytes())
        for record in replay.records:
            uid = str(record.get("uid") or record["claim"]["uid"])
            (held.add if record["kind"] == "prepared" else held.discard)(uid)
        return held


def _settled(pod: dict[str, Any]) -> bool:
    if pod["metadata"].get("deletionTimestamp"):
        return False
    if pod["spec"].get("nodeName"):
        return bool(pod["status"].get("phase") == "Running")
    return any(condition["type"] == "PodScheduled" for condition in pod["status"].get("conditions") or ())


def at_rest(question: Callable[[], list[str]]) -> None:
    """Wait until nothing is wrong any more."""
    until = time.monotonic() + SETTLE_SECONDS
    while problems := question():
        assert time.monotonic() < until, "\n".join(problems)
        time.sleep(0.1)


def kill_one(lab: Any, calls: Calls, rng: random.Random) -> None:
    """Kill one node's plugin: in a call, while it starts, or whenever."""
    node = rng.choice(NODES)
    plugin, kubelet = lab.plugins[node], lab.kubelets[node]
    chance = rng.random()
    if chance < 0.7:
        until = time.monotonic() + 10
        while not kubelet.is_registered("gpu.gpupool.dev") and time.monotonic() < until:
            time.sleep(0.01)
        calls.wait_for_one(kubelet, 3)
        time.sleep(rng.uniform(0, 0.02))
    else:
        time.sleep(rng.uniform(0, 1.5))
    pid = plugin.pid
    if pid is not None:
        calls.killing(kubelet)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_node_plugins_survive_kill_9_at_random_points(
    start_lab: Callable[..., Any],
    as_person: Callable[..., Any],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rounds = request.config.getoption("rounds", 20)
    seed = request.config.getoption("seed", None) or random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it when the test fails
    rng, traffic_rng = (random.Random(seed + n) for n in range(2))  # noqa: S311 - chances of a test
    calls = Calls(monkeypatch)
    lab = start_lab(*NODES, longest_restart=0.1)
    objects = as_person(lab.connection)
    objects.add_class()
    for name, count in (("one", 1), ("two", 2)):
        objects.add_template(name, objects.wanted(count))
    observer = Observer(lab, objects)
    traffic = Traffic(objects, traffic_rng, observer.held_twice)
    started = time.monotonic()
    traffic.start()
    try:
        for number in range(1, rounds + 1):
            kill_one(lab, calls, rng)
            assert not traffic.errors
            if number % ROUNDS_BETWEEN_CHECKS == 0:
                with traffic.paused():
                    at_rest(observer.problems)
    finally:
        traffic.stop()
    assert not traffic.errors
    traffic.delete_all()
    at_rest(lambda: observer.problems() + [pod["metadata"]["name"] for pod in objects.connection.list(objects.pods)[0]])
    at_rest(lambda: [claim["metadata"]["name"] for claim in objects.connection.list(objects.claims)[0]])
    assert not [path for node in NODES for path in lab.places[node].cdi.iterdir()]
    with capsys.disabled():
        request.config.get_terminal_writer().line(
            f"\n{rounds} kills in {time.monotonic() - started:.0f} s, seed {seed}: "
            f"{calls.cut[PREPARE]} cut a Prepare short, {calls.cut[UNPREPARE]} an Unprepare; {traffic.made} pods"
        )
