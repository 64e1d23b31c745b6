"""Where the objects are: in memory, under one lock, with one counter of versions and a bounded history for watches.

Stored objects are never changed in place, so what `get`, `items` and watches hand out may be read without the lock but
must not be written to. Owners own their dependents: when the last owner of an object goes, the object is deleted as
the garbage collector of a real cluster would; a namespace under deletion goes when it is empty, which `sweep` sees to.
"""

from __future__ import annotations

import copy
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from dradriver.lab.apiserver import kinds, statuses
from dradriver.lab.apiserver.kinds import Kind

Json: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str]
"""Namespace (empty for cluster-scoped kinds) and name."""

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_GIVEN = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
"""Metadata that clients cannot set."""
_COUNTED = {kinds.SLICE.kind, kinds.CLASS.kind, kinds.POD.kind}
_EVENT_SECONDS = 3600
_DEFAULT_GRACE_SECONDS = 30
_NAMESPACE_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Change:
    """One write: `old` is None for a creation, `new` for a removal."""

    version: int
    old: Json | None
    new: Json | None


@dataclass(frozen=True, slots=True)
class Removal:
    """How to delete: seconds for a pod to end (None: its own), preconditions, and whether dependents stay."""

    grace_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    orphan: bool = False
    dry_run: bool = False


class Store:
    """All objects of one lab.

    Args:
        clock: Seconds since the epoch.
        new_uid: A new UID at each call.
        history: How many changes of one kind can be watched again.
    """

    def __init__(self, clock: Callable[[], float], new_uid: Callable[[], str], *, history: int = 2000) -> None:
        self._clock = clock
        self._new_uid = new_uid
        self._lock = threading.RLock()
        self._version = 1
        self._objects: dict[Kind, dict[Key, Json]] = {kind: {} for kind in kinds.KINDS}
        self._history: dict[Kind, deque[Change]] = {kind: deque(maxlen=history) for kind in kinds.KINDS}
        self._forgotten = dict.fromkeys(kinds.KINDS, 0)  # newest version that fell out of each history
        self._changed = {kind: threading.Condition(self._lock) for kind in kinds.KINDS}
        self._closed = False

    def now(self, later: float = 0) -> str:
        """The time, or a time so many seconds from now, as the API writes it."""
        return datetime.fromtimestamp(self._clock() + later, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def close(self) -> None:
        """End all watches."""
        with self._lock:
            self._closed = True
            for changed in self._changed.values():
                changed.notify_all()

    def compact(self) -> None:
        """Forget the history: watches that resume from before now get 410."""
        with self._lock:
            for kind, changes in self._history.items():
                changes.clear()
                self._forgotten[kind] = self._version

    def get(self, kind: Kind, key: Key) -> Json:
        """One object. Raises RefusedError."""
        with self._lock:
            found = self._objects[kind].get(key)
        if found is None:
            raise statuses.not_found(kind, key[1])
        return found

    def items(self, kind: Kind) -> tuple[list[tuple[Key, Json]], int]:
        """Objects of a kind in the order of their keys, and the version at which this is true."""
        with self._lock:
            found, version = list(self._objects[kind].items()), self._version
        return sorted(found, key=lambda item: item[0]), version

    def check_version(self, kind: Kind, version: int) -> None:
        """Refuse a version that the history no longer reaches, or not yet: a client of an earlier server has those."""
        with self._lock:
            if not self._forgotten[kind] <= version <= self._version:
                raise statuses.expired(version, self._forgotten[kind])

    def changes(self, kind: Kind, version: int, seconds: float) -> tuple[list[Change], int] | None:
        """Changes after a version, waiting for one at most so long, and the version reached; None once closed."""
        with self._lock:
            changed = self._changed[kind]
            self.check_version(kind, version)
            if not (self._closed or self._newer(kind, version)):
                changed.wait(seconds)
            self.check_version(kind, version)
            return None if self._closed else (self._newer(kind, version), self._version)

    def _newer(self, kind: Kind, version: int) -> list[Change]:
        found: deque[Change] = deque()
        for change in reversed(self._history[kind]):
            if change.version <= version:
                break
            found.appendleft(change)
        return list(found)

    def create(self, kind: Kind, obj: Json, *, dry_run: bool = False) -> Json:
        """Add an object; completes its name, UID, times and versions. Raises RefusedError."""
        with self._lock:
            self._check_namespace(kind, obj)
            meta = obj["metadata"]
            if not meta.get("name"):
                meta["name"] = meta["generateName"] + "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(5))
            key = (meta.get("namespace", ""), meta["name"])
            if key in self._objects[kind]:
                raise statuses.already_exists(kind, key[1])
            for field in _GIVEN:
                meta.pop(field, None)
            meta |= {"uid": self._new_uid(), "creationTimestamp": self.now()}
            if kind.kind in _COUNTED:
                meta["generation"] = 1
            if dry_run:
                return obj
            self._write(kind, key, None, obj)
            if meta.get("ownerReferences") and not self._has_owner(obj):
                self.delete(kind, key, Removal())
            return obj

    def update(self, kind: Kind, key: Key, change: Callable[[Json], Json], *, dry_run: bool = False) -> Json:
        """Replace an object by what `change` makes of a copy of it; nothing is written when that is equal."""
        with self._lock:
            old = self.get(kind, key)
            new = change(copy.deepcopy(old))
            wanted = new["metadata"].get("resourceVersion")
            if wanted and wanted != old["metadata"]["resourceVersion"]:
                raise statuses.conflict(kind, key[1])
            if new["metadata"].get("uid") not in (None, old["metadata"]["uid"]):
                raise statuses.conflict(kind, key[1], "Precondition failed: UID in object meta")
            given = {field: old["metadata"].get(field) for field in (*_GIVEN, "resourceVersion")}
            new["metadata"] = {**new["metadata"], **given}
            new["metadata"] = {field: value for field, value in new["metadata"].items() if value is not None}
            if new == old or dry_run:
                return new
            if kind.kind in _COUNTED and new.get("spec") != old.get("spec"):
                new["metadata"]["generation"] = old["metadata"]["generation"] + 1
            self._write(kind, key, old, new)
            if _ending(new) and not new["metadata"].get("finalizers"):
                self._remove(kind, key)
            return new

    def delete(self, kind: Kind, key: Key, removal: Removal) -> tuple[Json, bool]:
        """Delete an object or mark it for deletion; tells its last state and whether it is gone."""
        with self._lock:
            old = self.get(kind, key)
            meta = old["metadata"]
            for what, wanted in (("uid", removal.uid), ("resourceVersion", removal.resource_version)):
                if wanted not in (None, meta[what]):
                    why = f"Precondition failed: {what} in precondition: {wanted}, in object meta: {meta[what]}"
                    raise statuses.conflict(kind, key[1], why)
            grace = _grace_seconds(kind, old, removal)
            contents = self._contents(key[1]) if kind is kinds.NAMESPACE else []
            if removal.dry_run:
                return old, True
            if not (meta.get("finalizers") or grace or contents):
                return self._remove(kind, key, orphan=removal.orphan), True
            marked = {**old, "metadata": {**meta, "deletionGracePeriodSeconds": grace}}
            marked["metadata"].setdefault("deletionTimestamp", self.now(grace))
            if kind is kinds.NAMESPACE:
                marked["status"] = {"phase": "Terminating"}
            if marked != old:
                self._write(kind, key, old, marked)
            return marked, False

    def sweep(self) -> None:
        """Delete old events, and what is in namespaces under deletion.

        The latter a moment after their deletion was asked for: `kubectl delete -f` names the contents too.
        """
        with self._lock:
            events, oldest = self._objects[kinds.EVENT], self.now(-_EVENT_SECONDS)
            while events and events[key := next(iter(events))]["metadata"]["creationTimestamp"] < oldest:
                self._remove(kinds.EVENT, key)
            latest = self.now(-_NAMESPACE_SECONDS)
            for (_, name), namespace in list(self._objects[kinds.NAMESPACE].items()):
                if _ending(namespace) and namespace["metadata"]["deletionTimestamp"] <= latest:
                    for kind, key in self._contents(name):
                        if key in self._objects[kind]:  # it may have gone with its owner
                            self.delete(kind, key, Removal())

    def _write(self, kind: Kind, key: Key, old: Json | None, new: Json) -> None:
        self._version += 1
        new["metadata"]["resourceVersion"] = str(self._version)
        self._objects[kind][key] = new
        self._record(kind, Change(self._version, old, new))

    def _remove(self, kind: Kind, key: Key, *, orphan: bool = False) -> Json:
        old = self._objects[kind].pop(key)
        self._version += 1
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self._version)}}
        self._record(kind, Change(self._version, old, None))
        if not orphan:
            self._collect(old["metadata"]["uid"])
        namespace = self._objects[kinds.NAMESPACE].get(("", key[0]))
        if namespace and _ending(namespace) and not self._contents(key[0]):
            self._remove(kinds.NAMESPACE, ("", key[0]))
        return last

    def _record(self, kind: Kind, change: Change) -> None:
        history = self._history[kind]
        if len(history) == history.maxlen:
            self._forgotten[kind] = history[0].version
        history.append(change)
        self._changed[kind].notify_all()

    def _collect(self, owner: str) -> None:
        for kind, key, obj in list(self._everything()):
            owners = obj["metadata"].get("ownerReferences") or ()
            if any(o.get("uid") == owner for o in owners) and not self._has_owner(obj) and not _ending(obj):
                self.delete(kind, key, Removal())

    def _has_owner(self, obj: Json) -> bool:
        owners = {reference.get("uid") for reference in obj["metadata"]["ownerReferences"]}
        return any(other["metadata"]["uid"] in owners for _, _, other in self._everything())

    def _everything(self) -> Iterator[tuple[Kind, Key, Json]]:
        return ((kind, key, obj) for kind, objects in self._objects.items() for key, obj in objects.items())

    def _contents(self, namespace: str) -> list[tuple[Kind, Key]]:
        return [(kind, key) for kind, key, _ in self._everything() if key[0] == namespace]

    def _check_namespace(self, kind: Kind, obj: Json) -> None:
        if not kind.namespaced:
            return
        name = obj["metadata"]["namespace"]
        if _ending(self.get(kinds.NAMESPACE, ("", name))):
            why = f"unable to create new content in namespace {name} because it is being terminated"
            raise statuses.forbidden(kind, obj["metadata"].get("name", ""), why)


def _ending(obj: Mapping[str, Any]) -> bool:
    """Whether an object is marked for deletion and nothing but finalizers or contents holds it."""
    meta = obj["metadata"]
    return "deletionTimestamp" in meta and not meta.get("deletionGracePeriodSeconds")


def _grace_seconds(kind: Kind, obj: Json, removal: Removal) -> int:
    """Seconds a pod is given; none for what never ran or has ended (registry/core/pod strategy CheckGracefulDelete)."""
    if kind is not kinds.POD or not obj["spec"].get("nodeName"):
        return 0
    if obj.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    own = obj["spec"].get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS)
    grace = own if removal.grace_seconds is None else removal.grace_seconds
    return int(min(grace, obj["metadata"].get("deletionGracePeriodSeconds", grace)))
