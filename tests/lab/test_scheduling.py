"""Pods bound to nodes, and claims allocated on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

Ask = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("scheduler")


@pytest.fixture
def nodes(objects: Any) -> None:
    """Two nodes of two devices each, and a class for them."""
    for name in ("node-a", "node-b"):
        objects.connection.create("/api/v1/nodes", {"metadata": {"name": name, "labels": {"name": name}}})
        objects.add_slice(name)
    objects.add_class()


def node_of(objects: Any, pod: str) -> str:
    return str((objects.pod(pod) or {"spec": {}})["spec"].get("nodeName", ""))


def change_node(objects: Any, name: str, **spec: Any) -> None:
    objects.connection.merge(f"/api/v1/nodes/{name}", {"spec": spec})


@pytest.mark.usefixtures("nodes")
def test_a_pod_without_claims_is_bound(objects: Any, eventually: Ask) -> None:
    objects.add_pod("plain")
    eventually(lambda: node_of(objects, "plain"))


@pytest.mark.usefixtures("nodes")
def test_a_claim_is_allocated_reserved_and_protected_before_its_pod_is_bound(objects: Any, eventually: Ask) -> None:
    objects.add_claim("gpus", objects.wanted(2))
    pod = objects.add_pod("trainer", "gpus")
    node = eventually(lambda: node_of(objects, "trainer"))
    claim = objects.claim("gpus")
    assert objects.allocated("gpus") == [f"{node}/gpu-0", f"{node}/gpu-1"]
    assert claim["status"]["reservedFor"] == [{"resource": "pods", "name": "trainer", "uid": pod["metadata"]["uid"]}]
    assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]


@pytest.mark.usefixtures("nodes")
def test_several_claims_of_a_pod_are_allocated_on_one_node(objects: Any, eventually: Ask) -> None:
    objects.add_claim("left")
    objects.add_claim("right")
    objects.add_pod("trainer", "left", "right")
    node = eventually(lambda: node_of(objects, "trainer"))
    devices = objects.allocated("left") + objects.allocated("right")
    assert sorted(devices) == [f"{node}/gpu-0", f"{node}/gpu-1"]


@pytest.mark.usefixtures("nodes")
def test_pods_are_served_in_the_order_of_their_creation(objects: Any, eventually: Ask) -> None:
    for number in range(6):
        objects.add_claim(f"c{number}")
        objects.add_pod(f"p{number}", f"c{number}")
    eventually(lambda: objects.unschedulable("p5"))
    assert [bool(node_of(objects, f"p{number}")) for number in range(6)] == [True] * 4 + [False] * 2


@pytest.mark.usefixtures("nodes")
def test_a_node_selector_is_kept_to(objects: Any, eventually: Ask) -> None:
    objects.add_claim("gpus")
    objects.add_pod("trainer", "gpus", nodeSelector={"name": "node-b"})
    assert eventually(lambda: node_of(objects, "trainer")) == "node-b"
    objects.add_pod("nowhere", nodeSelector={"name": "node-c"})
    message = eventually(lambda: objects.unschedulable("nowhere"))
    assert message == "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."


@pytest.mark.usefixtures("nodes")
def test_a_cordoned_node_and_a_tainted_node_are_left_out(objects: Any, eventually: Ask) -> None:
    change_node(objects, "node-a", unschedulable=True)
    change_node(objects, "node-b", taints=[{"key": "gpu", "value": "only", "effect": "NoSchedule"}])
    objects.add_pod("plain")
    message = eventually(lambda: objects.unschedulable("plain"))
    assert message == (
        "0/2 nodes are available: 1 node(s) had untolerated taint {gpu: only}, 1 node(s) were unschedulable."
    )
    objects.add_pod("tolerant", tolerations=[{"key": "gpu", "operator": "Exists"}])
    assert eventually(lambda: node_of(objects, "tolerant")) == "node-b"
    change_node(objects, "node-a", unschedulable=False)
    assert eventually(lambda: node_of(objects, "plain")) == "node-a"


@pytest.mark.usefixtures("nodes")
def test_a_shared_claim_ties_its_pods_to_one_node(objects: Any, eventually: Ask) -> None:
    objects.add_claim("shared")
    objects.add_pod("first", "shared")
    node = eventually(lambda: node_of(objects, "first"))
    other = "node-b" if node == "node-a" else "node-a"
    objects.add_pod("second", "shared")
    assert eventually(lambda: node_of(objects, "second")) == node
    assert len(objects.claim("shared")["status"]["reservedFor"]) == 2
    objects.add_pod("third", "shared", nodeSelector={"name": other})
    message = eventually(lambda: objects.unschedulable("third"))
    assert "1 resourceclaim not available on the node" in message


@pytest.mark.usefixtures("nodes")
def test_what_keeps_a_pod_waiting_is_said_once_for_each_message(objects: Any, eventually: Ask) -> None:
    objects.add_claim("gpus", objects.wanted(3))
    objects.add_pod("trainer", "gpus")
    first = eventually(lambda: objects.unschedulable("trainer"))
    assert first == "0/2 nodes are available: 2 cannot allocate all claims."
    for number in range(3):  # occasions to say it again
        objects.add_pod(f"plain-{number}")
        eventually(lambda number=number: node_of(objects, f"plain-{number}"))
    assert objects.events("trainer", "FailedScheduling") == [first]
    change_node(objects, "node-a", unschedulable=True)
    eventually(lambda: objects.unschedulable("trainer") != first)
    assert len(objects.events("trainer", "FailedScheduling")) == 2


def test_a_pod_runs_once_its_class_node_and_slice_have_come(objects: Any, eventually: Ask) -> None:
    objects.add_claim("gpus")
    objects.add_pod("trainer", "gpus")
    assert eventually(lambda: objects.unschedulable("trainer")) == "0/0 nodes are available: there are none."
    objects.connection.create("/api/v1/nodes", {"metadata": {"name": "node-a"}})
    eventually(lambda: "gpu.gpupool.dev" in objects.unschedulable("trainer"))
    objects.add_class()
    eventually(lambda: "cannot allocate all claims" in objects.unschedulable("trainer"))
    objects.add_slice("node-a")
    eventually(lambda: node_of(objects, "trainer"))


@pytest.mark.usefixtures("nodes")
def test_a_pod_waits_in_silence_for_claims_that_do_not_exist(objects: Any, eventually: Ask) -> None:
    objects.add_pod("trainer", "gpus")
    objects.add_pod("plain")
    eventually(lambda: node_of(objects, "plain"))
    assert not objects.unschedulable("trainer")
    objects.add_claim("gpus")
    eventually(lambda: node_of(objects, "trainer"))


@pytest.mark.usefixtures("nodes")
def test_a_gated_pod_is_not_looked_at(objects: Any, eventually: Ask) -> None:
    objects.add_pod("gated", schedulingGates=[{"name": "hold"}])
    objects.add_pod("plain")
    eventually(lambda: node_of(objects, "plain"))
    assert not node_of(objects, "gated")
    objects.connection.merge(f"{objects.pods}/gated", {"spec": {"schedulingGates": []}})
    eventually(lambda: node_of(objects, "gated"))


@pytest.mark.usefixtures("nodes")
def test_an_error_in_a_selector_is_said_in_the_allocators_words(objects: Any, eventually: Ask) -> None:
    spec = objects.wanted()
    expression = "device.attributes['gpu.gpupool.dev'].missing == 'x'"
    spec["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": expression}}]
    objects.add_claim("gpus", spec)
    objects.add_pod("trainer", "gpus")
    message = eventually(lambda: objects.unschedulable("trainer"))
    assert message.startswith("running Filter plugins: claim default/gpus: selector #0")


@pytest.mark.usefixtures("nodes")
def test_an_allocation_that_nobody_uses_gives_way(objects: Any, eventually: Ask) -> None:
    """A claim that was allocated for a pod which then could not be bound would else tie it to a full node for good."""
    objects.add_claim("stray")
    objects.add_pod("first", "stray", nodeSelector={"name": "node-a"})
    eventually(lambda: node_of(objects, "first"))
    objects.connection.delete(f"{objects.pods}/first", grace_seconds=0)
    objects.connection.merge(f"{objects.claims}/stray/status", {"status": {"reservedFor": None}})
    assert objects.allocated("stray") == ["node-a/gpu-0"]
    objects.add_pod("second", "stray", nodeSelector={"name": "node-b"})
    assert eventually(lambda: node_of(objects, "second")) == "node-b"
    assert objects.allocated("stray") == ["node-b/gpu-0"]


@pytest.mark.usefixtures("controller")
def test_fifty_pods_at_once_get_a_device_each(objects: Any, eventually: Ask) -> None:
    for name in ("node-a", "node-b"):
        objects.connection.create("/api/v1/nodes", {"metadata": {"name": name}})
        objects.add_slice(name, devices=20)
    objects.add_class()
    objects.add_template("gpu")
    for number in range(50):
        objects.add_pod(f"pod-{number}", templates=["gpu"])

    def bound() -> int:
        pods, _ = objects.connection.list(objects.pods)
        return sum(bool(pod["spec"].get("nodeName")) for pod in pods)

    eventually(lambda: bound() == 40, seconds=30)
    claims, _ = objects.connection.list(objects.claims)
    devices = Counter(device for claim in claims for device in objects.allocated(claim["metadata"]["name"]))
    assert len(devices) == 40
    assert set(devices.values()) == {1}
