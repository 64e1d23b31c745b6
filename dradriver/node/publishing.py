"""Keeping this node's slices as they should be, whoever deletes or changes them.

The kubelet deletes all slices of its node when it starts, and those of a driver 30 s after its socket went away, at
moments that race with our own writes (kubernetes#132683 after creates, kubernetes#140011 after updates). So each pass
lists what exists and writes the difference, and passes are made: when devices change; at once when the reflector tells
that slices are not as the last pass left them; some seconds after each write; and every half minute, when the
reflector's copy is compared with what the last pass left and the server is only asked when they differ.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dradriver import api, cluster
from dradriver.node import logs, slicing
from dradriver.node.apiserver import ApiServer

log = logs.Logger("publishing")

CHECK_SECONDS = 30.0
"""How often the reflector's copy is compared with what was left."""
AFTER_WRITE_SECONDS = (2.0, 10.0)
"""When the server is asked again after a write: watches may be behind, deletions may have crossed it."""
LIST_SECONDS = 600.0
"""How often the server is asked whatever the reflector says."""
FIRST_RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 30.0
CONTENDED_SECONDS = 30.0
FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be published."""

    devices: tuple[api.Device, ...]
    lost: tuple[str, ...]


class Publisher:
    """Publishes this node's devices, in a thread of its own between `start` and `stop`."""

    def __init__(
        self,
        server: ApiServer,
        *,
        driver: str,
        node: str,
        on_published: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        check_seconds: float = CHECK_SECONDS,
        after_write_seconds: Sequence[float] = AFTER_WRITE_SECONDS,
    ) -> None:
        """`on_published` is told after each pass that found or made everything right."""
        self._server = server
        self._driver = driver
        self._node = node
        self._on_published = on_published
        self._clock = clock
        self._check_seconds = check_seconds
        self._after_write_seconds = tuple(after_write_seconds)
        self._thread = threading.Thread(target=self._run, name="publishing", daemon=True)
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._reflector: cluster.Reflector | None = None
        # Set by `publish`, read by the thread: what is wanted, None until the hardware was read.
        self._wanted: Wanted | None = None
        # The thread's own: what it left on the server (name -> resource version), what servers made of our slices,
        # devices as last seen in slices, and when it last wrote.
        self._left: dict[str, str] = {}
        self._accepted: dict[str, str] = {}
        self._told_gates: set[str] = set()
        self._floor = 0
        self._seen: dict[str, api.Device] = {}
        self._recent: deque[float] = deque(maxlen=16)
        self._owner: api.OwnerReference | None = None
        # Read by others, written by the thread.
        self._done: Wanted | None = None
        self.problem = "nothing published yet"

    def start(self) -> None:
        """Begin; publishing waits for the first `publish`."""
        self._thread.start()

    def publish(self, devices: Sequence[api.Device], lost: Sequence[str] = ()) -> None:
        """Want these devices, in this order.

        `lost` are names that claims hold but the node no longer has: they stay published, tainted, as they were last.
        """
        wanted = Wanted(tuple(devices), tuple(lost))
        if self._wanted != wanted:
            self._wanted = wanted
            self._wake.set()

    @property
    def settled(self) -> bool:
        """Whether what is wanted is what the server has."""
        return self._wanted is not None and self._done == self._wanted and not self.problem

    def stop(self) -> None:
        """Stop; slices stay. Bounded by one request's time-out."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._reflector is not None:
            self._reflector.stop()

    def _run(self) -> None:
        due: list[float] = []
        listed = -LIST_SECONDS
        failures = 0
        while not self._stop.is_set():
            timeout = (min(due) - self._clock()) if due else self._check_seconds
            woken = self._wake.wait(max(min(timeout, self._check_seconds), 0.0))
            self._wake.clear()
            if self._stop.is_set() or self._wanted is None:
                continue
            now = self._clock()
            overdue = any(moment <= now for moment in due) or now - listed >= LIST_SECONDS
            if not overdue and self._wanted == self._done and self._copy_agrees():
                continue
            if not overdue and failures and woken:
                continue  # what is owed is tried again when its time has come, not at every event
            try:
                wrote = self._pass()
            except Exception as error:  # noqa: BLE001 - the one thread that keeps slices true must outlive any surprise
                failures += 1
                due = [self._clock() + self._failed(error, failures)]
                continue
            listed = self._clock()
            failures = 0
            if wrote:
                self._pause()
            due = [listed + after for after in self._after_write_seconds] if wrote else [d for d in due if d > listed]

    def _pause(self) -> None:
        """Slow down where somebody else writes these slices too, for as long as that goes on."""
        now = self._clock()
        recent = sum(now - moment < CONTENDED_SECONDS for moment in self._recent)
        self._recent.append(now)
        self._stop.wait(min(FIRST_PAUSE_SECONDS * 2**recent, LONGEST_PAUSE_SECONDS))

    def _failed(self, error: Exception, failures: int) -> float:
        """Tell of a failed pass; the seconds until the next."""
        text = f"the server's answer has no {error}" if isinstance(error, KeyError) else str(error)
        if not isinstance(error, cluster.ClusterError | api.WireError | KeyError):
            log.bug("publishing failed", error)
        elif self.problem != text and not isinstance(error, cluster.ConflictError):
            log.problem("cannot publish", node=self._node, error=text)
        self.problem = text
        if isinstance(error, cluster.NotFoundError):
            self._start_over()
        wait: float = min(FIRST_RETRY_SECONDS * 2 ** min(failures - 1, 10), LONGEST_RETRY_SECONDS)
        asked = error.retry_after if isinstance(error, cluster.ClusterError) else None
        return max(wait * random.uniform(0.75, 1.25), asked or 0.0)  # noqa: S311 - jitter, not a secret

    def _start_over(self) -> None:
        """Something that was there is not: perhaps the node object, perhaps this version of the group."""
        self._server.rediscover()
        self._owner = None
        if self._reflector is not None:
            self._reflector.stop()
            self._reflector = None

    @property
    def _collection(self) -> str:
        return f"{self._server.served().prefix}/resourceslices"

    @property
    def _selector(self) -> str:
        return f"spec.nodeName={self._node},spec.driver={self._driver}"

    def _pass(self) -> bool:
        """Make the slices right once; whether anything was written."""
        wanted = self._wanted
        if wanted is None:
            return False
        started = self._clock()
        connection = self._server.connection()
        collection = self._collection
        identity = slicing.Identity(self._driver, self._node, self._node, self._owned_by())
        items, _ = connection.list(collection, field_selector=self._selector)
        existing = [api.wire.read_slice(item) for item in items]
        self._seen.update((device.name, device) for value in existing for device in value.devices)
        devices = wanted.devices + self._lost(wanted)
        self._floor = max([self._floor, *(value.pool.generation for value in existing)])
        changes = slicing.changes(identity, devices, existing, accepted=self._accepted, floor=self._floor)
        left = {value.metadata.name: value.metadata.resource_version for value in existing}
        raw = {item["metadata"]["name"]: item for item in items}
        self._write(changes, left, raw)
        self._left = left
        if changes:
            log.info(
                "published slices",
                node=self._node,
                devices=len(devices),
                created=len(changes.creates),
                updated=len(changes.updates),
                deleted=len(changes.deletes),
                seconds=self._clock() - started,
            )
        self.problem = ""
        self._done = wanted
        self._on_published()
        self._watch()
        return bool(changes)

    def _lost(self, wanted: Wanted) -> tuple[api.Device, ...]:
        taint = api.Taint(f"{self._driver}/lost", api.TaintEffect.NO_SCHEDULE)
        return tuple(replace(self._seen[name], taints=(taint,)) for name in wanted.lost if name in self._seen)

    def _owned_by(self) -> api.OwnerReference:
        if self._owner is None:
            self._owner = api.OwnerReference("v1", "Node", self._node, self._server.node_uid(self._node), True)
        return self._owner

    def _write(self, changes: slicing.Changes, left: dict[str, str], raw: dict[str, dict[str, Any]]) -> None:
        connection = self._server.connection()
        version = self._server.served().resource
        for value in changes.deletes:
            self._delete(connection, value)
            left.pop(value.metadata.name, None)
        for value in changes.updates:
            body = api.wire.write_slice(value, version, over=raw[value.metadata.name])
            self._wrote(value, connection.replace(f"{self._collection}/{value.metadata.name}", body), left)
        for value in changes.creates:
            self._wrote(value, connection.create(self._collection, api.wire.write_slice(value, version)), left)

    def _delete(self, connection: cluster.Connection, value: api.ResourceSlice) -> None:
        metadata = value.metadata
        with contextlib.suppress(cluster.NotFoundError):
            connection.delete(
                f"{self._collection}/{metadata.name}", uid=metadata.uid, resource_version=metadata.resource_version
            )

    def _wrote(self, sent: api.ResourceSlice, answer: dict[str, Any], left: dict[str, str]) -> None:
        got = api.wire.read_slice(answer)
        left[got.metadata.name] = got.metadata.resource_version
        self._floor = max(self._floor, got.pool.generation)
        gates = slicing.missing_gates(sent, got)
        if gates:
            self._accepted[slicing.fingerprint(sent)] = slicing.fingerprint(got)
        for gate in gates:
            if gate not in self._told_gates:
                self._told_gates.add(gate)
                log.problem("server dropped fields", slice=got.metadata.name, missing_gate=gate)

    def _watch(self) -> None:
        if self._reflector is None:
            self._reflector = cluster.Reflector(
                self._server.connection(),
                self._collection,
                field_selector=self._selector,
                on_change=lambda _change: self._wake.set(),
            )
            self._reflector.start()

    def _copy_agrees(self) -> bool:
        """Whether the reflector's copy is what the last pass left; a copy not there yet agrees."""
        if self._reflector is None or not self._reflector.wait_synced(0):
            return True
        copy = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in self._reflector.items()}
        return copy == self._left
