"""The scheduler: binds pods to the first node that suits them and where the allocator finds devices for their claims.

One pod after the other, in order of creation, against a cluster index that counts what this scheduler wrote although
its watch has not shown it yet. Allocation is `dradriver.allocator`, held to kube-scheduler's answers; of the other
plugins only node selectors, cordons and node taints exist here.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dradriver import allocator, api, cluster
from dradriver.lab import objects
from dradriver.lab.loops import Loop

log = logging.getLogger(__name__)

COMPONENT = "default-scheduler"
MOST_CONSUMERS = 256
ELSEWHERE = "resourceclaim not available on the node"


class NotQueuedError(Exception):
    """A pod is not looked at yet, and gets no condition: its claims must exist first (PreEnqueue upstream)."""


class UnschedulableError(Exception):
    """A pod has to wait; the message is the pod's condition."""


class Scheduler:
    """Allocates claims and binds pods."""

    def __init__(self, connection: cluster.Connection, served: cluster.Served, kubernetes: api.Kubernetes) -> None:
        self._connection = connection
        self._served = served
        self._kubernetes = kubernetes
        self._loop = Loop("scheduler", self._pass)
        self._reflectors = {
            kind: cluster.Reflector(connection, path, on_change=self._loop.wake)
            for kind, path in (
                ("pods", "/api/v1/pods"),
                ("nodes", "/api/v1/nodes"),
                ("claims", f"{served.prefix}/resourceclaims"),
                ("slices", f"{served.prefix}/resourceslices"),
                ("classes", f"{served.prefix}/deviceclasses"),
            )
        }
        self._written: dict[str, dict[str, Any]] = {}
        """Claims as this scheduler last wrote them, by UID, until the watch has caught up."""
        self._bound: set[str] = set()
        self._said: dict[str, str] = {}
        """The condition each waiting pod was last given, by UID."""

    def start(self) -> None:
        """Start watching and working."""
        for reflector in self._reflectors.values():
            reflector.start()
        self._loop.start()

    def stop(self) -> None:
        """Stop working, then watching."""
        self._loop.stop()
        for reflector in self._reflectors.values():
            reflector.stop()

    def _pass(self) -> None:
        if not all(reflector.wait_synced(0) for reflector in self._reflectors.values()):
            return
        pods = self._reflectors["pods"].items()
        self._forget({objects.uid(pod) for pod in pods})
        waiting = [pod for pod in pods if self._waits(pod)]
        if not waiting:
            return
        nodes = sorted(self._reflectors["nodes"].items(), key=lambda node: str(node["metadata"]["name"]))
        for pod in sorted(waiting, key=objects.created):
            try:
                self._schedule(pod, nodes)
            except NotQueuedError as reason:
                log.debug("pod is not queued pod=%s/%s reason=%s", *objects.key(pod), reason)
            except UnschedulableError as reason:
                self._say(pod, str(reason))
            except cluster.InvalidError as error:  # a claim was deleted since, or the allocation is one too many
                self._say(pod, f"running PreBind plugins: {error}")
            except (api.ApiError, KeyError, TypeError, ValueError) as error:
                # As everywhere in the lab: one odd object must not stop the others.
                log.exception("cannot schedule pod=%s/%s", *objects.key(pod))
                self._say(pod, f"the lab's scheduler cannot read what this pod needs: {error!r}")

    def _forget(self, present: set[str]) -> None:
        """Drop what is remembered of pods and claims that are gone."""
        self._bound &= present
        self._said = {pod: message for pod, message in self._said.items() if pod in present}
        claims = {objects.uid(claim) for claim in self._reflectors["claims"].items()}
        self._written = {claim: written for claim, written in self._written.items() if claim in claims}

    def _waits(self, pod: Mapping[str, Any]) -> bool:
        return (
            objects.node_name(pod) is None
            and objects.uid(pod) not in self._bound
            and not objects.is_deleted(pod)
            and not objects.is_final(pod)
            and not pod["spec"].get("schedulingGates")
        )

    def _schedule(self, pod: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> None:
        claims = self._claims_of(pod)
        values = [api.wire.read_claim(claim) for claim in claims]
        pending = [value for value in values if value.status.allocation is None]
        index = self._index(nodes) if pending else None
        refusals: Counter[str] = Counter()
        for node in nodes:
            value = _node(node)
            refusal = _unsuitable(pod, node) or _elsewhere(values, value)
            if refusal:
                refusals[refusal] += 1
                continue
            answer = allocator.allocate(index, value, pending) if index else allocator.Allocated(())
            if isinstance(answer, allocator.Allocated):
                self._bind(pod, value.name, claims, answer)
                return
            if isinstance(answer, allocator.Failed):
                # As in kube-scheduler: an error ends the search for this pod, on all nodes.
                raise UnschedulableError(f"running Filter plugins: {answer.message}")
            refusals["cannot allocate all claims"] += 1
        if refusals[ELSEWHERE]:
            self._free_one(pod, claims)
        parts = ", ".join(f"{count} {refusal}" for refusal, count in sorted(refusals.items()))
        raise UnschedulableError(f"0/{len(nodes)} nodes are available: {parts or 'there are none'}.")

    def _claims_of(self, pod: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The pod's claims, newest state. Raises NotQueuedError, UnschedulableError."""
        namespace = objects.key(pod)[0]
        claims = []
        for name in objects.claim_names(pod).values():
            if name is None:
                raise NotQueuedError("a ResourceClaim is not created yet")
            claim = self._reflectors["claims"].get(namespace, name)
            if claim is None:
                raise NotQueuedError(f'resourceclaim "{name}" not found')
            claim = self._newest(claim)
            if objects.is_deleted(claim):
                raise UnschedulableError(f'resourceclaim "{name}" is being deleted')
            reserved = claim.get("status", {}).get("reservedFor") or ()
            if not objects.is_reserved_for(claim, pod) and len(reserved) >= MOST_CONSUMERS:
                raise UnschedulableError("resourceclaim in use")
            claims.append(claim)
        return claims

    def _newest(self, claim: dict[str, Any]) -> dict[str, Any]:
        written = self._written.get(objects.uid(claim))
        if written is None:
            return claim
        if _version(claim) < _version(written):
            return written
        del self._written[objects.uid(claim)]
        return claim

    def _index(self, nodes: Sequence[Mapping[str, Any]]) -> allocator.Cluster:
        claims = [self._newest(claim) for claim in self._reflectors["claims"].items()]
        return allocator.Cluster(
            slices=map(api.wire.read_slice, self._reflectors["slices"].items()),
            classes=map(api.wire.read_class, self._reflectors["classes"].items()),
            claims=map(api.wire.read_claim, claims),
            nodes=map(_node, nodes),
            kubernetes=self._kubernetes,
        )

    def _bind(
        self, pod: Mapping[str, Any], node: str, claims: Sequence[dict[str, Any]], answer: allocator.Allocated
    ) -> None:
        allocations = iter(answer.allocations)
        for claim in claims:
            allocation = None if claim.get("status", {}).get("allocation") else next(allocations)
            self._reserve(pod, claim, allocation)
        namespace, name = objects.key(pod)
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": objects.uid(pod)},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        self._connection.create(objects.pod_path(pod, "binding"), binding)
        self._bound.add(objects.uid(pod))
        self._said.pop(objects.uid(pod), None)
        log.info("bound pod pod=%s/%s node=%s claims=%d", namespace, name, node, len(claims))

    def _reserve(self, pod: Mapping[str, Any], claim: dict[str, Any], allocation: api.Allocation | None) -> None:
        if allocation is not None and api.DELETE_PROTECTION_FINALIZER not in (
            claim["metadata"].get("finalizers") or ()
        ):
            finalizers = [*(claim["metadata"].get("finalizers") or ()), api.DELETE_PROTECTION_FINALIZER]
            version = claim["metadata"]["resourceVersion"]
            claim = self._connection.merge(
                self._path(claim), {"metadata": {"finalizers": finalizers, "resourceVersion": version}}
            )
        status = dict(claim.get("status") or {})
        if allocation is not None:
            status["allocation"] = api.wire.write_allocation(allocation)
        if not objects.is_reserved_for(claim, pod):
            status["reservedFor"] = [*(status.get("reservedFor") or ()), objects.reservation(pod)]
        self._write_status(claim, status)

    def _write_status(self, claim: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        written = self._connection.replace(f"{self._path(claim)}/status", {**claim, "status": status})
        self._written[objects.uid(written)] = written

    def _path(self, claim: Mapping[str, Any]) -> str:
        namespace, name = objects.key(claim)
        return f"{self._served.prefix}/namespaces/{namespace}/resourceclaims/{name}"

    def _free_one(self, pod: Mapping[str, Any], claims: Sequence[dict[str, Any]]) -> None:
        """Deallocate a claim that nobody else needs and that keeps a pod from every node (PostFilter upstream)."""
        for claim in claims:
            status = dict(claim.get("status") or {})
            others = [entry for entry in status.get("reservedFor") or () if entry.get("uid") != objects.uid(pod)]
            if status.get("allocation") and not others:
                for field in ("allocation", "reservedFor", "devices"):
                    status.pop(field, None)
                self._write_status(claim, status)
                log.info("freed an allocation of no use claim=%s/%s", *objects.key(claim))
                return

    def _say(self, pod: Mapping[str, Any], message: str) -> None:
        """Give a waiting pod its condition and event, once for each message."""
        if self._said.get(objects.uid(pod)) == message:
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": objects.now(),
        }
        patch = objects.status_patch(pod, {"conditions": [condition]})
        self._connection.merge(objects.pod_path(pod, "status"), patch)
        event = objects.event(pod, "Pod", reason="FailedScheduling", message=message, component=COMPONENT)
        self._connection.create(f"/api/v1/namespaces/{objects.key(pod)[0]}/events", event)
        self._said[objects.uid(pod)] = message


def _version(obj: Mapping[str, Any]) -> int:
    return int(obj["metadata"]["resourceVersion"])


def _node(node: Mapping[str, Any]) -> api.Node:
    return api.Node(node["metadata"]["name"], node["metadata"].get("labels") or {})


def _unsuitable(pod: Mapping[str, Any], node: Mapping[str, Any]) -> str | None:
    """Why a node is out for a pod, in kube-scheduler's words; None if it is not."""
    spec = node.get("spec") or {}
    labels = node["metadata"].get("labels") or {}
    wanted = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return "node(s) didn't match Pod's node affinity/selector"
    tolerations = [_toleration(entry) for entry in pod["spec"].get("tolerations") or ()]
    for taint in spec.get("taints") or ():
        value = api.Taint(taint["key"], _effect(taint["effect"]), taint.get("value", ""))
        if value.effect is not api.TaintEffect.NONE and not any(api.tolerates(t, value) for t in tolerations):
            return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
    if spec.get("unschedulable"):
        return "node(s) were unschedulable"
    return None


def _toleration(entry: Mapping[str, Any]) -> api.Toleration:
    return api.Toleration(
        key=entry.get("key", ""),
        operator=api.TolerationOperator(entry.get("operator", "Equal")),
        value=entry.get("value", ""),
        effect=_effect(entry["effect"]) if entry.get("effect") else None,
    )


def _effect(text: str) -> api.TaintEffect:
    return api.TaintEffect(text) if text in ("NoSchedule", "NoExecute") else api.TaintEffect.NONE


def _elsewhere(claims: Sequence[api.ResourceClaim], node: api.Node) -> str | None:
    for claim in claims:
        allocation = claim.status.allocation
        if allocation and allocation.node_selector and not api.selects(allocation.node_selector, node):
            return ELSEWHERE
    return None
