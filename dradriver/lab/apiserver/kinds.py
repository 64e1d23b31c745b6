"""The kinds the lab serves: their names, versions, subresources and selectable fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dradriver import api

RESOURCE_GROUP = api.wire.GROUP


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object. Objects are stored as JSON of the newest version of the kind, whatever version is served."""

    kind: str
    plural: str
    group: str = ""
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    subresources: tuple[str, ...] = ()
    selectable: tuple[str, ...] = ()

    @property
    def group_resource(self) -> str:
        """`resourceclaims.resource.k8s.io`, or `pods`: how messages name the kind."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields that field selectors may name."""
        return ("metadata.name", *(("metadata.namespace",) if self.namespaced else ()), *self.selectable)


_EVENT_FIELDS = (
    *(f"involvedObject.{field}" for field in ("apiVersion", "kind", "namespace", "name", "uid", "fieldPath")),
    *("reason", "type", "reportingComponent"),
)
_SLICE_FIELDS = ("spec.nodeName", "spec.driver")
_POD_FIELDS = ("spec.nodeName", "spec.schedulerName", "status.phase")

NAMESPACE = Kind("Namespace", "namespaces", short_names=("ns",), namespaced=False, subresources=("status",))
NODE = Kind("Node", "nodes", short_names=("no",), namespaced=False, subresources=("status",))
POD = Kind("Pod", "pods", short_names=("po",), subresources=("status", "binding", "log"), selectable=_POD_FIELDS)
EVENT = Kind("Event", "events", short_names=("ev",), selectable=_EVENT_FIELDS)
SLICE = Kind("ResourceSlice", "resourceslices", RESOURCE_GROUP, namespaced=False, selectable=_SLICE_FIELDS)
CLAIM = Kind("ResourceClaim", "resourceclaims", RESOURCE_GROUP, subresources=("status",))
TEMPLATE = Kind("ResourceClaimTemplate", "resourceclaimtemplates", RESOURCE_GROUP)
CLASS = Kind("DeviceClass", "deviceclasses", RESOURCE_GROUP, namespaced=False)

KINDS: tuple[Kind, ...] = (
    NAMESPACE,
    NODE,
    POD,
    EVENT,
    Kind("ServiceAccount", "serviceaccounts", short_names=("sa",)),
    Kind("ConfigMap", "configmaps", short_names=("cm",)),
    Kind("Secret", "secrets", selectable=("type",)),
    Kind("Lease", "leases", "coordination.k8s.io"),
    Kind("ResourceQuota", "resourcequotas", short_names=("quota",), subresources=("status",)),
    SLICE,
    CLAIM,
    TEMPLATE,
    CLASS,
)


GROUPS = tuple(dict.fromkeys(kind.group for kind in KINDS))


def served_versions(group: str, kubernetes: api.Kubernetes) -> tuple[str, ...]:
    """Versions of a group that this Kubernetes serves, preferred first; empty for an unknown group."""
    if group == RESOURCE_GROUP:
        return tuple(kubernetes.served)
    return ("v1",) if group in GROUPS else ()


def find_kind(group: str, plural: str) -> Kind | None:
    """The kind of a collection, or None."""
    return next((kind for kind in KINDS if (kind.group, kind.plural) == (group, plural)), None)


def field(obj: Mapping[str, Any], path: str) -> Any:
    """A field of any depth; None where something on the way is missing or no object."""
    value: Any = obj
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def field_value(obj: Mapping[str, Any], path: str) -> str:
    """The text of a field that selectors compare; empty when it is not set."""
    value = field(obj, path)
    return "" if value is None else str(value)
