"""What people type: real kubectl against the server."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

CLAIM = """
apiVersion: resource.k8s.io/{version}
kind: ResourceClaim
metadata: {{name: training, namespace: default, labels: {{team: a}}}}
spec:
  devices:
    requests:
    - name: gpu
      {request}
"""
V1_CLAIM = CLAIM.format(version="v1", request="exactly: {deviceClassName: gpu.gpupool.dev, count: 2}")
POD = """
apiVersion: v1
kind: Pod
metadata: {name: trainer, namespace: default, annotations: {step: "1", note: here}}
spec:
  containers: [{name: main, image: "busybox:1"}]
"""


def json_of(server: Any, *arguments: str) -> Any:
    return json.loads(server.kubectl("get", *arguments, "-o", "json").stdout)


def test_version_and_resources_are_discovered(apiserver: Any) -> None:
    assert "Server Version: v1.37.0" in apiserver.kubectl("version").stdout
    assert apiserver.kubectl("api-versions").stdout == "coordination.k8s.io/v1\nresource.k8s.io/v1\nv1\n"
    assert apiserver.kubectl("api-resources", "--namespaced=false", "-o", "name").stdout.split() == [
        "namespaces",
        "nodes",
        "deviceclasses.resource.k8s.io",
        "resourceslices.resource.k8s.io",
    ]


def test_a_claim_is_applied_shown_and_deleted(apiserver: Any) -> None:
    assert apiserver.kubectl("apply", "-f", "-", stdin=V1_CLAIM).stdout.endswith("training created\n")
    header, row = apiserver.kubectl("get", "resourceclaims", "-A").stdout.splitlines()
    assert header.split() == ["NAMESPACE", "NAME", "STATE", "AGE"]
    assert row.split()[:3] == ["default", "training", "pending"]
    assert apiserver.kubectl("get", "resourceclaims", "-l", "team=a,!gone", "-o", "name").stdout == (
        "resourceclaim.resource.k8s.io/training\n"
    )
    request = json_of(apiserver, "resourceclaim", "training")["spec"]["devices"]["requests"][0]
    assert request["exactly"] == {"deviceClassName": "gpu.gpupool.dev", "count": 2, "allocationMode": "ExactCount"}
    assert "Allocation Mode:" in apiserver.kubectl("describe", "resourceclaim", "training").stdout
    apiserver.kubectl("delete", "resourceclaim", "training")
    assert "No resources found" in apiserver.kubectl("get", "resourceclaims").stderr


def test_a_node_is_described(apiserver: Any) -> None:
    apiserver.connect().create("/api/v1/nodes", {"metadata": {"name": "node-a"}})
    lease = {"metadata": {"name": "node-a"}, "spec": {"holderIdentity": "node-a"}}
    apiserver.connect().create("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", lease)
    described = apiserver.kubectl("describe", "node", "node-a")
    assert "HolderIdentity:  node-a" in described.stdout
    assert not described.stderr


def test_a_misspelt_field_is_reported(apiserver: Any) -> None:
    refused = apiserver.kubectl("apply", "-f", "-", stdin=V1_CLAIM.replace("count", "cuont"), fails=True)
    assert 'unknown field "spec.devices.requests[0].exactly.cuont"' in refused.stderr
    warned = apiserver.kubectl("apply", "--validate=warn", "-f", "-", stdin=V1_CLAIM.replace("count", "cuont"))
    assert 'Warning: unknown field "spec.devices.requests[0].exactly.cuont"' in warned.stderr


def test_the_spec_of_a_claim_is_immutable(apiserver: Any) -> None:
    apiserver.kubectl("create", "-f", "-", stdin=V1_CLAIM)
    refused = apiserver.kubectl("apply", "-f", "-", stdin=V1_CLAIM.replace("count: 2", "count: 3"), fails=True)
    assert 'The ResourceClaim "training" is invalid: spec: Invalid value: ' in refused.stderr
    assert "field is immutable" in refused.stderr


def test_too_many_devices_are_refused_with_the_field(apiserver: Any) -> None:
    requests = "\n    - ".join(f"{{name: r{n}, exactly: {{deviceClassName: c}}}}" for n in range(33))
    manifest = V1_CLAIM.partition("    - name")[0] + "    - " + requests
    refused = apiserver.kubectl("create", "-f", "-", stdin=manifest, fails=True)
    assert 'The ResourceClaim "training" is invalid: spec.devices.requests: Too many' in refused.stderr


def test_apply_removes_what_the_manifest_no_longer_says(apiserver: Any) -> None:
    apiserver.kubectl("apply", "-f", "-", stdin=POD)
    changed = POD.replace(", note: here", "").replace('"1"', '"2"').replace("busybox:1", "busybox:2")
    assert "busybox:2" in subprocess_diff(apiserver, changed)
    assert apiserver.kubectl("apply", "-f", "-", stdin=changed).stdout == "pod/trainer configured\n"
    pod = json_of(apiserver, "pod", "trainer")
    assert pod["metadata"]["annotations"]["step"] == "2"
    assert "note" not in pod["metadata"]["annotations"]
    assert pod["spec"]["containers"][0]["image"] == "busybox:2"
    assert apiserver.kubectl("apply", "-f", "-", stdin=changed).stdout == "pod/trainer unchanged\n"


def subprocess_diff(server: Any, manifest: str) -> str:
    return str(server.kubectl("diff", "-f", "-", stdin=manifest, fails=True).stdout)  # 1: there are differences


def test_server_side_apply_keeps_what_another_manager_owns(apiserver: Any) -> None:
    manifest = '{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "shared"}}, "data": {data}}}'
    for manager, data in (("one", '{"a": "1", "b": "1"}'), ("two", '{"b": "1", "c": "1"}'), ("one", '{"a": "2"}')):
        stdin = manifest.format(data=data)
        apiserver.kubectl("apply", "--server-side", f"--field-manager={manager}", "-f", "-", stdin=stdin)
    assert json_of(apiserver, "configmap", "shared")["data"] == {"a": "2", "b": "1", "c": "1"}
    apiserver.kubectl(
        "apply", "--server-side", "--field-manager=two", "-f", "-", stdin=manifest.format(data='{"c": "1"}')
    )
    assert json_of(apiserver, "configmap", "shared")["data"] == {"a": "2", "c": "1"}


def test_server_side_apply_merges_keyed_lists(apiserver: Any) -> None:
    pod = json.loads('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}')

    def apply(manager: str, *conditions: str) -> None:
        pod["spec"]["containers"] = [{"name": "main", "image": "i"}]
        pod["spec"]["volumes"] = [{"name": name, "emptyDir": {}} for name in conditions]
        arguments = ("apply", "--server-side", f"--field-manager={manager}", "--force-conflicts", "-f", "-")
        apiserver.kubectl(*arguments, stdin=json.dumps(pod))

    apply("one", "a", "b")
    # Volumes of a pod are fixed, so only an apply that changes nothing passes.
    apply("two", "b")
    apply("two", "a")
    assert [volume["name"] for volume in json_of(apiserver, "pod", "p")["spec"]["volumes"]] == ["a", "b"]


def test_labels_annotations_and_patches(apiserver: Any) -> None:
    apiserver.kubectl("create", "-f", "-", stdin=POD)
    apiserver.kubectl("label", "pod", "trainer", "tier=gold")
    apiserver.kubectl("annotate", "pod", "trainer", "step-")
    apiserver.kubectl("patch", "pod", "trainer", "-p", '{"spec":{"containers":[{"name":"main","image":"x"}]}}')
    operations = '[{"op": "add", "path": "/metadata/labels/a~1b", "value": "c"}]'
    apiserver.kubectl("patch", "pod", "trainer", "--type=json", "-p", operations)
    pod = json_of(apiserver, "pod", "trainer")
    assert pod["metadata"]["labels"] == {"tier": "gold", "a/b": "c"}
    assert pod["metadata"]["annotations"] == {"note": "here"}
    assert pod["spec"]["containers"] == [{"name": "main", "image": "x"}]


def test_explain_shows_fields_of_the_served_version(apiserver: Any) -> None:
    shown = apiserver.kubectl("explain", "resourceclaim.spec.devices.requests").stdout
    assert "VERSION:    v1\n" in shown
    assert "firstAvailable\t<[]DeviceSubRequest>" in shown


@pytest.mark.parametrize("apiserver", ["1.32"], indirect=True)
def test_an_old_server_serves_v1beta1_alone(apiserver: Any) -> None:
    assert apiserver.kubectl("api-versions").stdout == "coordination.k8s.io/v1\nresource.k8s.io/v1beta1\nv1\n"
    flat = "deviceClassName: gpu.gpupool.dev"
    apiserver.kubectl("apply", "-f", "-", stdin=CLAIM.format(version="v1beta1", request=flat))
    claim = json_of(apiserver, "resourceclaim", "training")
    assert claim["apiVersion"] == "resource.k8s.io/v1beta1"
    assert claim["spec"]["devices"]["requests"][0]["deviceClassName"] == "gpu.gpupool.dev"
    assert "firstAvailable" not in apiserver.kubectl("explain", "resourceclaim.spec.devices.requests").stdout
    refused = apiserver.kubectl("apply", "-f", "-", stdin=V1_CLAIM, fails=True)
    assert 'no matches for kind "ResourceClaim" in version "resource.k8s.io/v1"' in refused.stderr


def test_imperative_create_and_namespace_deletion(apiserver: Any) -> None:
    apiserver.kubectl("create", "namespace", "team-a")
    apiserver.kubectl("create", "configmap", "-n", "team-a", "settings", "--from-literal=a=b")
    apiserver.kubectl("create", "quota", "-n", "team-a", "limit", "--hard=count/resourceclaims.resource.k8s.io=2")
    assert json_of(apiserver, "-n", "team-a", "configmap", "settings")["data"] == {"a": "b"}
    quota = json_of(apiserver, "-n", "team-a", "resourcequota", "limit")
    assert quota["spec"]["hard"] == {"count/resourceclaims.resource.k8s.io": "2"}
    apiserver.kubectl("delete", "namespace", "team-a", "--timeout=10s")
    missing = apiserver.kubectl("create", "configmap", "-n", "team-a", "settings", fails=True)
    assert 'namespaces "team-a" not found' in missing.stderr


def test_a_manifest_with_its_namespace_is_deleted_as_a_whole(apiserver: Any) -> None:
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: story}\n---\n"
    manifest = namespace + POD.replace("default", "story") + "---" + V1_CLAIM.replace("default", "story")
    apiserver.kubectl("apply", "-f", "-", stdin=manifest)
    deleted = apiserver.kubectl("delete", "-f", "-", "--timeout=10s", stdin=manifest)
    assert len(deleted.stdout.splitlines()) == 3


def test_what_an_identity_may_do(apiserver: Any) -> None:
    assert apiserver.kubectl("auth", "can-i", "list", "pods", identity="reader").stdout == "yes\n"
    assert apiserver.kubectl("auth", "can-i", "delete", "pods", identity="reader", fails=True).stdout == "no\n"
    refused = apiserver.kubectl("get", "resourceslices", identity="reader", fails=True)
    assert (
        "Error from server (Forbidden): resourceslices.resource.k8s.io is forbidden: "
        'User "reader" cannot list resource "resourceslices" in API group "resource.k8s.io" at the cluster scope'
    ) in refused.stderr
    refused = apiserver.kubectl("--as=stranger", "get", "pods", fails=True)
    assert 'User "stranger" cannot list resource "pods" in API group "" in the namespace "default"' in refused.stderr
    assert "must be logged in" in apiserver.kubectl("--token=wrong", "get", "pods", fails=True).stderr


def test_a_watch_prints_rows_as_they_change(apiserver: Any) -> None:
    apiserver.kubectl("create", "-f", "-", stdin=V1_CLAIM)
    command = [*kubectl_of(apiserver), "get", "resourceclaims", "-w", "--output-watch-events"]
    with subprocess.Popen(
        command, env=apiserver.environment(), stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL
    ) as watching:
        try:
            assert watching.stdout is not None
            assert watching.stdout.readline().split() == ["EVENT", "NAME", "STATE", "AGE"]
            assert watching.stdout.readline().split()[:3] == ["ADDED", "training", "pending"]
            apiserver.kubectl("delete", "resourceclaim", "training")
            assert watching.stdout.readline().split()[:3] == ["DELETED", "training", "pending"]
        finally:
            watching.terminate()


def kubectl_of(server: Any) -> list[str]:
    done = server.kubectl("version", "--client")
    return [done.args[0]]


def test_wait_sees_a_condition_and_a_deletion(apiserver: Any) -> None:
    apiserver.kubectl("create", "-f", "-", stdin=POD)
    status = '{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}'
    apiserver.kubectl("patch", "pod", "trainer", "--subresource=status", "-p", status)
    apiserver.kubectl("wait", "--for=condition=Ready", "pod/trainer", "--timeout=5s")
    apiserver.kubectl("delete", "pod", "trainer", "--wait=false")
    apiserver.kubectl("wait", "--for=delete", "pod/trainer", "--timeout=5s")


def test_events_are_listed_by_object(apiserver: Any) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "trainer.1", "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "trainer", "namespace": "default"},
        "type": "Warning",
        "reason": "FailedScheduling",
        "message": "0/1 nodes are available",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    apiserver.kubectl("create", "-f", "-", stdin=json.dumps(event))
    header, row = apiserver.kubectl("get", "events").stdout.splitlines()
    assert header.split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert row.split(maxsplit=4)[1:] == ["Warning", "FailedScheduling", "pod/trainer", "0/1 nodes are available"]
    assert "FailedScheduling" in apiserver.kubectl("events", "--for", "pod/trainer").stdout
    assert "No events" in apiserver.kubectl("events", "--for", "pod/other").stderr
