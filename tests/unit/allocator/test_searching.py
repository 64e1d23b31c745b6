from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dradriver import allocator, api

Build = Any
GPUS = [f"gpu-{n}" for n in range(8)]


def domains(build: Build, *sizes: int) -> list[api.Device]:
    """Devices in NVLink domains of the given sizes, and none for size 0."""
    made = []
    for domain, size in enumerate(sizes):
        attributes = {"domain": f"d{domain}"} if size else {}
        made += [build.device(f"gpu-{domain}-{n}", attributes) for n in range(max(size, 1))]
    return made


def test_the_first_devices_in_order_are_taken(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", GPUS))
    assert build.names(build.allocate(cluster, build.claim(build.request(count=3)))) == [["gpu-0", "gpu-1", "gpu-2"]]


def test_pools_go_by_driver_then_name_and_slices_by_name(build: Build) -> None:
    two = {"name": "b", "resource_slice_count": 2}
    cluster = build.cluster(
        build.slice("n1", ["b2"], pool=two, name="s2"),
        build.slice("n1", ["b1"], pool=two, name="s1"),
        build.slice("n1", ["z"], driver="aaa.example.com", pool={"name": "z"}),
        build.slice("n1", ["a"], pool={"name": "a"}),
    )
    assert build.names(build.allocate(cluster, build.claim(build.request(count=4)))) == [["z", "a", "b1", "b2"]]


def test_pools_with_binding_conditions_come_last(build: Build) -> None:
    waits = build.device("waits", binding_conditions=("attached",), binding_failure_conditions=("broken",))
    cluster = build.cluster(
        build.slice("n1", [waits], pool={"name": "a"}), build.slice("n1", ["plain"], pool={"name": "b"})
    )
    outcome = build.allocate(cluster, build.claim(build.request(count=2)))
    assert build.names(outcome) == [["plain", "waits"]]
    assert [r.binding_conditions for r in outcome.allocations[0].results] == [(), ("attached",)]


def test_binding_conditions_without_their_gate_keep_a_device_from_being_taken(build: Build) -> None:
    waits = build.device("waits", binding_conditions=("attached",), binding_failure_conditions=("broken",))
    cluster = build.cluster(build.slice("n1", [waits]), gates={"DRADeviceBindingConditions": False})
    assert isinstance(build.allocate(cluster, build.claim(build.request())), allocator.Refused)


def test_devices_of_other_nodes_are_not_taken(build: Build) -> None:
    cluster = build.cluster(build.slice("n2", GPUS))
    outcome = build.allocate(cluster, build.claim(build.request()))
    assert outcome == allocator.Refused(allocator.Shortfall(0, "r", 1, ()))


def test_a_held_device_is_passed_over(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", GPUS), claims=[build.held(("n1", "gpu-0"), ("n1", "gpu-2"))])
    assert build.names(build.allocate(cluster, build.claim(build.request(count=2)))) == [["gpu-1", "gpu-3"]]


def test_a_device_goes_to_one_claim_of_a_pod_only(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", ["one", "two"]))
    claims = [build.claim(build.request(), name=name) for name in ("first", "second")]
    assert build.names(build.allocate(cluster, *claims)) == [["one"], ["two"]]
    third = build.claim(build.request(), name="third")
    assert isinstance(build.allocate(cluster, *claims, third), allocator.Refused)


def test_an_earlier_choice_is_given_up_when_a_later_request_needs_the_device(build: Build) -> None:
    gpus = [build.device("big", {"size": "big"}), build.device("small", {"size": "small"})]
    claim = build.claim(build.request("any"), build.request("big", build.where("size", "big")))
    assert build.names(build.allocate(build.cluster(build.slice("n1", gpus)), claim)) == [["small", "big"]]


def test_class_selectors_come_before_those_of_the_request_and_stop_at_the_first_false(build: Build) -> None:
    kind, memory = build.where("kind", "gpu"), build.where("memory", 80)
    gpus = [build.device("nic", {"kind": "nic"}), build.device("gpu", {"kind": "gpu", "memory": 80})]
    cluster = build.cluster(build.slice("n1", gpus), classes=[build.device_class("gpu", kind)], asked=True)
    assert build.names(build.allocate(cluster, build.claim(build.request("r", memory)))) == [["gpu"]]
    assert cluster.selectors.program(memory).asked == ["gpu"]


def test_nothing_is_evaluated_past_the_solution_or_on_devices_in_use(build: Build) -> None:
    memory = build.where("memory", 80)
    gpus = [build.device("broken"), build.device("good", {"memory": 80}), build.device("late")]
    cluster = build.cluster(build.slice("n1", gpus), claims=[build.held(("n1", "broken"))], asked=True)
    assert build.names(build.allocate(cluster, build.claim(build.request("r", memory)))) == [["good"]]
    assert cluster.selectors.program(memory).asked == ["good"]


ADVICE = (
    ". consider using CEL optional chaining (.? followed by orValue()) "
    "or guarding the check with has() for optional fields"
)


@pytest.mark.parametrize(
    ("version", "where", "advice"), [("1.36", "", ""), ("1.37", " on device gpu.example.com/n1/bare", ADVICE)]
)
def test_a_selector_that_errs_ends_the_search_naming_the_claim(
    build: Build, version: str, where: str, advice: str
) -> None:
    cluster = build.cluster(build.slice("n1", ["bare"]), version=version)
    outcome = build.allocate(cluster, build.claim(build.request("r", build.where("memory", 80))))
    message = f"claim ns/c: selector #0{where}: CEL runtime error: no such key: memory{advice}"
    assert outcome == allocator.Failed(message, 0, "r", api.DeviceID(build.driver, "n1", "bare"))


def test_a_class_selector_that_errs_blames_the_class(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", ["bare"]), classes=[build.device_class("gpu", build.where("memory", 80))])
    outcome = build.allocate(cluster, build.claim(build.request()))
    assert isinstance(outcome, allocator.Failed)
    assert outcome.message.startswith("class gpu: selector #0 on device gpu.example.com/n1/bare: CEL runtime error")


def test_an_error_met_only_on_the_way_to_a_refusal_is_still_an_error(build: Build) -> None:
    gpus = [build.device("good", {"memory": 80}), build.device("bare")]
    cluster = build.cluster(build.slice("n1", gpus))
    outcome = build.allocate(cluster, build.claim(build.request("r", build.where("memory", 80), count=2)))
    assert isinstance(outcome, allocator.Failed)


def test_an_expression_that_does_not_compile_fails_when_it_is_first_needed(build: Build) -> None:
    outcome = build.allocate(build.cluster(build.slice("n1", ["g"])), build.claim(build.request("r", "1 +")))
    assert isinstance(outcome, allocator.Failed)
    assert (
        outcome.message
        == "claim ns/c: selector #0: CEL compile error: the expression ends too early: a value is missing"
    )
    empty = build.cluster(build.slice("n2", ["g"]))
    assert isinstance(build.allocate(empty, build.claim(build.request("r", "1 +"))), allocator.Refused)


def test_an_unknown_class_fails(build: Build) -> None:
    outcome = build.allocate(build.cluster(), build.claim(build.request("r", device_class="tpu")))
    assert outcome == allocator.Failed("request r: device class tpu does not exist", 0, "r")


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (api.DeviceRequest("r"), "resource claim ns/c, request r: unknown request type"),
        (
            api.DeviceRequest("r", exactly=api.ExactDeviceRequest("gpu", (api.Selector(None),))),
            "claim ns/c, request r, selector #0: CEL expression empty (unsupported selector type?)",
        ),
        (
            api.DeviceRequest("r", exactly=api.ExactDeviceRequest("gpu", allocation_mode="Some")),
            "claim ns/c, request r: unsupported count mode Some",
        ),
    ],
)
def test_what_is_not_known_fails(build: Build, request_: api.DeviceRequest, message: str) -> None:
    outcome = build.allocate(build.cluster(build.slice("n1", GPUS)), build.claim(request_))
    assert isinstance(outcome, allocator.Failed)
    assert outcome.message == message


def test_an_unknown_kind_of_constraint_fails(build: Build) -> None:
    claim = build.claim(build.request(), constraints=(api.DeviceConstraint(),))
    outcome = build.allocate(build.cluster(build.slice("n1", GPUS)), claim)
    assert outcome == allocator.Failed("claim ns/c, constraint #0: empty constraint (unsupported constraint type?)", 0)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("1.33", "claim ns/c: number of requested devices 33 exceeds the claim limit of 32"),
        (
            "1.37",
            "claim ns/c, request b: adding 1 devices exceeds the claim limit of 32, with 32 already accounted for",
        ),
    ],
)
def test_more_than_32_devices_fail(build: Build, version: str, message: str) -> None:
    cluster = build.cluster(build.slice("n1", [f"gpu-{n}" for n in range(40)]), version=version)
    outcome = build.allocate(cluster, build.claim(build.request("a", count=32), build.request("b")))
    assert isinstance(outcome, allocator.Failed)
    assert outcome.message == message


def test_an_option_that_would_exceed_32_devices_gives_way_to_the_next(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", [f"gpu-{n:02}" for n in range(40)]))
    claim = build.claim(
        build.first_of("a", build.request("many", count=30), build.request("few", count=2)),
        build.request("b", count=30),
    )
    outcome = build.allocate(cluster, claim)
    assert len(build.names(outcome)[0]) == 32
    assert outcome.allocations[0].results[0].request == "a/few"


def test_all_takes_every_device_that_passes(build: Build) -> None:
    gpus = [build.device(f"g{n}", {"kind": kind}) for n, kind in enumerate(["gpu", "nic", "gpu"])]
    claim = build.claim(build.everything("r", build.where("kind", "gpu")))
    assert build.names(build.allocate(build.cluster(build.slice("n1", gpus)), claim)) == [["g0", "g2"]]


def test_all_fails_where_one_of_them_is_in_use_and_where_there_is_none(build: Build) -> None:
    used = build.cluster(build.slice("n1", ["a", "b"]), claims=[build.held(("n1", "b"))])
    outcome = build.allocate(used, build.claim(build.everything()))
    a = api.DeviceID(build.driver, "n1", "a")
    assert outcome == allocator.Refused(allocator.Shortfall(0, "r", 2, (a,)))
    assert isinstance(build.allocate(build.cluster(), build.claim(build.everything())), allocator.Refused)


def test_all_under_a_constraint_that_one_of_them_breaks_is_an_error(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", domains(build, 1, 1)))
    outcome = build.allocate(cluster, build.claim(build.everything(), constraints=(build.match("domain"),)))
    assert isinstance(outcome, allocator.Failed)
    assert outcome.message == (
        "claim ns/c, request r: cannot add device gpu.example.com/n1/gpu-1-0 "
        "because a claim constraint would not be satisfied"
    )


@pytest.mark.parametrize("state", ["being updated", "invalid"])
def test_all_fails_while_a_pool_of_any_driver_is_broken(build: Build, state: str) -> None:
    other = build.slice(
        "n1",
        ["same", "same"] if state == "invalid" else ["x"],
        driver="nic.example.com",
        pool={"resource_slice_count": 2 if state == "being updated" else 1},
    )
    cluster = build.cluster(build.slice("n1", GPUS), other)
    outcome = build.allocate(cluster, build.claim(build.everything()))
    assert isinstance(outcome, allocator.Failed)
    assert outcome.message == (
        f"claim ns/c, request r: asks for all devices, but resource pool nic.example.com/n1 is currently {state}"
    )


def test_the_first_option_that_leads_to_a_solution_is_taken(build: Build) -> None:
    gpus = [build.device("a", {"size": "big"}), build.device("b", {"size": "small"}), build.device("c", {"size": "s"})]
    claim = build.claim(
        build.first_of(
            "r",
            build.request("two-big", build.where("size", "big"), count=2),
            build.request("small", build.where("size", "small")),
            build.request("any"),
        )
    )
    outcome = build.allocate(build.cluster(build.slice("n1", gpus)), claim)
    assert build.names(outcome) == [["b"]]
    assert outcome.allocations[0].results[0].request == "r/small"


def test_prioritized_requests_need_their_gate(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", GPUS), version="1.33")
    outcome = build.allocate(cluster, build.claim(build.first_of("r", build.request("s"))))
    assert isinstance(outcome, allocator.Failed)
    assert "DRAPrioritizedList feature is disabled" in outcome.message


def test_admin_access_takes_devices_in_use_but_none_twice_in_a_claim(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", ["a", "b"]), claims=[build.held(("n1", "a"))])
    outcome = build.allocate(cluster, build.claim(build.request(count=2, admin_access=True)))
    assert build.names(outcome) == [["a", "b"]]
    assert all(result.admin_access for result in outcome.allocations[0].results)
    assert isinstance(
        build.allocate(cluster, build.claim(build.request(count=3, admin_access=True))), allocator.Refused
    )


def test_what_is_held_with_admin_access_is_free(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", ["a"]), claims=[build.held(("n1", "a"), admin_access=True)])
    assert build.names(build.allocate(cluster, build.claim(build.request()))) == [["a"]]


def test_admin_access_needs_its_gate(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", ["a"]), version="1.33")
    outcome = build.allocate(cluster, build.claim(build.request(admin_access=True)))
    assert isinstance(outcome, allocator.Failed)
    assert outcome.message == "claim ns/c, request r: admin access is requested, but the feature is disabled"


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_taint_keeps_a_device_from_requests_that_do_not_tolerate_it(build: Build, effect: str) -> None:
    sick = build.device("sick", taints=(build.taint("x/ecc", effect),))
    cluster = build.cluster(build.slice("n1", [sick, "well"]))
    assert build.names(build.allocate(cluster, build.claim(build.request()))) == [["well"]]
    tolerations = (api.Toleration("x/ecc", api.TolerationOperator.EXISTS),)
    outcome = build.allocate(cluster, build.claim(build.request(tolerations=tolerations)))
    assert build.names(outcome) == [["sick"]]
    assert outcome.allocations[0].results[0].tolerations == tolerations


def test_taints_that_only_inform_or_without_the_gate_keep_nothing_away(build: Build) -> None:
    noted = build.device("noted", taints=(build.taint("x/ecc", "None"),))
    assert build.names(build.allocate(build.cluster(build.slice("n1", [noted])), build.claim(build.request())))
    sick = build.device("sick", taints=(build.taint("x/ecc"),))
    gated = build.cluster(build.slice("n1", [sick]), gates={"DRADeviceTaints": False})
    assert build.names(build.allocate(gated, build.claim(build.request())))


def test_match_attribute_finds_the_first_group_that_is_large_enough(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", domains(build, 2, 0, 4)))
    outcome = build.allocate(cluster, build.claim(build.request(count=3), constraints=(build.match("domain"),)))
    assert build.names(outcome) == [["gpu-2-0", "gpu-2-1", "gpu-2-2"]]


def test_a_group_that_is_too_small_is_told(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", domains(build, 2, 3)), claims=[build.held(("n1", "gpu-1-1"))])
    outcome = build.allocate(cluster, build.claim(build.request(count=3), constraints=(build.match("domain"),)))
    found = tuple(api.DeviceID(build.driver, "n1", name) for name in ("gpu-0-0", "gpu-0-1"))
    assert outcome == allocator.Refused(allocator.Shortfall(0, "r", 3, found, constraint=0))


def test_match_attribute_ties_several_requests_and_drivers(build: Build) -> None:
    gpus = [build.device(f"gpu-{n}", {"root": n, "kind": "gpu"}) for n in range(3)]
    nics = [build.device("nic-2", {f"{build.driver}/root": 2, f"{build.driver}/kind": "nic"})]
    cluster = build.cluster(build.slice("n1", gpus), build.slice("n1", nics, driver="nic.example.com"))
    claim = build.claim(
        build.request("gpu", build.where("kind", "gpu")),
        build.request("nic", build.where("kind", "nic")),
        constraints=(build.match("root", "gpu", "nic"),),
    )
    assert build.names(build.allocate(cluster, claim)) == [["gpu-2", "nic-2"]]


def test_values_of_two_types_do_not_match(build: Build) -> None:
    gpus = [build.device("a", {"x": 1}), build.device("b", {"x": True}), build.device("c", {"x": "1"})]
    claim = build.claim(build.request(count=2), constraints=(build.match("x"),))
    assert isinstance(build.allocate(build.cluster(build.slice("n1", gpus)), claim), allocator.Refused)


def test_a_constraint_may_name_one_option_of_a_request(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", domains(build, 1, 1)))
    either = build.first_of("r", build.request("linked", count=2), build.request("loose", count=2))
    outcome = build.allocate(cluster, build.claim(either, constraints=(build.match("domain", "r/linked"),)))
    assert [result.request for result in outcome.allocations[0].results] == ["r/loose"] * 2
    whole = build.claim(either, constraints=(build.match("domain", "r"),))
    assert isinstance(build.allocate(cluster, whole), allocator.Refused)


def test_distinct_attribute_takes_one_device_of_each_value(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", domains(build, 2, 2, 2)))
    claim = build.claim(build.request(count=3), constraints=(build.distinct("domain"),))
    assert build.names(build.allocate(cluster, claim)) == [["gpu-0-0", "gpu-1-0", "gpu-2-0"]]
    four = build.claim(build.request(count=4), constraints=(build.distinct("domain"),))
    assert isinstance(build.allocate(cluster, four), allocator.Refused)


def test_capacity_asked_of_a_plain_device_is_a_minimum(build: Build) -> None:
    gib = api.Quantity.parse
    gpus = [build.device(f"g{n}", capacity={"memory": api.Capacity(gib(f"{n}Gi"))}) for n in (40, 80)]
    cluster = build.cluster(build.slice("n1", ["none", *gpus]))
    claim = build.claim(build.request(capacity={"memory": gib("41Gi")}))
    assert build.names(build.allocate(cluster, claim)) == [["g80"]]
    old = build.cluster(build.slice("n1", gpus), gates={"DRAConsumableCapacity": False})
    assert isinstance(build.allocate(old, claim), allocator.Failed)


def test_a_search_that_takes_too_long_is_undecided_and_says_so(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", GPUS))
    outcome = build.allocate(cluster, build.claim(build.request(count=8)), budget=5)
    assert outcome == allocator.Undecided(5)
    assert outcome.message.startswith("undecided")


def test_identical_devices_are_not_tried_in_every_combination(build: Build) -> None:
    gpus = [build.device(f"gpu-{n:02}", {"kind": "gpu"}) for n in range(30)]
    # Six for every value of either attribute, but no more than three that agree on both.
    nics = [build.device(f"nic-{n:02}", {"kind": "nic", "a": n % 2, "b": n // 2 % 2}) for n in range(12)]
    cluster = build.cluster(build.slice("n1", [*gpus, *nics]))
    claim = build.claim(
        build.request("gpus", build.where("kind", "gpu"), count=10),
        build.request("nics", build.where("kind", "nic"), count=4),
        constraints=(build.match("a", "nics"), build.match("b", "nics")),
    )
    assert isinstance(build.allocate(cluster, claim, budget=5_000), allocator.Refused)


def test_a_pod_with_hundreds_of_devices_is_no_deeper_than_one_with_few(build: Build) -> None:
    cluster = build.cluster(build.slice("n1", [f"gpu-{n:04}" for n in range(1280)]))
    claims = [build.claim(build.request(count=32), name=f"c{n}") for n in range(40)]
    outcome = build.allocate(cluster, *claims, budget=2_000_000)
    assert len({name for names in build.names(outcome) for name in names}) == 1280


def test_configuration_of_the_class_stands_before_that_of_the_claim(build: Build) -> None:
    note = api.OpaqueConfiguration(build.driver, {"note": "claim"})
    claim = build.claim(
        build.request("a"),
        build.request("b"),
        build.request("c", device_class="bare"),
        config=(
            api.ClaimConfiguration(note, ("a",)),
            api.ClaimConfiguration(note),
            api.ClaimConfiguration(note, ("a", "b", "c")),
        ),
    )
    classes = [build.device_class("gpu", config=["class"]), build.device_class("bare")]
    outcome = build.allocate(build.cluster(build.slice("n1", GPUS), classes=classes), claim)
    got = [(c.source.value, c.requests, c.opaque.parameters["note"]) for c in outcome.allocations[0].config]
    assert got == [
        ("FromClass", ("a", "b"), "class"),
        ("FromClaim", ("a",), "claim"),
        ("FromClaim", (), "claim"),
        ("FromClaim", (), "claim"),
    ]


def test_configuration_for_an_option_not_taken_is_left_out(build: Build) -> None:
    opaque = api.OpaqueConfiguration(build.driver, {})
    claim = build.claim(
        build.first_of("r", build.request("x"), build.request("y")),
        build.request("s"),
        config=(api.ClaimConfiguration(opaque, ("r/x",)), api.ClaimConfiguration(opaque, ("r/y",))),
    )
    outcome = build.allocate(build.cluster(build.slice("n1", GPUS)), claim)
    assert [c.requests for c in outcome.allocations[0].config] == [("r/x",)]


def test_a_device_of_one_node_ties_the_claim_to_it(build: Build) -> None:
    outcome = build.allocate(build.cluster(build.slice("n1", GPUS)), build.claim(build.request()))
    name = api.NodeSelectorRequirement("metadata.name", "In", ("n1",))
    assert outcome.allocations[0].node_selector == api.NodeSelector((api.NodeSelectorTerm((), (name,)),))


def test_selectors_of_network_devices_are_merged_and_all_nodes_tie_to_none(build: Build) -> None:
    rack = api.NodeSelectorRequirement("rack", "In", ("r1",))
    gpu = api.NodeSelectorRequirement("gpu", "Exists")
    selectors = [api.NodeSelector((api.NodeSelectorTerm(terms),)) for terms in ((rack,), (rack, gpu))]
    slices = [build.slice(None, ["d"], node_selector=s, pool={"name": f"p{n}"}) for n, s in enumerate(selectors)]
    node = api.Node("n1", {"rack": "r1", "gpu": ""})
    cluster = build.cluster(*slices, nodes=[node])
    outcome = build.allocate(cluster, build.claim(build.request(count=2)))
    assert outcome.allocations[0].node_selector == api.NodeSelector((api.NodeSelectorTerm((rack, gpu)),))
    everywhere = build.cluster(build.slice(None, ["d"], all_nodes=True))
    assert build.allocate(everywhere, build.claim(build.request())).allocations[0].node_selector is None


def test_a_variant_without_a_claim_has_its_devices_and_leaves_the_cluster_as_it_was(build: Build) -> None:
    held = build.held(("n1", "gpu"))
    cluster = build.cluster(build.slice("n1", ["gpu"]), claims=[held, replace(held, metadata=api.ObjectMeta("x"))])
    claim = build.claim(build.request())
    one_left = cluster.without_claims(lambda c: c.metadata.name == "other")
    assert isinstance(build.allocate(one_left, claim), allocator.Refused)
    assert build.names(build.allocate(cluster.emptied(), claim)) == [["gpu"]]
    assert isinstance(build.allocate(cluster, claim), allocator.Refused)


def test_a_repaired_cluster_has_no_taints_broken_pools_or_erring_selectors(build: Build) -> None:
    sick = build.device("sick", {"memory": 80}, taints=(build.taint("x/ecc"),))
    cluster = build.cluster(build.slice("n1", ["bare", sick, sick], pool={"resource_slice_count": 2}))
    claim = build.claim(build.request("r", build.where("memory", 80)))
    assert isinstance(build.allocate(cluster, claim), allocator.Refused)
    assert build.names(build.allocate(cluster.repaired(), claim)) == [["sick"]]
    assert isinstance(build.allocate(cluster.repaired(taints=False), claim), allocator.Refused)
    assert isinstance(build.allocate(cluster.repaired(selectors=False), claim), allocator.Failed)


def test_up_to_1_36_distinct_attribute_forgets_all_but_the_last_device_of_a_request(build: Build) -> None:
    gpus = [build.device(f"g{n}", {"x": x}) for n, x in enumerate([1, 2, 1])]
    claim = build.claim(build.request(count=3), constraints=(build.distinct("x"),))
    old, new = (build.cluster(build.slice("n1", gpus), version=version) for version in ("1.36", "1.37"))
    assert build.names(build.allocate(old, claim)) == [["g0", "g1", "g2"]]
    assert isinstance(build.allocate(new, claim), allocator.Refused)


def test_what_is_told_apart_only_by_the_order_of_a_sweep_is_not_taken_for_the_same(build: Build) -> None:
    gpus = [build.device("a", {"kind": "x"}), build.device("b", {"kind": "y"}), build.device("c", {"kind": "y"})]
    one = build.claim(build.request(), name="one")
    rest = build.claim(build.everything(), constraints=(build.match("kind"),), name="rest")
    outcome = build.allocate(build.cluster(build.slice("n1", gpus)), one, rest)
    # With a or b taken the sweep comes to a device in use; only with c taken it comes to the constraint first.
    assert isinstance(outcome, allocator.Failed)
    assert "cannot add device gpu.example.com/n1/b" in outcome.message


def test_of_slices_that_disagree_on_their_number_the_first_for_one_node_is_believed(build: Build) -> None:
    slices = [
        build.slice(None, ["a"], all_nodes=True, pool={"name": "p", "resource_slice_count": 2}, name="a"),
        build.slice("n1", ["b"], pool={"name": "p", "resource_slice_count": 3}, name="b"),
    ]
    assert isinstance(build.allocate(build.cluster(*slices), build.claim(build.request())), allocator.Refused)
    assert isinstance(
        build.allocate(build.cluster(*slices, version="1.35"), build.claim(build.request())), allocator.Allocated
    )
