from __future__ import annotations

from typing import Any

import pytest

from dradriver import allocator, api

Build = Any
OLD, NEW = ["1.32", "1.34"], ["1.35", "1.37"]


def fits(build: Build, cluster: allocator.Cluster, node: str = "n1") -> list[str]:
    """Names of all devices that requests for one device can be given, one after the other."""
    names: list[str] = []
    while True:
        claims = [build.claim(build.request(), name=f"c{n}") for n in range(len(names) + 1)]
        outcome = build.allocate(cluster, *claims, node=node)
        if not isinstance(outcome, allocator.Allocated):
            return names
        names = [name for (name,) in build.names(outcome)]


def test_only_the_newest_generation_counts(build: Build) -> None:
    cluster = build.cluster(
        build.slice("n1", ["old"], name="a"), build.slice("n1", ["new"], name="b", pool={"generation": 2})
    )
    assert fits(build, cluster) == ["new"]
    assert [device.device for device in cluster.devices] == ["new"]
    (pool,) = cluster.pools
    assert (pool.driver, pool.name, pool.node, pool.generation, pool.complete) == (build.driver, "n1", "n1", 2, True)


@pytest.mark.parametrize("version", NEW)
def test_an_old_generation_is_not_used_while_the_new_one_is_published(build: Build, version: str) -> None:
    old = build.slice("n1", ["old"], pool={"name": "p", "resource_slice_count": 2})
    new = build.slice("n2", ["new"], pool={"name": "p", "resource_slice_count": 2, "generation": 2}, name="new")
    assert fits(build, build.cluster(old, new, version=version)) == []


@pytest.mark.parametrize(("version", "names"), [*((v, ["a"]) for v in OLD), *((v, []) for v in NEW)])
def test_an_incomplete_pool_is_used_before_1_35_only(build: Build, version: str, names: list[str]) -> None:
    cluster = build.cluster(build.slice("n1", ["a"], pool={"resource_slice_count": 2}), version=version)
    assert fits(build, cluster) == names
    assert not cluster.pools[0].complete


@pytest.mark.parametrize("version", [*OLD, *NEW])
def test_a_pool_over_several_nodes_is_complete_when_all_its_slices_are_there(build: Build, version: str) -> None:
    shared = {"name": "p", "resource_slice_count": 2}
    cluster = build.cluster(
        build.slice("n1", ["a"], pool=shared, name="s1"),
        build.slice("n2", ["b"], pool=shared, name="s2"),
        version=version,
    )
    assert [fits(build, cluster, node) for node in ("n1", "n2", "n3")] == [["a"], ["b"], []]
    assert cluster.pools[0].complete
    outcome = build.allocate(cluster, build.claim(build.everything()))
    # Before 1.35 completeness was judged over the slices of the node alone.
    assert isinstance(outcome, allocator.Failed if version in OLD else allocator.Allocated)


@pytest.mark.parametrize("version", OLD)
def test_an_invalid_pool_ends_the_search_before_1_35(build: Build, version: str) -> None:
    cluster = build.cluster(
        build.slice("n1", ["a"], pool={"name": "a"}), build.slice("n1", ["same", "same"]), version=version
    )
    assert build.names(build.allocate(cluster, build.claim(build.request()))) == [["a"]]
    outcome = build.allocate(cluster, build.claim(build.request(count=2)))
    assert outcome == allocator.Failed("pool n1 is invalid: duplicate device name same")


@pytest.mark.parametrize("version", NEW)
def test_an_invalid_pool_is_passed_over_since_1_35(build: Build, version: str) -> None:
    cluster = build.cluster(
        build.slice("n1", ["same", "same"]), build.slice("n1", ["z"], pool={"name": "z"}), version=version
    )
    assert fits(build, cluster) == ["z"]
    assert cluster.pools[0].invalid == "duplicate device name same"
    outcome = build.allocate(cluster, build.claim(build.request(count=2)))
    assert isinstance(outcome, allocator.Refused)
    assert outcome.message == "invalid resource pools were encountered"


def test_slices_choose_nodes_by_name_label_or_not_at_all(build: Build) -> None:
    labelled = api.NodeSelector((api.NodeSelectorTerm((api.NodeSelectorRequirement("zone", "In", ("a",)),)),))
    cluster = build.cluster(
        build.slice("n1", ["named"]),
        build.slice(None, ["labelled"], node_selector=labelled, pool={"name": "l"}),
        build.slice(None, ["everywhere"], all_nodes=True, pool={"name": "a"}),
        build.slice(None, ["nowhere"], pool={"name": "x"}),
        nodes=[api.Node("n1"), api.Node("n2", {"zone": "a"})],
    )
    assert fits(build, cluster, "n1") == ["everywhere", "named"]
    assert fits(build, cluster, "n2") == ["everywhere", "labelled"]


def test_devices_choose_nodes_themselves_where_the_slice_lets_them(build: Build) -> None:
    devices = [
        build.device("one", node_name="n1"),
        build.device("two", node_name="n2"),
        build.device("any", all_nodes=True),
    ]
    slices = build.slice(None, devices, per_device_node_selection=True)
    cluster = build.cluster(slices)
    assert fits(build, cluster, "n1") == ["one", "any"]
    assert cluster.pools[0].node_names == ("n1", "n2")
    assert fits(build, build.cluster(slices, gates={"DRAPartitionableDevices": False})) == []


def amounts(**values: int) -> dict[str, api.Quantity]:
    return {name: api.Quantity.parse(str(value)) for name, value in values.items()}


def partitions(build: Build, *names: str, size: int = 1) -> list[api.Device]:
    use = (api.CounterConsumption("gpu", amounts(slices=size)),)
    return [build.device(name, consumes_counters=use) for name in names]


def counters(slices: int) -> tuple[api.CounterSet, ...]:
    return (api.CounterSet("gpu", amounts(slices=slices)),)


def separate(build: Build, devices: list[api.Device], slices: int) -> list[api.ResourceSlice]:
    pool = {"resource_slice_count": 2}
    return [
        build.slice("n1", devices, pool=pool, name="devices"),
        build.slice("n1", [], pool=pool, name="counters", shared_counters=counters(slices)),
    ]


def test_partitions_are_given_out_until_their_counters_are_used_up(build: Build) -> None:
    whole = partitions(build, "whole", size=4)
    cluster = build.cluster(*separate(build, [*partitions(build, "a", "b", "c", size=2), *whole], 4))
    assert fits(build, cluster) == ["a", "b"]
    held = build.cluster(
        *separate(build, [*partitions(build, "a", "b", "c", size=2), *whole], 4), claims=[build.held(("n1", "b"))]
    )
    assert fits(build, held) == ["a"]


def test_counters_refused_on_one_way_are_there_on_the_next(build: Build) -> None:
    devices = [
        *(
            build.device(d.name, {"size": "big"}, consumes_counters=d.consumes_counters)
            for d in partitions(build, "big", size=3)
        ),
        *(
            build.device(d.name, {"size": "small"}, consumes_counters=d.consumes_counters)
            for d in partitions(build, "s1", "s2", size=2)
        ),
    ]
    claim = build.claim(build.request("any"), build.request("small", build.where("size", "small")))
    assert build.names(build.allocate(build.cluster(*separate(build, devices, 4)), claim)) == [["s1", "s2"]]


@pytest.mark.parametrize("version", ["1.33", "1.34"])
def test_before_1_35_counters_stand_beside_the_devices(build: Build, version: str) -> None:
    gates = {"DRAPartitionableDevices": True}
    one = build.slice("n1", partitions(build, "a", "b", "c"), shared_counters=counters(2))
    assert fits(build, build.cluster(one, version=version, gates=gates)) == ["a", "b"]


def test_devices_beside_counters_are_not_there_from_1_35_on(build: Build) -> None:
    one = build.slice("n1", ["a"], shared_counters=counters(2))
    assert fits(build, build.cluster(one)) == []


def test_a_counter_that_does_not_exist_makes_the_pool_invalid(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", partitions(build, "a")))
    assert cluster.pools[0].invalid == "counter set gpu not found"
    assert fits(build, cluster) == []


def test_without_the_gate_devices_with_counters_are_not_given_out(build: Build) -> None:
    slices = separate(build, [*partitions(build, "a"), build.device("plain")], 4)
    assert fits(build, build.cluster(*slices, gates={"DRAPartitionableDevices": False})) == ["plain"]
