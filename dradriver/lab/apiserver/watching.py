"""Watches: a stream of events from a version on, with bookmarks, until time is up or the history is too short."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from dradriver.lab.apiserver.kinds import Kind
from dradriver.lab.apiserver.selecting import Test
from dradriver.lab.apiserver.statuses import RefusedError
from dradriver.lab.apiserver.storage import Change, Json, Store

Event: TypeAlias = Json
TICK_SECONDS = 2.0
"""How often a silent watch gives its connection the chance to notice that the client is gone."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a watcher asked for; `version` 0 means what is there now, then what comes."""

    kind: Kind
    test: Test
    version: int
    initial_end: bool
    bookmarks: bool
    seconds: float


def watch(store: Store, wish: Wish, bookmark_seconds: float, clock: Callable[[], float]) -> Iterator[Event | None]:
    """Events of stored objects in the order of their versions; None at times when there is nothing to say."""
    started = marked = clock()
    version = wish.version
    if not version or wish.initial_end:
        found, version = store.items(wish.kind)
        yield from ({"type": "ADDED", "object": obj} for _, obj in found if wish.test(obj))
        if wish.initial_end:
            yield _bookmark(version, annotations={"k8s.io/initial-events-end": "true"})
    while (left := started + wish.seconds - clock()) > 0:
        try:
            news = store.changes(wish.kind, version, min(left, TICK_SECONDS, bookmark_seconds))
        except RefusedError as error:
            yield {"type": "ERROR", "object": error.status()}
            return
        if news is None:
            return
        changes, version = news
        yield from (event for change in changes if (event := _event(change, wish.test)))
        if wish.bookmarks and clock() - marked >= bookmark_seconds:
            marked = clock()
            yield _bookmark(version)
        elif not changes:
            yield None
    if wish.bookmarks:
        yield _bookmark(version)


def _event(change: Change, test: Test) -> Event | None:
    before = change.old is not None and test(change.old)
    if change.new is not None and test(change.new):
        return {"type": "MODIFIED" if before else "ADDED", "object": change.last}
    if before and change.old is not None:
        last = change.last if change.new is None else change.old
        return {
            "type": "DELETED",
            "object": {**last, "metadata": {**last["metadata"], "resourceVersion": str(change.version)}},
        }
    return None


def _bookmark(version: int, **meta: Any) -> Event:
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version), **meta}}}
