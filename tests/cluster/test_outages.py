"""What a real node survives: an API server that is away, a reboot, an update of the plugin; and unusual requests."""

from __future__ import annotations

import os
import shutil
import signal
import time
from typing import Any

import pytest

Cluster = Any

FIRST_MINOR_WITH_TWO_INSTANCES = 33
"""Before, the kubelet knows one endpoint of a driver."""
FIRST_MINOR_WITH_ADMIN_ACCESS = 34


def test_a_claim_is_unprepared_while_the_api_server_is_away(real_cluster: Cluster, namespace: str) -> None:
    text = real_cluster.template(namespace, "one", 2) + real_cluster.pod_with(namespace, "leaving")
    real_cluster.apply(text)
    real_cluster.running(namespace, "leaving")
    real_cluster.kubectl("delete", "pod", "-n", namespace, "leaving", "--wait=false")
    real_cluster.control_plane.server.kill()
    try:
        real_cluster.eventually_here(lambda: not real_cluster.prepared(), "the claim is unprepared")
    finally:
        real_cluster.control_plane.server.start()
        real_cluster.control_plane.wait_ready()
    real_cluster.eventually(lambda: real_cluster.pod(namespace, "leaving") is None, "the pod is gone")


def test_a_prepare_without_api_server_is_made_up_for(real_cluster: Cluster, namespace: str) -> None:
    os.kill(real_cluster.plugin.pid, signal.SIGSTOP)
    stopped = True
    try:
        real_cluster.apply(real_cluster.template(namespace, "one") + real_cluster.pod_with(namespace, "waiting"))
        real_cluster.eventually(
            lambda: real_cluster.pod(namespace, "waiting")["spec"].get("nodeName"), "the pod has a node"
        )
        time.sleep(1)  # the kubelet's call is on its way to the plugin
        real_cluster.control_plane.server.kill()
        os.kill(real_cluster.plugin.pid, signal.SIGCONT)
        stopped = False
        log = real_cluster.directory / "plugin.log"
        before = log.stat().st_size
        real_cluster.eventually_here(lambda: b"cannot prepare" in log.read_bytes()[before:], "a failed Prepare", 60)
    finally:
        if stopped:
            os.kill(real_cluster.plugin.pid, signal.SIGCONT)
        real_cluster.control_plane.server.start()
        real_cluster.control_plane.wait_ready()
    real_cluster.running(namespace, "waiting")
    assert len(real_cluster.seen(namespace, "waiting")) == 1


def test_after_a_reboot_pods_get_the_same_gpus(real_cluster: Cluster, namespace: str) -> None:
    text = real_cluster.template(namespace, "one", 3) + real_cluster.pod_with(namespace, "lasting", restart="Always")
    real_cluster.apply(text)
    real_cluster.running(namespace, "lasting")
    gpus = real_cluster.seen(namespace, "lasting")
    os.kill(real_cluster.plugin.pid, signal.SIGKILL)
    real_cluster.plugin.stop()
    real_cluster.node.stop()
    shutil.rmtree(real_cluster.node.places.cdi)
    shutil.rmtree(real_cluster.node.places.short / "s")
    for socket in (*real_cluster.node.places.registry.iterdir(), *real_cluster.node.places.plugins.rglob("*.sock")):
        socket.unlink()
    real_cluster.plugin = real_cluster.start_plugin_after_reboot()
    real_cluster.node.start()

    def again() -> bool:
        (status,) = real_cluster.pod(namespace, "lasting")["status"]["containerStatuses"]
        return bool(status["restartCount"] == 1 and "running" in status["state"])

    real_cluster.eventually(again, "the container runs again")
    assert real_cluster.seen(namespace, "lasting") == gpus
    real_cluster.eventually(lambda: len(real_cluster.devices()) == 8, "slices are there")
    real_cluster.plugin.stop()
    real_cluster.plugin = real_cluster.start_plugin()


def test_an_update_with_two_instances_fails_no_pod(real_cluster: Cluster, namespace: str) -> None:
    if real_cluster.control_plane.programs.minor < FIRST_MINOR_WITH_TWO_INSTANCES:
        pytest.skip("the kubelet knows one endpoint of a driver before 1.33")
    real_cluster.apply(real_cluster.template(namespace, "one") + real_cluster.pod_with(namespace, "before"))
    real_cluster.running(namespace, "before")
    slices = {each["metadata"]["uid"] for each in real_cluster.slices()}
    old, log = real_cluster.plugin, real_cluster.directory / "plugin.log"
    seen = log.stat().st_size
    real_cluster.plugin = real_cluster.start_plugin(pod_uid="second")
    real_cluster.eventually(lambda: b"registered with the kubelet" in log.read_bytes()[seen:], "the second registers")
    real_cluster.apply(real_cluster.pod_with(namespace, "during"))
    real_cluster.running(namespace, "during")
    old.stop()
    real_cluster.apply(real_cluster.pod_with(namespace, "after"))
    real_cluster.running(namespace, "after", seconds=20)
    real_cluster.kubectl("delete", "pod", "-n", namespace, "before", "during", "--timeout=20s")
    assert list(real_cluster.prepared()) == [name for name in real_cluster.prepared() if name.startswith("after")]
    assert len(real_cluster.prepared()) == 1
    assert {each["metadata"]["uid"] for each in real_cluster.slices()} == slices
    events, _ = real_cluster.admin.list(f"/api/v1/namespaces/{namespace}/events")
    assert [event["message"] for event in events if event["reason"] == "FailedPrepareDynamicResources"] == []
    real_cluster.plugin.stop()
    real_cluster.plugin = real_cluster.start_plugin()


def test_an_administrator_sees_all_gpus_beside_their_holder(real_cluster: Cluster, namespace: str) -> None:
    if real_cluster.control_plane.programs.minor < FIRST_MINOR_WITH_ADMIN_ACCESS:
        pytest.skip("adminAccess is off before 1.34")
    real_cluster.kubectl("label", "namespace", namespace, "resource.kubernetes.io/admin-access=true")
    look = "{name: all, exactly: {deviceClassName: gpu.gpupool.dev, allocationMode: All, adminAccess: true}}"
    real_cluster.apply(
        real_cluster.claim(namespace, "held", gpus=8)
        + real_cluster.pod_with(namespace, "holder", "held")
        + real_cluster.manifest("ResourceClaim", namespace, "look", f"{{devices: {{requests: [{look}]}}}}")
        + real_cluster.pod_with(namespace, "admin", "look")
    )
    real_cluster.running(namespace, "holder", "admin")
    assert len(real_cluster.seen(namespace, "admin")) == 8
    real_cluster.kubectl("delete", "pod", "-n", namespace, "admin", "--timeout=60s")
    assert list(real_cluster.prepared()) == ["held"]


def test_the_first_alternative_that_fits_is_taken(real_cluster: Cluster, namespace: str) -> None:
    if real_cluster.control_plane.programs.minor < FIRST_MINOR_WITH_ADMIN_ACCESS:
        pytest.skip("firstAvailable is off before 1.34")
    counts = {"many": 9, "few": 2}
    alternatives = ", ".join(
        f"{{name: {name}, deviceClassName: gpu.gpupool.dev, count: {count}}}" for name, count in counts.items()
    )
    request = f"{{name: gpus, firstAvailable: [{alternatives}]}}"
    real_cluster.apply(
        real_cluster.manifest("ResourceClaim", namespace, "either", f"{{devices: {{requests: [{request}]}}}}")
        + real_cluster.pod_with(namespace, "alternative", "either")
    )
    real_cluster.running(namespace, "alternative")
    assert len(real_cluster.seen(namespace, "alternative")) == 2
