"""Everything an explanation may look at, as values: the allocator's index and the objects around the claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
