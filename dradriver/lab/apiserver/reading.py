"""Reading: objects, lists in pages, watches, each as JSON or as a table."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import TypeAlias

from dradriver.lab.apiserver import converting, statuses, tables, watching
from dradriver.lab.apiserver.addressing import Target
from dradriver.lab.apiserver.requesting import Answer, Request
from dradriver.lab.apiserver.storage import Json, Store

Show: TypeAlias = Callable[[Json], Json]

_LONGEST_WATCH_SECONDS = 3600.0


class Reader:
    """Answers from the store without changing it."""

    def __init__(self, store: Store, clock: Callable[[], float], *, bookmark_seconds: float) -> None:
        self._store = store
        self._clock = clock
        self._bookmark_seconds = bookmark_seconds

    def get(self, request: Request, target: Target) -> Answer:
        """One object."""
        return self.shown(request, target, 200, self._store.get(target.kind, target.key))

    def show(self, target: Target) -> Show:
        """How objects look in the version of a request."""
        return lambda obj: converting.show(target.kind, obj, target.version)

    def shown(
        self, request: Request, target: Target, code: int, obj: Json, warnings: list[str] | None = None
    ) -> Answer:
        """An answer that is one object, as JSON or as a table of one row."""
        body = self.show(target)(obj)
        if request.as_table:
            body = self._table(request, [body], {"resourceVersion": obj["metadata"]["resourceVersion"]}, target)
        return Answer(code, body, warnings or [])

    def _table(self, request: Request, items: list[Json], meta: Json, target: Target, *, header: bool = True) -> Json:
        include = request.query.get("includeObject", "Metadata")
        return tables.table(target.kind, items, self._clock(), include=include, meta=meta, header=header)

    def list(self, request: Request, target: Target) -> Answer:
        """A collection, or a page of it."""
        test = request.selects(target)
        found, version = self._store.items(target.kind, target.namespace)
        meta: Json = {"resourceVersion": str(version)}
        chosen = [(key, obj) for key, obj in found if test(obj)]
        if token := request.query.get("continue"):
            started, after = _read_token(token)
            self._store.check_version(target.kind, started)
            meta["resourceVersion"] = str(started)
            chosen = [(key, obj) for key, obj in chosen if key > after]
        limit = request.number("limit")
        if limit and len(chosen) > limit:
            meta["continue"] = _write_token(int(meta["resourceVersion"]), chosen[limit - 1][0])
            meta["remainingItemCount"] = len(chosen) - limit
            chosen = chosen[:limit]
        items = [self.show(target)(obj) for _, obj in chosen]
        if request.as_table:
            return Answer(200, self._table(request, items, meta, target))
        items = [{k: v for k, v in item.items() if k not in ("apiVersion", "kind")} for item in items]
        kind = f"{target.kind.kind}List"
        return Answer(200, {"kind": kind, "apiVersion": target.api_version, "metadata": meta, "items": items})

    def watch(self, request: Request, target: Target) -> Answer:
        """What happens to a collection from a version on."""
        query = request.query
        wish = watching.Wish(
            version=request.number("resourceVersion"),
            initial_end=query.get("sendInitialEvents") == "true",
            bookmarks=query.get("allowWatchBookmarks") == "true",
            seconds=min(request.number("timeoutSeconds") or _LONGEST_WATCH_SECONDS, _LONGEST_WATCH_SECONDS),
        )
        test = request.selects(target)
        events = watching.watch(
            self._store,
            target,
            test,
            wish,
            self.show(target),
            bookmark_seconds=self._bookmark_seconds,
            clock=self._clock,
        )
        return Answer(200, self._table_events(request, target, events) if request.as_table else events)

    def _table_events(self, request: Request, target: Target, events: Iterator[Json | None]) -> Iterator[Json | None]:
        header = True
        for event in events:
            if event is None or event["type"] in ("BOOKMARK", "ERROR"):
                yield event
                continue
            meta = {"resourceVersion": event["object"]["metadata"]["resourceVersion"]}
            yield {**event, "object": self._table(request, [event["object"]], meta, target, header=header)}
            header = False


def _write_token(version: int, after: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps([version, *after]).encode()).decode()


def _read_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        version, namespace, name = json.loads(base64.urlsafe_b64decode(token))
        return int(version), (str(namespace), str(name))
    except ValueError as error:
        raise statuses.bad_request(f"continue key is not valid: {token!r}") from error
