"""Rules of resource.k8s.io at the server: dropped fields, limits, allocation, who may write what."""

from __future__ import annotations

from typing import Any

import pytest

from dradriver import cluster

GROUP = "/apis/resource.k8s.io"
SLICES = f"{GROUP}/v1/resourceslices"
CLAIMS = f"{GROUP}/v1/namespaces/default/resourceclaims"
RESULT = {"request": "gpu", "driver": "gpu.gpupool.dev", "pool": "node-a", "device": "gpu-0"}
ALLOCATION = {"devices": {"results": [RESULT]}}
POD = {"resource": "pods", "name": "pod", "uid": "1"}


def test_a_server_writes_quantities_and_taint_times_its_own_way(apiserver: Any, make_slice: Any) -> None:
    taint = {"key": "gpu.gpupool.dev/xid", "effect": "NoSchedule"}
    sent = make_slice(capacity={"memory": {"value": "81920Mi"}}, taints=[taint])
    device = apiserver.connect().create(SLICES, sent)["spec"]["devices"][0]
    assert device["capacity"] == {"memory": {"value": "80Gi"}}
    assert device["taints"][0].keys() == {"key", "effect", "timeAdded"}


@pytest.mark.parametrize("apiserver", ["1.34"], indirect=True)
def test_fields_of_a_disabled_gate_are_dropped_in_silence(apiserver: Any, make_slice: Any) -> None:
    taint = {"key": "gpu.gpupool.dev/xid", "effect": "NoSchedule"}
    sent = make_slice(taints=[taint], allowMultipleAllocations=True, invented=1)
    device = apiserver.connect().create(SLICES, sent)["spec"]["devices"][0]
    assert device == {"name": "gpu-0", "attributes": {"type": {"string": "gpu"}}}


@pytest.mark.parametrize("apiserver", ["1.33"], indirect=True)
def test_versions_are_converted_into_each_other(apiserver: Any, make_slice: Any) -> None:
    connection = apiserver.connect()
    created = connection.create(f"{GROUP}/v1beta2/resourceslices", make_slice())
    assert created["apiVersion"] == "resource.k8s.io/v1beta2"
    old = connection.get(f"{GROUP}/v1beta1/resourceslices/slice")
    assert old["spec"]["devices"] == [{"name": "gpu-0", "basic": {"attributes": {"type": {"string": "gpu"}}}}]
    assert old["metadata"] == created["metadata"]
    old["spec"]["allNodes"] = False  # a plain value in v1beta1
    assert "allNodes" not in connection.replace(f"{GROUP}/v1beta1/resourceslices/slice", old)["spec"]


def test_an_explicit_false_is_refused(apiserver: Any, make_slice: Any) -> None:
    sent = make_slice()
    sent["spec"]["allNodes"] = False
    with pytest.raises(cluster.InvalidError, match=r"spec\.allNodes: Invalid value: false: must be either unset or"):
        apiserver.connect().create(SLICES, sent)


def test_a_slice_over_the_limit_is_refused(apiserver: Any, make_slice: Any) -> None:
    sent = make_slice()
    sent["spec"]["devices"] = [{"name": f"gpu-{n}"} for n in range(129)]
    with pytest.raises(
        cluster.InvalidError, match=r'ResourceSlice.resource.k8s.io "slice" is invalid: spec\.devices: '
    ):
        apiserver.connect().create(SLICES, sent)


def test_where_a_slice_belongs_is_immutable(apiserver: Any, make_slice: Any) -> None:
    connection = apiserver.connect()
    connection.create(SLICES, make_slice())
    with pytest.raises(cluster.InvalidError, match=r'spec\.nodeName: Invalid value: "node-b": field is immutable'):
        connection.merge(f"{SLICES}/slice", {"spec": {"nodeName": "node-b"}})


def test_an_allocation_is_written_once_and_then_only_removed(apiserver: Any, make_claim: Any) -> None:
    connection = apiserver.connect()
    created = connection.create(CLAIMS, {**make_claim(), "status": {"allocation": ALLOCATION}})
    assert "status" not in created
    status = f"{CLAIMS}/claim/status"
    with pytest.raises(cluster.InvalidError, match=r"status\.reservedFor: Forbidden: may not be specified when"):
        connection.merge(status, {"status": {"reservedFor": [POD]}})
    claim = connection.merge(status, {"status": {"allocation": ALLOCATION, "reservedFor": [POD]}})
    assert claim["status"]["allocation"]["devices"]["results"] == [RESULT]
    other = {"devices": {"results": [{**RESULT, "device": "gpu-1"}]}}
    with pytest.raises(cluster.InvalidError, match=r"status\.allocation: .*field is immutable"):
        connection.merge(status, {"status": {"allocation": other}})
    device = {"driver": "gpu.gpupool.dev", "pool": "node-a", "device": "gpu-7"}
    with pytest.raises(cluster.InvalidError, match=r"status\.devices\[0\]: .*must be an allocated device in the claim"):
        connection.merge(status, {"status": {"devices": [device]}})
    connection.merge(status, {"status": {"devices": [{**device, "device": "gpu-0"}]}})
    freed = connection.merge(status, {"status": {"allocation": None, "reservedFor": None}})
    assert not freed.get("status")


def test_writing_the_claim_leaves_its_status_and_the_other_way_round(apiserver: Any, make_claim: Any) -> None:
    connection = apiserver.connect()
    connection.create(CLAIMS, make_claim())
    labels = {"metadata": {"labels": {"a": "b"}}, "status": {"allocation": ALLOCATION}}
    assert "status" not in connection.merge(f"{CLAIMS}/claim", labels)
    claim = connection.merge(f"{CLAIMS}/claim/status", {**labels, "metadata": {"labels": {"a": "c"}}})
    assert claim["metadata"]["labels"] == {"a": "b"}
    assert claim["status"]["allocation"]


def test_no_reservation_is_added_to_a_claim_that_goes(apiserver: Any, make_claim: Any) -> None:
    connection = apiserver.connect()
    claim = make_claim()
    claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    connection.create(CLAIMS, claim)
    connection.merge(f"{CLAIMS}/claim/status", {"status": {"allocation": ALLOCATION}})
    connection.delete(f"{CLAIMS}/claim")
    with pytest.raises(cluster.InvalidError, match="new entries may not be added while"):
        connection.merge(f"{CLAIMS}/claim/status", {"status": {"reservedFor": [POD]}})


@pytest.mark.parametrize(
    ("apiserver", "version", "label"),
    [
        (("1.33", {"DRAAdminAccess": True}), "v1beta2", "resource.k8s.io/admin-access"),
        ("1.34", "v1", "resource.kubernetes.io/admin-access"),
    ],
    indirect=["apiserver"],
)
def test_admin_access_needs_a_label_on_the_namespace(apiserver: Any, make_claim: Any, version: str, label: str) -> None:
    connection = apiserver.connect()
    claims, sent = CLAIMS.replace("/v1/", f"/{version}/"), make_claim(adminAccess=True)
    with pytest.raises(cluster.InvalidError, match=f"requires the `{label}: true` label"):
        connection.create(claims, sent)
    connection.merge("/api/v1/namespaces/default", {"metadata": {"labels": {label: "true"}}})
    assert connection.create(claims, sent)["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] is True


@pytest.mark.parametrize("apiserver", ["1.36"], indirect=True)
def test_a_list_attribute_without_its_gate_is_an_attribute_without_value(apiserver: Any, make_slice: Any) -> None:
    with pytest.raises(cluster.InvalidError, match=r"attributes\[numaNode\]: Required value"):
        apiserver.connect().create(SLICES, make_slice(attributes={"numaNode": {"ints": [0, 1]}}))


def test_a_selector_that_does_not_compile_is_refused(apiserver: Any, make_claim: Any) -> None:
    selector = {"cel": {"expression": "device.driver =="}}
    with pytest.raises(
        cluster.InvalidError, match=r"selectors\[0\]\.cel\.expression: Invalid value: .* compilation fai"
    ):
        apiserver.connect().create(CLAIMS, make_claim(selectors=[selector]))


def test_a_plugin_writes_slices_of_its_own_node_alone(apiserver: Any, make_slice: Any) -> None:
    plugin, admin = apiserver.connect("plugin-node-a"), apiserver.connect()
    plugin.create(SLICES, make_slice("own"))
    plugin.merge(f"{SLICES}/own", {"metadata": {"labels": {"a": "b"}}})
    message = "this user running on node 'node-a' may not modify resourceslices on node 'node-b'"
    with pytest.raises(cluster.ForbiddenError, match=message):
        plugin.create(SLICES, make_slice("other", "node-b"))
    everywhere = make_slice("shared")
    everywhere["spec"] |= {"allNodes": True, "nodeName": None}
    with pytest.raises(cluster.ForbiddenError, match="may not modify cluster resourceslices"):
        plugin.create(SLICES, everywhere)
    admin.create(SLICES, make_slice("other", "node-b"))
    with pytest.raises(cluster.ForbiddenError, match=message):
        plugin.delete(f"{SLICES}/other")
    plugin.delete(f"{SLICES}/own")


def test_a_plugin_reports_on_devices_and_never_allocates(apiserver: Any, make_claim: Any) -> None:
    plugin, admin = apiserver.connect("plugin-node-a"), apiserver.connect("controllers")
    admin.create(CLAIMS, make_claim())
    status = f"{CLAIMS}/claim/status"
    with pytest.raises(cluster.ForbiddenError, match="resourceclaims/binding"):
        plugin.merge(status, {"status": {"allocation": ALLOCATION}})
    foreign = {**RESULT, "driver": "other.example.com"}
    admin.merge(status, {"status": {"allocation": {"devices": {"results": [RESULT, foreign]}}}})
    reports = [{key: result[key] for key in ("driver", "pool", "device")} for result in (RESULT, foreign)]
    plugin.merge(status, {"status": {"devices": reports[:1]}})
    with pytest.raises(cluster.ForbiddenError, match=r'"resourceclaims/driver" named "other.example.com"'):
        plugin.merge(status, {"status": {"devices": reports}})
    with pytest.raises(cluster.ForbiddenError, match='cannot delete resource "resourceclaims"'):
        plugin.delete(f"{CLAIMS}/claim")


def test_a_kubelet_wipes_the_slices_of_its_node(apiserver: Any, make_slice: Any) -> None:
    admin, kubelet = apiserver.connect(), apiserver.connect("kubelet-node-a")
    for node in ("node-a", "node-b"):
        admin.create(SLICES, make_slice(f"slice-{node}", node))
    with pytest.raises(cluster.ForbiddenError, match="with nodeName field selector"):
        kubelet.list(SLICES)
    own, _ = kubelet.list(SLICES, field_selector="spec.nodeName=node-a,spec.driver=gpu.gpupool.dev")
    for item in own:
        kubelet.delete(f"{SLICES}/{item['metadata']['name']}")
    assert [item["metadata"]["name"] for item in admin.list(SLICES)[0]] == ["slice-node-b"]
