"""The index the allocator works on: pools, devices, classes, and who holds what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dradriver import api


@dataclass(frozen=True, slots=True)
class Holder:
    """A claim that holds a device; `share_id` where it holds only a share of it."""

    claim: api.ResourceClaim
    result: api.AllocatedDevice


class Cluster:
    """An immutable index of what allocation depends on.

    `claims` are all claims of all namespaces, allocated or not; only allocated ones count, admin access left out.
    """

    def __init__(
        self,
        *,
        slices: Iterable[api.ResourceSlice],
        classes: Iterable[api.DeviceClass],
        claims: Iterable[api.ResourceClaim],
        nodes: Iterable[api.Node],
        kubernetes: api.Kubernetes,
    ) -> None:
        raise NotImplementedError
