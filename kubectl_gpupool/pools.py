"""The pool as `inspect` shows it: every device of every pool, its state, who holds it, and what still fits.

The field names of `as_json` are a contract (`kind: PoolList`); the tables made from these values may change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dradriver import allocator, api

LINKED = "gpu in one NVLink domain"
SHORT = {LINKED: "nvlink"}
"""For tables: how many GPUs could be had that all reach each other over NVLink."""


class State(StrEnum):
    """What a device is to someone who wants it now."""

    FREE = "free"
    HELD = "held"
    PARTIAL = "partial"
    TAINTED = "tainted"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Use:
    """One claim's hold on a device; claim and pod are `namespace/name`."""

    claim: str
    pod: str | None
    request: str
    share: str | None


@dataclass(frozen=True, slots=True)
class PooledDevice:
    """One device with its state."""

    driver: str
    device: api.Device
    state: State
    uses: tuple[Use, ...]

    def attribute(self, name: str) -> api.AttributeValue | None:
        """An attribute of the driver's own domain, however it was written."""
        return self.device.attributes.get(name, self.device.attributes.get(f"{self.driver}/{name}"))

    def capacity(self, name: str) -> api.Quantity | None:
        """A capacity of the driver's own domain, however it was written."""
        capacity = self.device.capacity.get(name) or self.device.capacity.get(f"{self.driver}/{name}")
        return capacity.value if capacity else None

    @property
    def product(self) -> str:
        """What people call it."""
        return str(self.attribute("productName") or self.attribute("type") or "device")


@dataclass(frozen=True, slots=True)
class Fit:
    """Something that could still be taken from a pool: `count` of `what` at once."""

    what: str
    count: int

    def __str__(self) -> str:
        return f"{SHORT.get(self.what, self.what)} x{self.count}"


@dataclass(frozen=True, slots=True)
class PoolView:
    """One pool of one driver."""

    pool: allocator.Pool
    devices: tuple[PooledDevice, ...]
    fits: tuple[Fit, ...]

    def count(self, state: State) -> int:
        """How many devices are in a state."""
        return sum(device.state is state for device in self.devices)


def view(cluster: allocator.Cluster) -> tuple[PoolView, ...]:
    """All pools, by driver and name."""
    return tuple(_pool(cluster, pool) for pool in cluster.pools)


def as_json(views: Iterable[PoolView]) -> list[dict[str, Any]]:
    """The `pools` of a PoolList."""
    return [
        {
            "driver": view.pool.driver,
            "name": view.pool.name,
            "node": view.pool.node,
            "generation": view.pool.generation,
            "complete": view.pool.complete,
            "devices": [_device_json(device) for device in view.devices],
            "fits": [{"what": fit.what, "count": fit.count} for fit in view.fits],
        }
        for view in views
    ]


def _pool(cluster: allocator.Cluster, pool: allocator.Pool) -> PoolView:
    usable = pool.complete and pool.invalid is None
    devices = tuple(
        _device(device_id, device, cluster.holders(device_id), usable=usable) for device_id, device in pool.devices
    )
    return PoolView(pool, devices, _fits(devices))


def _device(
    device_id: api.DeviceID,
    device: api.Device,
    holders: tuple[allocator.Holder, ...],
    *,
    usable: bool,
) -> PooledDevice:
    uses = tuple(_use(holder) for holder in holders)
    if uses:
        state = State.PARTIAL if device.allow_multiple_allocations else State.HELD
    elif not usable:
        state = State.UNAVAILABLE
    elif any(taint.effect is not api.TaintEffect.NONE for taint in device.taints):
        state = State.TAINTED
    else:
        state = State.FREE
    return PooledDevice(device_id.driver, device, state, uses)


def _use(holder: allocator.Holder) -> Use:
    namespace, claim = holder.claim.metadata.namespace, holder.claim
    pods = [consumer.name for consumer in claim.status.reserved_for if consumer.resource == "pods"]
    return Use(
        claim=f"{namespace}/{claim.metadata.name}",
        pod=f"{namespace}/{pods[0]}" if pods else None,
        request=holder.result.request,
        share=holder.result.share_id,
    )


def _fits(devices: tuple[PooledDevice, ...]) -> tuple[Fit, ...]:
    free = [device for device in devices if device.state is State.FREE]
    kinds = Counter(str(device.attribute("profile") or device.attribute("type") or "device") for device in free)
    domains = Counter(domain for device in free if (domain := device.attribute("nvlinkDomain")) is not None)
    fits = [Fit(what, count) for what, count in sorted(kinds.items(), key=lambda item: (-item[1], item[0]))]
    largest = max(domains.values(), default=0)
    if largest > 1:
        fits.append(Fit(LINKED, largest))
    return tuple(fits)


def _device_json(pooled: PooledDevice) -> dict[str, Any]:
    device = pooled.device
    return {
        "name": device.name,
        "type": pooled.attribute("type"),
        "attributes": {name: _plain(value) for name, value in device.attributes.items()},
        "capacity": {name: str(capacity.value) for name, capacity in device.capacity.items()},
        "state": str(pooled.state),
        "holders": [
            {"claim": use.claim, "pod": use.pod, "request": use.request, "share": use.share} for use in pooled.uses
        ],
        "taints": [{"key": taint.key, "value": taint.value, "effect": str(taint.effect)} for taint in device.taints],
    }


def _plain(value: api.AttributeValue) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.text if isinstance(value, api.Version) else value
