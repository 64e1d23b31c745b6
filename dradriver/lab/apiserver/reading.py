"""Reading: objects, lists in pages, watches, each as JSON or as a table."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Iterator

from dradriver.lab.apiserver import converting, statuses, tables, watching
from dradriver.lab.apiserver.requesting import Answer, Call
from dradriver.lab.apiserver.storage import Json, Key, Store

_LONGEST_WATCH_SECONDS = 3600


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
        """What happens to a collection from a version on."""
        wish = watching.Wish(
            call.target.kind,
            call.test(),
            version=call.number("resourceVersion"),
            initial_end=call.query.get("sendInitialEvents") == "true",
            bookmarks=call.query.get("allowWatchBookmarks") == "true",
            seconds=min(call.number("timeoutSeconds") or _LONGEST_WATCH_SECONDS, _LONGEST_WATCH_SECONDS),
        )
        events = watching.watch(self._store, wish, self._bookmark_seconds, self._clock)
        return Answer(200, self._shown_events(call, events))

    def _shown_events(self, call: Call, events: Iterator[Json | None]) -> Iterator[Json | None]:
        first = itertools.chain([True], itertools.repeat(False))
        for event in events:
            if event is None or event["type"] == "ERROR":
                yield event
                continue
            obj = event["object"]
            if event["type"] == "BOOKMARK":
                obj |= {"kind": call.target.kind.kind, "apiVersion": call.target.api_version}
            else:
                obj = converting.show(call.target, obj)
                if call.as_table:
                    meta = {"resourceVersion": obj["metadata"]["resourceVersion"]}
                    obj = self._table(call, [obj], meta, header=next(first))
            yield {**event, "object": obj}


def _write_token(version: int, after: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps([version, *after]).encode()).decode()


def _read_token(token: str) -> tuple[int, Key]:
    try:
        version, namespace, name = json.loads(base64.urlsafe_b64decode(token))
        return int(version), (str(namespace), str(name))
    except (ValueError, TypeError) as error:
        raise statuses.bad_request(f"continue key is not valid: {token!r}") from error
