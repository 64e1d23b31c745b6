"""The groups that devices form for a request: those of one node, or those that agree on the attribute to be matched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dradriver import api
from dradriver.allocator import Cluster, Finding, Reason
from dradriver.explain.paths import Paths

_SELECTED = (Reason.CONSTRAINT, Reason.PICKED_FOR_OTHER_REQUEST, Reason.FITS)


@dataclass(frozen=True, slots=True)
class Group:
    """Devices of one kind that could be had together: all there are, and those that could be had now."""

    name: str
    devices: tuple[api.DeviceID, ...]
    free: tuple[api.DeviceID, ...]


@dataclass(frozen=True, slots=True)
class Grouping:
    """The best groups for one request: `attribute` is the one they agree on, None where they only share a node."""

    request: str
    wanted: int
    attribute: str | None
    groups: tuple[Group, ...]
    """Those with the most free devices first, then the largest."""


def group(
    cluster: Cluster,
    claim: api.ResourceClaim,
    request: str,
    empty: Mapping[api.DeviceID, Finding],
    now: Mapping[api.DeviceID, Finding],
) -> Grouping | None:
    """Group what a request's selectors pass; None for a request that takes all devices.

    Args:
        cluster: where the devices are.
        claim: the claim.
        request: `request` or `request/subrequest`.
        empty: findings for the request in the emptied and repaired cluster.
        now: findings for it as things are.
    """
    option = next((option for name, option, _ in Paths().options(claim) if name == request), None)
    if option is None or option.allocation_mode != api.AllocationMode.EXACT_COUNT:
        return None
    attribute = next(
        (
            c.match_attribute
            for c in claim.spec.constraints
            if c.match_attribute
            and (not c.requests or request in c.requests or request.split("/", maxsplit=1)[0] in c.requests)
        ),
        None,
    )
    members: dict[str, list[api.DeviceID]] = {}
    for device, finding in empty.items():
        key = _key(cluster, device, attribute) if finding.reason in _SELECTED else None
        if key is not None:
            members.setdefault(key, []).append(device)
    groups = [
        Group(name, tuple(sorted(devices)), tuple(d for d in sorted(devices) if now[d].reason in _SELECTED))
        for name, devices in members.items()
    ]
    groups.sort(key=lambda g: (len(g.devices) < option.count, -len(g.free), -len(g.devices), g.name))
    return Grouping(request, option.count, attribute, tuple(groups))


def _key(cluster: Cluster, device: api.DeviceID, attribute: str | None) -> str | None:
    """The group of a device; None where it lacks the attribute."""
    if attribute is None:
        return device.pool
    attributes = cluster.devices[device].attributes
    domain, _, name = attribute.rpartition("/")
    # Bare names belong to the driver's own domain.
    value = attributes.get(attribute, attributes.get(name) if domain == device.driver else None)
    return None if value is None else str(getattr(value, "text", value))
