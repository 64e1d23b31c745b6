"""Everything an explanation may look at, as values: the allocator's index and the objects around the claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dradriver import api
from dradriver.allocator import Cluster
from dradriver.explain.surroundings import NodeState, Pod, Refusal

Written = Mapping[tuple[str, str, str], api.wire.ApiVersion]


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of a cluster at one moment.

    `refusals` are what the scheduler told in events. `missing` names the kinds (`ResourceClaim`) that could not be
    read, with the reason; they can make a verdict `unknown`. `versions` tells in which version of the API claims and
    templates were read, by kind, namespace and name: paths into them follow it.
    """

    cluster: Cluster
    claims: tuple[api.ResourceClaim, ...] = ()
    templates: tuple[api.ResourceClaimTemplate, ...] = ()
    pods: tuple[Pod, ...] = ()
    nodes: tuple[NodeState, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    versions: Written = field(default_factory=dict)
    resource_version: str = ""
    age_seconds: float | None = None
    assumed: tuple[str, ...] = ()

    def claim(self, namespace: str, name: str) -> api.ResourceClaim | None:
        """A claim by its name."""
        return next((c for c in self.claims if _key(c) == (namespace, name)), None)

    def template(self, namespace: str, name: str) -> api.ResourceClaimTemplate | None:
        """A template by its name."""
        return next((t for t in self.templates if _key(t) == (namespace, name)), None)

    def pods_of(self, claim: api.ResourceClaim) -> tuple[Pod, ...]:
        """Pods that use a claim: it is reserved for them, or they name it."""
        namespace, name = _key(claim)
        reserved = {consumer.uid for consumer in claim.status.reserved_for if consumer.resource == "pods"} - {""}
        return tuple(
            pod
            for pod in self.pods
            if pod.namespace == namespace and (pod.uid in reserved or any(c.claim == name for c in pod.claims))
        )


def with_manifest(
    situation: Situation,
    claims: Sequence[api.ResourceClaim],
    templates: Sequence[api.ResourceClaimTemplate],
    pods: Sequence[Pod],
    versions: Written,
) -> Situation:
    """The situation once a manifest was applied: its objects take the place of those of the same name.

    A claim that it replaces holds nothing any more.
    """
    new = {_key(claim) for claim in claims}
    names = {_key(template) for template in templates}
    running = {(pod.namespace, pod.name) for pod in pods}
    return replace(
        situation,
        cluster=situation.cluster.without_claims(lambda claim: _key(claim) in new),
        claims=(*(c for c in situation.claims if _key(c) not in new), *claims),
        templates=(*(t for t in situation.templates if _key(t) not in names), *templates),
        pods=(*(p for p in situation.pods if (p.namespace, p.name) not in running), *pods),
        versions={**situation.versions, **versions},
    )


def _key(value: api.ResourceClaim | api.ResourceClaimTemplate) -> tuple[str, str]:
    return value.metadata.namespace, value.metadata.name
