"""What a server forgets: it drops the fields of gates that are off, without an error, before it checks anything.

Source: `dropDisabledFields` in kubernetes `pkg/registry/resource/*/strategy.go`. A list attribute loses its value but
stays, and is then refused; it is left as it is here, for validation to refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dradriver.api.claims import ClaimSpec, ClaimStatus, DeviceClass, DeviceConstraint, DeviceRequest, DeviceSubRequest
from dradriver.api.devices import Device
from dradriver.api.gates import Kubernetes
from dradriver.api.slices import ResourceSlice


def kept_slice(resource_slice: ResourceSlice, kubernetes: Kubernetes) -> ResourceSlice:
    """The slice as a server of this version would keep it."""
    changes: dict[str, Any] = {}
    if not kubernetes.enabled("DRAPartitionableDevices"):
        changes |= {"shared_counters": (), "per_device_node_selection": False}
    dropped = _device_fields(kubernetes)
    return replace(
        resource_slice,
        devices=tuple(_kept_device(device, dropped, kubernetes) for device in resource_slice.devices),
        **changes,
    )


def _device_fields(kubernetes: Kubernetes) -> Mapping[str, Any]:
    dropped: dict[str, Any] = {}
    if not kubernetes.enabled("DRADeviceTaints"):
        dropped |= {"taints": ()}
    if not kubernetes.enabled("DRAPartitionableDevices"):
        dropped |= {"consumes_counters": (), "node_name": None, "node_selector": None, "all_nodes": False}
    if not _binding_conditions(kubernetes):
        dropped |= {"binds_to_node": False, "binding_conditions": (), "binding_failure_conditions": ()}
    if not kubernetes.enabled("DRAConsumableCapacity"):
        dropped |= {"allow_multiple_allocations": False}
    return dropped


def _binding_conditions(kubernetes: Kubernetes) -> bool:
    return kubernetes.enabled("DRADeviceBindingConditions") and kubernetes.enabled("DRAResourceClaimDeviceStatus")


def _kept_device(device: Device, dropped: Mapping[str, Any], kubernetes: Kubernetes) -> Device:
    changes = {field: empty for field, empty in dropped.items() if getattr(device, field) != empty}
    if not kubernetes.enabled("DRAConsumableCapacity") and any(c.request_policy for c in device.capacity.values()):
        changes["capacity"] = {name: replace(c, request_policy=None) for name, c in device.capacity.items()}
    if not kubernetes.enabled("DRADeviceCompatibilityGroups") and "consumes_counters" not in changes:
        consumptions = tuple(replace(c, compatibility_groups=()) for c in device.consumes_counters)
        if consumptions != device.consumes_counters:
            changes["consumes_counters"] = consumptions
    return replace(device, **changes) if changes else device


def kept_claim_spec(spec: ClaimSpec, kubernetes: Kubernetes) -> ClaimSpec:
    """The spec of a claim or template as a server of this version would keep it."""
    requests = tuple(_kept_request(request, kubernetes) for request in spec.requests)
    constraints = spec.constraints
    if not kubernetes.enabled("DRAConsumableCapacity"):
        constraints = tuple(DeviceConstraint(c.requests, c.match_attribute) for c in constraints)
    return replace(spec, requests=requests, constraints=constraints)


def _kept_request(request: DeviceRequest, kubernetes: Kubernetes) -> DeviceRequest:
    dropped: dict[str, Any] = {}
    if not kubernetes.enabled("DRADeviceTaints"):
        dropped["tolerations"] = ()
    if not kubernetes.enabled("DRAConsumableCapacity"):
        dropped["capacity"] = {}
    exactly, alternatives = request.exactly, tuple[DeviceSubRequest, ...]()
    if kubernetes.enabled("DRAPrioritizedList"):
        alternatives = tuple(replace(subrequest, **dropped) for subrequest in request.first_available)
    if exactly is not None:
        admin_access = exactly.admin_access and kubernetes.enabled("DRAAdminAccess")
        exactly = replace(exactly, admin_access=admin_access, **dropped)
    return replace(request, exactly=exactly, first_available=alternatives)


def kept_claim_status(status: ClaimStatus, kubernetes: Kubernetes) -> ClaimStatus:
    """The status of a claim as a server of this version would keep it."""
    if not kubernetes.enabled("DRAResourceClaimDeviceStatus"):
        status = replace(status, devices=())
    if status.allocation is None:
        return status
    dropped: dict[str, Any] = {}
    if not kubernetes.enabled("DRAAdminAccess"):
        dropped["admin_access"] = False
    if not kubernetes.enabled("DRADeviceTaints"):
        dropped["tolerations"] = ()
    if not kubernetes.enabled("DRAConsumableCapacity"):
        dropped |= {"share_id": None, "consumed_capacity": {}}
    timestamp = status.allocation.allocation_timestamp
    if not _binding_conditions(kubernetes):
        timestamp = None
        dropped |= {"binding_conditions": (), "binding_failure_conditions": ()}
    results = tuple(replace(result, **dropped) for result in status.allocation.results)
    return replace(status, allocation=replace(status.allocation, results=results, allocation_timestamp=timestamp))


def kept_class(device_class: DeviceClass, kubernetes: Kubernetes) -> DeviceClass:
    """The class as a server of this version would keep it."""
    if kubernetes.enabled("DRAExtendedResource"):
        return device_class
    return replace(device_class, extended_resource_name=None)
