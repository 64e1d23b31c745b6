"""Snapshots: everything an explanation rests on, from a cluster or from a file (DESIGN 4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dradriver import api
from dradriver.cluster.connecting import Connection


class SnapshotError(Exception):
    """A file that is no snapshot: the message names the file, the object and what to do."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Typed values where the allocator needs them, JSON for the rest; all namespaces.

    `missing` names the kinds that could not be read, with the reason; `assumed` says what was taken for granted.
    """

    kubernetes: api.Kubernetes
    slices: tuple[api.ResourceSlice, ...] = ()
    classes: tuple[api.DeviceClass, ...] = ()
    claims: tuple[api.ResourceClaim, ...] = ()
    templates: tuple[api.ResourceClaimTemplate, ...] = ()
    nodes: tuple[Mapping[str, Any], ...] = ()
    pods: tuple[Mapping[str, Any], ...] = ()
    namespaces: tuple[Mapping[str, Any], ...] = ()
    quotas: tuple[Mapping[str, Any], ...] = ()
    taint_rules: tuple[Mapping[str, Any], ...] = ()
    events: tuple[Mapping[str, Any], ...] = ()
    resource_version: str = ""
    taken_at: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()


def load_snapshot(path: Path, kubernetes: api.Kubernetes | None = None) -> Snapshot:
    """Read a snapshot file (YAML or JSON List; `-` is standard input). Raises SnapshotError."""
    raise NotImplementedError


def take_snapshot(connection: Connection, kubernetes: api.Kubernetes | None = None) -> Snapshot:
    """Read a cluster; a kind the caller may not list goes to `missing`. Raises ClusterError if nothing answers."""
    raise NotImplementedError
