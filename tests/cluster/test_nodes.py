"""What happens on a real node: containers, shared claims, and restarts of kubelet and plugin at bad moments."""

from __future__ import annotations

import os
import signal
from typing import Any

Cluster = Any


def test_each_container_sees_what_it_refers_to(real_cluster: Cluster, namespace: str) -> None:
    containers = f"""
apiVersion: v1
kind: Pod
metadata: {{name: parts, namespace: {namespace}}}
spec:
  restartPolicy: Never
  initContainers:
    - name: first
      image: x
      command: [sh, -c, "env | grep -c GPUPOOL_DEVICE_"]
      resources: {{claims: [{{name: both}}]}}
  containers:
    - {{name: left, image: x, resources: {{claims: [{{name: both, request: left}}]}}}}
    - {{name: right, image: x, resources: {{claims: [{{name: both, request: right}}]}}}}
    - {{name: all, image: x, resources: {{claims: [{{name: both}}]}}}}
    - {{name: none, image: x}}
  resourceClaims:
    - {{name: both, resourceClaimName: both}}
"""
    real_cluster.apply(real_cluster.claim(namespace, "both", left=1, right=2) + containers)
    real_cluster.running(namespace, "parts")
    left, right, everything, none = (
        real_cluster.seen(namespace, "parts", name) for name in ("left", "right", "all", "none")
    )
    assert (len(left), len(right)) == (1, 2)
    assert everything == sorted(left + right)
    assert none == []
    assert real_cluster.kubectl("logs", "-n", namespace, "parts", "-c", "first").strip() == "3"


def test_a_shared_claim_stays_prepared_until_its_last_pod_ends(real_cluster: Cluster, namespace: str) -> None:
    real_cluster.apply(
        real_cluster.claim(namespace, "shared", gpus=2)
        + real_cluster.pod_with(namespace, "a", "shared")
        + real_cluster.pod_with(namespace, "b", "shared")
    )
    real_cluster.running(namespace, "a", "b")
    assert real_cluster.seen(namespace, "a") == real_cluster.seen(namespace, "b")
    real_cluster.kubectl("delete", "pod", "-n", namespace, "a", "--timeout=60s")
    assert list(real_cluster.prepared()) == ["shared"]
    real_cluster.kubectl("delete", "pod", "-n", namespace, "b", "--timeout=60s")
    real_cluster.eventually(lambda: not real_cluster.prepared(), "the claim is unprepared")


def test_a_restarted_kubelet_finds_its_pods_and_new_ones_run(real_cluster: Cluster, namespace: str) -> None:
    real_cluster.apply(real_cluster.template(namespace, "one") + real_cluster.pod_with(namespace, "before"))
    (before,) = real_cluster.running(namespace, "before")
    gpus = real_cluster.seen(namespace, "before")
    real_cluster.node.kubelet.stop()
    real_cluster.node.kubelet.start()
    real_cluster.apply(real_cluster.pod_with(namespace, "after"))
    real_cluster.running(namespace, "after")
    (still,) = real_cluster.running(namespace, "before")
    assert still["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    assert real_cluster.seen(namespace, "before") == gpus
    assert len(real_cluster.prepared()) == 2
    real_cluster.eventually(lambda: len(real_cluster.devices()) == 8, "slices are there again")


def test_a_killed_plugin_comes_back_and_holds_what_it_held(real_cluster: Cluster, namespace: str) -> None:
    real_cluster.apply(real_cluster.template(namespace, "one", 4) + real_cluster.pod_with(namespace, "before"))
    real_cluster.running(namespace, "before")
    os.kill(real_cluster.plugin.pid, signal.SIGKILL)
    real_cluster.apply(real_cluster.pod_with(namespace, "after"))
    real_cluster.running(namespace, "after")
    assert len({name for names in real_cluster.prepared().values() for name in names}) == 8
    os.kill(real_cluster.plugin.pid, signal.SIGKILL)
    real_cluster.kubectl("delete", "pod", "-n", namespace, "before", "--timeout=60s")
    real_cluster.eventually(lambda: len(real_cluster.prepared()) == 1, "the first claim is unprepared")


def test_a_container_that_starts_again_gets_its_gpus_again(real_cluster: Cluster, namespace: str) -> None:
    real_cluster.apply(
        real_cluster.template(namespace, "one", 2) + real_cluster.pod_with(namespace, "crashing", restart="Always")
    )
    real_cluster.running(namespace, "crashing")
    gpus = real_cluster.seen(namespace, "crashing")
    real_cluster.kubectl("exec", "-n", namespace, "crashing", "--", "kill", "1")

    def restarted() -> bool:
        (status,) = real_cluster.pod(namespace, "crashing")["status"]["containerStatuses"]
        return bool(status["restartCount"] == 1 and "running" in status["state"])

    real_cluster.eventually(restarted, "the container runs again")
    assert real_cluster.seen(namespace, "crashing") == gpus


def test_a_pod_deleted_by_force_leaves_nothing(real_cluster: Cluster, namespace: str) -> None:
    real_cluster.apply(real_cluster.template(namespace, "one") + real_cluster.pod_with(namespace, "forced"))
    real_cluster.running(namespace, "forced")
    real_cluster.kubectl("delete", "pod", "-n", namespace, "forced", "--force", "--grace-period=0")
    real_cluster.eventually(lambda: not real_cluster.prepared(), "the claim is unprepared")


def test_deleted_slices_come_back(real_cluster: Cluster, namespace: str) -> None:
    del namespace
    before = sorted(real_cluster.devices())
    real_cluster.kubectl("delete", "resourceslices", "--all")
    real_cluster.eventually(lambda: sorted(real_cluster.devices()) == before, "slices are there again", 30)


def test_eight_pods_at_once_get_a_gpu_each(real_cluster: Cluster, namespace: str) -> None:
    names = [f"pod-{i}" for i in range(8)]
    real_cluster.apply(
        real_cluster.template(namespace, "one") + "".join(real_cluster.pod_with(namespace, name) for name in names)
    )
    real_cluster.running(namespace, *names)
    assert sorted(gpu for name in names for gpu in real_cluster.seen(namespace, name)) == [
        f"GPUPOOL_DEVICE_GPU_{i}" for i in range(8)
    ]


def test_a_wrong_configuration_is_told_in_the_pods_events(real_cluster: Cluster, namespace: str) -> None:
    parameters = "{apiVersion: gpu.gpupool.dev/v1alpha1, kind: GpuConfig, sharing: {strategy: Sometimes}}"
    config = f"[{{opaque: {{driver: gpu.gpupool.dev, parameters: {parameters}}}}}]"
    request = "{name: gpus, exactly: {deviceClassName: gpu.gpupool.dev}}"
    spec = f"{{spec: {{devices: {{requests: [{request}], config: {config}}}}}}}"
    body = real_cluster.manifest("ResourceClaimTemplate", namespace, "one", spec)
    real_cluster.apply(body + real_cluster.pod_with(namespace, "wrong"))

    def told() -> str:
        events, _ = real_cluster.admin.list(f"/api/v1/namespaces/{namespace}/events")
        return "".join(event["message"] for event in events if event["reason"] == "FailedPrepareDynamicResources")

    message = real_cluster.eventually(told, "event FailedPrepareDynamicResources")
    assert "Sometimes" in message
    assert "strategy" in message
