"""Tables as `kubectl get` prints them (kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from dradriver.lab.apiserver.kinds import Kind, field, field_value

Json: TypeAlias = Mapping[str, Any]
Cell: TypeAlias = Callable[[Json, float], Any]
"""What a column shows of an object at a time."""

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_NONE = "<none>"


def table(
    kind: Kind, items: Iterable[Json], now: float, *, include: str, meta: Json, header: bool = True
) -> dict[str, Any]:
    """A `Table` of objects; `include` is None, Metadata or Object, as the query parameter has it."""
    columns = _COLUMNS.get(kind.kind, (_NAME, _AGE))
    rows = [{"cells": [cell(item, now) for _, cell in columns], **_object(item, include)} for item in items]
    body = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    return {**body, "columnDefinitions": [_column(name) for name, _ in columns if header], "rows": rows}


def _column(name: str) -> Json:
    wide = name.startswith("+")
    kind = "name" if name == "Name" else ""
    return {"name": name.lstrip("+"), "type": "string", "format": kind, "description": "", "priority": int(wide)}


def _object(item: Json, include: str) -> Json:
    if include == "None":
        return {}
    if include == "Object":
        return {"object": item}
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item["metadata"]}
    return {"object": partial}


def _duration(seconds: float) -> str:
    """As apimachinery's `duration.HumanDuration`, with one unit always."""
    unit, letter = next(
        u for u in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m"), (1, "s")) if seconds >= 2 * u[0] or u[0] == 1
    )
    return f"{max(0, int(seconds // unit))}{letter}"


def _field(path: str, otherwise: str = "") -> Cell:
    return lambda obj, _: field_value(obj, path) or otherwise


def _age(*paths: str) -> Cell:
    """How long ago the first of some times was that is set."""

    def cell(obj: Json, now: float) -> str:
        text = next(filter(None, (field_value(obj, path) for path in paths)), None)
        return _duration(now - datetime.fromisoformat(text).timestamp()) if text else "<unknown>"

    return cell


def _entries(obj: Json, path: str) -> list[Json]:
    """The objects in a list; nothing where there is no such list."""
    value = field(obj, path)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _claim_state(obj: Json, _: float) -> str:
    status = obj.get("status") or {}
    states = [
        *(["deleted"] if "deletionTimestamp" in obj["metadata"] else []),
        *(["allocated"] if status.get("allocation") else []),
        *(["reserved"] if status.get("reservedFor") else []),
    ]
    return ",".join(states) or "pending"


def _pod_ready(pod: Json, _: float) -> str:
    ready = sum(status.get("ready") is True for status in _entries(pod, "status.containerStatuses"))
    return f"{ready}/{len(_entries(pod, 'spec.containers'))}"


def _pod_restarts(pod: Json, _: float) -> str:
    counts = (status.get("restartCount") for status in _entries(pod, "status.containerStatuses"))
    return str(sum(count for count in counts if isinstance(count, int)))


def _pod_state(pod: Json, _: float) -> str:
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    for container in _entries(pod, "status.containerStatuses"):
        for phase in ("waiting", "terminated"):
            if reason := field_value(container, f"state.{phase}.reason"):
                return reason
    if any(condition.get("reason") == "SchedulingGated" for condition in _entries(pod, "status.conditions")):
        return "SchedulingGated"
    return field_value(pod, "status.reason") or field_value(pod, "status.phase") or "Pending"


def _node_state(node: Json, _: float) -> str:
    ready = next((c.get("status") for c in _entries(node, "status.conditions") if c.get("type") == "Ready"), None)
    state = "Ready" if ready == "True" else "NotReady" if ready == "False" else "Unknown"
    return state + (",SchedulingDisabled" if field_value(node, "spec.unschedulable") == "True" else "")


def _node_roles(node: Json, _: float) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    return ",".join(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))) or _NONE


def _event_object(event: Json, _: float) -> str:
    return f"{field_value(event, 'involvedObject.kind').lower()}/{field_value(event, 'involvedObject.name')}"


_NAME = ("Name", _field("metadata.name"))
_AGE = ("Age", _age("metadata.creationTimestamp"))
# A plus marks the columns that -o wide adds.
_COLUMNS: Mapping[str, tuple[tuple[str, Cell], ...]] = {
    "ResourceClaim": (_NAME, ("State", _claim_state), _AGE),
    "ResourceSlice": (
        _NAME,
        ("Node", _field("spec.nodeName")),
        ("Driver", _field("spec.driver")),
        ("Pool", _field("spec.pool.name")),
        _AGE,
    ),
    "Pod": (
        _NAME,
        ("Ready", _pod_ready),
        ("Status", _pod_state),
        ("Restarts", _pod_restarts),
        _AGE,
        ("+IP", _field("status.podIP", _NONE)),
        ("+Node", _field("spec.nodeName", _NONE)),
    ),
    "Node": (
        _NAME,
        ("Status", _node_state),
        ("Roles", _node_roles),
        _AGE,
        ("Version", _field("status.nodeInfo.kubeletVersion")),
    ),
    "Event": (
        ("Last Seen", _age("lastTimestamp", "eventTime", "firstTimestamp")),
        ("Type", _field("type")),
        ("Reason", _field("reason")),
        ("Object", _event_object),
        ("Message", _field("message")),
    ),
    "Namespace": (_NAME, ("Status", _field("status.phase", "Active")), _AGE),
    "ConfigMap": (_NAME, ("Data", lambda obj, _: len(obj.get("data") or ())), _AGE),
}
