"""Taints that administrators put on devices with DeviceTaintRules."""

from __future__ import annotations

from typing import Any

import pytest

from dradriver import allocator, api

Build = Any

TAINT = api.Taint("broken", api.TaintEffect.NO_SCHEDULE)


def rule(selector: api.DeviceTaintSelector | None) -> api.DeviceTaintRule:
    return api.DeviceTaintRule(api.ObjectMeta(name="rule"), TAINT, selector)


def picked(build: Build, selector: api.DeviceTaintSelector | None, version: str = "1.37", **gates: bool) -> str | None:
    cluster = build.cluster(
        build.slice("n1", ["gpu-0", "gpu-1"]),
        version=version,
        gates=gates,
        taint_rules=[rule(selector)],
    )
    outcome = build.allocate(cluster, build.claim(build.request()))
    return outcome.allocations[0].results[0].device if isinstance(outcome, allocator.Allocated) else None


@pytest.mark.parametrize(
    ("selector", "device"),
    [
        (None, "gpu-0"),
        (api.DeviceTaintSelector(), None),
        (api.DeviceTaintSelector(driver="other.example.com"), "gpu-0"),
        (api.DeviceTaintSelector(pool="n1"), None),
        (api.DeviceTaintSelector(pool="n1", device="gpu-0"), "gpu-1"),
    ],
)
def test_a_rule_taints_what_its_selector_names(
    build: Build, selector: api.DeviceTaintSelector | None, device: str | None
) -> None:
    assert picked(build, selector) == device


def test_rules_count_only_where_the_gates_let_the_scheduler_look(build: Build) -> None:
    every = api.DeviceTaintSelector()
    assert picked(build, every, "1.36") == "gpu-0"
    assert picked(build, every, "1.36", DRADeviceTaintRules=True) is None
    assert picked(build, every, "1.34", DRADeviceTaints=True) is None


def test_up_to_1_34_a_rule_may_name_a_class(build: Build) -> None:
    assert picked(build, api.DeviceTaintSelector(device_class_name="gpu"), "1.34", DRADeviceTaints=True) is None
    assert picked(build, api.DeviceTaintSelector(device_class_name="none"), "1.34", DRADeviceTaints=True) == "gpu-0"


def test_repaired_clusters_know_no_rules(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", ["gpu-0"]), taint_rules=[rule(api.DeviceTaintSelector())])
    assert isinstance(build.allocate(cluster.repaired(), build.claim(build.request())), allocator.Allocated)
