"""What is prepared on this node, as values, and how the journal's records change it.

`apply` is a pure fold: the state after any prefix of the journal is the fold of that prefix, which is what makes a
crash at any byte a state that the next start understands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

from dradriver import api

Record: TypeAlias = Mapping[str, Any]
"""One journal record: JSON with a `kind`. Unknown kinds and fields are of a newer version and are passed over."""


class Kind(StrEnum):
    """What a record says. Intents come before the act, outcomes after it."""

    PREPARING = "preparing"
    PREPARED = "prepared"
    RELEASING = "releasing"
    RELEASED = "released"


class Phase(StrEnum):
    """How far a claim is: between intent and outcome, or done."""

    PREPARING = "preparing"
    PREPARED = "prepared"
    RELEASING = "releasing"


@dataclass(frozen=True, slots=True)
class PreparedDevice:
    """One device a claim holds here, with all that is needed to give it to a container without asking anyone."""

    name: str
    pool: str
    requests: tuple[str, ...]
    uuid: str
    gpu_uuid: str
    nodes: tuple[str, ...]
    admin_access: bool = False
    shareable: bool = False
    """Whether other claims may hold it too (the device allows multiple allocations)."""
    share_id: str | None = None

    @property
    def whole(self) -> bool:
        """Whether this is the GPU itself, not a part of it."""
        return self.uuid == self.gpu_uuid


@dataclass(frozen=True, slots=True)
class PreparedClaim:
    """A claim and what it holds; `boot` is the boot id under which that was arranged."""

    uid: api.UID
    namespace: str
    name: str
    devices: tuple[PreparedDevice, ...]
    boot: str = ""

    @property
    def title(self) -> str:
        """`namespace/name`, as people know it."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Holding:
    """A claim in the state: whatever its phase, its devices are held."""

    claim: PreparedClaim
    phase: Phase


Holdings: TypeAlias = Mapping[api.UID, Holding]


def apply(holdings: Holdings, record: Record) -> Holdings:
    """The state after one more record."""
    match record.get("kind"):
        case Kind.PREPARING:
            claim = read_claim(record["claim"])
            old = holdings.get(claim.uid)
            # A claim that is prepared stays so while it is arranged anew: a pod may be running on it.
            phase = Phase.PREPARED if old is not None and old.phase is Phase.PREPARED else Phase.PREPARING
            return {**holdings, claim.uid: Holding(claim, phase)}
        case Kind.PREPARED:
            return _with_phase(holdings, record, Phase.PREPARED)
        case Kind.RELEASING:
            return _with_phase(holdings, record, Phase.RELEASING)
        case Kind.RELEASED:
            gone = record["uid"]
            return {uid: holding for uid, holding in holdings.items() if uid != gone}
        case _:
            return holdings


def is_readable(record: Record) -> bool:
    """Whether `apply` understands a record; one of a kind it does not know is passed over, and so understood."""
    try:
        apply({}, record)
    except (KeyError, TypeError, AttributeError):
        return False
    return True


def _with_phase(holdings: Holdings, record: Record, phase: Phase) -> Holdings:
    uid = api.UID(record["uid"])
    if uid not in holdings:
        return holdings
    return {**holdings, uid: replace(holdings[uid], phase=phase)}


def records_of(holdings: Holdings) -> list[Record]:
    """The shortest journal with the same state."""
    records: list[Record] = []
    for uid, holding in holdings.items():
        records.append({"kind": Kind.PREPARING, "claim": write_claim(holding.claim)})
        if holding.phase is not Phase.PREPARING:
            records.append({"kind": Kind(holding.phase.value), "uid": uid})
    return records


def write_claim(claim: PreparedClaim) -> dict[str, Any]:
    """JSON of a prepared claim."""
    return {
        "uid": claim.uid,
        "namespace": claim.namespace,
        "name": claim.name,
        "boot": claim.boot,
        "devices": [
            {
                "name": device.name,
                "pool": device.pool,
                "requests": list(device.requests),
                "uuid": device.uuid,
                "gpuUUID": device.gpu_uuid,
                "nodes": list(device.nodes),
                **({"adminAccess": True} if device.admin_access else {}),
                **({"shareable": True} if device.shareable else {}),
                **({"shareID": device.share_id} if device.share_id is not None else {}),
            }
            for device in claim.devices
        ],
    }


def read_claim(data: Mapping[str, Any]) -> PreparedClaim:
    """Read what `write_claim` wrote, by this version or a newer one."""
    return PreparedClaim(
        uid=api.UID(data["uid"]),
        namespace=data["namespace"],
        name=data["name"],
        boot=data.get("boot", ""),
        devices=tuple(
            PreparedDevice(
                name=device["name"],
                pool=device["pool"],
                requests=tuple(device["requests"]),
                uuid=device["uuid"],
                gpu_uuid=device["gpuUUID"],
                nodes=tuple(device["nodes"]),
                admin_access=device.get("adminAccess", False),
                shareable=device.get("shareable", False),
                share_id=device.get("shareID"),
            )
            for device in data["devices"]
        ),
    )
