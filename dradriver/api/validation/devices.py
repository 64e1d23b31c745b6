"""Rules of one device in a slice."""

from __future__ import annotations

from collections.abc import Iterator

from dradriver.api.devices import AttributeValue, CounterConsumption, Device
from dradriver.api.errors import VersionError
from dradriver.api.gates import Kubernetes
from dradriver.api.limits import Limits, limits_of
from dradriver.api.semver import Version
from dradriver.api.slices import ResourceSlice
from dradriver.api.taints import Taint
from dradriver.api.validation.capacity import check_policy
from dradriver.api.validation.nodes import check_node_selector
from dradriver.api.validation.problems import (
    Problem,
    dns_label,
    dns_subdomain,
    each,
    forbidden,
    invalid,
    label_key,
    label_value,
    qualified_name,
    required,
    too_long,
    too_many,
)


def is_advanced(device: Device) -> bool:
    """Whether a device lowers how many its slice may have (1.35+)."""
    has_lists = any(isinstance(value, tuple) for value in device.attributes.values())
    return bool(device.taints or device.consumes_counters) or has_lists


def check_device(path: str, device: Device, around: ResourceSlice, kubernetes: Kubernetes) -> Iterator[Problem]:
    """Every rule a device breaks in its slice."""
    limits = limits_of(kubernetes)
    yield from dns_label(f"{path}.name", device.name)
    yield from _check_amounts(path, device, limits)
    for name, value in device.attributes.items():
        yield from qualified_name(f"{path}.attributes", name)
        yield from _check_attribute(f"{path}.attributes[{name}]", value, kubernetes)
    for name, capacity in device.capacity.items():
        yield from qualified_name(f"{path}.capacity", name)
        if capacity.request_policy is None:
            continue
        place = f"{path}.capacity[{name}].requestPolicy"
        if device.allow_multiple_allocations:
            yield from check_policy(place, capacity, capacity.request_policy, kubernetes)
        else:
            yield forbidden(place, "allowMultipleAllocations must be true")
    yield from each(f"{path}.taints", device.taints, limits.taints, _check_taint)
    yield from _check_consumptions(path, device, around, limits)
    yield from _check_nodes(path, device, around)
    yield from _check_binding(path, device, limits)


def _check_amounts(path: str, device: Device, limits: Limits) -> Iterator[Problem]:
    keys = len(device.attributes) + len(device.capacity)
    if keys > limits.attributes_and_capacities:
        most = limits.attributes_and_capacities
        yield invalid(path, keys, f"the total number of attributes and capacities must not exceed {most}")
    values = sum(len(value) if isinstance(value, tuple) else 1 for value in device.attributes.values())
    if limits.attribute_values is not None and values > limits.attribute_values:
        yield invalid(path, values, f"the total number of attribute values must not exceed {limits.attribute_values}")


def _check_attribute(path: str, value: AttributeValue, kubernetes: Kubernetes) -> Iterator[Problem]:
    if not isinstance(value, tuple):
        yield from _check_scalar(f"{path}.{'version' if isinstance(value, Version) else 'string'}", value, kubernetes)
        return
    if not kubernetes.enabled("DRAListTypeAttributes"):
        yield required(path, "exactly one value must be specified; lists need the feature gate DRAListTypeAttributes")
        return
    for index, item in enumerate(value):
        kind = "versions" if isinstance(item, Version) else "strings"
        yield from _check_scalar(f"{path}.{kind}[{index}]", item, kubernetes)


def _check_scalar(path: str, value: object, kubernetes: Kubernetes) -> Iterator[Problem]:
    if not isinstance(value, str | Version):
        return
    if isinstance(value, Version):
        try:
            Version.parse(value.text)
        except VersionError:
            yield invalid(path, value.text, "must be a string compatible with semver.org spec 2.0.0")
    yield from too_long(path, str(value), limits_of(kubernetes).attribute_bytes)


def _check_taint(path: str, taint: Taint) -> Iterator[Problem]:
    yield from label_key(f"{path}.key", taint.key)
    yield from label_value(f"{path}.value", taint.value)


def _check_consumptions(path: str, device: Device, around: ResourceSlice, limits: Limits) -> Iterator[Problem]:
    path_of_all = f"{path}.consumesCounters"
    consumed = sum(len(consumption.counters) for consumption in device.consumes_counters)
    if limits.device_counters is not None and consumed > limits.device_counters:
        yield invalid(path, consumed, f"the total number of counters must not exceed {limits.device_counters}")
    yield from each(
        path_of_all,
        device.consumes_counters,
        limits.consumptions,
        lambda place, consumption: _check_consumption(place, consumption, limits),
        key=lambda consumption: consumption.counter_set,
    )
    if limits.counters_apart:
        return
    known = {counter_set.name: counter_set.counters for counter_set in around.shared_counters}
    for index, consumption in enumerate(device.consumes_counters):
        place = f"{path_of_all}[{index}]"
        if consumption.counter_set not in known:
            rule = "must reference a counterSet defined in the ResourceSlice sharedCounters"
            yield invalid(f"{place}.counterSet", consumption.counter_set, rule)
            continue
        for name in consumption.counters:
            if name not in known[consumption.counter_set]:
                rule = "must reference a counter defined in the ResourceSlice sharedCounters"
                yield invalid(f"{place}.counters", name, rule)


def _check_consumption(path: str, consumption: CounterConsumption, limits: Limits) -> Iterator[Problem]:
    yield from dns_label(f"{path}.counterSet", consumption.counter_set)
    if not consumption.counters:
        yield required(f"{path}.counters")
    yield from too_many(f"{path}.counters", len(consumption.counters), limits.counters_in_consumption)
    for name in consumption.counters:
        yield from dns_label(f"{path}.counters", name)
    yield from each(
        f"{path}.compatibilityGroups",
        consumption.compatibility_groups,
        limits.compatibility_groups,
        lambda _place, _group: (),
        key=str,
    )


def _check_nodes(path: str, device: Device, around: ResourceSlice) -> Iterator[Problem]:
    chosen = {
        "`nodeName`": device.node_name is not None,
        "`nodeSelector`": device.node_selector is not None,
        "`allNodes`": device.all_nodes,
    }
    fields = [name for name, is_set in chosen.items() if is_set]
    if not around.per_device_node_selection:
        if fields:
            rule = "can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
            yield invalid(path, ", ".join(fields), f"`nodeName`, `nodeSelector` and `allNodes` {rule}")
        return
    if device.node_name is not None:
        yield from dns_subdomain(f"{path}.nodeName", device.node_name)
    if device.node_selector is not None:
        yield from check_node_selector(f"{path}.nodeSelector", device.node_selector)
    if len(fields) != 1:
        rule = (
            "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` "
            "is set to true in the ResourceSlice spec"
        )
        yield invalid(path, f"{{{', '.join(fields)}}}", rule) if fields else required(path, rule)


def _check_binding(path: str, device: Device, limits: Limits) -> Iterator[Problem]:
    conditions, failures = device.binding_conditions, device.binding_failure_conditions
    condition_path, failure_path = f"{path}.bindingConditions", f"{path}.bindingFailureConditions"
    yield from each(condition_path, conditions, limits.binding_conditions, label_key, key=str)
    yield from each(failure_path, failures, limits.binding_conditions, label_key, key=str)
    for index, condition in enumerate(failures):
        if condition in conditions:
            rule = "bindingFailureConditions must not overlap with bindingConditions"
            yield invalid(f"{failure_path}[{index}]", condition, rule)
    if failures and not conditions:
        yield required(condition_path, "bindingConditions are required to use bindingFailureConditions")
    if conditions and not failures:
        yield required(failure_path, "bindingFailureConditions are required to use bindingConditions")
