"""One request and one answer, as the HTTP server hands them over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dradriver.lab.apiserver import selecting, statuses
from dradriver.lab.apiserver.addressing import Target

Json: TypeAlias = dict[str, Any]


_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Request:
    """One request, its query reduced to the last value of each parameter."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def as_table(self) -> bool:
        """Whether the client wants rows to print."""
        return "as=Table" in (self.headers.get("Accept") or "")

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be stored."""
        return self.query.get("dryRun") == "All"

    def number(self, name: str) -> int:
        """A parameter that is a number that is not negative; 0 where it is not given. Raises RefusedError."""
        text = self.query.get(name) or "0"
        if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
            raise statuses.bad_request(f"invalid {name}: {text!r} is no number that is not negative")
        return int(text)

    def selects(self, target: Target) -> selecting.Test:
        """The test of the selectors, or of the name in the path. Raises RefusedError."""
        fields = f"metadata.name={target.name}" if target.name else self.query.get("fieldSelector", "")
        return selecting.parse_selectors(target.kind, self.query.get("labelSelector", ""), fields)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: a JSON document, plain text, or a stream of documents (None: nothing to say yet)."""

    code: int
    body: Json | str | Iterator[Json | None]
    warnings: list[str] = field(default_factory=list)
