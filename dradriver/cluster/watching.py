"""A watch: the changes of one collection as the server tells them, until it, or somebody here, ends it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol

from dradriver.cluster.errors import ClusterError
from dradriver.cluster.refusing import refusal_in_watch


class Lines(Protocol):
    """An answer that comes line by line; `close` may be called from any thread and wakes the reader."""

    def __iter__(self) -> Iterator[bytes]: ...

    def close(self) -> None:
        """End it; the reader's iteration ends too."""


class Watch(Iterator[tuple[str, dict[str, Any]]]):
    """Events (type, object), bookmarks included. The server has accepted the watch when this exists.

    It ends when the server ends it, after a silence of `idle_seconds`, and on `close()`, from whatever thread. A broken
    connection raises UnreachableError; an ERROR event raises what its Status says (410: GoneError).
    """

    def __init__(self, server: str, path: str, lines: Lines) -> None:
        self._server = server
        self._path = path
        self._lines = lines
        self._events = self._read()

    def __next__(self) -> tuple[str, dict[str, Any]]:
        return next(self._events)

    def close(self) -> None:
        """End the watch now; safe from any thread, any number of times."""
        self._lines.close()

    def _read(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for line in self._lines:
            if not line.strip():
                continue
            kind, content = self._event(line)
            if kind == "ERROR":
                self.close()
                raise refusal_in_watch(self._server, f"WATCH {self._path}", content)
            yield kind, content

    def _event(self, line: bytes) -> tuple[str, dict[str, Any]]:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = None
        if isinstance(event, dict) and isinstance(event.get("type"), str) and isinstance(event.get("object"), dict):
            return event["type"], event["object"]
        self.close()
        raise ClusterError(
            f"WATCH {self._path} on {self._server}: {line[:80]!r} is no watch event: "
            "check that the address is an API server's"
        )
