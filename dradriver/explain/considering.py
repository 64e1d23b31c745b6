"""Which nodes a claim may be satisfied on, as far as nodes and pods say plainly, and why not on the others.

Only what is plain: the pod's node name, node selector, required node affinity and tolerations against cordons and
taints, and where claims that the pod has already are tied to. CPU, memory and the rest are other plugins' business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dradriver import api
from dradriver.allocator import Cluster
from dradriver.explain.situations import Situation
from dradriver.explain.surroundings import NodeState, Pod


@dataclass(frozen=True, slots=True)
class Considered:
    """Nodes by what is known of them: open now, closed for now, or not wanted by the pod; the latter with reasons."""

    open: tuple[api.Node, ...]
    closed: Mapping[str, str] = field(default_factory=dict)
    unwanted: Mapping[str, str] = field(default_factory=dict)
    reopened: tuple[api.Node, ...] = ()
    """The closed ones as nodes, for "and if they were opened?"."""
    own: frozenset[tuple[str, str]] = frozenset()
    """The claims that the pod has already, by namespace and name: they end with it, not before."""

    @property
    def everywhere(self) -> tuple[api.Node, ...]:
        """All nodes that are open or could be opened."""
        return (*self.open, *self.reopened)

    def emptied(self, cluster: Cluster) -> Cluster:
        """The cluster put right, in which only the pod's own claims hold anything."""
        own = self.own
        return cluster.repaired().without_claims(lambda c: (c.metadata.namespace, c.metadata.name) not in own)

    @property
    def excluded(self) -> dict[str, str]:
        """All nodes that are out now, with the reason."""
        return {**self.closed, **self.unwanted}


def consider(situation: Situation, pod: Pod | None) -> Considered:
    """Sort the cluster's nodes for a pod, or for any pod that uses a claim."""
    states = {node.name: node for node in situation.nodes}
    tied = _tied(situation, pod) if pod else {}
    open_nodes: list[api.Node] = []
    reopened: list[api.Node] = []
    closed: dict[str, str] = {}
    unwanted: dict[str, str] = {}
    for name, node in sorted(situation.cluster.nodes.items()):
        if pod and (reason := _unwanted(pod, node, tied)):
            unwanted[name] = reason
        elif reason := _closed(states.get(name), pod.tolerations if pod else ()):
            closed[name] = reason
            reopened.append(node)
        else:
            open_nodes.append(node)
    own = frozenset((pod.namespace, claim) for claim in tied) if pod else frozenset()
    return Considered(tuple(open_nodes), closed, unwanted, tuple(reopened), own)


def _tied(situation: Situation, pod: Pod) -> dict[str, api.NodeSelector | None]:
    """The claims of a pod that are allocated, and the nodes they tie it to; None for all."""
    claims = (situation.claim(pod.namespace, entry.claim) for entry in pod.claims if entry.claim)
    return {
        claim.metadata.name: claim.status.allocation.node_selector
        for claim in claims
        if claim and claim.status.allocation
    }


def _unwanted(pod: Pod, node: api.Node, tied: Mapping[str, api.NodeSelector | None]) -> str | None:
    for claim, selector in tied.items():
        if selector is not None and not api.selects(selector, node):
            return f"the pod's claim {claim} is allocated elsewhere"
    if pod.node and pod.node != node.name:
        return f"the pod is on {pod.node}"
    for label, value in pod.node_labels.items():
        if node.labels.get(label) != value:
            return f"the pod wants {label}={value}"
    if pod.node_affinity is not None and not api.selects(pod.node_affinity, node):
        return "the pod's node affinity leaves it out"
    return None


def _closed(state: NodeState | None, tolerations: tuple[api.Toleration, ...]) -> str | None:
    if state is None:
        return None
    if state.cordoned:
        return "cordoned"
    for taint in state.taints:
        if not any(api.tolerates(toleration, taint) for toleration in tolerations):
            return f"tainted {taint.key}:{taint.effect}"
    return None
