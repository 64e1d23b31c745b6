"""Which nodes a claim may be satisfied on, as far as nodes and pods say plainly, and why not on the others.

Only what is plain: the pod's node name, node selector and tolerations against cordons and taints. CPU, memory and
everything else is other plugins' business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dradriver import api
from dradriver.explain.situations import Situation


@dataclass(frozen=True, slots=True)
class Considered:
    """Nodes by what is known of them: open now, closed for now (with the reason), or not wanted by the pod."""

    open: tuple[api.Node, ...]
    closed: Mapping[str, str] = field(default_factory=dict)
    unwanted: Mapping[str, str] = field(default_factory=dict)
    reopened: tuple[api.Node, ...] = ()
    """The closed ones as nodes, for "and if they were opened?"."""

    @property
    def excluded(self) -> dict[str, str]:
        """All nodes that are out now, with the reason."""
        return {**self.closed, **self.unwanted}


def consider(situation: Situation, pod: Mapping[str, Any] | None) -> Considered:
    """Sort the cluster's nodes for a pod, or for any pod that uses a claim."""
    spec = (pod or {}).get("spec") or {}
    known = {node["metadata"]["name"]: node for node in situation.nodes}
    tolerations = [_toleration(entry) for entry in spec.get("tolerations") or ()]
    open_nodes: list[api.Node] = []
    reopened: list[api.Node] = []
    closed: dict[str, str] = {}
    unwanted: dict[str, str] = {}
    for name, node in sorted(situation.cluster.nodes.items()):
        if reason := _unwanted(spec, node):
            unwanted[name] = reason
        elif reason := _closed(known.get(name, {}).get("spec") or {}, tolerations):
            closed[name] = reason
            reopened.append(node)
        else:
            open_nodes.append(node)
    return Considered(tuple(open_nodes), closed, unwanted, tuple(reopened))


def _unwanted(spec: Mapping[str, Any], node: api.Node) -> str | None:
    if spec.get("nodeName") and spec["nodeName"] != node.name:
        return f"the pod is on {spec['nodeName']}"
    for label, value in (spec.get("nodeSelector") or {}).items():
        if node.labels.get(label) != value:
            return f"the pod wants {label}={value}"
    return None


def _closed(spec: Mapping[str, Any], tolerations: list[api.Toleration]) -> str | None:
    if spec.get("unschedulable"):
        return "cordoned"
    for entry in spec.get("taints") or ():
        if entry.get("effect") in ("NoSchedule", "NoExecute"):
            taint = api.Taint(entry["key"], api.TaintEffect(entry["effect"]), entry.get("value") or "")
            if not any(api.tolerates(toleration, taint) for toleration in tolerations):
                return f"tainted {taint.key}:{taint.effect}"
    return None


def _toleration(entry: Mapping[str, Any]) -> api.Toleration:
    effect = str(entry.get("effect") or "")
    known = effect in ("NoSchedule", "NoExecute")
    return api.Toleration(
        key=entry.get("key") or "",
        operator=api.TolerationOperator.EXISTS if entry.get("operator") == "Exists" else api.TolerationOperator.EQUAL,
        value=entry.get("value") or "",
        effect=api.TaintEffect(effect) if known else api.TaintEffect.NONE if effect else None,
    )
