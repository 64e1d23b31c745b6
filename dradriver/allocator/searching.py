"""The search: first fit, depth first, in the scheduler's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dradriver import api
from dradriver.allocator.clusters import Cluster


@dataclass(frozen=True, slots=True)
class Allocated:
    """All claims fit; allocations in the order of the claims."""

    allocations: tuple[api.Allocation, ...]


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The best partial answer found: how many devices of how many for a request, and which constraint stopped it."""

    claim: int
    request: str
    wanted: int
    found: tuple[api.DeviceID, ...]
    constraint: int | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The claims do not fit on this node (the scheduler's "cannot allocate all claims")."""

    shortfall: Shortfall | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The scheduler would abort the pod with this message (a selector that errs, an unknown class, over 32 devices)."""

    message: str
    claim: int | None = None
    request: str | None = None
    device: api.DeviceID | None = None


def allocate(cluster: Cluster, node: api.Node, claims: Sequence[api.ResourceClaim]) -> Allocated | Refused | Failed:
    """Allocate the claims of one pod together on one node; claims must not be allocated yet."""
    raise NotImplementedError
