"""Slices, claims and classes are judged as the server of each minor judges them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dradriver import api
from dradriver.api import Device, Kubernetes, Quantity, validation

ALL = [Kubernetes.release(f"1.{minor}") for minor in range(32, 38)]
LATEST = ALL[-1]
EVERYTHING = {
    "DRAPartitionableDevices": True,
    "DRADeviceTaints": True,
    "DRAConsumableCapacity": True,
    "DRADeviceBindingConditions": True,
}
OPEN_34 = Kubernetes.release("1.34", EVERYTHING)
OPEN_35 = Kubernetes.release("1.35", EVERYTHING)
OPEN_37 = Kubernetes.release("1.37", EVERYTHING | {"DRAListTypeAttributes": True, "DRADeviceCompatibilityGroups": True})
TAINT = api.Taint("gpu.gpupool.dev/xid", api.TaintEffect.NO_SCHEDULE)
ONE = Quantity.parse("1")
BY_NAME = api.NodeSelector((api.NodeSelectorTerm((), (api.NodeSelectorRequirement("metadata.name", "In", ("n",)),)),))


def slice_of(*devices: Device, **changes: Any) -> api.ResourceSlice:
    value = api.ResourceSlice("gpu.gpupool.dev", api.Pool("node-1"), node_name="node-1", devices=devices)
    return replace(value, **changes)


def devices(count: int, **fields: Any) -> list[Device]:
    return [Device(f"gpu-{index}", **fields) for index in range(count)]


def problems(value: api.ResourceSlice, kubernetes: Kubernetes = OPEN_37) -> list[str]:
    return [str(problem) for problem in validation.check_slice(value, kubernetes)]


def claim_problems(spec: api.ClaimSpec, kubernetes: Kubernetes = OPEN_37) -> list[str]:
    return [str(problem) for problem in validation.check_claim_spec(spec, kubernetes)]


def request(name: str = "gpu", **fields: Any) -> api.DeviceRequest:
    return api.DeviceRequest(name, api.ExactDeviceRequest("gpu.gpupool.dev", **fields))


def claim_of(*requests: api.DeviceRequest, **fields: Any) -> api.ClaimSpec:
    return api.ClaimSpec(requests or (request(),), **fields)


@pytest.mark.parametrize("kubernetes", ALL, ids=str)
def test_an_ordinary_slice_is_taken_by_every_version(kubernetes: Kubernetes) -> None:
    device = Device(
        "gpu-0-mig-1g10gb-0",
        attributes={"uuid": "GPU-1", "index": 0, "driverVersion": api.Version("550.90.7"), "a.b/migCapable": True},
        capacity={"memory": api.Capacity(Quantity.of_mib(81559))},
    )
    assert problems(slice_of(device), kubernetes) == []
    assert problems(slice_of(), kubernetes) == []


def test_128_plain_devices_fit_a_slice_of_every_version() -> None:
    for kubernetes in ALL:
        assert problems(slice_of(*devices(128)), kubernetes) == []
        assert problems(slice_of(*devices(129)), kubernetes) == [
            "spec.devices: Too many: 129: must have at most 128 items"
        ]


@pytest.mark.parametrize(
    "fields",
    [
        {"taints": (TAINT,)},
        {"consumes_counters": (api.CounterConsumption("c", {"m": ONE}),)},
        {"attributes": {"a": (1,)}},
    ],
    ids=["taints", "counters", "lists"],
)
def test_one_device_with_advanced_features_halves_the_slice(fields: dict[str, Any]) -> None:
    most, over = (slice_of(*devices(count), Device("odd", **fields)) for count in (63, 64))
    assert problems(most) == []
    assert problems(over) == ["spec.devices: Too many: 65: must have at most 64 items"]


def test_taints_do_not_halve_the_slice_where_they_are_dropped_or_older() -> None:
    tainted = slice_of(*devices(128, taints=(TAINT,)))
    assert problems(tainted, Kubernetes.release("1.35")) == []
    assert problems(tainted, OPEN_34) == []
    assert problems(tainted, OPEN_35) != []


@pytest.mark.parametrize(("kubernetes", "most"), [(OPEN_34, 4), (OPEN_35, 16)], ids=["1.34", "1.35"])
def test_taints_of_a_device_are_limited(kubernetes: Kubernetes, most: int) -> None:
    taints = tuple(replace(TAINT, key=f"k{index}") for index in range(most + 1))
    assert problems(slice_of(Device("d", taints=taints[1:])), kubernetes) == []
    assert problems(slice_of(Device("d", taints=taints)), kubernetes) == [
        f"spec.devices[0].taints: Too many: {most + 1}: must have at most {most} items"
    ]


def test_attributes_and_capacities_are_limited_together() -> None:
    attributes = {f"a{index}": index for index in range(32)}
    assert problems(slice_of(Device("d", attributes=attributes))) == []
    over = Device("d", attributes=attributes, capacity={"memory": api.Capacity(ONE)})
    assert problems(slice_of(over)) == [
        "spec.devices[0]: Invalid value: 33: the total number of attributes and capacities must not exceed 32"
    ]


def test_values_of_list_attributes_are_counted() -> None:
    assert problems(slice_of(Device("d", attributes={"a": tuple(range(48))}))) == []
    assert problems(slice_of(Device("d", attributes={"a": tuple(range(48)), "b": 1}))) == [
        "spec.devices[0]: Invalid value: 49: the total number of attribute values must not exceed 48"
    ]


def test_a_list_attribute_without_its_gate_is_an_attribute_without_value() -> None:
    (problem,) = problems(slice_of(Device("d", attributes={"a": (1,)})), LATEST)
    assert problem.startswith("spec.devices[0].attributes[a]: Required value: exactly one value must be specified")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x" * 65, "spec.devices[0].attributes[a].string: Too long: 65 bytes: may not be more than 64 bytes"),
        ("ü" * 33, "spec.devices[0].attributes[a].string: Too long: 66 bytes: may not be more than 64 bytes"),
        (
            api.Version("550.90.07"),
            (
                'spec.devices[0].attributes[a].version: Invalid value: "550.90.07": '
                "must be a string compatible with semver.org spec 2.0.0"
            ),
        ),
        (
            ("ok", "x" * 65),
            "spec.devices[0].attributes[a].strings[1]: Too long: 65 bytes: may not be more than 64 bytes",
        ),
    ],
    ids=["string", "bytes", "version", "list"],
)
def test_values_of_attributes_are_checked(value: Any, expected: str) -> None:
    assert problems(slice_of(Device("d", attributes={"a": value}))) == [expected]


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        (slice_of(driver=""), ["spec.driver"]),
        (slice_of(driver="a_b"), ["spec.driver"]),
        (slice_of(driver="a" * 64), ["spec.driver"]),
        (
            slice_of(pool=api.Pool("", -1, 0)),
            ["spec.pool.name", "spec.pool.resourceSliceCount", "spec.pool.generation"],
        ),
        (slice_of(pool=api.Pool("a//b")), ["spec.pool.name"]),
        (slice_of(node_name=None), ["spec"]),
        (slice_of(all_nodes=True), ["spec"]),
        (slice_of(node_name="A"), ["spec.nodeName"]),
        (slice_of(Device("gpu_0")), ["spec.devices[0].name"]),
        (slice_of(Device("")), ["spec.devices[0].name"]),
        (slice_of(Device("a"), Device("a")), ["spec.devices[1]"]),
        (slice_of(Device("a", attributes={"1x": 1})), ["spec.devices[0].attributes"]),
        (slice_of(Device("a", attributes={"x" * 33: 1})), ["spec.devices[0].attributes"]),
        (slice_of(Device("a", capacity={"a-b": api.Capacity(ONE)})), ["spec.devices[0].capacity"]),
        (
            slice_of(Device("a", taints=(replace(TAINT, key="", value="-"),))),
            ["spec.devices[0].taints[0].key", "spec.devices[0].taints[0].value"],
        ),
        (slice_of(Device("a", node_name="n")), ["spec.devices[0]"]),
        (slice_of(Device("a"), node_name=None, per_device_node_selection=True), ["spec.devices[0]"]),
        (slice_of(node_name=None, node_selector=api.NodeSelector(())), ["spec.nodeSelector.nodeSelectorTerms"] * 2),
        (slice_of(Device("a", binding_conditions=("x",))), ["spec.devices[0].bindingFailureConditions"]),
        (slice_of(Device("a", binding_failure_conditions=("x",))), ["spec.devices[0].bindingConditions"]),
        (
            slice_of(Device("a", binding_conditions=("x", "x"), binding_failure_conditions=("x",))),
            ["spec.devices[0].bindingConditions[1]", "spec.devices[0].bindingFailureConditions[0]"],
        ),
        (
            slice_of(Device("a", binding_conditions=tuple("abcde"), binding_failure_conditions=("f",))),
            ["spec.devices[0].bindingConditions"],
        ),
    ],
)
def test_broken_rules_of_slices_are_said_where_they_are(value: api.ResourceSlice, paths: Sequence[str]) -> None:
    assert [problem.path for problem in validation.check_slice(value, OPEN_37)] == paths


def test_nodes_may_be_selected_per_device() -> None:
    chosen = (Device("a", node_name="n"), Device("b", all_nodes=True), Device("c", node_selector=BY_NAME))
    assert problems(slice_of(*chosen, node_name=None, per_device_node_selection=True)) == []
    assert problems(slice_of(*chosen, node_name=None, per_device_node_selection=True), ALL[0]) != []


@pytest.mark.parametrize(
    ("requirement", "place"),
    [
        (api.NodeSelectorRequirement("k", "In"), "values"),
        (api.NodeSelectorRequirement("k", "Exists", ("v",)), "values"),
        (api.NodeSelectorRequirement("k", "Gt", ("1", "2")), "values"),
        (api.NodeSelectorRequirement("k", "Near", ("1",)), "operator"),
        (api.NodeSelectorRequirement("", "Exists"), "key"),
        (api.NodeSelectorRequirement("k", "In", ("a b",)), "values[0]"),
    ],
)
def test_node_selectors_are_checked(requirement: api.NodeSelectorRequirement, place: str) -> None:
    selector = api.NodeSelector((api.NodeSelectorTerm((requirement,)),))
    found = validation.check_slice(slice_of(node_name=None, node_selector=selector), LATEST)
    assert [problem.path for problem in found] == [
        f"spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].{place}"
    ]


def test_node_fields_are_checked() -> None:
    requirement = api.NodeSelectorRequirement("spec.x", "In", ("n", "m"))
    selector = api.NodeSelector((api.NodeSelectorTerm((), (requirement,)),))
    found = validation.check_slice(slice_of(node_name=None, node_selector=selector), LATEST)
    assert [problem.path.rpartition(".")[2] for problem in found] == ["values", "key"]
    assert problems(slice_of(node_name=None, node_selector=BY_NAME), LATEST) == []


def counters(count: int, prefix: str = "m") -> dict[str, Quantity]:
    return {f"{prefix}{index}": ONE for index in range(count)}


def test_up_to_134_counters_stand_beside_their_devices() -> None:
    device = Device("a", consumes_counters=(api.CounterConsumption("gpu-0", counters(32)),))
    value = slice_of(device, shared_counters=(api.CounterSet("gpu-0", counters(32)),))
    assert problems(value, OPEN_34) == []
    assert problems(value, OPEN_35) == ['spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed']


def test_from_135_on_counters_stand_in_slices_of_their_own() -> None:
    device = Device("a", consumes_counters=(api.CounterConsumption("gpu-0", counters(32)),))
    sets = tuple(api.CounterSet(f"gpu-{index}", counters(32)) for index in range(8))
    for value in (slice_of(device), slice_of(shared_counters=sets)):
        assert problems(value, OPEN_35) == []
        assert problems(value, OPEN_34) != []


def test_up_to_134_counters_are_limited_over_the_slice() -> None:
    sets = tuple(api.CounterSet(f"gpu-{index}", counters(11)) for index in range(3))
    assert problems(slice_of(shared_counters=sets), OPEN_34) == [
        "spec.sharedCounters: Invalid value: 33: the total number of shared counters must not exceed 32"
    ]
    use = (api.CounterConsumption("gpu-0", counters(11)), api.CounterConsumption("gpu-1", counters(11)))
    wide = devices(47, consumes_counters=use)
    assert problems(slice_of(*wide, shared_counters=sets[:2]), OPEN_34) == [
        "spec.devices: Invalid value: 1034: the total number of counters in devices must not exceed 1024"
    ]


def test_up_to_134_consumed_counters_must_stand_in_the_slice() -> None:
    use = (api.CounterConsumption("gpu-0", {"memory": ONE}), api.CounterConsumption("gpu-1", {"memory": ONE}))
    value = slice_of(Device("a", consumes_counters=use), shared_counters=(api.CounterSet("gpu-0", {"slices": ONE}),))
    assert [problem.path for problem in validation.check_slice(value, OPEN_34)] == [
        "spec.devices[0].consumesCounters[0].counters",
        "spec.devices[0].consumesCounters[1].counterSet",
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            slice_of(shared_counters=tuple(api.CounterSet(f"c{index}", counters(1)) for index in range(9))),
            "spec.sharedCounters: Too many: 9: must have at most 8 items",
        ),
        (
            slice_of(shared_counters=(api.CounterSet("c", counters(33)),)),
            "spec.sharedCounters[0].counters: Too many: 33: must have at most 32 items",
        ),
        (slice_of(shared_counters=(api.CounterSet("c", {}),)), "spec.sharedCounters[0].counters: Required value"),
        (
            slice_of(shared_counters=(api.CounterSet("c", counters(1)),) * 2),
            'spec.sharedCounters[1]: Duplicate value: "c"',
        ),
        (
            slice_of(Device("a", consumes_counters=tuple(api.CounterConsumption(c, counters(1)) for c in "abc"))),
            "spec.devices[0].consumesCounters: Too many: 3: must have at most 2 items",
        ),
        (
            slice_of(Device("a", consumes_counters=(api.CounterConsumption("c", counters(33)),))),
            "spec.devices[0].consumesCounters[0].counters: Too many: 33: must have at most 32 items",
        ),
        (
            slice_of(Device("a", consumes_counters=(api.CounterConsumption("c", counters(1), ("x", "y", "z")),))),
            "spec.devices[0].consumesCounters[0].compatibilityGroups: Too many: 3: must have at most 2 items",
        ),
    ],
    ids=["sets", "in-set", "empty", "twice", "consumptions", "in-consumption", "groups"],
)
def test_counters_of_later_versions_are_limited(value: api.ResourceSlice, expected: str) -> None:
    assert problems(value) == [expected]


def shared(policy: api.RequestPolicy, capacity: str = "80Gi", **fields: Any) -> api.ResourceSlice:
    amounts = {"memory": api.Capacity(Quantity.parse(capacity), policy)}
    return slice_of(Device("a", capacity=amounts, **{"allow_multiple_allocations": True} | fields))


def policy_of(default: str | None, *values: str, **bounds: str) -> api.RequestPolicy:
    valid_range = api.ValidRange(**{key: Quantity.parse(text) for key, text in bounds.items()}) if bounds else None
    first = None if default is None else Quantity.parse(default)
    return api.RequestPolicy(first, tuple(map(Quantity.parse, values)), valid_range)


@pytest.mark.parametrize(
    "policy",
    [
        policy_of("10Gi", "10Gi", "20Gi", "80Gi"),
        policy_of("80Gi", minimum="1Gi", step="1Gi", maximum="80Gi"),
        policy_of("1Gi", minimum="1Gi"),
        policy_of("500m", minimum="0", step="500m"),
        policy_of(None),
    ],
)
def test_policies_of_shared_capacity_are_taken(policy: api.RequestPolicy) -> None:
    assert problems(shared(policy)) == []


@pytest.mark.parametrize(
    ("policy", "place"),
    [
        (policy_of(None, "10Gi"), "default"),
        (policy_of("10Gi", "20Gi"), "validValues"),
        (policy_of("10Gi", "20Gi", "10Gi"), "validValues[1]"),
        (policy_of("10Gi", "10Gi", "90Gi"), "validValues[1]"),
        (policy_of("10Gi", "10Gi", "10Gi"), "validValues[1]"),
        (policy_of("1", *map(str, range(1, 12))), "validValues"),
        (policy_of("10Gi", "10Gi", minimum="1Gi"), ""),
        (policy_of(None, minimum="1Gi"), "default"),
        (policy_of("1Gi", minimum="2Gi"), "validRange.default"),
        (policy_of("3Gi", minimum="1Gi", maximum="2Gi"), "validRange.default"),
        (policy_of("1Gi", minimum="1Gi", maximum="81Gi"), "validRange.max"),
        (policy_of("1Gi", minimum="1Gi", step="0"), "validRange.step"),
        (policy_of("79Gi", minimum="79Gi", step="2Gi"), "validRange.step"),
        (policy_of("2Gi", minimum="1Gi", step="2Gi"), "validRange.step"),
    ],
)
def test_policies_of_shared_capacity_are_checked(policy: api.RequestPolicy, place: str) -> None:
    root = "spec.devices[0].capacity[memory].requestPolicy"
    found = {problem.path for problem in validation.check_slice(shared(policy), OPEN_37)}
    assert f"{root}.{place}".removesuffix(".") in found


def test_steps_are_whole_numbers_before_fractional_ranges_came() -> None:
    policy = policy_of("1500m", minimum="0", step="500m")
    assert problems(shared(policy, "10"), OPEN_35) == []
    assert problems(shared(policy_of("750m", minimum="0", step="500m"), "10"), OPEN_37) != []


def test_a_policy_needs_multiple_allocations() -> None:
    value = shared(policy_of("1Gi", minimum="1Gi"), allow_multiple_allocations=False)
    assert problems(value) == [
        "spec.devices[0].capacity[memory].requestPolicy: Forbidden: allowMultipleAllocations must be true"
    ]
    assert problems(value, OPEN_34) != []
    assert problems(value, ALL[1]) == []


@pytest.mark.parametrize("kubernetes", ALL, ids=str)
def test_an_ordinary_claim_is_taken_by_every_version(kubernetes: Kubernetes) -> None:
    spec = claim_of(
        request(count=4, selectors=(api.Selector("true"),)),
        request("all", allocation_mode="All", count=0),
        constraints=(api.DeviceConstraint(("gpu",), "gpu.gpupool.dev/nvlinkDomain"),),
        config=(api.ClaimConfiguration(api.OpaqueConfiguration("gpu.gpupool.dev", {"kind": "GpuConfig"}), ("gpu",)),),
    )
    assert claim_problems(spec, kubernetes) == []


def test_a_claim_has_at_most_32_requests_but_may_ask_for_more_devices() -> None:
    for kubernetes in ALL:
        assert claim_problems(claim_of(request(count=33)), kubernetes) == []
        assert claim_problems(claim_of(*(request(f"r{index}") for index in range(32))), kubernetes) == []
        assert claim_problems(claim_of(*(request(f"r{index}") for index in range(33))), kubernetes) == [
            "spec.devices.requests: Too many: 33: must have at most 32 items"
        ]


def test_the_path_of_a_templates_spec_is_the_callers() -> None:
    (problem,) = validation.check_claim_spec(claim_of(request("R")), LATEST, path="spec.spec")
    assert problem.path == "spec.spec.devices.requests[0].name"
    assert problem.message.startswith('Invalid value: "R": a lowercase RFC 1123 label')


OPAQUE = api.OpaqueConfiguration("gpu.gpupool.dev", {})
ALTERNATIVE = api.DeviceSubRequest("big", "gpu.gpupool.dev")
EITHER = api.DeviceRequest("gpu", first_available=(ALTERNATIVE, replace(ALTERNATIVE, name="small")))


@pytest.mark.parametrize(
    ("spec", "path", "words"),
    [
        (claim_of(request(), request()), "requests[1]", 'Duplicate value: "gpu"'),
        (claim_of(api.DeviceRequest("gpu")), "requests[0]", "exactly one of `exactly` or `firstAvailable` is required"),
        (claim_of(replace(EITHER, exactly=request().exactly)), "requests[0]", "but multiple fields are set"),
        (claim_of(request(count=0)), "requests[0].exactly.count", "Invalid value: 0: must be greater than zero"),
        (claim_of(request(allocation_mode="All")), "requests[0].exactly.count", "when allocationMode is 'All'"),
        (
            claim_of(request(allocation_mode="Half")),
            "requests[0].exactly.allocationMode",
            'Unsupported value: "Half": supported values: "All", "ExactCount"',
        ),
        (claim_of(request(selectors=(api.Selector(None),))), "requests[0].exactly.selectors[0].cel", "Required value"),
        (
            claim_of(request(selectors=(api.Selector("x" * 10241),))),
            "requests[0].exactly.selectors[0].cel.expression",
            "Too long: 10241 bytes: may not be more than 10240 bytes",
        ),
        (
            claim_of(request(selectors=(api.Selector("true"),) * 33)),
            "requests[0].exactly.selectors",
            "Too many: 33: must have at most 32 items",
        ),
        (
            claim_of(request(tolerations=(api.Toleration("k", "Exists", "v"),))),
            "requests[0].exactly.tolerations[0].value",
            "must be empty for operator `Exists`",
        ),
        (
            claim_of(request(tolerations=(api.Toleration("k", "Lt"),))),
            "requests[0].exactly.tolerations[0].operator",
            'supported values: "Equal", "Exists"',
        ),
        (
            claim_of(request(tolerations=(api.Toleration("k"),) * 17)),
            "requests[0].exactly.tolerations",
            "Too many: 17: must have at most 16 items",
        ),
        (
            claim_of(api.DeviceRequest("gpu", api.ExactDeviceRequest(""))),
            "requests[0].exactly.deviceClassName",
            "Required value",
        ),
        (
            claim_of(replace(EITHER, first_available=(ALTERNATIVE,) * 2)),
            "requests[0].firstAvailable[1]",
            'Duplicate value: "big"',
        ),
        (
            claim_of(replace(EITHER, first_available=tuple(replace(ALTERNATIVE, name=f"s{i}") for i in range(9)))),
            "requests[0].firstAvailable",
            "Too many: 9: must have at most 8 items",
        ),
        (
            claim_of(constraints=(api.DeviceConstraint(),)),
            "constraints[0]",
            'exactly one of "matchAttribute" or "distinctAttribute" is required',
        ),
        (
            claim_of(constraints=(api.DeviceConstraint((), "nvlinkDomain"),)),
            "constraints[0].matchAttribute",
            'Invalid value: "nvlinkDomain": a fully qualified name must be a domain and a name separated by a slash',
        ),
        (
            claim_of(constraints=(api.DeviceConstraint(("gpus",), "a.b/c"),)),
            "constraints[0].requests[0]",
            'Invalid value: "gpus": must be the name of a request in the claim',
        ),
        (
            claim_of(EITHER, constraints=(api.DeviceConstraint(("gpu/huge",), "a.b/c"),)),
            "constraints[0].requests[0]",
            'Invalid value: "gpu/huge"',
        ),
        (claim_of(config=(api.ClaimConfiguration(None),)), "config[0].opaque", "Required value"),
        (
            claim_of(config=(api.ClaimConfiguration(replace(OPAQUE, driver="")),)),
            "config[0].opaque.driver",
            "Required value",
        ),
        (
            claim_of(config=(api.ClaimConfiguration(replace(OPAQUE, parameters={"x": "y" * 10240})),)),
            "config[0].opaque.parameters",
            "may not be more than 10240 bytes",
        ),
        (
            claim_of(config=(api.ClaimConfiguration(OPAQUE, ("gpu", "gpu")),)),
            "config[0].requests[1]",
            'Duplicate value: "gpu"',
        ),
        (
            claim_of(config=(api.ClaimConfiguration(OPAQUE),) * 33),
            "config",
            "Too many: 33: must have at most 32 items",
        ),
    ],
)
def test_broken_rules_of_claims_are_said_where_they_are(spec: api.ClaimSpec, path: str, words: str) -> None:
    (problem,) = validation.check_claim_spec(spec, OPEN_37)
    assert problem.path == f"spec.devices.{path}"
    assert words in problem.message


def test_alternatives_may_be_named_in_constraints() -> None:
    constraints = (api.DeviceConstraint(("gpu", "gpu/big"), "a.b/c"), api.DeviceConstraint((), None, "a.b/c"))
    assert claim_problems(claim_of(EITHER, constraints=constraints)) == []


def test_alternatives_are_dropped_where_their_gate_is_off() -> None:
    (problem,) = claim_problems(claim_of(EITHER), Kubernetes.release("1.33"))
    assert problem.startswith("spec.devices.requests[0].exactly: Required value")
    assert "DRAPrioritizedList" in problem


def test_classes_are_checked() -> None:
    good = api.DeviceClass(api.ObjectMeta("c"), (api.Selector("true"),), (OPAQUE,), "gpupool.dev/gpu")
    assert validation.check_class(good, OPEN_37) == ()
    bad = replace(
        good, selectors=(api.Selector(None),), config=(replace(OPAQUE, driver="_"),), extended_resource_name="cpu"
    )
    assert [problem.path for problem in validation.check_class(bad, OPEN_37)] == [
        "spec.selectors[0].cel",
        "spec.config[0].opaque.driver",
        "spec.extendedResourceName",
    ]


@pytest.mark.parametrize(
    "name", ["gpu", "requests.a.b/c", "kubernetes.io/gpu", "x.kubernetes.io/gpu", "a b/c", "a/" + "b" * 64]
)
def test_names_of_extended_resources_are_checked(name: str) -> None:
    value = api.DeviceClass(api.ObjectMeta("c"), extended_resource_name=name)
    assert [problem.path for problem in validation.check_class(value, LATEST)] == ["spec.extendedResourceName"]
    assert validation.check_class(value, ALL[0]) == ()
