"""Object metadata as every Kubernetes object carries it, reduced to what gpupool reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

UID = NewType("UID", str)
"""Identity of one object for its whole life; a new object of the same name has another."""


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """Who must exist for this object to exist (garbage collection follows it)."""

    api_version: str
    kind: str
    name: str
    uid: UID
    controller: bool = False


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """The part of `metadata` that gpupool reads; times are RFC 3339 strings as the server wrote them."""

    name: str = ""
    namespace: str = ""
    uid: UID = UID("")
    generate_name: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
