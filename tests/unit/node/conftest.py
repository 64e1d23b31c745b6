"""A node in a short directory (socket paths), an API server in memory behind a real Connection, hardware of values."""

from __future__ import annotations

import json
import logging
import queue
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dradriver import api, cluster, hardware
from dradriver.cluster.requesting import Request
from dradriver.node.cdi import CdiDirectory
from dradriver.node.claims import PreparedClaim, PreparedDevice
from dradriver.node.disk import Disk
from dradriver.node.journal import Journal
from dradriver.node.locking import NodeLock
from dradriver.node.state import State

DRIVER = "gpu.gpupool.dev"
NODE = "node-a"


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """`main` sends the log to the standard error of the moment."""
    root = logging.getLogger("dradriver")
    before = root.handlers[:], root.propagate, root.level
    yield
    root.handlers[:], root.propagate = before[:2]
    root.setLevel(before[2])


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory whose name leaves room for sockets."""
    path = Path(tempfile.mkdtemp(prefix="gp", dir="/tmp"))
    yield path
    shutil.rmtree(path)


def wait_until(condition: Callable[[], Any], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


@pytest.fixture(name="wait_until")
def _wait_until() -> Callable[..., None]:
    return wait_until


class _Events:
    """Lines of a watch."""

    def __init__(self) -> None:
        self.lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def __iter__(self) -> Iterator[bytes]:
        while (line := self.lines.get()) is not None:
            yield line

    def close(self) -> None:
        self.lines.put(None)


@dataclass
class Api:
    """The part of an API server that a node plugin meets, as what a Connection sends through.

    `refuse` may raise for a request; `admit` may change a slice before it is stored.
    """

    version: str = "v1"
    server: str = "https://api.example"
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    refuse: Callable[[Request], None] = lambda _request: None
    admit: Callable[[dict[str, Any]], None] = lambda _item: None
    silent: bool = False
    _clock: int = 100
    _watches: list[_Events] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.put(f"/api/v1/nodes/{NODE}", {"metadata": {"name": NODE, "uid": "node-uid"}})

    def connection(self) -> cluster.Connection:
        return cluster.Connection(self, "default", 5.0)

    @property
    def collection(self) -> str:
        return f"/apis/resource.k8s.io/{self.version}/resourceslices"

    def put(self, path: str, item: dict[str, Any]) -> None:
        with self._lock:
            self.objects[path] = item

    def put_claim(self, claim: api.ResourceClaim) -> None:
        path = f"/apis/resource.k8s.io/{self.version}/namespaces/{claim.metadata.namespace}/resourceclaims"
        item = api.wire.write_claim(claim, api.wire.ApiVersion(self.version))
        self.put(f"{path}/{claim.metadata.name}", item)

    def slices(self) -> list[api.ResourceSlice]:
        with self._lock:
            items = [item for path, item in self.objects.items() if path.startswith(f"{self.collection}/")]
        return sorted((api.wire.read_slice(item) for item in items), key=lambda s: s.metadata.name)

    def wipe(self) -> None:
        """Delete all slices, as the kubelet does."""
        with self._lock:
            for path in [path for path in self.objects if path.startswith(f"{self.collection}/")]:
                self._delete(path)

    def writes(self) -> list[str]:
        return [request for request in self.requests if not request.startswith("GET")]

    def send(self, request: Request, _seconds: float) -> bytes:
        with self._lock:
            self.requests.append(str(request))
            self.refuse(request)
            return json.dumps(self._answer(request)).encode()

    def stream(self, request: Request, _idle_seconds: float) -> _Events:
        self.refuse(request)
        events = _Events()
        with self._lock:
            self._watches.append(events)
        return events

    def close(self) -> None:
        pass

    def _answer(self, request: Request) -> dict[str, Any]:
        path = request.path
        if path == "/version":
            return {"gitVersion": "v1.34.0"}
        if path == "/apis/resource.k8s.io":
            return {"versions": [{"version": self.version}]}
        if path == self.collection and request.method == "GET":
            return self._list()
        if path.endswith("/resourceclaims"):
            return {"items": [item for at, item in self.objects.items() if at.startswith(f"{path}/")]}
        if path == self.collection:
            item = json.loads(request.body or b"")
            self._clock += 1
            item["metadata"] |= {"name": f"{item['metadata']['generateName']}{self._clock}", "uid": f"u{self._clock}"}
            return self._store("ADDED", f"{path}/{item['metadata']['name']}", item)
        if path not in self.objects:
            raise cluster.NotFoundError(f"no {path}", 404)
        if request.method == "PUT":
            return self._replace(path, json.loads(request.body or b""))
        if request.method == "DELETE":
            return self._delete(path)
        return self.objects[path]

    def _list(self) -> dict[str, Any]:
        items = [item for path, item in self.objects.items() if path.startswith(f"{self.collection}/")]
        kind = {"apiVersion": f"resource.k8s.io/{self.version}", "kind": "ResourceSliceList"}
        return {**kind, "metadata": {"resourceVersion": str(self._clock)}, "items": items}

    def _replace(self, path: str, item: dict[str, Any]) -> dict[str, Any]:
        if item["metadata"]["resourceVersion"] != self.objects[path]["metadata"]["resourceVersion"]:
            raise cluster.ConflictError(f"{path} changed", 409)
        return self._store("MODIFIED", path, item)

    def _store(self, event: str, path: str, item: dict[str, Any]) -> dict[str, Any]:
        self.admit(item)
        self._clock += 1
        item["metadata"]["resourceVersion"] = str(self._clock)
        self.objects[path] = item
        self._tell(event, item)
        return item

    def _delete(self, path: str) -> dict[str, Any]:
        self._clock += 1
        item = self.objects.pop(path)
        self._tell("DELETED", item)
        return item

    def _tell(self, event: str, item: dict[str, Any]) -> None:
        if self.silent:
            return
        for watch in self._watches:
            watch.lines.put(json.dumps({"type": event, "object": item}).encode())


@pytest.fixture
def server() -> Api:
    return Api()


def make_offer(name: str, *, uuid: str | None = None, gpu: str | None = None, kind: str = "gpu") -> hardware.Offer:
    number = name.split("-")[1]
    gpu_uuid = gpu or f"GPU-{number}"
    device = api.Device(
        name,
        attributes={"type": kind, "uuid": uuid or gpu_uuid},
        capacity={"memory": api.Capacity(api.Quantity.of_mib(81920))},
    )
    return hardware.Offer(device, gpu_uuid, uuid or gpu_uuid, (f"/dev/nvidia{number}",))


def make_claim(
    name: str,
    *devices: str | api.AllocatedDevice,
    uid: str | None = None,
    config: tuple[api.AllocatedConfiguration, ...] = (),
) -> api.ResourceClaim:
    results = tuple(
        api.AllocatedDevice(request="r", driver=DRIVER, pool=NODE, device=device) if isinstance(device, str) else device
        for device in devices
    )
    return api.ResourceClaim(
        metadata=api.ObjectMeta(name=name, namespace="team", uid=api.UID(uid or f"uid-{name}")),
        spec=api.ClaimSpec(),
        status=api.ClaimStatus(allocation=api.Allocation(results, config)),
    )


def make_prepared(name: str, *devices: str, boot: str = "boot-1") -> PreparedClaim:
    return PreparedClaim(
        uid=api.UID(f"uid-{name}"),
        namespace="team",
        name=name,
        devices=tuple(
            PreparedDevice(
                name=device,
                pool=NODE,
                requests=("r",),
                uuid=f"GPU-{device.split('-')[1]}",
                gpu_uuid=f"GPU-{device.split('-')[1]}",
                nodes=(f"/dev/nvidia{device.split('-')[1]}",),
            )
            for device in devices
        ),
        boot=boot,
    )


@pytest.fixture(name="make_offer")
def _make_offer() -> Callable[..., hardware.Offer]:
    return make_offer


@pytest.fixture(name="make_claim")
def _make_claim() -> Callable[..., api.ResourceClaim]:
    return make_claim


@pytest.fixture(name="make_prepared")
def _make_prepared() -> Callable[..., PreparedClaim]:
    return make_prepared


@dataclass
class Node:
    """The files of one node; each `state` is a new life of the plugin on them."""

    root: Path

    def __post_init__(self) -> None:
        (self.root / "dev").mkdir()
        for name in ("nvidia0", "nvidia1", "nvidia2", "nvidia3", "nvidiactl"):
            (self.root / "dev" / name).touch()

    @property
    def journal(self) -> Path:
        return self.root / "journal"

    def cdi(self, disk: Disk | None = None) -> CdiDirectory:
        return CdiDirectory(self.root / "cdi", DRIVER, self.root, disk)

    def state(self, disk: Disk | None = None, *, boot: str = "boot-1", recovered: bool = True) -> State:
        lock = NodeLock(self.root / "lock")
        state = State(Journal(self.journal, disk), self.cdi(disk), lock, boot=boot)
        if recovered:
            state.recover()
        return state


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)
