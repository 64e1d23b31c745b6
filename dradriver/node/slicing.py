"""From devices to slices, and from the slices that exist to the fewest writes that make them right. Pure.

The rules of a pool: all its slices carry one generation and one count; readers take the highest generation and wait
until its count is complete. So one slice may change in place, and whatever takes two writes raises the generation.
Slices are cut at 64 devices from the start: a taint on a larger one would be refused just when a GPU is sick. Names
begin with the slice's index in hexadecimal: from Kubernetes 1.36 on devices are allocated in the order of slice names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from dradriver import api

DEVICES_PER_SLICE = 64
_INDEX = re.compile(r"([0-9a-f]{5,8})-")
_LONGEST_PREFIX = 200

Accepted: TypeAlias = Mapping[str, str]
"""What a server made of what it was sent, fingerprint to fingerprint: gated fields are dropped without an error."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose slices these are."""

    driver: str
    pool: str
    node: str
    owner: api.OwnerReference


@dataclass(frozen=True, slots=True)
class Changes:
    """Writes in the order in which they are to be made: delete, update, create."""

    deletes: tuple[api.ResourceSlice, ...] = ()
    updates: tuple[api.ResourceSlice, ...] = ()
    creates: tuple[api.ResourceSlice, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.deletes or self.updates or self.creates)


def cut(devices: Sequence[api.Device]) -> tuple[tuple[api.Device, ...], ...]:
    """Devices by slice; a pool without devices is one empty slice."""
    starts = range(0, max(len(devices), 1), DEVICES_PER_SLICE)
    return tuple(tuple(devices[start : start + DEVICES_PER_SLICE]) for start in starts)


def changes(
    identity: Identity,
    devices: Sequence[api.Device],
    existing: Sequence[api.ResourceSlice],
    *,
    accepted: Accepted,
    floor: int = 0,
) -> Changes:
    """The writes that turn the slices that exist into those wanted; falsy when there is nothing to do.

    `floor` is the highest generation ever seen: one that is gone may still be in a reader's memory.
    """
    wanted = cut(devices)
    newest = max((s.pool.generation for s in existing if s.pool.name == identity.pool), default=0)
    matched = _match(identity, existing, len(wanted))
    obsolete = tuple(s for s in existing if all(s is not kept for kept in matched.values()))
    desired = {index: _slice(identity, index, part, matched.get(index)) for index, part in enumerate(wanted)}
    pool = api.Pool(identity.pool, newest, len(wanted))
    differing = [
        index for index, old in matched.items() if old.pool != pool or not _is_as_wanted(old, desired[index], accepted)
    ]
    if not obsolete and len(matched) == len(wanted) and len(differing) <= 1:
        return Changes(updates=tuple(replace(desired[index], pool=pool) for index in differing))
    pool = api.Pool(identity.pool, max(newest, floor) + 1, len(wanted))
    written = {index: replace(value, pool=pool) for index, value in desired.items()}
    return Changes(
        deletes=obsolete,
        updates=tuple(written[index] for index in sorted(matched)),
        creates=tuple(value for index, value in written.items() if index not in matched),
    )


def _match(identity: Identity, existing: Sequence[api.ResourceSlice], count: int) -> dict[int, api.ResourceSlice]:
    """The slice to keep for each index: of this pool and node, named for that index, the newest where there are two."""
    matched: dict[int, api.ResourceSlice] = {}
    for candidate in sorted(existing, key=lambda s: (-s.pool.generation, s.metadata.name)):
        found = _INDEX.match(candidate.metadata.name)
        index = int(found.group(1), 16) if found else -1
        fits = (candidate.pool.name, candidate.node_name) == (identity.pool, identity.node)
        if fits and 0 <= index < count and index not in matched:
            matched[index] = candidate
    return matched


def _slice(
    identity: Identity, index: int, devices: tuple[api.Device, ...], over: api.ResourceSlice | None
) -> api.ResourceSlice:
    if over is not None:
        metadata = replace(over.metadata, owner_references=(identity.owner,))
        devices = _with_times(devices, over.devices)
    else:
        prefix = f"{index:05x}-{identity.driver}-{identity.node}"[:_LONGEST_PREFIX].rstrip(".-")
        metadata = api.ObjectMeta(generate_name=f"{prefix}-", owner_references=(identity.owner,))
    return api.ResourceSlice(
        driver=identity.driver,
        pool=api.Pool(identity.pool),
        metadata=metadata,
        node_name=identity.node,
        devices=devices,
    )


def _with_times(devices: tuple[api.Device, ...], old: tuple[api.Device, ...]) -> tuple[api.Device, ...]:
    """Keep `timeAdded` of taints that stay: it is the server's, and eviction clocks run from it."""
    times = {(d.name, t.key, t.value, t.effect): t.time_added for d in old for t in d.taints}
    return tuple(
        replace(
            device,
            taints=tuple(
                replace(t, time_added=t.time_added or times.get((device.name, t.key, t.value, t.effect)))
                for t in device.taints
            ),
        )
        if device.taints
        else device
        for device in devices
    )


def _is_as_wanted(old: api.ResourceSlice, wanted: api.ResourceSlice, accepted: Accepted) -> bool:
    seen, meant = fingerprint(old), fingerprint(wanted)
    return _owners(old) == _owners(wanted) and seen in (meant, accepted.get(meant))


def _owners(value: api.ResourceSlice) -> set[tuple[str, api.UID, bool]]:
    return {(owner.kind, owner.uid, owner.controller) for owner in value.metadata.owner_references}


def fingerprint(value: api.ResourceSlice) -> str:
    """A digest of what a slice says, by value: 81920Mi is 80Gi, and the server's `timeAdded` says nothing."""
    said = (
        value.node_name,
        value.all_nodes,
        value.per_device_node_selection,
        value.shared_counters,
        [_device(device) for device in value.devices],
    )
    return hashlib.sha256(repr(said).encode()).hexdigest()


def _device(device: api.Device) -> tuple[object, ...]:
    return (
        device.name,
        sorted((name, type(value).__name__, _plain(value)) for name, value in device.attributes.items()),
        sorted((name, _capacity(value)) for name, value in device.capacity.items()),
        [(c.counter_set, sorted((n, str(q.value)) for n, q in c.counters.items())) for c in device.consumes_counters],
        [(t.key, t.value, str(t.effect)) for t in device.taints],
        device.binds_to_node,
        device.binding_conditions,
        device.binding_failure_conditions,
        device.allow_multiple_allocations,
    )


def _plain(value: api.AttributeValue) -> str:
    return value.text if isinstance(value, api.Version) else repr(value)


def _capacity(capacity: api.Capacity) -> str:
    policy = capacity.request_policy
    if policy is None:
        return str(capacity.value.value)
    span = policy.valid_range
    amounts = (policy.default, *policy.valid_values, *((span.minimum, span.maximum, span.step) if span else ()))
    return repr((str(capacity.value.value), [None if a is None else str(a.value) for a in amounts]))


def missing_gates(sent: api.ResourceSlice, got: api.ResourceSlice) -> tuple[str, ...]:
    """The feature gates whose fields a server dropped; `unknown` where it changed something else."""
    gates = [gate for gate, read in _GATED.items() if read(sent) and not read(got)]
    if not gates and fingerprint(sent) != fingerprint(got):
        gates = ["unknown"]
    return tuple(gates)


_GATED: Mapping[str, Callable[[api.ResourceSlice], bool]] = {
    "DRADeviceTaints": lambda s: any(d.taints for d in s.devices),
    "DRAPartitionableDevices": lambda s: bool(s.shared_counters) or any(d.consumes_counters for d in s.devices),
    "DRADeviceBindingConditions": lambda s: any(d.binding_conditions for d in s.devices),
    "DRAConsumableCapacity": lambda s: any(d.allow_multiple_allocations for d in s.devices),
}
