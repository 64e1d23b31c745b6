"""Rules of ResourceSlices as a whole: names, node selection, counters."""

from __future__ import annotations

from collections.abc import Iterator

from dradriver.api import names
from dradriver.api.devices import CounterSet
from dradriver.api.gates import Kubernetes
from dradriver.api.limits import Limits, limits_of
from dradriver.api.slices import Pool, ResourceSlice
from dradriver.api.validation.devices import check_device, is_advanced
from dradriver.api.validation.nodes import check_node_selector
from dradriver.api.validation.problems import (
    Problem,
    dns_label,
    dns_subdomain,
    driver_name,
    each,
    invalid,
    required,
    too_many,
)


def check_spec(value: ResourceSlice, kubernetes: Kubernetes) -> Iterator[Problem]:
    """Every rule the spec of a slice breaks."""
    limits = limits_of(kubernetes)
    yield from driver_name("spec.driver", value.driver)
    yield from _check_pool(value.pool)
    yield from _check_node_selection(value)
    most = limits.devices
    if limits.advanced_devices is not None and any(map(is_advanced, value.devices)):
        most = limits.advanced_devices
    yield from each(
        "spec.devices",
        value.devices,
        most,
        lambda path, device: check_device(path, device, value, kubernetes),
        key=lambda device: device.name,
    )
    yield from _check_counters(value, limits)


def _check_pool(pool: Pool) -> Iterator[Problem]:
    if not pool.name:
        yield required("spec.pool.name")
    elif not names.is_pool_name(pool.name):
        yield invalid(
            "spec.pool.name",
            pool.name,
            f"must be DNS subdomains joined with '/', in at most {names.SUBDOMAIN_LIMIT} characters",
        )
    if pool.resource_slice_count <= 0:
        yield invalid("spec.pool.resourceSliceCount", pool.resource_slice_count, "must be greater than zero")
    if pool.generation < 0:
        yield invalid("spec.pool.generation", pool.generation, "must be greater than or equal to zero")


def _check_node_selection(value: ResourceSlice) -> Iterator[Problem]:
    chosen = {
        "`nodeName`": value.node_name is not None,
        "`nodeSelector`": value.node_selector is not None,
        "`allNodes`": value.all_nodes,
        "`perDeviceNodeSelection`": value.per_device_node_selection,
    }
    if value.node_name is not None:
        yield from dns_subdomain("spec.nodeName", value.node_name)
    if value.node_selector is not None:
        yield from check_node_selector("spec.nodeSelector", value.node_selector)
        if len(value.node_selector.terms) != 1:
            path = "spec.nodeSelector.nodeSelectorTerms"
            yield invalid(path, len(value.node_selector.terms), "must have exactly one node selector term")
    names_set = [name for name, is_set in chosen.items() if is_set]
    rule = f"exactly one of {', '.join(chosen)} is required"
    if not names_set:
        yield required("spec", rule)
    elif len(names_set) > 1:
        yield invalid("spec", f"{{{', '.join(names_set)}}}", f"{rule}, but multiple fields are set")


def _check_counters(value: ResourceSlice, limits: Limits) -> Iterator[Problem]:
    path = "spec.sharedCounters"
    if limits.counters_apart and value.shared_counters and value.devices:
        yield invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    consumed = sum(len(c.counters) for device in value.devices for c in device.consumes_counters)
    if limits.slice_counters is not None and consumed > limits.slice_counters:
        rule = f"the total number of counters in devices must not exceed {limits.slice_counters}"
        yield invalid("spec.devices", consumed, rule)
    shared = sum(len(counter_set.counters) for counter_set in value.shared_counters)
    if limits.shared_counters is not None and shared > limits.shared_counters:
        yield invalid(path, shared, f"the total number of shared counters must not exceed {limits.shared_counters}")
    yield from each(
        path,
        value.shared_counters,
        limits.counter_sets,
        lambda place, counter_set: _check_counter_set(place, counter_set, limits),
        key=lambda counter_set: counter_set.name,
    )


def _check_counter_set(path: str, counter_set: CounterSet, limits: Limits) -> Iterator[Problem]:
    yield from dns_label(f"{path}.name", counter_set.name)
    if not counter_set.counters:
        yield required(f"{path}.counters")
    yield from too_many(f"{path}.counters", len(counter_set.counters), limits.counters_in_set)
    for name in counter_set.counters:
        yield from dns_label(f"{path}.counters", name)
