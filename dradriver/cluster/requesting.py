"""One request to an API server, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode


@dataclass(frozen=True, slots=True)
class Request:
    """Method, path (starting with a slash, quoted already), query and body."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes | None = None
    content_type: str = "application/json"

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def target(self) -> str:
        """Path and query as they go over the wire."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path
