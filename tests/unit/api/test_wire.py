"""JSON of every version is read and written without loss, and read errors name their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dradriver import api
from dradriver.api import wire
from dradriver.api.wire import ApiVersion

VERSIONS = st.sampled_from(ApiVersion)
TEXT = st.text("abz01-./", min_size=1, max_size=6)
TEXTS = st.lists(TEXT, max_size=2).map(tuple)
MAYBE = st.none() | TEXT
INT64 = st.integers(-(2**63), 2**63 - 1)
LABELS = st.dictionaries(TEXT, st.text(max_size=3), max_size=2)
QUANTITY = st.sampled_from(["0", "1", "81559Mi", "81920Mi", "1500m", "1e3", "+1"]).map(api.Quantity.parse)
QUANTITIES = st.dictionaries(TEXT, QUANTITY, max_size=2)
VERSION = st.sampled_from(["1.2.3", "550.90.7"]).map(api.Version)
JSON = st.dictionaries(TEXT, st.recursive(st.none() | st.integers() | TEXT, lambda inner: st.lists(inner, max_size=2)))


def tuples(items: st.SearchStrategy[Any], least: int = 0, key: str = "") -> st.SearchStrategy[tuple[Any, ...]]:
    unique = (lambda item: getattr(item, key)) if key else None
    return st.lists(items, min_size=least, max_size=3, unique_by=unique).map(tuple)


METADATA = st.builds(
    api.ObjectMeta,
    name=TEXT,
    namespace=st.just("") | TEXT,
    uid=TEXT,
    generation=st.integers(0, 9),
    labels=LABELS,
    annotations=LABELS,
    owner_references=tuples(st.builds(api.OwnerReference, TEXT, TEXT, TEXT, TEXT, controller=st.booleans()), key="uid"),
    finalizers=TEXTS,
    creation_timestamp=MAYBE,
    deletion_timestamp=MAYBE,
)
REQUIREMENT = st.builds(api.NodeSelectorRequirement, TEXT, TEXT, TEXTS)
NODE_SELECTOR = st.builds(
    api.NodeSelector, tuples(st.builds(api.NodeSelectorTerm, tuples(REQUIREMENT), tuples(REQUIREMENT)))
)
SCALARS: list[st.SearchStrategy[Any]] = [st.booleans(), INT64, st.text(max_size=5), VERSION]
ATTRIBUTE = st.one_of(*SCALARS, *(tuples(scalar, least=1) for scalar in SCALARS))
EFFECT = st.sampled_from(api.TaintEffect)
TAINT = st.builds(api.Taint, TEXT, EFFECT, st.text(max_size=3), MAYBE)
POLICY = st.builds(
    api.RequestPolicy,
    st.none() | QUANTITY,
    tuples(QUANTITY),
    st.none() | st.builds(api.ValidRange, QUANTITY, st.none() | QUANTITY, st.none() | QUANTITY),
)
DEVICE = st.builds(
    api.Device,
    name=TEXT,
    attributes=st.dictionaries(TEXT, ATTRIBUTE, max_size=3),
    capacity=st.dictionaries(TEXT, st.builds(api.Capacity, QUANTITY, st.none() | POLICY), max_size=2),
    consumes_counters=tuples(st.builds(api.CounterConsumption, TEXT, QUANTITIES, TEXTS), key="counter_set"),
    node_name=MAYBE,
    node_selector=st.none() | NODE_SELECTOR,
    all_nodes=st.booleans(),
    taints=tuples(TAINT, key="key"),
    binds_to_node=st.booleans(),
    binding_conditions=TEXTS,
    binding_failure_conditions=TEXTS,
    allow_multiple_allocations=st.booleans(),
)
SLICE = st.builds(
    api.ResourceSlice,
    driver=TEXT,
    pool=st.builds(api.Pool, TEXT, INT64, INT64),
    metadata=METADATA,
    node_name=MAYBE,
    node_selector=st.none() | NODE_SELECTOR,
    all_nodes=st.booleans(),
    per_device_node_selection=st.booleans(),
    devices=tuples(DEVICE, key="name"),
    shared_counters=tuples(st.builds(api.CounterSet, TEXT, QUANTITIES), key="name"),
)
TOLERATION = st.builds(
    api.Toleration,
    st.just("") | TEXT,
    st.sampled_from([*api.TolerationOperator, "Lt"]),
    st.text(max_size=3),
    st.none() | EFFECT,
    st.none() | INT64,
)
SELECTOR = st.builds(api.Selector, st.none() | st.text(max_size=8))
MODE_AND_COUNT = st.sampled_from([("ExactCount", 1), ("ExactCount", 4), ("All", 0), ("Spread", 0), ("Spread", 2)])


def _choice(make: Any, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda mode_and_count, **values: make(allocation_mode=mode_and_count[0], count=mode_and_count[1], **values),
        MODE_AND_COUNT,
        device_class_name=TEXT,
        selectors=tuples(SELECTOR),
        tolerations=tuples(TOLERATION),
        capacity=QUANTITIES,
        **fields,
    )


EXACTLY = _choice(api.ExactDeviceRequest, admin_access=st.booleans())
REQUEST = st.builds(
    api.DeviceRequest, TEXT, st.none() | EXACTLY, tuples(_choice(api.DeviceSubRequest, name=TEXT), key="name")
)
OPAQUE = st.builds(api.OpaqueConfiguration, TEXT, JSON)
SPEC = st.builds(
    api.ClaimSpec,
    tuples(REQUEST, key="name"),
    tuples(st.builds(api.DeviceConstraint, TEXTS, MAYBE, MAYBE)),
    tuples(st.builds(api.ClaimConfiguration, st.none() | OPAQUE, TEXTS)),
)
RESULT = st.builds(
    api.AllocatedDevice,
    TEXT,
    TEXT,
    TEXT,
    TEXT,
    admin_access=st.booleans(),
    tolerations=tuples(TOLERATION),
    binding_conditions=TEXTS,
    binding_failure_conditions=TEXTS,
    share_id=MAYBE,
    consumed_capacity=QUANTITIES,
    skip_node_operations=TEXTS,
)
SOURCE = st.sampled_from([*api.ConfigSource, "FromElsewhere"])
ALLOCATION = st.builds(
    api.Allocation,
    tuples(RESULT),
    tuples(st.builds(api.AllocatedConfiguration, SOURCE, st.none() | OPAQUE, TEXTS)),
    st.none() | NODE_SELECTOR,
    MAYBE,
)
STATUS = st.builds(
    api.ClaimStatus,
    st.none() | ALLOCATION,
    tuples(st.builds(api.ConsumerReference, TEXT, TEXT, TEXT, st.just("") | TEXT), key="uid"),
    tuples(JSON),
)
CLAIM = st.builds(api.ResourceClaim, METADATA, SPEC, STATUS)
TEMPLATE = st.builds(api.ResourceClaimTemplate, METADATA, SPEC, LABELS, LABELS)
CLASS = st.builds(api.DeviceClass, METADATA, tuples(SELECTOR), tuples(OPAQUE), MAYBE)


@settings(max_examples=40)
@given(SLICE, VERSIONS)
def test_a_written_slice_reads_as_itself(value: api.ResourceSlice, version: ApiVersion) -> None:
    assert wire.read_slice(wire.write_slice(value, version)) == value


@settings(max_examples=40)
@given(CLAIM, VERSIONS)
def test_a_written_claim_reads_as_itself(value: api.ResourceClaim, version: ApiVersion) -> None:
    assert wire.read_claim(wire.write_claim(value, version)) == value


@settings(max_examples=40)
@given(TEMPLATE, VERSIONS)
def test_a_written_template_reads_as_itself(value: api.ResourceClaimTemplate, version: ApiVersion) -> None:
    assert wire.read_template(wire.write_template(value, version)) == value


@settings(max_examples=40)
@given(CLASS, VERSIONS)
def test_a_written_class_reads_as_itself(value: api.DeviceClass, version: ApiVersion) -> None:
    assert wire.read_class(wire.write_class(value, version)) == value


@settings(max_examples=40)
@given(ALLOCATION)
def test_a_written_allocation_reads_as_itself(value: api.Allocation) -> None:
    assert wire.read_allocation(wire.write_allocation(value)) == value


def with_unknown_fields(data: Any, *, free: bool = False) -> Any:
    """The JSON with an unknown field in each object, except where keys are free or JSON is opaque."""
    if isinstance(data, list):
        return [with_unknown_fields(item) for item in data]
    if not isinstance(data, Mapping):
        return data
    kept = {"labels", "annotations", "parameters", "devices_status"}
    maps = {"attributes", "capacity", "counters", "requests", "consumedCapacity"}
    out = {
        key: item if key in kept else with_unknown_fields(item, free=key in maps and "value" not in item)
        for key, item in data.items()
    }
    return out if free else {"zzFirst": [1, {"x": None}], **out, "zzLast": "kept"}


@settings(max_examples=40)
@given(SLICE, VERSIONS)
def test_what_is_unknown_in_a_slice_survives_writing_over_it(value: api.ResourceSlice, version: ApiVersion) -> None:
    raw = with_unknown_fields(wire.write_slice(value, version))
    read = wire.read_slice(raw)
    assert read == value
    written = wire.write_slice(read, version, over=raw)
    assert written == raw
    assert list(written["spec"]) == list(raw["spec"])


@settings(max_examples=40)
@given(CLAIM, VERSIONS)
def test_what_is_unknown_in_a_claim_survives_writing_over_it(value: api.ResourceClaim, version: ApiVersion) -> None:
    written = wire.write_claim(value, version)
    reports = written.get("status", {}).pop("devices", [])
    raw = with_unknown_fields(written)
    if reports:
        raw["status"]["devices"] = reports
    assert wire.write_claim(wire.read_claim(raw), version, over=raw) == raw


def slice_of(device: Any, version: str = "v1") -> dict[str, Any]:
    pool = {"name": "node-1", "generation": 3, "resourceSliceCount": 1}
    spec = {"driver": "gpu.gpupool.dev", "pool": pool, "nodeName": "node-1", "devices": [device]}
    kind = {"apiVersion": f"resource.k8s.io/{version}", "kind": "ResourceSlice"}
    return {**kind, "metadata": {"name": "node-1-a", "creationTimestamp": None}, "spec": spec}


def claim_of(request: Any, version: str = "v1") -> dict[str, Any]:
    kind = {"apiVersion": f"resource.k8s.io/{version}", "kind": "ResourceClaim"}
    return {**kind, "metadata": {"name": "c", "namespace": "ns"}, "spec": {"devices": {"requests": [request]}}}


DEVICE_FIELDS = {
    "attributes": {"uuid": {"string": "GPU-1"}, "index": {"int": 0}, "driverVersion": {"version": "550.90.7"}},
    "capacity": {"memory": {"value": "81559Mi"}},
}


def test_a_device_of_v1beta1_stands_inside_basic() -> None:
    flat = wire.read_slice(slice_of({"name": "gpu-0", **DEVICE_FIELDS}))
    raw = slice_of({"name": "gpu-0", "basic": DEVICE_FIELDS}, "v1beta1")
    assert wire.read_slice(raw) == flat
    assert wire.write_slice(flat, ApiVersion.V1BETA1)["spec"] == raw["spec"]


def test_a_request_of_v1beta1_is_flat() -> None:
    fields = {"deviceClassName": "gpu.gpupool.dev", "allocationMode": "ExactCount", "count": 2}
    nested = wire.read_claim(claim_of({"name": "gpus", "exactly": fields}))
    raw = claim_of({"name": "gpus", **fields}, "v1beta1")
    assert wire.read_claim(raw) == nested
    assert wire.write_claim(nested, ApiVersion.V1BETA1)["spec"] == raw["spec"]


def test_the_servers_defaults_are_filled_in() -> None:
    request = {"deviceClassName": "c", "tolerations": [{"key": "k"}]}
    for version, raw in (("v1", {"name": "r", "exactly": request}), ("v1beta1", {"name": "r", **request})):
        exactly = wire.read_claim(claim_of(raw, version)).spec.requests[0].exactly
        assert exactly is not None
        assert (exactly.allocation_mode, exactly.count) == ("ExactCount", 1)
        assert exactly.tolerations == (api.Toleration("k", "Equal"),)


@pytest.mark.parametrize(
    "request_data",
    [{"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "All"}}, {"name": "r", "twice": {"x": 1}}],
    ids=["all", "unknown"],
)
def test_kinds_of_requests_that_ask_for_no_count_are_read(request_data: dict[str, Any]) -> None:
    request = wire.read_claim(claim_of(request_data)).spec.requests[0]
    assert request.exactly is None or request.exactly.count == 0
    assert request.first_available == ()


def test_an_unknown_mode_and_an_unknown_selector_are_read_for_the_allocator_to_refuse() -> None:
    fields = {"deviceClassName": "c", "allocationMode": "Half", "selectors": [{"regex": "x"}]}
    exactly = wire.read_claim(claim_of({"name": "r", "exactly": fields})).spec.requests[0].exactly
    assert exactly is not None
    assert (exactly.allocation_mode, exactly.selectors) == ("Half", (api.Selector(None),))


def test_an_unknown_taint_effect_reads_as_none_and_is_written_back_as_it_was() -> None:
    raw = slice_of({"name": "gpu-0", "taints": [{"key": "k", "effect": "NoBreakfast"}]})
    value = wire.read_slice(raw)
    assert value.devices[0].taints == (api.Taint("k", api.TaintEffect.NONE),)
    assert wire.write_slice(value, ApiVersion.V1, over=raw)["spec"] == raw["spec"]


def test_an_attribute_of_an_unknown_type_is_left_out_and_written_back_as_it_was() -> None:
    raw = slice_of({"name": "gpu-0", "attributes": {"a": {"float": 1.5}, "b": {"int": 1}}})
    value = wire.read_slice(raw)
    assert value.devices[0].attributes == {"b": 1}
    assert wire.write_slice(value, ApiVersion.V1, over=raw)["spec"] == raw["spec"]


def test_known_fields_that_are_gone_are_not_written_back() -> None:
    taints = [{"key": "a", "effect": "NoSchedule", "timeAdded": "t"}, {"key": "b", "effect": "NoExecute", "new": 1}]
    raw = slice_of({"name": "gpu-0", **DEVICE_FIELDS, "taints": taints, "allNodes": True, "new": 2})
    value = wire.read_slice(raw)
    device = replace(value.devices[0], taints=value.devices[0].taints[1:], all_nodes=False, capacity={})
    written = wire.write_slice(replace(value, devices=(device,)), ApiVersion.V1, over=raw)
    expected = {"name": "gpu-0", "attributes": DEVICE_FIELDS["attributes"], "taints": taints[1:], "new": 2}
    assert written["spec"]["devices"] == [expected]


def test_unknown_fields_follow_their_device_when_the_order_changes() -> None:
    raw = slice_of({"name": "gpu-0", "new": 0})
    raw["spec"]["devices"].append({"name": "gpu-1", "new": 1})
    value = wire.read_slice(raw)
    written = wire.write_slice(replace(value, devices=value.devices[::-1]), ApiVersion.V1, over=raw)
    assert written["spec"]["devices"] == raw["spec"]["devices"][::-1]


def test_unknown_fields_follow_their_taint_where_keys_repeat() -> None:
    taints = [{"key": "k", "effect": "NoSchedule", "new": 0}, {"key": "k", "effect": "NoExecute", "new": 1}]
    raw = slice_of({"name": "gpu-0", "taints": taints})
    value = wire.read_slice(raw)
    device = replace(value.devices[0], taints=value.devices[0].taints[::-1])
    written = wire.write_slice(replace(value, devices=(device,)), ApiVersion.V1, over=raw)
    assert written["spec"]["devices"][0]["taints"] == taints[::-1]


def test_what_is_false_or_empty_is_not_written() -> None:
    device = api.Device("gpu-0")
    value = api.ResourceSlice("d", api.Pool("p"), api.ObjectMeta("n"), node_name="n", devices=(device,))
    assert wire.write_slice(value, ApiVersion.V1) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "n"},
        "spec": {
            "driver": "d",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "n",
            "devices": [{"name": "gpu-0"}],
        },
    }


def test_zero_seconds_of_toleration_are_written() -> None:
    fields = {"deviceClassName": "c", "tolerations": [{"operator": "Exists", "tolerationSeconds": 0}]}
    value = wire.read_claim(claim_of({"name": "r", "exactly": fields}))
    written = wire.write_claim(value, ApiVersion.V1)["spec"]["devices"]["requests"][0]["exactly"]
    assert written["tolerations"] == fields["tolerations"]


@pytest.mark.parametrize(("amount", "text"), [(5, "5"), (0.5, "0.5"), (" 1Gi ", "1Gi"), ("81920Mi", "81920Mi")])
def test_quantities_are_taken_as_the_server_takes_them(amount: Any, text: str) -> None:
    value = wire.read_slice(slice_of({"name": "gpu-0", "capacity": {"memory": {"value": amount}}}))
    assert value.devices[0].capacity["memory"].value.text == text


def test_items_of_lists_are_read_in_the_version_of_the_list() -> None:
    raw = slice_of({"name": "gpu-0", "basic": DEVICE_FIELDS}, "v1beta1")
    bare = {key: item for key, item in raw.items() if key not in ("apiVersion", "kind")}
    assert wire.read_slice(bare, ApiVersion.V1BETA1) == wire.read_slice(raw)


def test_objects_are_read_by_their_kind() -> None:
    raw = claim_of({"name": "r", "exactly": {"deviceClassName": "c"}})
    assert wire.read(raw) == wire.read_claim(raw)
    with pytest.raises(api.WireError, match=r"kind: expected one of ResourceSlice.*, got 'Pod'"):
        wire.read({"apiVersion": "v1", "kind": "Pod"})


def test_one_version_is_not_written_over_another() -> None:
    raw = slice_of({"name": "gpu-0"})
    with pytest.raises(api.WireError, match=r"cannot write resource.k8s.io/v1beta1 over JSON of resource.k8s.io/v1"):
        wire.write_slice(wire.read_slice(raw), ApiVersion.V1BETA1, over=raw)


@pytest.mark.parametrize(
    ("device", "path", "words"),
    [
        (5, "spec.devices[0]", "expected an object, got 5"),
        ({"name": 5}, "spec.devices[0].name", "expected a string, got 5"),
        ({"name": "d", "allNodes": "yes"}, "spec.devices[0].allNodes", "expected true or false, got 'yes'"),
        ({"name": "d", "taints": {}}, "spec.devices[0].taints", "expected a list, got {}"),
        ({"attributes": {"a.b/c": {"int": True}}}, "spec.devices[0].attributes[a.b/c].int", "expected an integer"),
        ({"attributes": {"a": {"int": 2**63}}}, "spec.devices[0].attributes[a].int", "64 bits"),
        ({"attributes": {"a": {"ints": [1, "x"]}}}, "spec.devices[0].attributes[a].ints[1]", "got 'x'"),
        ({"attributes": {"a": "GPU-1"}}, "spec.devices[0].attributes[a]", "expected an object"),
        ({"capacity": {"memory": {}}}, "spec.devices[0].capacity[memory].value", "is missing"),
        ({"capacity": {"memory": {"value": "8GB"}}}, "spec.devices[0].capacity[memory].value", "'8GB' is no quantity"),
        ({"capacity": {"memory": {"value": True}}}, "spec.devices[0].capacity[memory].value", "expected a quantity"),
    ],
)
def test_a_wrong_shape_is_said_with_its_path_and_value(device: Any, path: str, words: str) -> None:
    with pytest.raises(api.WireError) as caught:
        wire.read_slice(slice_of(device))
    assert caught.value.path == path
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ([], "ResourceSlice"),
        ({}, "apiVersion"),
        ({"apiVersion": "resource.k8s.io/v1alpha3"}, "apiVersion"),
        ({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}, "kind"),
        ({"apiVersion": "resource.k8s.io/v1"}, "spec"),
        ({"apiVersion": "resource.k8s.io/v1", "spec": {}}, "spec.pool"),
        ({"apiVersion": "resource.k8s.io/v1", "metadata": [], "spec": {}}, "metadata"),
        (slice_of({"name": "d", **DEVICE_FIELDS}, "v1beta1"), "spec.devices[0].basic"),
    ],
    ids=str,
)
def test_what_is_no_slice_is_refused(data: Any, path: str) -> None:
    with pytest.raises(api.WireError) as caught:
        wire.read_slice(data)
    assert caught.value.path == path
