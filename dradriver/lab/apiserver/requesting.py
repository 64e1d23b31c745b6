"""One call, its target found and its caller known, and one answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dradriver.lab.apiserver import decoding, selecting, statuses
from dradriver.lab.apiserver.addressing import Target
from dradriver.lab.identities import Identity

Json: TypeAlias = dict[str, Any]

_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Call:
    """What someone wants done with a target. The query has the last value of each parameter."""

    target: Target
    caller: Identity
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def as_table(self) -> bool:
        """Whether the client wants rows to print."""
        return "as=Table" in self.headers.get("Accept", "")

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

    def test(self) -> selecting.Test:
        """The test of namespace, name and selectors. Raises RefusedError."""
        target = self.target
        fields = f"metadata.name={target.name}" if target.name else self.query.get("fieldSelector", "")
        fields += f",metadata.namespace={target.namespace}" if target.namespace else ""
        return selecting.parse_selectors(target.kind, self.query.get("labelSelector", ""), fields)

    def object(self) -> Json:
        """The body, which must be an object. Raises RefusedError."""
        return decoding.as_object(decoding.read_document(self.body))


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: a JSON document, plain text, or a stream of documents (None: nothing to say yet)."""

    code: int
    body: Json | str | Iterator[Json | None]
    warnings: list[str] = field(default_factory=list)
