"""Which of upstream's allocators answers under which gates."""

from __future__ import annotations

import pytest

from dradriver import api
from dradriver.allocator.variants import Variant, rules_of


@pytest.mark.parametrize(
    ("version", "gates", "variant"),
    [
        ("1.32", {}, Variant.ONLY),
        ("1.33", {"DRAPartitionableDevices": True}, Variant.ONLY),
        ("1.34", {}, Variant.EXPERIMENTAL),
        ("1.34", {"DRAResourceClaimDeviceStatus": False}, Variant.INCUBATING),
        ("1.35", {}, Variant.INCUBATING),
        ("1.35", {"DRADeviceBindingConditions": True}, Variant.EXPERIMENTAL),
        ("1.35", {"DRAConsumableCapacity": True}, Variant.EXPERIMENTAL),
        ("1.36", {}, Variant.INCUBATING),
        ("1.36", {"DRAListTypeAttributes": True}, Variant.INCUBATING),
        ("1.36", {"DRAConsumableCapacity": False, "DRADeviceBindingConditions": False}, Variant.STABLE),
        ("1.37", {}, Variant.INCUBATING),
        ("1.37", {"DRAListTypeAttributes": True}, Variant.EXPERIMENTAL),
        (
            "1.37",
            {
                "DRAConsumableCapacity": False,
                "DRADeviceBindingConditions": False,
                "DRAFractionalCapacityRange": False,
            },
            Variant.STABLE,
        ),
    ],
)
def test_the_first_that_supports_every_enabled_feature_answers(
    version: str, gates: dict[str, bool], variant: Variant
) -> None:
    assert rules_of(api.Kubernetes.release(version, gates)).variant is variant
