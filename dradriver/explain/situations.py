"""Everything an explanation may look at, as values: the allocator's index and the objects around the claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dradriver import api
from dradriver.allocator import Cluster

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of a cluster at one moment. Pods, nodes, events, quotas and namespaces are JSON as the server gives it.

    `missing` names kinds that could not be read, with the reason; they can make a verdict `unknown`.
    """

    cluster: Cluster
    claims: tuple[api.ResourceClaim, ...] = ()
    templates: tuple[api.ResourceClaimTemplate, ...] = ()
    pods: tuple[Json, ...] = ()
    nodes: tuple[Json, ...] = ()
    namespaces: tuple[Json, ...] = ()
    quotas: tuple[Json, ...] = ()
    events: tuple[Json, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    resource_version: str = ""
    age_seconds: float | None = None
    assumed: tuple[str, ...] = ()


def with_manifest(
    situation: Situation,
    claims: Sequence[api.ResourceClaim],
    templates: Sequence[api.ResourceClaimTemplate],
    pods: Sequence[Json],
) -> Situation:
    """The situation once a manifest was applied: its objects take the place of those of the same name.

    A claim that it replaces holds nothing any more.
    """
    new = {_key(claim) for claim in claims}
    names = {_key(template) for template in templates}
    return replace(
        situation,
        cluster=situation.cluster.without_claims(lambda claim: _key(claim) in new),
        claims=(*(c for c in situation.claims if _key(c) not in new), *claims),
        templates=(*(t for t in situation.templates if _key(t) not in names), *templates),
        pods=(*situation.pods, *pods),
    )


def _key(value: api.ResourceClaim | api.ResourceClaimTemplate) -> tuple[str, str]:
    return value.metadata.namespace, value.metadata.name
