from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dradriver import allocator, api
from dradriver.allocator import Finding, Reason

Build = Any
NODES = [api.Node("n1")]


def assess(build: Build, cluster: allocator.Cluster, claim: Any = None, **fields: Any) -> dict[str, Finding]:
    """Findings for a claim's first request, by device name."""
    claim = claim or build.claim(build.request())
    assessment = allocator.assess(cluster, claim, fields.pop("nodes", NODES), **fields)
    return {device.device: finding for device, finding in next(iter(assessment.requests.values())).items()}


def reasons(findings: dict[str, Finding]) -> dict[str, Reason]:
    return {name: finding.reason for name, finding in findings.items()}


def test_every_device_of_the_cluster_is_in_every_request(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", ["a"]), build.slice("n2", ["b"]))
    claim = build.claim(build.request("x"), build.first_of("y", build.request("s"), build.request("t")))
    assessment = allocator.assess(cluster, claim, NODES)
    assert list(assessment.requests) == ["x", "y/s", "y/t"]
    assert all(set(found) == set(cluster.devices) for found in assessment.requests.values())


def test_devices_of_other_nodes_are_not_for_this_one_and_those_of_excluded_nodes_say_why(build: Build) -> None:
    cluster = build.cluster(*(build.slice(node, [f"on-{node}"]) for node in ("n1", "n2", "n3")))
    found = assess(build, cluster, excluded={"n2": "cordoned"})
    assert found == {
        "on-n1": Finding(Reason.FITS),
        "on-n2": Finding(Reason.NODE, node="n2", detail="cordoned"),
        "on-n3": Finding(Reason.NOT_FOR_NODE),
    }


def test_an_incomplete_or_invalid_pool_comes_before_all_else(build: Build) -> None:
    slices = [
        build.slice("n1", ["a"], pool={"name": "p", "resource_slice_count": 2}),
        build.slice("n1", ["b", "b"], pool={"name": "q"}),
        build.slice("n2", ["c"], pool={"name": "r", "resource_slice_count": 2}),
    ]
    found = assess(build, build.cluster(*slices))
    assert reasons(found) == {"a": Reason.POOL_INCOMPLETE, "b": Reason.POOL_INVALID, "c": Reason.POOL_INCOMPLETE}
    assert found["b"].detail == "duplicate device name b"
    repaired = assess(build, build.cluster(*slices).repaired())
    assert reasons(repaired) == {"a": Reason.FITS, "b": Reason.FITS, "c": Reason.NOT_FOR_NODE}


def test_before_1_35_an_incomplete_pool_keeps_no_device_away(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", ["a"], pool={"resource_slice_count": 2}), version="1.34")
    assert reasons(assess(build, cluster)) == {"a": Reason.FITS}


def test_selectors_name_the_one_that_decided_with_its_trace(build: Build) -> None:
    kind, memory = build.where("kind", "gpu"), build.where("memory", 80)
    cluster = build.cluster(
        build.slice(
            "n1",
            [
                build.device("nic", {"kind": "nic"}),
                build.device("small", {"kind": "gpu", "memory": 40}),
                build.device("bare", {"kind": "gpu"}),
                build.device("good", {"kind": "gpu", "memory": 80}),
            ],
        ),
        classes=[build.device_class("gpu", kind)],
    )
    found = assess(build, cluster, build.claim(build.request("r", kind, memory)))
    assert reasons(found) == {
        "nic": Reason.CLASS_SELECTOR,
        "small": Reason.REQUEST_SELECTOR,
        "bare": Reason.SELECTOR_ERROR,
        "good": Reason.FITS,
    }
    assert (found["nic"].selector, found["nic"].in_class) == (0, True)
    assert (found["small"].selector, found["small"].in_class) == (1, False)
    assert found["small"].trace is not None
    assert found["small"].trace.outcome is False
    assert found["bare"].detail == "no such key: memory"
    repaired = assess(build, cluster.repaired(), build.claim(build.request("r", kind, memory)))
    assert repaired["bare"].reason is Reason.REQUEST_SELECTOR


def test_a_selector_that_does_not_compile_errs_on_every_device(build: Build) -> None:
    found = assess(build, build.cluster(build.slice("n1", ["a"])), build.claim(build.request("r", "1 +")))
    assert found["a"] == Finding(Reason.SELECTOR_ERROR, 0, detail="the expression ends too early: a value is missing")


def test_a_device_in_use_is_of_the_wrong_kind_before_it_is_in_use(build: Build) -> None:
    memory = build.where("memory", 80)
    gpus = [build.device("small", {"memory": 40}), build.device("good", {"memory": 80}), build.device("bare")]
    held = build.held(("n1", "small"), ("n1", "good"), ("n1", "bare"))
    found = assess(
        build, build.cluster(build.slice("n1", gpus), claims=[held]), build.claim(build.request("r", memory))
    )
    # The scheduler never evaluates selectors on devices in use: one that would err there is in use and no more.
    assert reasons(found) == {"small": Reason.REQUEST_SELECTOR, "good": Reason.IN_USE, "bare": Reason.IN_USE}
    assert [holder.claim for holder in found["good"].holders] == [held]


def test_admin_access_sees_no_device_in_use(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", ["a"]), claims=[build.held(("n1", "a"))])
    assert reasons(assess(build, cluster, build.claim(build.request(admin_access=True)))) == {"a": Reason.FITS}


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("gpu.example.com/ecc", Reason.UNHEALTHY),
        ("gpu.example.com/vanished", Reason.UNHEALTHY),
        ("gpu.example.com/reserved", Reason.TAINT),
        ("other.example.com/ecc", Reason.TAINT),
    ],
)
def test_a_taint_is_bad_health_if_the_driver_says_so_by_its_key(build: Build, key: str, reason: Reason) -> None:
    taint = build.taint(key)
    cluster = build.cluster(build.slice("n1", [build.device("a", taints=(taint,))]))
    assert assess(build, cluster)["a"] == Finding(reason, taint=taint)
    tolerant = build.claim(build.request(tolerations=(api.Toleration(key, api.TolerationOperator.EXISTS),)))
    assert assess(build, cluster, tolerant)["a"].reason is Reason.FITS


def test_counters_in_use_name_their_holders(build: Build) -> None:
    one = {"slices": api.Quantity.parse("1")}
    devices = [
        build.device(name, consumes_counters=(api.CounterConsumption(counter_set, one),))
        for name, counter_set in (("a", "x"), ("b", "x"), ("c", "y"))
    ]
    pool = {"resource_slice_count": 2}
    sets = tuple(api.CounterSet(name, one) for name in ("x", "y"))
    held = build.held(("n1", "a"))
    cluster = build.cluster(
        build.slice("n1", devices, pool=pool, name="d"),
        build.slice("n1", [], pool=pool, name="s", shared_counters=sets),
        claims=[held],
    )
    found = assess(build, cluster)
    assert reasons(found) == {"a": Reason.IN_USE, "b": Reason.COUNTERS, "c": Reason.FITS}
    assert [holder.claim for holder in found["b"].holders] == [held]


def test_capacity_leaves_smaller_and_shared_devices_behind(build: Build) -> None:
    memory = {"memory": api.Capacity(api.Quantity.parse("40Gi"))}
    gpus = [build.device("small", capacity=memory), build.device("shared", allow_multiple_allocations=True)]
    claim = build.claim(build.request(capacity={"memory": api.Quantity.parse("80Gi")}))
    found = assess(build, build.cluster(build.slice("n1", gpus)), claim)
    assert reasons(found) == {"small": Reason.CAPACITY, "shared": Reason.CAPACITY}


def test_a_constraint_leaves_groups_behind_that_are_too_small(build: Build) -> None:
    gpus = [build.device(f"{d}{n}", {"domain": d}) for d, size in (("a", 2), ("b", 3)) for n in range(size)]
    cluster = build.cluster(build.slice("n1", [*gpus, "alone"]), claims=[build.held(("n1", "b0"))])
    claim = build.claim(build.request(count=2), constraints=(build.match("domain"),))
    found = assess(build, cluster, claim)
    fits = {name for name, finding in found.items() if finding.reason is Reason.FITS}
    assert fits == {"a0", "a1", "b1", "b2"}
    assert found["alone"] == Finding(Reason.CONSTRAINT, constraint=0)
    three = assess(build, cluster, build.claim(build.request(count=3), constraints=(build.match("domain"),)))
    assert reasons(three) == {"b0": Reason.IN_USE} | dict.fromkeys(("a0", "a1", "b1", "b2", "alone"), Reason.CONSTRAINT)


def test_groups_are_counted_node_by_node(build: Build) -> None:
    cluster = build.cluster(*(build.slice(n, [build.device(f"on-{n}", {"x": 1})]) for n in ("n1", "n2")))
    claim = build.claim(build.request(count=2), constraints=(build.match("x"),))
    found = assess(build, cluster, claim, nodes=[api.Node("n1"), api.Node("n2")])
    assert set(reasons(found).values()) == {Reason.CONSTRAINT}


def test_the_devices_of_an_allocated_claim_fit_it(build: Build) -> None:
    claim = build.claim(build.request(count=2))
    own = tuple(api.AllocatedDevice("r", build.driver, "n1", name) for name in ("a", "sick"))
    claim = replace(claim, status=api.ClaimStatus(api.Allocation(own)))
    sick = build.device("sick", taints=(build.taint("gpu.example.com/ecc"),))
    cluster = build.cluster(build.slice("n1", ["a", sick, "c"]), claims=[claim, build.held(("n1", "c"))])
    assert reasons(assess(build, cluster, claim)) == {"a": Reason.FITS, "sick": Reason.FITS, "c": Reason.IN_USE}


def test_without_nodes_to_consider_nothing_fits(build: Build) -> None:
    found = assess(build, build.cluster(build.slice("n1", ["a"])), nodes=[])
    assert reasons(found) == {"a": Reason.NOT_FOR_NODE}
