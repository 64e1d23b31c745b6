"""A reflector: a local copy of one collection, kept true by list and watch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dradriver.cluster.connecting import Connection


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the copy: `old` is None for a new object, `new` is None for one that went."""

    old: dict[str, Any] | None
    new: dict[str, Any] | None


class Reflector:
    """Keeps a copy of a collection in a thread of its own.

    Lists in pages, watches with bookmarks, resumes, lists again on 410, backs off with jitter, gives up on silence.
    `on_change` is called from that thread, in order; on a new list it gets the difference to the old copy.
    """

    def __init__(
        self,
        connection: Connection,
        path: str,
        *,
        field_selector: str = "",
        label_selector: str = "",
        on_change: Callable[[Change], None] | None = None,
    ) -> None:
        raise NotImplementedError

    def start(self) -> None:
        """Start the thread."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop the thread and wait for it (bounded)."""
        raise NotImplementedError

    def wait_synced(self, seconds: float) -> bool:
        """Wait until the first list is in; False on time-out."""
        raise NotImplementedError

    def items(self) -> list[dict[str, Any]]:
        """The copy as it is now."""
        raise NotImplementedError
