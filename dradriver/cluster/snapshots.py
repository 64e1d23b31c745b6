"""Snapshots: everything an explanation rests on, from a cluster or from a file.

A file is an ordinary `v1` List, as `kubectl get ... -o yaml` gives it, in any version of resource.k8s.io; other kinds
in it are passed over. One object `SnapshotInfo` may say what the objects cannot: `serverVersion`, `servedVersions`,
`featureGates`, `takenAt`, `missing`. What could not be read is in `missing`, never left out silently.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dradriver import api
from dradriver.cluster.connecting import Connection
from dradriver.cluster.discovering import Served, assume_kubernetes, discover
from dradriver.cluster.documents import Document, SnapshotError, read_file
from dradriver.cluster.errors import ClusterError, ForbiddenError, NotFoundError

_READERS = 4  # lists read at a time


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Typed values where the allocator needs them, JSON for the rest; all namespaces.

    `missing` names the kinds that could not be read, with the reason; `assumed` says what was taken for granted.
    `versions` tells in which version claims and templates were read, by kind, namespace and name: what a person wrote
    looks different in each.
    """

    kubernetes: api.Kubernetes
    slices: tuple[api.ResourceSlice, ...] = ()
    classes: tuple[api.DeviceClass, ...] = ()
    claims: tuple[api.ResourceClaim, ...] = ()
    templates: tuple[api.ResourceClaimTemplate, ...] = ()
    taint_rules: tuple[api.DeviceTaintRule, ...] = ()
    nodes: tuple[Mapping[str, Any], ...] = ()
    pods: tuple[Mapping[str, Any], ...] = ()
    namespaces: tuple[Mapping[str, Any], ...] = ()
    quotas: tuple[Mapping[str, Any], ...] = ()
    events: tuple[Mapping[str, Any], ...] = ()
    resource_version: str = ""
    taken_at: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    versions: Mapping[tuple[str, str, str], api.wire.ApiVersion] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind that belongs to a snapshot: the field it goes to, its groups, and where a server keeps it."""

    field: str
    plural: str
    groups: tuple[str, ...] = ("",)
    namespaced: bool = False
    selector: str = ""


_RESOURCE = (api.wire.GROUP,)
_KINDS: Mapping[str, _Kind] = {
    "ResourceSlice": _Kind("slices", "resourceslices", _RESOURCE),
    "DeviceClass": _Kind("classes", "deviceclasses", _RESOURCE),
    "ResourceClaim": _Kind("claims", "resourceclaims", _RESOURCE, namespaced=True),
    "ResourceClaimTemplate": _Kind("templates", "resourceclaimtemplates", _RESOURCE, namespaced=True),
    "DeviceTaintRule": _Kind("taint_rules", "devicetaintrules", _RESOURCE),
    "Node": _Kind("nodes", "nodes"),
    "Pod": _Kind("pods", "pods", namespaced=True),
    "Namespace": _Kind("namespaces", "namespaces"),
    "ResourceQuota": _Kind("quotas", "resourcequotas", namespaced=True),
    # The scheduler's refusals are warnings; the normal events of a big cluster would outweigh everything else.
    "Event": _Kind("events", "events", ("", "events.k8s.io"), namespaced=True, selector="type=Warning"),
}


def load_snapshot(path: Path, kubernetes: api.Kubernetes | None = None, *, namespace: str = "default") -> Snapshot:
    """Read a snapshot file (YAML or JSON List; `-` is standard input).

    Args:
        path: the file.
        kubernetes: the rules to answer by; None takes what SnapshotInfo says, else 1.37 with its default gates.
        namespace: where namespaced objects belong that do not say it, as with kubectl.

    Raises:
        SnapshotError: the message names the file, the item, the object and the path of what is wrong.

    """
    file = read_file(path)
    fields: dict[str, list[Any]] = {kind.field: [] for kind in _KINDS.values()}
    places: dict[tuple[str, str, str], str] = {}
    versions: dict[tuple[str, str, str], api.wire.ApiVersion] = {}
    info: Document | None = None
    for document in file.documents:
        if document.content["kind"] == "SnapshotInfo":
            info = document
        elif kind := _known(document.content):
            identity = _identity(document, kind, namespace)
            if earlier := places.get(identity):
                raise SnapshotError(f"{_named(document)} is in the file twice (first at {earlier}): remove one of them")
            places[identity] = document.where
            value = _read(document, kind)
            fields[kind.field].append(value)
            versions |= _versions([value], str(document.content.get("apiVersion")))
    if not places and info is None and file.documents:
        kinds = ", ".join(sorted({str(document.content["kind"]) for document in file.documents}))
        raise SnapshotError(f"{file.name} holds only {kinds}: expected some of {', '.join(_KINDS)}")
    told = _Info.read(info) if info else _Info()
    rules, assumed = (kubernetes, ()) if kubernetes else told.rules(file.name)
    return Snapshot(
        kubernetes=rules,
        resource_version=file.resource_version,
        taken_at=told.taken_at,
        missing=told.missing,
        assumed=assumed,
        versions=versions,
        **{name: tuple(values) for name, values in fields.items()},
    )


def take_snapshot(
    connection: Connection,
    kubernetes: api.Kubernetes | None = None,
    *,
    kinds: Collection[str] = tuple(_KINDS),
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Snapshot:
    """Read a cluster; a kind the caller may not list goes to `missing`.

    Args:
        connection: the cluster.
        kubernetes: the rules to answer by; None takes the server's version with its default gates.
        kinds: the kinds to read, for a view that needs few of them.
        now: the clock, for `taken_at`.

    Raises:
        ClusterError: nothing answers, or the server has no resource.k8s.io.

    """
    served = discover(connection)
    rules, assumed = (kubernetes, ()) if kubernetes else (served.kubernetes(), served.assumptions())
    taken_at = now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with ThreadPoolExecutor(_READERS, thread_name_prefix="snapshot") as readers:
        lists = dict(zip(kinds, readers.map(lambda name: _List.read(connection, served, name), kinds), strict=True))
    fields: dict[str, tuple[Any, ...]] = {_KINDS[name].field: tuple(found.values) for name, found in lists.items()}
    states = [lists[name].version for name in ("ResourceClaim", "ResourceSlice") if name in lists]
    return Snapshot(
        kubernetes=rules,
        resource_version=next(filter(None, states), ""),
        taken_at=taken_at,
        missing={name: found.missing for name, found in lists.items() if found.missing},
        assumed=assumed,
        versions=_versions([*fields.get("claims", ()), *fields.get("templates", ())], served.prefix),
        **fields,
    )


@dataclass(frozen=True, slots=True)
class _List:
    """One kind as a cluster told it."""

    values: tuple[Any, ...] = ()
    version: str = ""
    missing: str = ""

    @classmethod
    def read(cls, connection: Connection, served: Served, name: str) -> _List:
        kind = _KINDS[name]
        for prefix in _prefixes(served, name):
            try:
                items, version = connection.list(f"{prefix}/{kind.plural}", field_selector=kind.selector)
            except NotFoundError as error:
                absence = str(error)
            except ForbiddenError as error:
                return cls(missing=str(error))
            else:
                return cls._of(items, version, kind)
        # A kind of taint rule that is not served cannot have objects; every other kind is served wherever DRA is.
        return cls() if name == "DeviceTaintRule" else cls(missing=absence)

    @classmethod
    def _of(cls, items: list[dict[str, Any]], version: str, kind: _Kind) -> _List:
        """Values of items; those that cannot be read make the kind count as missing, because they may hold devices."""
        values, unread = [], []
        for item in items:
            try:
                values.append(_read(Document("the server", item), kind))
            except SnapshotError as error:
                unread.append(str(error))
        missing = f"{len(unread)} of {len(items)} cannot be read; the first: {unread[0]}" if unread else ""
        return cls(tuple(values), version, missing)


@dataclass(frozen=True, slots=True)
class _Info:
    """What a SnapshotInfo says."""

    where: str = ""
    server_version: str = ""
    gates: Mapping[str, bool] = field(default_factory=dict)
    taken_at: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, document: Document) -> _Info:
        content = document.content
        gates, missing = content.get("featureGates") or {}, content.get("missing") or {}
        for name, value, item in (("featureGates", gates, bool), ("missing", missing, str)):
            if not isinstance(value, dict) or not all(isinstance(each, item) for each in value.values()):
                raise SnapshotError(
                    f"{document.where} (SnapshotInfo): {name} is {value!r:.60}, "
                    f"expected a mapping to {'true or false' if item is bool else 'reasons'}"
                )
        server_version = str(content.get("serverVersion") or "")
        return cls(document.where, server_version, gates, str(content.get("takenAt") or ""), missing)

    def rules(self, file: str) -> tuple[api.Kubernetes, tuple[str, ...]]:
        """The Kubernetes to answer by, and what that takes for granted."""
        try:
            rules, assumed = assume_kubernetes(self.server_version)
            if self.gates:
                return api.Kubernetes.release(str(rules), self.gates), ()
        except (api.ApiError, ClusterError) as error:
            raise SnapshotError(f"{self.where} (SnapshotInfo): {error}") from error
        if not self.server_version:
            assumed = (f"Kubernetes {rules} with its default feature gates: {file} does not say",)
        return rules, assumed


def _known(content: Mapping[str, Any]) -> _Kind | None:
    kind = _KINDS.get(str(content["kind"]))
    version = content.get("apiVersion")
    if kind is None or not version:
        return kind  # a known kind without apiVersion is read, so that the reader says what it lacks
    group, separator, _ = str(version).partition("/")
    return kind if (group if separator else "") in kind.groups else None


def _identity(document: Document, kind: _Kind, namespace: str = "default") -> tuple[str, str, str]:
    """Field, namespace and name; a namespaced object without a namespace is put where kubectl would put it."""
    metadata = document.content.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name") or not isinstance(metadata["name"], str):
        raise SnapshotError(f"{document.where} ({document.content['kind']}): metadata.name is missing: give it one")
    if kind.namespaced:
        metadata["namespace"] = metadata.get("namespace") or namespace
    return kind.field, str(metadata.get("namespace", "")), metadata["name"]


def _read(document: Document, kind: _Kind) -> Any:
    name = str(document.content["kind"])
    if name not in (*api.wire.KINDS, "DeviceTaintRule"):
        _identity(document, kind)
        return document.content
    try:
        if name == "DeviceTaintRule":  # its versions are not those of the other kinds
            return api.wire.read_taint_rule(document.content)
        return api.wire.read(document.content)
    except api.ApiError as error:
        raise SnapshotError(f"{_named(document)}: {error}") from error


def _versions(values: Iterable[Any], api_version: str) -> dict[tuple[str, str, str], api.wire.ApiVersion]:
    """In which version claims and templates were read; `api_version` ends with it."""
    return {
        (type(value).__name__, value.metadata.namespace, value.metadata.name): api.wire.ApiVersion(
            api_version.rpartition("/")[2]
        )
        for value in values
        if isinstance(value, api.ResourceClaim | api.ResourceClaimTemplate)
    }


def _named(document: Document) -> str:
    metadata = document.content.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = "/".join(str(part) for part in (metadata.get("namespace"), metadata.get("name")) if part)
    return f"{document.where} ({document.content['kind']} {name})"


def _prefixes(served: Served, name: str) -> list[str]:
    """Where a server may keep a kind, first choice first."""
    if name == "DeviceTaintRule":  # served in versions of its own, an alpha one in 1.33 to 1.35
        versions = [*api.wire.ApiVersion, "v1alpha3"]
        return [f"/apis/{api.wire.GROUP}/{version}" for version in versions if version in served.resource_versions]
    return [served.prefix if _KINDS[name].groups == _RESOURCE else "/api/v1"]
