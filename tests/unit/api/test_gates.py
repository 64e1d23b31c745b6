"""Each Kubernetes minor has the gates, defaults and API versions of its release."""

from __future__ import annotations

import pytest

from dradriver import api
from dradriver.api import Kubernetes
from dradriver.api.wire import ApiVersion


@pytest.mark.parametrize("text", ["1.34", "v1.34", "1.34.2", "v1.34.2+k3s1", "1.34.0-rc.1", "1.34+"])
def test_a_version_is_known_by_its_minor(text: str) -> None:
    assert str(Kubernetes.release(text)) == "1.34"


@pytest.mark.parametrize("text", ["1.31", "1.38", "2.0", "34", "", "1.", "latest", "1.3x"])
def test_an_unknown_version_is_refused_with_the_choices(text: str) -> None:
    with pytest.raises(api.ApiError, match=r"1\.32, 1\.33, 1\.34, 1\.35, 1\.36, 1\.37") as caught:
        Kubernetes.release(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("gate", "states"),
    [
        ("DynamicResourceAllocation", [False, False, True, True, True, True]),
        ("DRAPartitionableDevices", [False, False, False, False, True, True]),
        ("DRADeviceTaints", [False, False, False, False, True, True]),
        ("DRADeviceTaintRules", [False, False, False, False, False, True]),
        ("DRAPrioritizedList", [False, False, True, True, True, True]),
        ("DRAConsumableCapacity", [False, False, False, False, True, True]),
        ("DRAListTypeAttributes", [False, False, False, False, False, False]),
        ("DRAAdminAccess", [False, False, True, True, True, True]),
    ],
)
def test_defaults_are_those_of_the_release(gate: str, states: list[bool]) -> None:
    assert [Kubernetes.release(f"1.{minor}").enabled(gate) for minor in range(32, 38)] == states


def test_gates_can_be_set_locked_ones_too() -> None:
    assert Kubernetes.release("1.34", {"DRADeviceTaints": True}).enabled("DRADeviceTaints")
    latest = Kubernetes.release("1.37", {"DRAPrioritizedList": False})
    assert latest.locked("DRAPrioritizedList")
    assert not latest.enabled("DRAPrioritizedList")
    assert not Kubernetes.release("1.36").locked("DRAPrioritizedList")


def test_a_gate_of_another_version_is_refused_with_the_choices() -> None:
    with pytest.raises(api.ApiError, match=r"'DRADeviceTaints' does not exist in Kubernetes 1\.32.*DRAAdminAccess"):
        Kubernetes.release("1.32", {"DRADeviceTaints": True})


def test_a_mistyped_gate_is_refused_with_the_nearest() -> None:
    with pytest.raises(api.ApiError, match=r"'DRADeviceTaint' is not known.*did you mean DRADeviceTaints\?"):
        Kubernetes.release("1.37", {"DRADeviceTaint": True})


def test_a_gate_that_does_not_exist_is_off() -> None:
    assert not Kubernetes.release("1.32").enabled("DRAConsumableCapacity")


def test_the_labs_server_serves_the_newest_versions_of_its_minor() -> None:
    assert Kubernetes.release("1.32").served == (ApiVersion.V1BETA1,)
    assert Kubernetes.release("1.33").served == (ApiVersion.V1BETA2, ApiVersion.V1BETA1)
    assert Kubernetes.release("1.34").served == Kubernetes.release("1.37").served == (ApiVersion.V1,)


def test_a_version_is_a_key() -> None:
    assert {Kubernetes.release("1.36"): 1}[Kubernetes.release("1.36.4")] == 1
    assert Kubernetes.release("1.36") != Kubernetes.release("1.36", {"DRAListTypeAttributes": True})
