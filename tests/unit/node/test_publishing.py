"""Slices are made right and kept right, against an API server in memory, with real threads and short waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dradriver import api, cluster
from dradriver.cluster.requesting import Request
from dradriver.node.apiserver import ApiServer
from dradriver.node.publishing import Publisher

Wait = Callable[..., None]


@pytest.fixture
def publisher(server: Any) -> Iterator[Publisher]:
    publisher = _publisher(server)
    yield publisher
    publisher.stop()


def _publisher(server: Any) -> Publisher:
    publisher = Publisher(
        ApiServer(server.connection),
        driver="gpu.gpupool.dev",
        node="node-a",
        check_seconds=0.1,
        after_write_seconds=(0.05, 0.1),
    )
    publisher.start()
    return publisher


def _devices(count: int) -> list[api.Device]:
    return [api.Device(f"gpu-{n}", attributes={"type": "gpu"}) for n in range(count)]


def _names(server: Any) -> list[str]:
    return [device.name for value in server.slices() for device in value.devices]


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_slices_are_published_in_the_version_served(server: Any, wait_until: Wait, version: str) -> None:
    server.version = version
    publisher = _publisher(server)
    try:
        publisher.publish(_devices(2))
        wait_until(lambda: publisher.settled)
        (made,) = server.slices()
        assert [device.name for device in made.devices] == ["gpu-0", "gpu-1"]
        assert made.metadata.owner_references[0].uid == "node-uid"
        (item,) = (item for path, item in server.objects.items() if path.startswith(server.collection))
        assert item["apiVersion"] == f"resource.k8s.io/{version}"
        assert ("basic" in item["spec"]["devices"][0]) == (version == "v1beta1")
    finally:
        publisher.stop()


def test_nothing_is_published_before_the_hardware_was_read(server: Any, publisher: Publisher, wait_until: Wait) -> None:
    assert not publisher.settled
    publisher.publish([])
    wait_until(lambda: publisher.settled)
    (made,) = server.slices()
    assert made.devices == ()


def test_slices_deleted_by_somebody_are_made_again_at_once_and_again(
    server: Any, publisher: Publisher, wait_until: Wait
) -> None:
    publisher.publish(_devices(1))
    for _ in range(3):
        wait_until(lambda: _names(server) == ["gpu-0"] and publisher.settled)
        server.wipe()
    wait_until(lambda: _names(server) == ["gpu-0"])


def test_a_deletion_no_watch_tells_of_is_found_after_a_create_and_after_an_update(
    server: Any, publisher: Publisher, wait_until: Wait
) -> None:
    server.silent = True
    publisher.publish(_devices(1))
    wait_until(lambda: _names(server) == ["gpu-0"])
    server.wipe()
    wait_until(lambda: _names(server) == ["gpu-0"])
    publisher.publish(_devices(2))
    wait_until(lambda: _names(server) == ["gpu-0", "gpu-1"])
    server.wipe()
    wait_until(lambda: _names(server) == ["gpu-0", "gpu-1"])


def test_a_slice_changed_by_somebody_is_put_right(server: Any, publisher: Publisher, wait_until: Wait) -> None:
    publisher.publish(_devices(2))
    wait_until(lambda: publisher.settled)
    (made,) = server.slices()
    item = server.connection().get(f"{server.collection}/{made.metadata.name}")
    item["spec"]["devices"] = item["spec"]["devices"][:1]
    server.connection().replace(f"{server.collection}/{made.metadata.name}", item)
    wait_until(lambda: _names(server) == ["gpu-0", "gpu-1"])
    assert [value.metadata.uid for value in server.slices()] == [made.metadata.uid]


def test_dropped_fields_are_told_once_and_not_looped_on(
    server: Any, publisher: Publisher, wait_until: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    def drop_taints(item: dict[str, Any]) -> None:
        for device in item["spec"]["devices"]:
            device.pop("taints", None)

    server.admit = drop_taints
    taint = api.Taint("gpu.gpupool.dev/lost", api.TaintEffect.NO_SCHEDULE)
    publisher.publish([api.Device("gpu-0", taints=(taint,))])
    wait_until(lambda: publisher.settled)
    asked = len(server.requests)
    wait_until(lambda: len(server.requests) > asked)  # the checks after the write have begun
    assert len(server.writes()) == 1
    publisher.publish([api.Device("gpu-0", taints=(taint,)), api.Device("gpu-1")])
    wait_until(lambda: publisher.settled)
    assert len(server.writes()) == 2
    assert [record.message for record in caplog.records if "DRADeviceTaints" in record.message] == [
        f"server dropped fields slice={server.slices()[0].metadata.name} missing_gate=DRADeviceTaints"
    ]


def test_a_lost_device_stays_published_with_a_taint_until_it_is_back(
    server: Any, publisher: Publisher, wait_until: Wait
) -> None:
    publisher.publish(_devices(2))
    wait_until(lambda: publisher.settled)
    publisher.publish(_devices(1), lost=["gpu-1"])
    wait_until(lambda: publisher.settled)
    (made,) = server.slices()
    assert [(device.name, [taint.key for taint in device.taints]) for device in made.devices] == [
        ("gpu-0", []),
        ("gpu-1", ["gpu.gpupool.dev/lost"]),
    ]
    publisher.publish(_devices(2))
    wait_until(lambda: publisher.settled)
    assert not any(device.taints for device in server.slices()[0].devices)


def test_a_server_that_fails_is_asked_again_and_slices_follow(
    server: Any, publisher: Publisher, wait_until: Wait
) -> None:
    failures = iter([cluster.UnreachableError("down"), cluster.ForbiddenError("no", 403)])

    def refuse(_request: Request) -> None:
        for failure in failures:
            raise failure

    server.refuse = refuse
    publisher.publish(_devices(1))
    wait_until(lambda: publisher.problem in ("down", "no"))
    assert not publisher.settled
    wait_until(lambda: publisher.settled)
    assert _names(server) == ["gpu-0"]


def test_a_node_that_is_not_there_yet_is_waited_for(server: Any, publisher: Publisher, wait_until: Wait) -> None:
    node = server.objects.pop("/api/v1/nodes/node-a")
    publisher.publish(_devices(1))
    wait_until(lambda: "nodes/node-a" in publisher.problem)
    server.put("/api/v1/nodes/node-a", node)
    wait_until(lambda: publisher.settled)


def test_stopping_leaves_the_slices(server: Any, wait_until: Wait) -> None:
    publisher = _publisher(server)
    publisher.publish(_devices(1))
    wait_until(lambda: publisher.settled)
    publisher.stop()
    assert _names(server) == ["gpu-0"]
    again = _publisher(server)
    again.publish(_devices(1))
    wait_until(lambda: again.settled)
    again.stop()
    assert len(server.writes()) == 1
