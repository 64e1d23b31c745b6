"""One call: what its URL names, who makes it, what it says; and one answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dradriver import api
from dradriver.lab.apiserver import decoding, kinds, selecting, statuses
from dradriver.lab.apiserver.kinds import Kind
from dradriver.lab.identities import Identity

Json: TypeAlias = dict[str, Any]

_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about; an empty name means the collection, an empty namespace all of them or none."""

    kind: Kind
    version: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The key of the object in the store."""
        return self.namespace, self.name

    @property
    def api_version(self) -> str:
        """The apiVersion of objects in this request and its answer."""
        return f"{self.kind.group}/{self.version}" if self.kind.group else self.version


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


def find_target(path: str, kubernetes: api.Kubernetes) -> Target | None:
    """What a path names, or None when nothing served has that path."""
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            return None
    if version not in kinds.served_versions(group, kubernetes):
        return None
    namespace = ""
    if rest[0:1] == ["namespaces"] and len(rest) > 2 and rest[2] != "status":  # noqa: PLR2004 - namespaces/NAME/PLURAL
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 3:  # noqa: PLR2004 - PLURAL/NAME/SUBRESOURCE
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    kind = kinds.find_kind(group, plural)
    if kind is None or (namespace and not kind.namespaced) or (name and kind.namespaced and not namespace):
        return None
    if subresource and subresource not in kind.subresources:
        return None
    return Target(kind, version, namespace, name, subresource)
