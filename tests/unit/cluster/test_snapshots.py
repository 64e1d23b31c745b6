"""Snapshots hold what a file or a cluster holds, in any version, and say what they lack."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dradriver import api, cluster

MIXED = """
apiVersion: v1
kind: List
metadata: {resourceVersion: "77"}
items:
- apiVersion: resource.k8s.io/v1
  kind: ResourceSlice
  metadata: {name: s1}
  spec:
    driver: gpu.gpupool.dev
    nodeName: n1
    pool: {name: n1, generation: 1, resourceSliceCount: 1}
    devices:
    - name: gpu-0
      attributes:
        resource.kubernetes.io/pciBusID: {string: 0000:01:00.0}
        uuid: {string: GPU-1}
- apiVersion: resource.k8s.io/v1beta1
  kind: ResourceClaim
  metadata: {name: old, namespace: team, creationTimestamp: 2026-01-02T03:04:05Z}
  spec: {devices: {requests: [{name: gpu, deviceClassName: gpu.gpupool.dev}]}}
- {apiVersion: v1, kind: Node, metadata: {name: n1, labels: {zone: "1"}}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: other}}
- {apiVersion: metrics.example/v1, kind: Node, metadata: {name: of-another-group}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClassList
items:
- metadata: {name: gpu.gpupool.dev}
  spec: {}
---
"""


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(content: str | dict[str, Any]) -> Path:
        path = tmp_path / "cluster.yaml"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def test_a_file_may_mix_lists_documents_versions_and_other_kinds(write: Any) -> None:
    snapshot = cluster.load_snapshot(write(MIXED))
    assert [value.metadata.name for value in snapshot.slices] == ["s1"]
    assert [(value.metadata.namespace, value.metadata.name) for value in snapshot.claims] == [("team", "old")]
    assert [value.metadata.name for value in snapshot.classes] == ["gpu.gpupool.dev"]
    assert [node["metadata"]["name"] for node in snapshot.nodes] == ["n1"]
    assert snapshot.resource_version == "77"


def test_yaml_is_read_as_a_server_reads_it(write: Any) -> None:
    snapshot = cluster.load_snapshot(write(MIXED))
    values = [str(value) for value in snapshot.slices[0].devices[0].attributes.values()]
    assert any("0000:01:00.0" in value for value in values)
    assert snapshot.claims[0].metadata.creation_timestamp == "2026-01-02T03:04:05Z"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("", None),
        ("-12", -12),
        ("1.5e3", 1500.0),
        ("007", "007"),
        ("0x1f", "0x1f"),
        ("12:30:45", "12:30:45"),
        ("2026-01-02", "2026-01-02"),
        ("'7'", "7"),
        ("!!str 7", "7"),
        ("[a, &x {b: 1}, *x, {<<: *x, c: 2, b: 3}]", ["a", {"b": 1}, {"b": 1}, {"b": 3, "c": 2}]),
    ],
)
def test_scalars_are_those_of_json(write: Any, text: str, value: object) -> None:
    pod = cluster.load_snapshot(write(f"kind: Pod\nmetadata: {{name: p}}\n1: {text}\n")).pods[0]
    assert pod["1"] == value
    assert type(pod["1"]) is type(value)


def test_an_object_without_a_namespace_is_in_default(write: Any) -> None:
    assert cluster.load_snapshot(write(MIXED)).pods[0]["metadata"]["namespace"] == "default"


def test_json_and_standard_input_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    content = {"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "n"}}]}
    stream = io.TextIOWrapper(io.BytesIO(b" " + json.dumps(content).encode()))
    monkeypatch.setattr("sys.stdin", stream)
    assert [node["kind"] for node in cluster.load_snapshot(Path("-")).nodes] == ["Node"]


def test_an_empty_list_is_an_empty_cluster(write: Any) -> None:
    assert cluster.load_snapshot(write("{kind: List, apiVersion: v1, items: []}")).slices == ()


def test_what_the_file_does_not_say_is_assumed(write: Any) -> None:
    snapshot = cluster.load_snapshot(write(MIXED))
    assert snapshot.kubernetes.minor == 37
    assert snapshot.assumed[0].startswith("Kubernetes 1.37 with its default feature gates: ")


def test_snapshot_info_says_version_gates_time_and_what_is_missing(write: Any) -> None:
    info = {
        "kind": "SnapshotInfo",
        "apiVersion": "gpupool.dev/v1alpha1",
        "serverVersion": "v1.34.2",
        "featureGates": {"DRAPartitionableDevices": True},
        "takenAt": "2026-01-02T03:04:05Z",
        "missing": {"Event": "forbidden"},
    }
    path = write({"kind": "List", "apiVersion": "v1", "items": [info]})
    snapshot = cluster.load_snapshot(path)
    assert (snapshot.kubernetes.minor, snapshot.kubernetes.enabled("DRAPartitionableDevices")) == (34, True)
    assert (snapshot.taken_at, snapshot.missing) == ("2026-01-02T03:04:05Z", {"Event": "forbidden"})
    wanted = api.Kubernetes.release("1.36")
    assert cluster.load_snapshot(path, wanted).kubernetes == wanted


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", " is empty: expected Kubernetes objects"),
        ("# nothing\n---\n", " is empty"),
        ("a: [1", " is not YAML: "),
        ('{"kind": "List", "items": [}', " is not JSON: "),
        ("[[" * 5000, " is not YAML: "),
        ("hello", " is 'hello', expected a Kubernetes object with apiVersion and kind"),
        ("{kind: List, items: 7}", ": items of the List is 7, expected a list"),
        ("{kind: List, items: [" * 9 + "]}" * 9, "Lists are nested more than 3 deep"),
        ("&a {kind: List, items: [*a]}", "alias 'a' has no anchor before it, or stands inside it"),
        ("kind: !!binary aGk=", "tag tag:yaml.org,2002:binary has no meaning"),
        ("? [a]\n: b", "a key must be text"),
        ("{<<: 7}", "only mappings can be merged"),
        ("{kind: List, items: [7]}", ": items[0] is 7, expected a Kubernetes object"),
        ("{kind: Deployment, metadata: {name: d}}", " holds only Deployment: expected some of ResourceSlice, "),
        ("{kind: List, items: [{kind: Pod}]}", ": items[0] (Pod): metadata.name is missing: give it one"),
        ("{kind: Pod, metadata: {name: p}}\n---\n{kind: Pod, metadata: {name: p}}", "document 2 (Pod default/p) is in"),
        ("{kind: ResourceClaim, metadata: {name: c}}", "(ResourceClaim default/c): apiVersion: "),
        ("{kind: SnapshotInfo, featureGates: {A: maybe}}", "(SnapshotInfo): featureGates is {'A': 'maybe'}"),
        ("{kind: SnapshotInfo, featureGates: {NoSuch: true}}", "(SnapshotInfo): feature gate 'NoSuch'"),
        ("{kind: SnapshotInfo, serverVersion: v1.30.1}", "(SnapshotInfo): the server is Kubernetes v1.30.1"),
    ],
)
def test_a_malformed_file_is_named_with_place_and_remedy(write: Any, content: str, message: str) -> None:
    path = write(content)
    with pytest.raises(cluster.SnapshotError) as caught:
        cluster.load_snapshot(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_a_malformed_object_is_named_with_its_path(write: Any) -> None:
    path = write(MIXED.replace("nodeName: n1", "nodeName: [n1]"))
    with pytest.raises(cluster.SnapshotError) as caught:
        cluster.load_snapshot(path)
    assert str(caught.value).startswith(f"{path}: document 1, items[0] (ResourceSlice s1): spec.nodeName: ")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(cluster.SnapshotError, match=r"absent cannot be read: No such file or directory"):
        cluster.load_snapshot(tmp_path / "absent")


SERVED = {
    "/version": {"gitVersion": "v1.34.2"},
    "/apis/resource.k8s.io": {"versions": [{"version": "v1"}, {"version": "v1alpha3"}]},
}


def serve(server: Any, lists: dict[str, Any]) -> None:
    """Answers discovery as 1.34; `lists` gives items, or a status, by path; everything else is an empty list."""

    def script(asked: Any) -> None:
        answer = lists.get(asked.path, [])
        if asked.path in SERVED:
            asked.reply(SERVED[asked.path])
        elif isinstance(answer, int):
            asked.refuse(answer, message=f"not {asked.path}")
        else:
            group_version = asked.path.removeprefix("/apis/").removeprefix("/api/").rpartition("/")[0]
            kinds = {
                "pods": "Pod",
                "resourceslices": "ResourceSlice",
                "resourceclaims": "ResourceClaim",
                "devicetaintrules": "DeviceTaintRule",
            }
            kind = kinds.get(asked.path.rpartition("/")[2], "Thing")
            metadata = {"resourceVersion": "41"}
            asked.reply({"kind": f"{kind}List", "apiVersion": group_version, "metadata": metadata, "items": answer})

    server.script = script


def test_a_cluster_is_read_kind_by_kind(server: Any, connection: cluster.Connection) -> None:
    claim = {"metadata": {"name": "c", "namespace": "team"}, "spec": {}}
    serve(server, {"/api/v1/pods": [{"metadata": {"name": "p"}}], "/apis/resource.k8s.io/v1/resourceclaims": [claim]})
    snapshot = cluster.take_snapshot(connection, now=lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert snapshot.kubernetes.minor == 34
    assert [pod["kind"] for pod in snapshot.pods] == ["Pod"]
    assert [value.metadata.name for value in snapshot.claims] == ["c"]
    assert (snapshot.resource_version, snapshot.taken_at) == ("41", "2026-01-02T03:04:05Z")
    assert snapshot.missing == {}
    assert snapshot.assumed == ("Kubernetes 1.34 with its default feature gates",)
    asked = {asked.path: asked.query for asked in server.asked}
    assert asked["/api/v1/events"]["fieldSelector"] == "type=Warning"


def test_a_kind_that_may_not_be_read_is_missing_with_the_reason(server: Any, connection: cluster.Connection) -> None:
    rules = "/apis/resource.k8s.io/v1/devicetaintrules"
    serve(server, {"/api/v1/nodes": 403, "/api/v1/resourcequotas": 404, rules: 404})
    missing = cluster.take_snapshot(connection).missing
    assert sorted(missing) == ["Node", "ResourceQuota"]
    assert missing["Node"].startswith("not /api/v1/nodes (GET /api/v1/nodes on ")


def test_taint_rules_are_read_in_the_version_that_has_them(server: Any, connection: cluster.Connection) -> None:
    rule = {"metadata": {"name": "r"}, "spec": {"taint": {"key": "k", "effect": "NoSchedule"}}}
    path = "/apis/resource.k8s.io/{}/devicetaintrules"
    serve(server, {path.format("v1"): 404, path.format("v1alpha3"): [rule]})
    assert [rule.metadata.name for rule in cluster.take_snapshot(connection).taint_rules] == ["r"]


def test_an_object_that_cannot_be_read_makes_its_kind_missing(server: Any, connection: cluster.Connection) -> None:
    broken = {"metadata": {"name": "odd"}, "spec": {"driver": 7}}
    serve(server, {"/apis/resource.k8s.io/v1/resourceslices": [broken]})
    missing = cluster.take_snapshot(connection).missing
    assert missing["ResourceSlice"].startswith("1 of 1 cannot be read; the first: the server (ResourceSlice odd): spec")


def test_a_view_may_read_few_kinds(server: Any, connection: cluster.Connection) -> None:
    serve(server, {})
    cluster.take_snapshot(connection, kinds=("ResourceSlice",))
    assert {asked.path for asked in server.asked} == {
        *SERVED,
        "/apis/resource.k8s.io/v1/resourceslices",
    }


def test_a_server_in_trouble_is_an_error_not_a_missing_kind(server: Any, connection: cluster.Connection) -> None:
    serve(server, {"/api/v1/pods": 500})
    with pytest.raises(cluster.ClusterError, match="not /api/v1/pods"):
        cluster.take_snapshot(connection)
