"""What every API server guarantees of objects: versions, names, deletion, ownership, paging, selection."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from typing import Any, Self

import pytest
import yaml

from dradriver import cluster

PODS = "/api/v1/namespaces/default/pods"
CONFIGS = "/api/v1/namespaces/default/configmaps"


def config(name: str = "config", **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **meta}}


def test_a_write_over_a_newer_version_conflicts(apiserver: Any) -> None:
    connection = apiserver.connect()
    first = connection.create(CONFIGS, config())
    connection.merge(f"{CONFIGS}/config", {"data": {"a": "1"}})
    with pytest.raises(cluster.ConflictError, match="the object has been modified; please apply your changes"):
        connection.replace(f"{CONFIGS}/config", {**first, "data": {"a": "2"}})
    with pytest.raises(cluster.AlreadyExistsError, match='configmaps "config" already exists'):
        connection.create(CONFIGS, config())


def test_a_write_that_changes_nothing_keeps_the_version(apiserver: Any) -> None:
    connection = apiserver.connect()
    first = connection.create(CONFIGS, config())
    assert connection.replace(f"{CONFIGS}/config", first) == first


def test_the_server_completes_metadata(apiserver: Any, make_pod: Any) -> None:
    pod = make_pod()
    pod["metadata"] = {"generateName": "worker-"}
    made = apiserver.connect().create(PODS, pod)
    assert made["metadata"]["name"].startswith("worker-")
    assert len(made["metadata"]["name"]) == len("worker-") + 5
    assert {"uid", "creationTimestamp", "resourceVersion"} <= made["metadata"].keys()
    assert made["metadata"]["namespace"] == "default"


@pytest.mark.parametrize("name", ["Upper", "a_b", ""])
def test_names_follow_the_rules(apiserver: Any, name: str) -> None:
    with pytest.raises(cluster.InvalidError, match=r"metadata.name: (Invalid|Required) value"):
        apiserver.connect().create(CONFIGS, config(name))


def test_nothing_is_created_in_a_namespace_that_does_not_exist(apiserver: Any) -> None:
    with pytest.raises(cluster.NotFoundError, match='namespaces "nowhere" not found'):
        apiserver.connect().create(CONFIGS.replace("default", "nowhere"), config())


def test_generation_counts_changes_of_the_spec_alone(apiserver: Any, make_slice: Any) -> None:
    connection = apiserver.connect()
    path = "/apis/resource.k8s.io/v1/resourceslices"
    assert connection.create(path, make_slice())["metadata"]["generation"] == 1
    assert connection.merge(f"{path}/slice", {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1
    assert connection.merge(f"{path}/slice", {"spec": {"devices": []}})["metadata"]["generation"] == 2


def test_a_finalizer_holds_an_object_until_it_is_removed(apiserver: Any) -> None:
    connection = apiserver.connect()
    connection.create(CONFIGS, config(finalizers=["example.com/hold"]))
    marked = connection.delete(f"{CONFIGS}/config")
    assert marked["metadata"]["deletionTimestamp"]
    assert connection.get(f"{CONFIGS}/config")["metadata"]["deletionTimestamp"]
    connection.merge(f"{CONFIGS}/config", {"metadata": {"finalizers": None}})
    with pytest.raises(cluster.NotFoundError):
        connection.get(f"{CONFIGS}/config")


def test_a_bound_pod_waits_for_its_kubelet(apiserver: Any, make_pod: Any) -> None:
    connection = apiserver.connect()
    connection.create(PODS, make_pod())
    connection.create(f"{PODS}/pod/binding", {"target": {"name": "node-a"}})
    assert connection.delete(f"{PODS}/pod")["metadata"]["deletionGracePeriodSeconds"] == 30
    assert connection.get(f"{PODS}/pod")["spec"]["nodeName"] == "node-a"
    apiserver.connect("kubelet-node-a").delete(f"{PODS}/pod", grace_seconds=0)
    with pytest.raises(cluster.NotFoundError):
        connection.get(f"{PODS}/pod")


def test_a_pod_is_bound_once(apiserver: Any, make_pod: Any) -> None:
    connection = apiserver.connect()
    connection.create(PODS, make_pod())
    connection.create(f"{PODS}/pod/binding", {"target": {"name": "node-a"}})
    with pytest.raises(cluster.ConflictError, match='pod pod is already assigned to node "node-a"'):
        connection.create(f"{PODS}/pod/binding", {"target": {"name": "node-b"}})
    with pytest.raises(cluster.InvalidError, match="pod updates may not change fields other than"):
        connection.merge(f"{PODS}/pod", {"spec": {"nodeName": "node-b"}})


def test_dependents_go_with_their_last_owner(apiserver: Any, make_pod: Any) -> None:
    connection = apiserver.connect()
    owners = []
    for name in ("one", "two"):
        uid = connection.create(PODS, make_pod(name))["metadata"]["uid"]
        owners.append({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid})
    connection.create(CONFIGS, config(ownerReferences=owners))
    connection.delete(f"{PODS}/one")
    assert connection.get(f"{CONFIGS}/config")
    connection.delete(f"{PODS}/two")
    with pytest.raises(cluster.NotFoundError):
        connection.get(f"{CONFIGS}/config")


def test_an_object_whose_owner_is_gone_does_not_stay(apiserver: Any) -> None:
    connection = apiserver.connect()
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": "gone"}
    connection.create(CONFIGS, config(ownerReferences=[owner]))
    with pytest.raises(cluster.NotFoundError):
        connection.get(f"{CONFIGS}/config")


def test_deletion_preconditions_are_kept(apiserver: Any) -> None:
    connection = apiserver.connect()
    made = connection.create(CONFIGS, config())
    with pytest.raises(cluster.ConflictError, match="Precondition failed"):
        connection.delete(f"{CONFIGS}/config", uid="another")
    connection.delete(f"{CONFIGS}/config", uid=made["metadata"]["uid"])


def test_lists_come_in_pages_and_by_selector(apiserver: Any) -> None:
    connection = apiserver.connect()
    for number in range(5):
        connection.create(CONFIGS, config(f"c{number}", labels={"even": str(number % 2 == 0).lower()}))
    page = connection.get(CONFIGS, {"limit": "2"})
    assert [item["metadata"]["name"] for item in page["items"]] == ["c0", "c1"]
    assert page["metadata"]["remainingItemCount"] == 3
    rest = connection.get(CONFIGS, {"continue": page["metadata"]["continue"]})
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c2", "c3", "c4"]
    for selector, names in (
        ("even=true", "c0 c2 c4"),
        ("even!=true", "c1 c3"),
        ("even in (false, maybe)", "c1 c3"),
        ("even notin (false)", "c0 c2 c4"),
        ("even,!odd", "c0 c1 c2 c3 c4"),
        ("!even", ""),
    ):
        items, _ = connection.list(CONFIGS, label_selector=selector)
        assert " ".join(item["metadata"]["name"] for item in items) == names
    items, _ = connection.list("/api/v1/configmaps", field_selector="metadata.name=c3,metadata.namespace!=other")
    assert [item["metadata"]["name"] for item in items] == ["c3"]
    with pytest.raises(cluster.InvalidError, match=r"field label not supported: data\.a"):
        connection.list(CONFIGS, field_selector="data.a=1")


def test_an_expired_page_is_gone(apiserver: Any) -> None:
    connection = apiserver.connect()
    for number in range(3):
        connection.create(CONFIGS, config(f"c{number}"))
    page = connection.get(CONFIGS, {"limit": "1"})
    connection.delete(f"{CONFIGS}/c0")
    apiserver.api_server.compact()
    with pytest.raises(cluster.GoneError, match="too old resource version"):
        connection.get(CONFIGS, {"continue": page["metadata"]["continue"]})


def test_a_dry_run_leaves_nothing(apiserver: Any) -> None:
    connection = apiserver.connect()
    apiserver.kubectl("create", "configmap", "config", "--dry-run=server")
    with pytest.raises(cluster.NotFoundError):
        connection.get(f"{CONFIGS}/config")


@pytest.mark.parametrize("body", [b"[1]", b"{", b"\xff\x00", b'"text"', b'{"metadata": 3}', b"k8s\0\x0a\x05"])
def test_a_body_that_is_no_object_is_refused_with_a_sentence(apiserver: Any, body: bytes) -> None:
    with Client(apiserver) as client:
        code, status = client.send("POST", CONFIGS, body)
    assert code in (400, 415)
    assert status["message"]


def test_too_large_a_body_is_refused_before_it_is_sent(apiserver: Any) -> None:
    with Client(apiserver) as client:
        assert client.send("POST", CONFIGS, length=3 * 1024 * 1024 + 1)[0] == 413


class Client:
    """Plain HTTPS, for what no well-behaved client sends."""

    def __init__(self, server: Any) -> None:
        token = yaml.safe_load((server.directory / "admin").read_text())["users"][0]["user"]["token"]
        context = ssl.create_default_context(cafile=str(server.authority))
        address = server.api_server.url.removeprefix("https://")
        self.connection = http.client.HTTPSConnection(address, timeout=10, context=context)
        self.headers = {"Authorization": f"Bearer {token}", "Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def send(
        self, method: str, path: str, body: bytes = b"", media_type: str = "", length: int | None = None
    ) -> tuple[int, Any]:
        extra = {"Content-Type": media_type} | ({} if length is None else {"Content-Length": str(length)})
        self.connection.request(method, path, body, {**self.headers, **extra})
        answer = self.connection.getresponse()
        return answer.status, json.load(answer)


POD = {
    "metadata": {"name": "x", "labels": {"a": "b"}, "ownerReferences": [], "finalizers": []},
    "spec": {
        "nodeName": "node-a",
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {"name": "main", "image": "i", "resources": {"limits": {"cpu": "1"}, "claims": [{"name": "c"}]}}
        ],
        "resourceClaims": [{"name": "c", "resourceClaimName": "d"}],
    },
}
EVENT = {
    "metadata": {"name": "x", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "p"},
    "source": {"component": "c"},
    "lastTimestamp": "2026-01-01T00:00:00Z",
    "count": 1,
}
NODE = {
    "metadata": {"name": "x"},
    "spec": {"unschedulable": True},
    "status": {"conditions": [{"type": "Ready", "status": "True"}], "addresses": [{"type": "a", "address": "b"}]},
}
SELECTOR = {"cel": {"expression": "device.driver == 'd'"}}
REQUEST = {"name": "r", "exactly": {"deviceClassName": "c", "selectors": [SELECTOR], "count": 1}}
CONSTRAINT = {"requests": ["r"], "matchAttribute": "d/a"}
CLAIM = {"metadata": {"name": "x"}, "spec": {"devices": {"requests": [REQUEST], "constraints": [CONSTRAINT]}}}
DEVICE = {
    "name": "gpu-0",
    "attributes": {"a": {"int": 1}},
    "capacity": {"m": {"value": "1"}},
    "taints": [{"key": "k", "effect": "NoSchedule"}],
}
SLICE = {
    "metadata": {"name": "x"},
    "spec": {"driver": "d", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1}, "devices": [DEVICE]},
}
GARBAGE = (None, 0, -1, 1.5, "", "x", True, [], [None], [1], ["x"], {}, {"x": 1}, {"x": None})


def spoiled(value: Any) -> Iterator[Any]:
    """Copies of a document with one part replaced by garbage."""
    yield from GARBAGE
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ({**value, key: other} for other in spoiled(inner))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from ([*value[:place], other, *value[place + 1 :]] for other in spoiled(inner))


@pytest.mark.parametrize(
    ("path", "document"),
    [
        (PODS, POD),
        ("/api/v1/namespaces/default/events", EVENT),
        ("/api/v1/nodes", NODE),
        ("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", CLAIM),
        ("/apis/resource.k8s.io/v1/resourceslices", SLICE),
    ],
)
def test_no_document_however_spoiled_is_an_internal_error(apiserver: Any, path: str, document: Any) -> None:
    codes = set()
    with Client(apiserver) as client:
        for number, wrong in enumerate(spoiled(document)):
            body = json.dumps(wrong).encode()
            code, answer = client.send("POST", path, body)
            codes.add(code)
            name = answer["rows"][0]["object"]["metadata"]["name"] if code == 201 else None
            patch = ("application/merge-patch+json", "application/strategic-merge-patch+json")[number % 2]
            requests = [("PATCH", f"{path}/{name or 'other'}", body, patch)]
            requests += [("PATCH", f"{path}/other?fieldManager=m", body, "application/apply-patch+yaml")]
            if name:
                requests += [("GET", path, b"", "")]
                requests += [("DELETE", f"{path}/{name}", b'{"gracePeriodSeconds": 0}', "")]
            for method, where, content, media_type in requests:
                code, answer = client.send(method, where, content, media_type)
                assert code != 500, (method, wrong, answer)
            client.send("DELETE", f"{path}/other", b'{"gracePeriodSeconds": 0}')
    assert 500 not in codes
    assert {400, 422} <= codes


@pytest.mark.parametrize(
    "query", ["limit=x", "limit=-1", "watch=true&resourceVersion=x", "continue=x", "continue=e30="]
)
def test_a_parameter_that_is_none_is_refused(apiserver: Any, query: str) -> None:
    with Client(apiserver) as client:
        code, answer = client.send("GET", f"{CONFIGS}?{query}")
    assert code == 400, answer


def test_no_finalizer_is_added_to_an_object_that_goes(apiserver: Any) -> None:
    connection = apiserver.connect()
    connection.create(CONFIGS, config(finalizers=["example.com/hold"]))
    connection.delete(f"{CONFIGS}/config")
    with pytest.raises(cluster.InvalidError, match="no new finalizers can be added if the object is being deleted"):
        connection.merge(f"{CONFIGS}/config", {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}})


def test_deletion_is_asked_for_and_never_written(apiserver: Any) -> None:
    connection = apiserver.connect()
    times = {"deletionTimestamp": "2026-01-01T00:00:00Z", "creationTimestamp": "2026-01-01T00:00:00Z"}
    made = connection.create(CONFIGS, config(**times))
    assert "deletionTimestamp" not in made["metadata"]
    assert connection.merge(f"{CONFIGS}/config", {"metadata": times}) == made


def test_a_collection_is_deleted_with_dependents_inside_it(apiserver: Any) -> None:
    connection = apiserver.connect()
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}
    owner["uid"] = connection.create(CONFIGS, config("a"))["metadata"]["uid"]
    connection.create(CONFIGS, config("b", ownerReferences=[owner]))
    with Client(apiserver) as client:
        assert client.send("DELETE", CONFIGS)[0] == 200
    assert connection.list(CONFIGS)[0] == []


def test_what_yaml_has_beyond_json_is_kept_as_text(apiserver: Any) -> None:
    pod = b"metadata: {name: dated}\nspec: {containers: [{name: main}], hostname: 2026-01-01}"
    with Client(apiserver) as client:
        assert client.send("POST", PODS, pod)[0] == 201
    assert apiserver.connect().get(f"{PODS}/dated")["spec"]["hostname"] == "2026-01-01"
