"""What stands around claims: pods, nodes and the scheduler's refusals, read from the JSON of core/v1.

Only what an explanation looks at is read. A field of the wrong shape raises SurroundingsError, which names the object,
the field and the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dradriver import api

Json = Mapping[str, Any]
T = TypeVar("T")

_EFFECTS = (api.TaintEffect.NO_SCHEDULE, api.TaintEffect.NO_EXECUTE)
_SHAPES = {str: "text", list: "a list", dict: "a mapping", bool: "true or false"}


class SurroundingsError(ValueError):
    """An object around claims does not have the shape of core/v1."""


@dataclass(frozen=True, slots=True)
class PodClaim:
    """One claim of a pod: its name in the pod, the claim's own (None while it is not generated), its template's."""

    name: str
    claim: str | None
    template: str | None


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod, as far as it decides where its claims can be had; `refused` is the scheduler's word that it found none."""

    namespace: str
    name: str
    uid: str = ""
    phase: str = "Pending"
    node: str | None = None
    claims: tuple[PodClaim, ...] = ()
    node_labels: Mapping[str, str] = field(default_factory=dict)
    node_affinity: api.NodeSelector | None = None
    tolerations: tuple[api.Toleration, ...] = ()
    gates: tuple[str, ...] = ()
    refused: str | None = None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class NodeState:
    """What closes a node to pods."""

    name: str
    cordoned: bool = False
    taints: tuple[api.Taint, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A FailedScheduling event: the scheduler's own words about a pod."""

    pod: tuple[str, str]
    message: str
    time: str = ""


def read_pod(data: Json) -> Pod:
    """Read a pod. Raises SurroundingsError."""
    statuses = _entries(data, "status.resourceClaimStatuses")
    generated = {_text(entry, "name"): _get(entry, "resourceClaimName", str) for entry in statuses}
    conditions = _entries(data, "status.conditions")
    return Pod(
        namespace=_text(data, "metadata.namespace"),
        name=_text(data, "metadata.name"),
        uid=_text(data, "metadata.uid"),
        phase=_text(data, "status.phase") or "Pending",
        node=_get(data, "spec.nodeName", str) or None,
        claims=tuple(
            PodClaim(
                name := _text(entry, "name"),
                _get(entry, "resourceClaimName", str) or generated.get(name),
                _get(entry, "resourceClaimTemplateName", str),
            )
            for entry in _entries(data, "spec.resourceClaims")
        ),
        node_labels=_get(data, "spec.nodeSelector", dict) or {},
        node_affinity=_affinity(data),
        tolerations=tuple(_toleration(entry) for entry in _entries(data, "spec.tolerations")),
        gates=tuple(_text(entry, "name") for entry in _entries(data, "spec.schedulingGates")),
        refused=next(
            (
                _text(entry, "message")
                for entry in conditions
                if entry.get("type") == "PodScheduled" and entry.get("status") == "False"
            ),
            None,
        ),
    )


def read_node(data: Json) -> NodeState:
    """Read a node. Raises SurroundingsError."""
    taints = (
        api.Taint(_text(entry, "key"), api.TaintEffect(entry["effect"]), _text(entry, "value"))
        for entry in _entries(data, "spec.taints")
        if entry.get("effect") in _EFFECTS
    )
    return NodeState(_text(data, "metadata.name"), bool(_get(data, "spec.unschedulable", bool)), tuple(taints))


def read_labels(data: Json) -> Mapping[str, str]:
    """The labels of an object. Raises SurroundingsError."""
    return _get(data, "metadata.labels", dict) or {}


def read_refusal(data: Json) -> Refusal | None:
    """Read an event, None for one that is no refusal of a pod. Raises SurroundingsError."""
    if data.get("reason") != "FailedScheduling":
        return None
    about = _get(data, "involvedObject", dict) or _get(data, "regarding", dict) or {}
    times = (_get(data, path, str) for path in ("series.lastObservedTime", "lastTimestamp", "eventTime"))
    message = _get(data, "message", str) or _get(data, "note", str) or ""
    return Refusal((_text(about, "namespace"), _text(about, "name")), message, next(filter(None, times), ""))


def _get(data: Json, path: str, kind: type[T]) -> T | None:
    value: Any = data
    keys = path.split(".")
    for depth, key in enumerate(keys):
        if not isinstance(value, Mapping):
            raise _wrong(data, ".".join(keys[:depth]), value, "a mapping")
        value = value.get(key)
        if value is None:
            return None
    if isinstance(value, kind):
        return value
    raise _wrong(data, path, value, _SHAPES[kind])


def _text(data: Json, path: str) -> str:
    return _get(data, path, str) or ""


def _entries(data: Json, path: str) -> list[Json]:
    entries = _get(data, path, list) or []
    for number, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            raise _wrong(data, f"{path}[{number}]", entry, "a mapping")
    return entries


def _wrong(data: Json, path: str, value: object, expected: str) -> SurroundingsError:
    metadata = data.get("metadata")
    name = [metadata.get("namespace"), metadata.get("name")] if isinstance(metadata, Mapping) else []
    owner = f"{data.get('kind', 'object')} {'/'.join(str(part) for part in name if part)}".strip()
    return SurroundingsError(f"{owner}: {path} is {value!r:.60}, expected {expected}")


def _toleration(entry: Json) -> api.Toleration:
    effect = _text(entry, "effect")
    known = effect in _EFFECTS
    exists = entry.get("operator") == "Exists"
    return api.Toleration(
        key=_text(entry, "key"),
        operator=api.TolerationOperator.EXISTS if exists else api.TolerationOperator.EQUAL,
        value=_text(entry, "value"),
        # PreferNoSchedule closes no node: a toleration of it tolerates nothing that counts here.
        effect=api.TaintEffect(effect) if known else api.TaintEffect.NONE if effect else None,
    )


def _affinity(data: Json) -> api.NodeSelector | None:
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    required = _get(data, path, dict)
    if required is None:
        return None
    return api.NodeSelector(
        tuple(
            api.NodeSelectorTerm(_requirements(term, "matchExpressions"), _requirements(term, "matchFields"))
            for term in _entries(required, "nodeSelectorTerms")
        )
    )


def _requirements(term: Json, path: str) -> tuple[api.NodeSelectorRequirement, ...]:
    return tuple(
        api.NodeSelectorRequirement(
            _text(entry, "key"), _text(entry, "operator"), tuple(map(str, _get(entry, "values", list) or ()))
        )
        for entry in _entries(term, path)
    )
