"""What a node's kubelet does with plugins, pods and slices, against a driver that does as it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Ask = Callable[..., Any]
OTHER = "other.example.com"
PREPARE, UNPREPARE = "NodePrepareResources", "NodeUnprepareResources"


@pytest.fixture
def kubelet(node: Any) -> Any:
    return node.start_kubelet()


@pytest.fixture
def driver(node: Any, kubelet: Any, objects: Any, eventually: Ask) -> Any:
    """One driver with four devices, a class, and a scheduler that knows them."""
    started = node.start_driver()
    objects.add_class()
    objects.add_slice("node-a", devices=4)
    eventually(lambda: kubelet.is_registered(started.driver))
    return started


@pytest.fixture
def control_plane(controller: Any, scheduler: Any) -> tuple[Any, Any]:
    return controller, scheduler


pytestmark = pytest.mark.usefixtures("control_plane")


def log(kubelet: Any, pod: dict[str, Any], container: str = "main") -> list[str]:
    lines = kubelet.log(pod["metadata"]["uid"], container)
    return [line for line in lines or () if line.startswith("env")]


# Registering


def test_a_plugin_that_offers_nothing_known_is_told_why(node: Any, kubelet: Any, eventually: Ask) -> None:
    refused = node.start_driver(versions=["v2.DRAPlugin"])
    assert eventually(lambda: refused.told)[0] == (
        False,
        "the plugin offers v2.DRAPlugin; this kubelet calls v1.DRAPlugin, v1beta1.DRAPlugin",
    )
    assert not kubelet.is_registered(refused.driver)


def test_a_refused_plugin_is_asked_again(node: Any, kubelet: Any, eventually: Ask) -> None:
    refused = node.start_driver(versions=["v2.DRAPlugin"])
    eventually(lambda: len(refused.told) > 2)
    refused._versions = ["v1.DRAPlugin"]
    eventually(lambda: kubelet.is_registered(refused.driver))


def test_a_replaced_socket_is_a_new_plugin(driver: Any, kubelet: Any, eventually: Ask) -> None:
    assert driver.told == [(True, "")]
    driver.stop()
    eventually(lambda: not kubelet.is_registered(driver.driver))
    driver.start()
    eventually(lambda: kubelet.is_registered(driver.driver))
    assert driver.told == [(True, "")] * 2


# Preparing


def test_all_claims_of_a_pod_are_prepared_in_one_call(driver: Any, objects: Any, eventually: Ask) -> None:
    objects.add_claim("left")
    objects.add_claim("right")
    objects.add_pod("trainer", "left", "right")
    eventually(lambda: objects.runs("trainer"))
    assert driver.calls == [(PREPARE, ["left", "right"])]


def test_each_driver_of_a_claim_is_called(node: Any, driver: Any, kubelet: Any, objects: Any, eventually: Ask) -> None:
    second = node.start_driver(OTHER)
    objects.add_class(OTHER, OTHER)
    objects.add_slice("node-a", driver=OTHER)
    eventually(lambda: kubelet.is_registered(OTHER))
    objects.add_claim("both", objects.wanted(classes=[driver.driver, OTHER]))
    pod = objects.add_pod("trainer", "both")
    eventually(lambda: objects.runs("trainer"))
    assert driver.calls == second.calls == [(PREPARE, ["both"])]
    assert len(log(kubelet, pod)) == 1, "both name their variable GPU_0"
    objects.delete_pod("trainer")
    eventually(lambda: objects.pod("trainer") is None)
    assert driver.made(UNPREPARE) == second.made(UNPREPARE) == [["both"]]


def test_a_failure_becomes_an_event_and_is_tried_again(driver: Any, objects: Any, eventually: Ask) -> None:
    driver.failures[PREPARE, "gpus"] = ["no such device", "no such device"]
    objects.add_claim("gpus")
    objects.add_pod("trainer", "gpus")
    eventually(lambda: objects.runs("trainer"))
    assert len(driver.calls) == 3
    messages = objects.events("trainer", "FailedPrepareDynamicResources")
    assert messages[0] == (
        "Failed to prepare dynamic resources: NodePrepareResources failed for ResourceClaim gpus: no such device"
    )


def test_a_claim_left_out_of_the_answer_is_a_failure(driver: Any, objects: Any, eventually: Ask) -> None:
    driver.failures[PREPARE, "right"] = [None]
    objects.add_claim("left")
    objects.add_claim("right")
    objects.add_pod("trainer", "left", "right")
    eventually(lambda: objects.runs("trainer"))
    assert driver.made(PREPARE) == [["left", "right"], ["right"]], "what succeeded is not prepared again"
    (message,) = objects.events("trainer", "FailedPrepareDynamicResources")
    assert message.endswith("NodePrepareResources skipped ResourceClaim right")


def test_a_claim_is_prepared_even_if_no_container_references_it(driver: Any, objects: Any, eventually: Ask) -> None:
    objects.add_claim("gpus")
    objects.add_pod("trainer", "gpus", containers={"main": []})
    eventually(lambda: objects.runs("trainer"))
    assert driver.made(PREPARE) == [["gpus"]]


def test_each_container_sees_the_devices_of_its_request(
    driver: Any, kubelet: Any, objects: Any, eventually: Ask
) -> None:
    objects.add_claim("gpus", objects.wanted(classes=[driver.driver] * 3))
    uses: dict[str, list[dict[str, str]]] = {
        "first": [{"name": "gpus", "request": "r0"}],
        "second": [{"name": "gpus", "request": "r1"}],
        "all": [{"name": "gpus"}],
        "none": [],
    }
    init = [{"name": "init", "image": "i", "resources": {"claims": [{"name": "gpus", "request": "r2"}]}}]
    pod = objects.add_pod("trainer", "gpus", containers=uses, initContainers=init)
    eventually(lambda: objects.runs("trainer"))
    seen = {name: [line.split()[1].split("=")[0] for line in log(kubelet, pod, name)] for name in [*uses, "init"]}
    assert seen == {
        "first": ["GPU_0"],
        "second": ["GPU_1"],
        "all": ["GPU_0", "GPU_1", "GPU_2"],
        "none": [],
        "init": ["GPU_2"],
    }


def test_a_pod_placed_past_the_scheduler_waits_for_its_allocation(driver: Any, objects: Any, eventually: Ask) -> None:
    objects.add_claim("gpus")
    objects.add_pod("trainer", "gpus", nodeName="node-a")
    (message, *_) = eventually(lambda: objects.events("trainer", "FailedPrepareDynamicResources"))
    assert message.endswith("ResourceClaim gpus is not allocated")
    assert not objects.runs("trainer")
    assert not driver.calls


def test_a_pod_may_not_use_a_claim_that_is_not_reserved_for_it(driver: Any, objects: Any, eventually: Ask) -> None:
    objects.add_claim("gpus")
    objects.add_pod("owner", "gpus")
    eventually(lambda: objects.runs("owner"))
    thief = objects.add_pod("thief", "gpus", nodeName="node-a")
    (message, *_) = eventually(lambda: objects.events("thief", "FailedPrepareDynamicResources"))
    assert message.endswith(f"pod thief ({thief['metadata']['uid']}) is not allowed to use ResourceClaim gpus")
    objects.delete_pod("thief")
    eventually(lambda: objects.pod("thief") is None)
    assert not driver.made(UNPREPARE), "it never was the thief's"


def test_a_pod_waits_for_its_driver(node: Any, kubelet: Any, objects: Any, eventually: Ask) -> None:
    objects.add_class()
    objects.add_slice("node-a")
    objects.add_claim("gpus")
    objects.add_pod("trainer", "gpus")
    (message, *_) = eventually(lambda: objects.events("trainer", "FailedPrepareDynamicResources"))
    assert message.endswith("DRA driver gpu.gpupool.dev is not registered")
    node.start_driver()
    eventually(lambda: objects.runs("trainer"))
    assert kubelet.is_registered("gpu.gpupool.dev")


# Unpreparing


def test_a_deleted_pod_goes_after_its_claims_are_unprepared(driver: Any, objects: Any, eventually: Ask) -> None:
    driver.failures[UNPREPARE, "gpus"] = ["busy", None, "busy"]
    objects.add_claim("gpus")
    objects.add_pod("trainer", "gpus")
    eventually(lambda: objects.runs("trainer"))
    objects.delete_pod("trainer")
    eventually(lambda: driver.made(UNPREPARE))
    assert objects.pod("trainer") is not None
    eventually(lambda: objects.pod("trainer") is None)
    assert len(driver.made(UNPREPARE)) == 4
    eventually(lambda: not objects.allocated("gpus"))


@pytest.mark.parametrize("prepared", [True, False])
def test_a_pod_deleted_by_force_is_unprepared_all_the_same(
    driver: Any, objects: Any, eventually: Ask, *, prepared: bool
) -> None:
    if not prepared:
        driver.failures[PREPARE, "gpus"] = ["failed"] * 100
    objects.add_claim("gpus")
    objects.add_pod("trainer", "gpus")
    eventually(lambda: objects.runs("trainer") if prepared else driver.made(PREPARE))
    objects.delete_pod("trainer", force=True)
    eventually(lambda: driver.made(UNPREPARE) == [["gpus"]])


def test_a_pod_deleted_while_it_cannot_be_prepared_does_not_wait_for_the_next_try(
    driver: Any, objects: Any, eventually: Ask
) -> None:
    driver.failures[PREPARE, "gpus"] = ["failed"] * 100
    objects.add_claim("gpus")
    objects.add_pod("trainer", "gpus")
    eventually(lambda: len(driver.made(PREPARE)) > 3)  # the next pause is 4 s
    objects.delete_pod("trainer")
    eventually(lambda: objects.pod("trainer") is None, seconds=2)
    assert driver.made(UNPREPARE) == [["gpus"]], "a Prepare that failed may have left something"


def test_a_shared_claim_is_prepared_once_and_unprepared_after_its_last_pod(
    driver: Any, objects: Any, eventually: Ask
) -> None:
    objects.add_claim("shared")
    for name in ("first", "second"):
        objects.add_pod(name, "shared")
        eventually(lambda name=name: objects.runs(name))
    objects.delete_pod("first")
    eventually(lambda: objects.pod("first") is None)
    assert driver.calls == [(PREPARE, ["shared"])]
    objects.delete_pod("second")
    eventually(lambda: objects.pod("second") is None)
    assert driver.made(UNPREPARE) == [["shared"]]


def test_a_pod_that_comes_while_the_last_one_leaves_gets_the_claim_prepared_anew(
    driver: Any, objects: Any, eventually: Ask
) -> None:
    objects.add_claim("shared")
    objects.add_pod("first", "shared")
    eventually(lambda: objects.runs("first"))
    driver.hold.clear()
    objects.delete_pod("first")
    eventually(lambda: driver.made(UNPREPARE))
    objects.add_pod("second", "shared")
    eventually(lambda: (objects.pod("second") or {})["spec"].get("nodeName"))
    driver.hold.set()
    eventually(lambda: objects.runs("second"))
    assert driver.made(PREPARE) == [["shared"]] * 2
    objects.delete_pod("second")
    eventually(lambda: objects.pod("second") is None)
    assert driver.made(UNPREPARE) == [["shared"]] * 2


def test_a_pod_that_has_ended_is_unprepared_once(driver: Any, kubelet: Any, objects: Any, eventually: Ask) -> None:
    objects.add_claim("gpus")
    pod = objects.add_pod("job", "gpus")
    eventually(lambda: objects.runs("job"))
    objects.finish("job")
    eventually(lambda: driver.made(UNPREPARE))
    eventually(lambda: kubelet.log(pod["metadata"]["uid"], "main") is None)
    objects.delete_pod("job")
    eventually(lambda: objects.pod("job") is None)
    assert driver.made(UNPREPARE) == [["gpus"]]


def test_a_new_claim_of_the_same_name_waits_for_the_old_one(driver: Any, objects: Any, eventually: Ask) -> None:
    objects.add_claim("gpus")
    objects.add_pod("old", "gpus")
    eventually(lambda: objects.runs("old"))
    driver.hold.clear()
    objects.delete_pod("old", force=True)
    eventually(lambda: driver.made(UNPREPARE))
    objects.connection.delete(f"{objects.claims}/gpus")
    eventually(lambda: objects.claim("gpus") is None)
    objects.add_claim("gpus")
    objects.add_pod("new", "gpus")
    (message, *_) = eventually(lambda: objects.events("new", "FailedPrepareDynamicResources"))
    assert "old ResourceClaim with same name gpus and different UID" in message
    driver.hold.set()
    eventually(lambda: objects.runs("new"))


# Slices


def slices(objects: Any) -> set[str]:
    return {entry["metadata"]["name"] for entry in objects.connection.list(objects.slices)[0]}


def test_all_slices_of_the_node_are_deleted_when_its_kubelet_starts(node: Any, objects: Any) -> None:
    objects.add_slice("node-a")
    objects.add_slice("node-a", driver=OTHER)
    objects.add_slice("node-b")
    node.start_kubelet()
    assert slices(objects) == {"node-b-gpu.gpupool.dev"}


def test_slices_of_a_driver_that_stays_away_are_deleted(node: Any, objects: Any, eventually: Ask) -> None:
    kubelet = node.start_kubelet(wipe_seconds=0.3)
    driver = node.start_driver()
    eventually(lambda: kubelet.is_registered(driver.driver))
    objects.add_slice("node-a")
    objects.add_slice("node-a", driver=OTHER)
    driver.stop()
    eventually(lambda: slices(objects) == {f"node-a-{OTHER}"})


def test_slices_of_a_driver_that_is_back_in_time_stay(node: Any, objects: Any, eventually: Ask) -> None:
    kubelet = node.start_kubelet(wipe_seconds=3)
    driver = node.start_driver()
    eventually(lambda: kubelet.is_registered(driver.driver))
    objects.add_slice("node-a")
    driver.stop()
    eventually(lambda: kubelet._wipes)
    (timer,) = kubelet._wipes.values()
    driver.start()
    eventually(lambda: kubelet.is_registered(driver.driver))
    timer.join(10)
    assert slices(objects) == {"node-a-gpu.gpupool.dev"}
