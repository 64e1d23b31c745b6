"""Fields of gates that are off are dropped, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dradriver import api
from dradriver.api import Kubernetes, Quantity

ONE = Quantity.parse("1")
DEVICE = api.Device(
    "gpu-0",
    attributes={"uuid": "GPU-1", "list": (1, 2)},
    capacity={"memory": api.Capacity(ONE, api.RequestPolicy(ONE))},
    consumes_counters=(api.CounterConsumption("c", {"m": ONE}, ("group",)),),
    node_name="n",
    taints=(api.Taint("k", api.TaintEffect.NO_SCHEDULE),),
    binds_to_node=True,
    binding_conditions=("a",),
    binding_failure_conditions=("b",),
    allow_multiple_allocations=True,
)
SLICE = api.ResourceSlice("d", api.Pool("p"), devices=(DEVICE,), per_device_node_selection=True)
ALL_GATES = (
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceCompatibilityGroups",
    "DRADeviceTaints",
    "DRAListTypeAttributes",
    "DRAPartitionableDevices",
)
OPEN = Kubernetes.release("1.37", dict.fromkeys(ALL_GATES, True))


def without(*gates: str) -> Kubernetes:
    return Kubernetes.release("1.37", dict.fromkeys(ALL_GATES, True) | dict.fromkeys(gates, False))


def test_with_all_gates_everything_is_kept() -> None:
    assert api.kept_slice(SLICE, OPEN) == SLICE


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        ("DRADeviceTaints", replace(DEVICE, taints=())),
        ("DRAPartitionableDevices", replace(DEVICE, consumes_counters=(), node_name=None)),
        (
            "DRADeviceBindingConditions",
            replace(DEVICE, binds_to_node=False, binding_conditions=(), binding_failure_conditions=()),
        ),
        (
            "DRAConsumableCapacity",
            replace(DEVICE, allow_multiple_allocations=False, capacity={"memory": api.Capacity(ONE)}),
        ),
        (
            "DRADeviceCompatibilityGroups",
            replace(DEVICE, consumes_counters=(api.CounterConsumption("c", {"m": ONE}),)),
        ),
    ],
)
def test_each_gate_drops_its_own_fields_of_a_device(gate: str, expected: api.Device) -> None:
    assert api.kept_slice(SLICE, without(gate)).devices == (expected,)


def test_binding_conditions_need_the_status_of_devices_too() -> None:
    kept = api.kept_slice(SLICE, Kubernetes.release("1.36", {"DRAResourceClaimDeviceStatus": False}))
    assert kept.devices[0].binding_conditions == ()


def test_without_partitionable_devices_a_slice_has_no_counters() -> None:
    value = replace(SLICE, devices=(), shared_counters=(api.CounterSet("c", {"m": ONE}),))
    kept = api.kept_slice(value, Kubernetes.release("1.32"))
    assert (kept.shared_counters, kept.per_device_node_selection) == ((), False)


def test_a_claim_loses_what_a_version_does_not_know() -> None:
    exactly = api.ExactDeviceRequest("c", admin_access=True, tolerations=(api.Toleration("k"),), capacity={"m": ONE})
    alternatives = api.DeviceRequest("b", first_available=(api.DeviceSubRequest("s", "c"),))
    spec = api.ClaimSpec((api.DeviceRequest("a", exactly), alternatives), (api.DeviceConstraint((), None, "a.b/c"),))
    assert api.kept_claim_spec(spec, OPEN) == spec
    kept = api.kept_claim_spec(spec, Kubernetes.release("1.32"))
    assert kept.requests == (api.DeviceRequest("a", api.ExactDeviceRequest("c")), api.DeviceRequest("b"))
    assert kept.constraints == (api.DeviceConstraint(),)


def test_a_class_loses_the_name_of_its_extended_resource() -> None:
    value = api.DeviceClass(api.ObjectMeta("c"), extended_resource_name="a.b/c")
    assert api.kept_class(value, OPEN) == value
    assert api.kept_class(value, Kubernetes.release("1.34")).extended_resource_name is None


def test_a_status_loses_the_reports_and_shares_of_gates_that_are_off() -> None:
    result = api.AllocatedDevice("r", "d", "p", "gpu-0", admin_access=True, share_id="s", consumed_capacity={"m": ONE})
    status = api.ClaimStatus(api.Allocation((result,), allocation_timestamp="now"), devices=({"driver": "d"},))
    kept = api.kept_claim_status(status, Kubernetes.release("1.32"))
    assert kept == api.ClaimStatus(api.Allocation((api.AllocatedDevice("r", "d", "p", "gpu-0"),)))
    assert api.kept_claim_status(status, Kubernetes.release("1.37")) == status
