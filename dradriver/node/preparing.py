"""From a claim's allocation to what will be prepared: a pure decision, made before anything is touched.

The scheduler has given one device to two claims in races (kubernetes#136269): what another claim holds is refused here,
the last place where it can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from dradriver import api, hardware
from dradriver.api.parameters import GpuConfig, MigConfig, SharingStrategy
from dradriver.node.claims import PreparedClaim, PreparedDevice
from dradriver.node.errors import PrepareError

Config: TypeAlias = "GpuConfig | MigConfig | api.parameters.ShareConfig"

_TYPES: Mapping[type, str] = {GpuConfig: "gpu", MigConfig: "mig", api.parameters.ShareConfig: "share"}

_MISSING = (
    "its slice was out of date, its GPU was lost or its MIG layout changed; delete the pod to have it placed anew"
)


def plan(
    claim: api.ResourceClaim,
    *,
    driver: str,
    pool: str,
    boot: str,
    offers: Mapping[str, hardware.Offer],
    holders: Sequence[PreparedClaim],
    problem: str | None = None,
) -> PreparedClaim:
    """What preparing this claim means on this node.

    Args:
        claim: as the server has it now.
        driver: our name; results of other drivers are theirs.
        pool: this node's pool.
        boot: the boot id.
        offers: what this node has, by device name.
        holders: every claim that holds devices here; this one may be among them.
        problem: why this node's hardware could not be read, if so.

    Raises:
        PrepareError: with the device, who holds it and what to do.
    """
    if claim.status.allocation is None:
        raise PrepareError(f"claim {_title(claim)} is not allocated; its pod must be scheduled first")
    results = [result for result in claim.status.allocation.results if result.driver == driver]
    others = [holder for holder in holders if holder.uid != claim.metadata.uid]
    # Device nodes move between boots, so only what was arranged under this one still tells.
    own = next((holder for holder in holders if holder.uid == claim.metadata.uid and holder.boot == boot), None)
    devices = []
    for result in results:
        _check_pool(claim, result, pool)
        offer = offers.get(result.device)
        device = _offered(result, offer) if offer is not None else _recorded(result, own)
        if device is None:
            reason = f"the hardware could not be read: {problem}" if problem else _MISSING
            raise PrepareError(
                f"device {result.device} of claim {_title(claim)} is not usable on this node now: {reason}"
            )
        devices.append(device)
    for device in devices:
        _refuse_held(device, others)
    configs = list(_configs(claim.status.allocation, driver))
    for result in results:
        if result.device in offers:
            _check_config(result, _type(offers[result.device]), configs)
    return PreparedClaim(
        uid=claim.metadata.uid,
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        devices=_merged(devices),
        boot=boot,
    )


def _title(claim: api.ResourceClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def _type(offer: hardware.Offer) -> str:
    return str(offer.device.attributes.get("type", ""))


def _check_pool(claim: api.ResourceClaim, result: api.AllocatedDevice, pool: str) -> None:
    if result.pool != pool:
        raise PrepareError(
            f"device {result.id} of claim {_title(claim)} is in another pool, this node's is {pool}: "
            "the pod runs on a node its claim was not allocated for; delete it to have it placed anew"
        )


def _offered(result: api.AllocatedDevice, offer: hardware.Offer) -> PreparedDevice:
    if offer.missing is not None:
        raise PrepareError(f"device {result.device} ({offer.uuid}) cannot be used: {offer.missing}")
    return PreparedDevice(
        name=result.device,
        pool=result.pool,
        requests=(result.request.partition("/")[0],),
        uuid=offer.uuid,
        gpu_uuid=offer.gpu_uuid,
        nodes=offer.nodes,
        admin_access=result.admin_access,
        shareable=offer.device.allow_multiple_allocations,
        share_id=result.share_id,
    )


def _recorded(result: api.AllocatedDevice, own: PreparedClaim | None) -> PreparedDevice | None:
    """A device that is not offered now but was prepared for this very claim stays its own: its pod may be running."""
    for device in own.devices if own is not None else ():
        if device.name == result.device and device.share_id == result.share_id:
            return device
    return None


def _refuse_held(device: PreparedDevice, others: Iterable[PreparedClaim]) -> None:
    for other in others:
        for held in other.devices:
            if _excludes(device, held):
                what = f"device {device.name}"
                if held.name != device.name:
                    what += f", of which {held.name} takes part,"
                raise PrepareError(
                    f"{what} is held by claim {other.title} (uid {other.uid}), which is still prepared here; "
                    "it is free once the pods of that claim have ended"
                )


def _excludes(device: PreparedDevice, held: PreparedDevice) -> bool:
    if device.admin_access or held.admin_access or (device.shareable and held.shareable):
        return False
    if device.uuid == held.uuid or (device.name == held.name and device.pool == held.pool):
        return True
    return device.gpu_uuid == held.gpu_uuid and (device.whole or held.whole)


def _configs(allocation: api.Allocation, driver: str) -> Iterator[tuple[str, api.AllocatedConfiguration, Config]]:
    for index, entry in enumerate(allocation.config):
        if entry.opaque is None or entry.opaque.driver != driver:
            continue
        path = f"status.allocation.devices.config[{index}].opaque.parameters"
        try:
            yield path, entry, api.parameters.parse(entry.opaque.parameters)
        except api.ParametersError as error:
            raise PrepareError(f"{path}: {error}") from error


def _check_config(
    result: api.AllocatedDevice, kind: str, configs: Sequence[tuple[str, api.AllocatedConfiguration, Config]]
) -> None:
    """Find the parameters of a device: the last that fits wins, those of the claim stand after those of the class."""
    chosen: tuple[str, Config] | None = None
    for path, entry, config in configs:
        if entry.requests and not _names(entry.requests, result.request):
            continue
        if _TYPES[type(config)] == kind:
            chosen = path, config
        elif entry.requests:
            raise PrepareError(
                f"{path}: {type(config).__name__} does not fit device {result.device} of request {result.request}, "
                f"which is of type {kind}"
            )
    if chosen is not None:
        _refuse_unsupported(*chosen)


def _names(requests: Sequence[str], request: str) -> bool:
    """A main request's name covers its subrequests."""
    return request in requests or request.partition("/")[0] in requests


def _refuse_unsupported(path: str, config: Config) -> None:
    if isinstance(config, GpuConfig | MigConfig) and config.sharing.strategy is not SharingStrategy.EXCLUSIVE:
        raise PrepareError(
            f"{path}.sharing.strategy: {config.sharing.strategy} is not supported by this version of the driver; "
            f"use {SharingStrategy.EXCLUSIVE}"
        )


def _merged(devices: Sequence[PreparedDevice]) -> tuple[PreparedDevice, ...]:
    """One entry for each device and share: several requests with admin access may be given the same device."""
    merged: dict[tuple[str, str | None], PreparedDevice] = {}
    for device in devices:
        key = (device.name, device.share_id)
        old = merged.get(key)
        if old is None:
            merged[key] = device
        else:
            merged[key] = replace(old, requests=tuple(dict.fromkeys(old.requests + device.requests)))
    return tuple(merged.values())
