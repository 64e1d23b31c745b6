"""Taints that administrators put on devices: DeviceTaintRules (KEP-5055).

kube-scheduler sees the taints of a rule behind those of the slice. Source: dynamic-resource-allocation
`resourceslice/tracker/tracker.go`, applyPatches; up to 1.34 a rule may name a class and selectors, and the gate is
DRADeviceTaints itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from dradriver import api

OWN_GATE_MINOR = 35
"""From this minor on rules have a gate of their own."""

Meets = Callable[[api.DeviceID, api.Device, api.DeviceTaintSelector], bool]
"""Whether a device meets the class and the selectors of a rule."""


def rules_work(kubernetes: api.Kubernetes) -> bool:
    """Whether the scheduler looks at DeviceTaintRules."""
    own = kubernetes.minor >= OWN_GATE_MINOR
    return kubernetes.enabled("DRADeviceTaintRules" if own else "DRADeviceTaints")


def tainted(
    slices: Iterable[api.ResourceSlice], rules: Sequence[api.DeviceTaintRule], meets: Meets
) -> Iterable[api.ResourceSlice]:
    """Slices with the taints of rules on the devices that they select."""
    return (_tainted(item, rules, meets) for item in slices) if rules else slices


def _tainted(item: api.ResourceSlice, rules: Sequence[api.DeviceTaintRule], meets: Meets) -> api.ResourceSlice:
    devices = tuple(_with_taints(item, device, rules, meets) for device in item.devices)
    return (
        item
        if all(new is old for new, old in zip(devices, item.devices, strict=True))
        else replace(item, devices=devices)
    )


def _with_taints(
    item: api.ResourceSlice, device: api.Device, rules: Sequence[api.DeviceTaintRule], meets: Meets
) -> api.Device:
    identity = api.DeviceID(item.driver, item.pool.name, device.name)
    taints = tuple(rule.taint for rule in rules if _selects(rule.selector, identity, device, meets))
    return replace(device, taints=(*device.taints, *taints)) if taints else device


def _selects(
    selector: api.DeviceTaintSelector | None, identity: api.DeviceID, device: api.Device, meets: Meets
) -> bool:
    if selector is None:
        return False
    named = (selector.driver, selector.pool, selector.device)
    if any(name is not None and name != own for name, own in zip(named, identity, strict=True)):
        return False
    return not (selector.device_class_name or selector.selectors) or meets(identity, device, selector)
