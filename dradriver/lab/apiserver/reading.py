"""Reading: objects, lists in pages, watches, each as JSON or as a table."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import TypeAlias

from dradriver.lab.apiserver import converting, statuses, tables
from dradriver.lab.apiserver.requesting import Answer, Call
from dradriver.lab.apiserver.selecting import Test
from dradriver.lab.apiserver.storage import Change, Json, Key, Store

Event: TypeAlias = Json

_LONGEST_WATCH_SECONDS = 3600
_TICK_SECONDS = 2.0  # how often a silent watch lets its connection notice that the client is gone


class Reader:
    """Answers from the store without changing it."""

    def __init__(self, store: Store, clock: Callable[[], float], *, bookmark_seconds: float) -> None:
        self._store = store
        self._clock = clock
        self._bookmark_seconds = bookmark_seconds

    def get(self, call: Call) -> Answer:
        """One object."""
        return self.shown(call, 200, self._store.get(call.target.kind, call.target.key))

    def shown(self, call: Call, code: int, obj: Json, warnings: list[str] | None = None) -> Answer:
        """An answer that is one stored object, as JSON or as a table of one row."""
        body = converting.show(call.target, obj)
        if call.as_table:
            body = self._table(call, [body], {"resourceVersion": obj["metadata"].get("resourceVersion", "")})
        return Answer(code, body, warnings or [])

    def _table(self, call: Call, items: list[Json], meta: Json, *, header: bool = True) -> Json:
        include = call.query.get("includeObject", "Metadata")
        return tables.table(call.target.kind, items, self._clock(), include=include, meta=meta, header=header)

    def list(self, call: Call) -> Answer:
        """A collection, or a page of it."""
        target, test = call.target, call.test()
        found, version = self._store.items(target.kind)
        chosen = [(key, obj) for key, obj in found if test(obj)]
        if token := call.query.get("continue"):
            version, after = _read_token(token)
            self._store.check_version(target.kind, version)
            chosen = [(key, obj) for key, obj in chosen if key > after]
        meta: Json = {"resourceVersion": str(version)}
        limit = call.number("limit")
        if limit and len(chosen) > limit:
            meta["continue"] = _write_token(version, chosen[limit - 1][0])
            meta["remainingItemCount"] = len(chosen) - limit
            chosen = chosen[:limit]
        items = [converting.show(target, obj) for _, obj in chosen]
        if call.as_table:
            return Answer(200, self._table(call, items, meta))
        items = [{k: v for k, v in item.items() if k not in ("apiVersion", "kind")} for item in items]
        kind = f"{target.kind.kind}List"
        return Answer(200, {"kind": kind, "apiVersion": target.api_version, "metadata": meta, "items": items})

    def watch(self, call: Call) -> Answer:
        """What happens to a collection from a version on, as a stream."""
        seconds = min(call.number("timeoutSeconds") or _LONGEST_WATCH_SECONDS, _LONGEST_WATCH_SECONDS)
        events = self._events(call, call.test(), call.number("resourceVersion"), self._clock() + seconds)
        return Answer(200, self._shown_events(call, events))

    def _events(self, call: Call, test: Test, version: int, end: float) -> Iterator[Event | None]:
        """Events of stored objects in the order of their versions; None at times when there is nothing to say.

        Without a version (0) it begins with what is there; it ends when time is up or the history is too short.
        """
        kind, marked = call.target.kind, self._clock()
        initial_end = call.query.get("sendInitialEvents") == "true"
        bookmarks = call.query.get("allowWatchBookmarks") == "true"
        if not version or initial_end:
            found, version = self._store.items(kind)
            yield from (_event("ADDED", obj) for _, obj in found if test(obj))
            if initial_end:
                yield _bookmark(version, annotations={"k8s.io/initial-events-end": "true"})
        while (left := end - self._clock()) > 0:
            try:
                news = self._store.changes(kind, version, min(left, _TICK_SECONDS, self._bookmark_seconds))
            except statuses.RefusedError as error:
                yield _event("ERROR", error.status())
                return
            if news is None:
                return
            changes, version = news
            yield from (event for change in changes if (event := _seen(change, test)))
            if bookmarks and self._clock() - marked >= self._bookmark_seconds:
                marked = self._clock()
                yield _bookmark(version)
            elif not changes:
                yield None
        if bookmarks:
            yield _bookmark(version)

    def _shown_events(self, call: Call, events: Iterator[Event | None]) -> Iterator[Event | None]:
        header = True
        for event in events:
            if event is None or event["type"] == "ERROR":
                yield event
                continue
            obj = event["object"]
            if event["type"] == "BOOKMARK":
                obj = {"kind": call.target.kind.kind, "apiVersion": call.target.api_version, **obj}
            else:
                obj = converting.show(call.target, obj)
                if call.as_table:
                    meta = {"resourceVersion": obj["metadata"]["resourceVersion"]}
                    obj = self._table(call, [obj], meta, header=header)
                    header = False
            yield _event(event["type"], obj)


def _event(kind: str, obj: Json) -> Event:
    return {"type": kind, "object": obj}


def _bookmark(version: int, **meta: Json) -> Event:
    return _event("BOOKMARK", {"metadata": {"resourceVersion": str(version), **meta}})


def _seen(change: Change, test: Test) -> Event | None:
    """What a change is to a watcher who sees only what passes a test."""
    before = change.old is not None and test(change.old)
    if change.new is not None and test(change.new):
        return _event("MODIFIED" if before else "ADDED", change.new)
    if change.old is not None and before:
        meta = {**change.old["metadata"], "resourceVersion": str(change.version)}
        return _event("DELETED", {**change.old, "metadata": meta})
    return None


def _write_token(version: int, after: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps([version, *after]).encode()).decode()


def _read_token(token: str) -> tuple[int, Key]:
    try:
        version, namespace, name = json.loads(base64.urlsafe_b64decode(token))
        return int(version), (str(namespace), str(name))
    except (ValueError, TypeError) as error:
        raise statuses.bad_request(f"continue key is not valid: {token!r}") from error
