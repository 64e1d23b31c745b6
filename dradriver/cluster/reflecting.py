"""A reflector: a local copy of one collection, kept true by list and watch.

The thread owns the copy; a lock guards it for readers. Guaranteed: handlers see every change of the copy, in order,
from one thread; a deleted and recreated object is two changes; after any trouble the copy becomes true again, with a
bounded number of requests; `stop` ends a waiting watch at once. Not guaranteed: that every intermediate state of an
object is seen.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from dradriver.cluster.connecting import Connection
from dradriver.cluster.errors import ClusterError, GoneError
from dradriver.cluster.pacing import Backoff, Pace
from dradriver.cluster.watching import Watch

_log = logging.getLogger(__name__)
_STOP_SECONDS = 5.0
Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the copy: `old` is None for a new object, `new` is None for one that went."""

    old: dict[str, Any] | None
    new: dict[str, Any] | None


class Reflector:
    """Keeps a copy of a collection in a thread of its own.

    Lists in pages, watches with bookmarks, resumes, lists again on 410, backs off with jitter, gives up on silence.
    `on_change` is called from that thread, in order; on a new list it gets the difference to the old copy. What it
    raises is logged and goes no further. Objects are shared with the copy: read them, do not change them.
    """

    def __init__(
        self,
        connection: Connection,
        path: str,
        *,
        field_selector: str = "",
        label_selector: str = "",
        on_change: Callable[[Change], None] | None = None,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        self._connection = connection
        self._path = path
        self._selectors = {"field_selector": field_selector, "label_selector": label_selector}
        self._on_change = on_change
        self._pace = pace or Pace()
        self._clock = clock
        self._random = rng or random.Random()  # noqa: S311 - spreads load, guards nothing
        self._backoff = Backoff(self._pace, self._random)
        self._stopped = threading.Event()
        self._synced = threading.Event()
        self._lock = threading.Lock()  # guards the four below; never held while a handler runs or a request waits
        self._objects: dict[Key, dict[str, Any]] = {}
        self._version = ""  # where the next watch begins; empty: a list is due
        self._watch: Watch | None = None
        self._last_error: ClusterError | None = None
        self._thread = threading.Thread(target=self._run, name=f"reflector {path}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait for it, at most 5 s.

        A waiting watch ends at once. A thread that just then waits for an answer to a list ends at the connection's
        time-out, and calls no handler any more.
        """
        self._stopped.set()
        with self._lock:
            watch = self._watch
        if watch:
            watch.close()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(_STOP_SECONDS)

    def wait_synced(self, seconds: float) -> bool:
        """Wait until the first list is in and its handlers have run; False on time-out."""
        return self._synced.wait(seconds)

    @property
    def synced(self) -> bool:
        """Whether the first list is in."""
        return self._synced.is_set()

    @property
    def last_error(self) -> ClusterError | None:
        """What keeps the copy from being current; None while a watch stands."""
        with self._lock:
            return self._last_error

    @property
    def resource_version(self) -> str:
        """The version that the copy has reached; empty before the first list and when it must be listed anew."""
        with self._lock:
            return self._version

    def items(self) -> list[dict[str, Any]]:
        """The copy as it is now."""
        with self._lock:
            return list(self._objects.values())

    def get(self, namespace: str, name: str) -> dict[str, Any] | None:
        """One object of the copy; the namespace of a cluster-wide kind is empty."""
        with self._lock:
            return self._objects.get((namespace, name))

    def _run(self) -> None:
        while not self._stopped.is_set():
            started = self._clock()
            try:
                if not self._version:
                    self._list()
                self._follow()
                wait = max(0.0, self._pace.between_watches - (self._clock() - started))
            except ClusterError as error:
                wait = self._failed(error)
            self._stopped.wait(wait)

    def _failed(self, error: ClusterError) -> float:
        """Note an error; seconds to wait."""
        if isinstance(error, GoneError):
            self._advance("")
        with self._lock:
            self._last_error = error
        wait = self._backoff.wait_after_error(self._clock(), error.retry_after)
        if not self._stopped.is_set():
            _log.warning("collection not followed, path=%s again_in=%.1fs: %s", self._path, wait, error)
        return wait

    def _list(self) -> None:
        items, version = self._connection.list(self._path, **self._selectors)
        listed = {_key(item): item for item in items}
        for key in self._objects.keys() - listed.keys():
            self._apply(key, None)
        for key, item in listed.items():
            self._apply(key, item)
        self._advance(version)
        if not self._stopped.is_set():
            self._synced.set()

    def _follow(self) -> None:
        """One watch from the version reached, until it ends."""
        watch = self._connection.watch(
            self._path,
            resource_version=self._version,
            server_seconds=self._random.uniform(*self._pace.server),
            idle_seconds=self._random.uniform(*self._pace.idle),
            **self._selectors,
        )
        with self._lock:
            self._watch, self._last_error = watch, None
        try:
            if self._stopped.is_set():  # stop() may have looked before the watch was there to be closed
                return
            for kind, item in watch:
                if kind != "BOOKMARK":
                    self._apply(_key(item), None if kind == "DELETED" else item)
                self._advance(str(_metadata(item).get("resourceVersion") or self._version))
        finally:
            with self._lock:
                self._watch = None
            watch.close()

    def _advance(self, version: str) -> None:
        with self._lock:
            self._version = version

    def _apply(self, key: Key, new: dict[str, Any] | None) -> None:
        """Bring one object of the copy to its new state and tell the handler what changed, if anything did."""
        old = self._objects.get(key)
        if old is not None and new is not None:
            before, after = _metadata(old), _metadata(new)
            if before.get("uid") != after.get("uid"):
                self._apply(key, None)
                old = None
            elif before.get("resourceVersion") == after.get("resourceVersion"):
                return
        if self._stopped.is_set() or (old is None and new is None):
            return
        with self._lock:
            if new is None:
                del self._objects[key]
            else:
                self._objects[key] = new
        self._tell(Change(old, new))

    def _tell(self, change: Change) -> None:
        if self._on_change is None:
            return
        try:
            self._on_change(change)
        except Exception:  # noqa: BLE001 - a handler's mistake must not end the copy that others read
            metadata = _metadata(change.new or change.old or {})
            _log.exception(
                "handler failed, path=%s object=%s/%s", self._path, metadata.get("namespace", ""), metadata.get("name")
            )


def _metadata(item: dict[str, Any]) -> dict[str, Any]:
    metadata = item.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _key(item: dict[str, Any]) -> Key:
    metadata = _metadata(item)
    if not metadata.get("name"):
        raise ClusterError(f"an object without a name came from the server ({str(item)[:80]}): is it an API server?")
    return str(metadata.get("namespace") or ""), str(metadata["name"])
