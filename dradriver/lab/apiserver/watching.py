"""Watches: a stream of events from a version on, with bookmarks, until time is up or the history is too short."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from dradriver.lab.apiserver import kinds
from dradriver.lab.apiserver.addressing import Target
from dradriver.lab.apiserver.selecting import Test
from dradriver.lab.apiserver.statuses import RefusedError
from dradriver.lab.apiserver.storage import Change, Json, Store

Event: TypeAlias = Json
TICK_SECONDS = 2.0
"""How often a silent watch gives its connection the chance to notice that the client is gone."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a watcher asked for; `version` 0 means what is there now, then what comes."""

    version: int
    initial_end: bool
    bookmarks: bool
    seconds: float


def watch(
    store: Store,
    target: Target,
    test: Test,
    wish: Wish,
    show: Callable[[Json], Json],
    *,
    bookmark_seconds: float,
    clock: Callable[[], float],
) -> Iterator[Event | None]:
    """Events in the order of their versions; None at times when there is nothing to say."""
    started = marked = clock()
    version = wish.version
    if not version or wish.initial_end:
        found, version = store.items(target.kind, target.namespace)
        yield from ({"type": "ADDED", "object": show(obj)} for _, obj in found if test(obj))
        if wish.initial_end:
            yield _bookmark(target, version, {"annotations": {"k8s.io/initial-events-end": "true"}})
    while (left := started + wish.seconds - clock()) > 0:
        try:
            news = store.changes(target.kind, version, min(left, TICK_SECONDS, bookmark_seconds))
        except RefusedError as error:
            yield {"type": "ERROR", "object": error.status()}
            return
        if news is None:
            return
        changes, version = news
        yield from (event for change in changes if (event := _event(change, target, test, show)))
        if wish.bookmarks and clock() - marked >= bookmark_seconds:
            marked = clock()
            yield _bookmark(target, version, {})
        elif not changes:
            yield None
    if wish.bookmarks:
        yield _bookmark(target, version, {})


def _event(change: Change, target: Target, test: Test, show: Callable[[Json], Json]) -> Event | None:
    def picks(obj: Json | None) -> bool:
        return obj is not None and target.namespace in ("", kinds.field_value(obj, "metadata.namespace")) and test(obj)

    before, after = picks(change.old), picks(change.new)
    if after:
        return {"type": "MODIFIED" if before else "ADDED", "object": show(change.last)}
    if before and change.old is not None:
        last = change.last if change.new is None else change.old
        meta: dict[str, Any] = {**last["metadata"], "resourceVersion": str(change.version)}
        return {"type": "DELETED", "object": show({**last, "metadata": meta})}
    return None


def _bookmark(target: Target, version: int, meta: Json) -> Event:
    body = {"kind": target.kind.kind, "apiVersion": target.api_version}
    return {"type": "BOOKMARK", "object": {**body, "metadata": {"resourceVersion": str(version), **meta}}}
