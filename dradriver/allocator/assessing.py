"""How far each device gets, without a search: the raw material of explanations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from dradriver import api
from dradriver.allocator.clusters import Cluster, Holder
from dradriver.cel import Trace


class Reason(StrEnum):
    """Where a device was left behind, in the order shown and tested (DESIGN 4.5); FITS is the furthest."""

    POOL_INCOMPLETE = "poolIncomplete"
    POOL_INVALID = "poolInvalid"
    NOT_FOR_NODE = "notForNode"
    NODE = "node"
    CLASS_SELECTOR = "classSelector"
    REQUEST_SELECTOR = "requestSelector"
    SELECTOR_ERROR = "selectorError"
    TAINT = "taint"
    UNHEALTHY = "unhealthy"
    IN_USE = "inUse"
    COUNTERS = "counters"
    CAPACITY = "capacity"
    CONSTRAINT = "constraint"
    PICKED_FOR_OTHER_REQUEST = "pickedForOtherRequest"
    FITS = "fits"


@dataclass(frozen=True, slots=True)
class Finding:
    """How far one device gets for one request.

    Fields beside `reason` are set where they say something: the selector that decided (`selector` counts within the
    class or request) and its trace, the taint that is not tolerated, the holders, the constraint's index.
    """

    reason: Reason
    selector: int | None = None
    trace: Trace | None = None
    taint: api.Taint | None = None
    holders: tuple[Holder, ...] = ()
    constraint: int | None = None


@dataclass(frozen=True, slots=True)
class Assessment:
    """Findings by request (`req` or `req/sub`) and device, every device of every newest generation in each."""

    requests: dict[str, dict[api.DeviceID, Finding]]


def assess(cluster: Cluster, claim: api.ResourceClaim, nodes: Collection[api.Node]) -> Assessment:
    """Look at every device for every request of a claim, for the nodes considered.

    A constraint leaves a device behind (CONSTRAINT) when no group of candidates that agree with it is large enough.
    A claim that is allocated already is assessed without its own allocation.
    """
    raise NotImplementedError
