"""Tables as `kubectl get` prints them (kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from dradriver.lab.apiserver.kinds import Kind

Json: TypeAlias = dict[str, Any]
Cells: TypeAlias = Callable[[Mapping[str, Any], float], list[Any]]

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
_NONE = "<none>"


def table(kind: Kind, items: Iterable[Json], now: float, *, include: str, meta: Json, header: bool = True) -> Json:
    """A `Table` of objects; `include` is None, Metadata or Object, as the query parameter has it."""
    names, cells = _COLUMNS.get(kind.kind, (("Name", "Age"), _name_age))
    columns = [_column(name) for name in names]
    rows = [{"cells": cells(item, now), **_object(item, include)} for item in items]
    body = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    return {**body, "columnDefinitions": columns if header else [], "rows": rows}


def _column(name: str) -> Json:
    wide = name.startswith("+")
    name = name.lstrip("+")
    kind = "name" if name == "Name" else ""
    return {"name": name, "type": "string", "format": kind, "description": "", "priority": int(wide)}


def _object(item: Json, include: str) -> Json:
    if include == "None":
        return {}
    if include == "Object":
        return {"object": item}
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item["metadata"]}
    return {"object": partial}


def human_duration(seconds: float) -> str:
    """Apimachinery `duration.HumanDuration`: at most two units, fewer as it grows."""
    whole = int(seconds)
    if whole < 0:
        return "0s" if whole > -2 else "<invalid>"  # noqa: PLR2004 - clocks may differ by a second
    for limit, unit, name, lesser, lesser_name in (
        (2 * _MINUTE, 1, "s", 0, ""),
        (10 * _MINUTE, _MINUTE, "m", 1, "s"),
        (3 * _HOUR, _MINUTE, "m", 0, ""),
        (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
        (2 * _DAY, _HOUR, "h", 0, ""),
        (8 * _DAY, _DAY, "d", _HOUR, "h"),
        (2 * _YEAR, _DAY, "d", 0, ""),
        (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    ):
        if whole < limit:
            rest = whole % unit // lesser if lesser else 0
            return f"{whole // unit}{name}" + (f"{rest}{lesser_name}" if rest else "")
    return f"{whole // _YEAR}y"


def _age(text: str | None, now: float) -> str:
    return human_duration(now - datetime.fromisoformat(text).timestamp()) if text else "<unknown>"


def _own_age(obj: Mapping[str, Any], now: float) -> str:
    return _age(obj["metadata"].get("creationTimestamp"), now)


def _name_age(obj: Mapping[str, Any], now: float) -> list[Any]:
    return [obj["metadata"]["name"], _own_age(obj, now)]


def _claim(obj: Mapping[str, Any], now: float) -> list[Any]:
    status = obj.get("status") or {}
    states = [
        *(["deleted"] if "deletionTimestamp" in obj["metadata"] else []),
        *(["allocated"] if status.get("allocation") else []),
        *(["reserved"] if status.get("reservedFor") else []),
    ]
    return [obj["metadata"]["name"], ",".join(states) or "pending", _own_age(obj, now)]


def _slice(obj: Mapping[str, Any], now: float) -> list[Any]:
    spec = obj["spec"]
    return [obj["metadata"]["name"], spec.get("nodeName", ""), spec["driver"], spec["pool"]["name"], _own_age(obj, now)]


def _pod(obj: Mapping[str, Any], now: float) -> list[Any]:
    meta, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
    containers = status.get("containerStatuses") or []
    ready = sum(bool(container.get("ready")) for container in containers)
    restarts = sum(container.get("restartCount", 0) for container in containers)
    ready_of = f"{ready}/{len(spec.get('containers') or ())}"
    first = [meta["name"], ready_of, _pod_state(meta, status, containers), str(restarts), _own_age(obj, now)]
    node = spec.get("nodeName") or _NONE
    return [*first, status.get("podIP") or _NONE, node, status.get("nominatedNodeName") or _NONE, _NONE]


def _pod_state(meta: Mapping[str, Any], status: Mapping[str, Any], containers: list[Json]) -> str:
    if "deletionTimestamp" in meta:
        return "Terminating"
    for container in containers:
        state = container.get("state") or {}
        for phase in ("waiting", "terminated"):
            if reason := (state.get(phase) or {}).get("reason"):
                return str(reason)
    if any(c.get("reason") == "SchedulingGated" for c in status.get("conditions") or ()):
        return "SchedulingGated"
    return str(status.get("reason") or status.get("phase") or "Pending")


def _node(obj: Mapping[str, Any], now: float) -> list[Any]:
    meta, status = obj["metadata"], obj.get("status") or {}
    ready = next((c.get("status", "") for c in status.get("conditions") or () if c.get("type") == "Ready"), "Unknown")
    state = {"True": "Ready", "False": "NotReady"}.get(ready, "Unknown")
    if (obj.get("spec") or {}).get("unschedulable"):
        state += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = ",".join(sorted(k.removeprefix(prefix) for k in meta.get("labels") or {} if k.startswith(prefix)))
    info = status.get("nodeInfo") or {}
    address = {a.get("type"): a.get("address") for a in status.get("addresses") or ()}
    return [
        *(meta["name"], state, roles or _NONE, _own_age(obj, now), info.get("kubeletVersion", "")),
        *(address.get("InternalIP") or _NONE, address.get("ExternalIP") or _NONE),
        *(info.get(key) or "<unknown>" for key in ("osImage", "kernelVersion", "containerRuntimeVersion")),
    ]


def _event(obj: Mapping[str, Any], now: float) -> list[Any]:
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    last = obj.get("lastTimestamp") or (obj.get("series") or {}).get("lastObservedTime") or first
    about, source = obj.get("involvedObject") or {}, obj.get("source") or {}
    name = f"{about.get('kind', '').lower()}/{about.get('name', '')}"
    component = ", ".join(filter(None, (source.get("component") or obj.get("reportingComponent"), source.get("host"))))
    return [
        *(_age(last, now), obj.get("type", ""), obj.get("reason", ""), name, about.get("fieldPath", ""), component),
        *(obj.get("message", "").strip(), _age(first, now), obj.get("count") or 1, obj["metadata"]["name"]),
    ]


def _namespace(obj: Mapping[str, Any], now: float) -> list[Any]:
    return [obj["metadata"]["name"], (obj.get("status") or {}).get("phase", "Active"), _own_age(obj, now)]


def _data(obj: Mapping[str, Any], now: float) -> list[Any]:
    return [obj["metadata"]["name"], len(obj.get("data") or ()), _own_age(obj, now)]


# A plus marks the columns that -o wide adds.
_COLUMNS: Mapping[str, tuple[tuple[str, ...], Cells]] = {
    "ResourceClaim": (("Name", "State", "Age"), _claim),
    "ResourceSlice": (("Name", "Node", "Driver", "Pool", "Age"), _slice),
    "Pod": (
        ("Name", "Ready", "Status", "Restarts", "Age", "+IP", "+Node", "+Nominated Node", "+Readiness Gates"),
        _pod,
    ),
    "Node": (
        (
            *("Name", "Status", "Roles", "Age", "Version"),
            *("+Internal-IP", "+External-IP", "+OS-Image", "+Kernel-Version", "+Container-Runtime"),
        ),
        _node,
    ),
    "Event": (
        (
            *("Last Seen", "Type", "Reason", "Object", "+Subobject", "+Source", "Message"),
            *("+First Seen", "+Count", "+Name"),
        ),
        _event,
    ),
    "Namespace": (("Name", "Status", "Age"), _namespace),
    "ConfigMap": (("Name", "Data", "Age"), _data),
}
