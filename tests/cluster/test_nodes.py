"""What happens on a real node: containers, shared claims, and restarts of kubelet and plugin at bad moments."""

from __future__ import annotations

import os
import signal
from typing import Any

Cluster = Any

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  restartPolicy: {restart}
  containers:
    - name: main
      image: x
      resources: {{claims: [{{name: gpus}}]}}
  resourceClaims:
    - {{name: gpus, {source}: {claim}}}
---
"""
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: {kind}
metadata: {{name: {name}, namespace: {namespace}}}
spec: {spec}
---
"""


def claim(namespace: str, name: str, **counts: int) -> str:
    requests = ", ".join(
        f"{{name: {request}, exactly: {{deviceClassName: gpu.gpupool.dev, count: {count}}}}}"
        for request, count in counts.items()
    )
    spec = f"{{devices: {{requests: [{requests}]}}}}"
    return CLAIM.format(kind="ResourceClaim", name=name, namespace=namespace, spec=spec)


def template(namespace: str, name: str, count: int = 1) -> str:
    request = f"{{name: gpus, exactly: {{deviceClassName: gpu.gpupool.dev, count: {count}}}}}"
    spec = f"{{spec: {{devices: {{requests: [{request}]}}}}}}"
    return CLAIM.format(kind="ResourceClaimTemplate", name=name, namespace=namespace, spec=spec)


def pod(namespace: str, name: str, claim_name: str = "", *, restart: str = "Never") -> str:
    source, given = ("resourceClaimName", claim_name) if claim_name else ("resourceClaimTemplateName", "one")
    return POD.format(namespace=namespace, name=name, source=source, claim=given, restart=restart)


def seen(real_cluster: Cluster, namespace: str, name: str, container: str = "main") -> list[str]:
    """The GPUs that a container sees, by its environment."""
    lines = real_cluster.kubectl("exec", "-n", namespace, name, "-c", container, "--", "env").splitlines()
    return sorted(line.partition("=")[0] for line in lines if line.startswith("GPUPOOL_DEVICE_"))


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
    real_cluster.apply(claim(namespace, "both", left=1, right=2) + containers)
    real_cluster.running(namespace, "parts")
    left, right, everything, none = (
        seen(real_cluster, namespace, "parts", name) for name in ("left", "right", "all", "none")
    )
    assert (len(left), len(right)) == (1, 2)
    assert everything == sorted(left + right)
    assert none == []
    assert real_cluster.kubectl("logs", "-n", namespace, "parts", "-c", "first").strip() == "3"


def test_a_shared_claim_stays_prepared_until_its_last_pod_ends(real_cluster: Cluster, namespace: str) -> None:
    real_cluster.apply(
        claim(namespace, "shared", gpus=2) + pod(namespace, "a", "shared") + pod(namespace, "b", "shared")
    )
    real_cluster.running(namespace, "a", "b")
    assert seen(real_cluster, namespace, "a") == seen(real_cluster, namespace, "b")
    real_cluster.kubectl("delete", "pod", "-n", namespace, "a", "--timeout=60s")
    assert list(real_cluster.prepared()) == ["shared"]
    real_cluster.kubectl("delete", "pod", "-n", namespace, "b", "--timeout=60s")
    real_cluster.eventually(lambda: not real_cluster.prepared(), "the claim is unprepared")


def test_a_restarted_kubelet_finds_its_pods_and_new_ones_run(real_cluster: Cluster, namespace: str) -> None:
    real_cluster.apply(template(namespace, "one") + pod(namespace, "before"))
    (before,) = real_cluster.running(namespace, "before")
    gpus = seen(real_cluster, namespace, "before")
    real_cluster.node.kubelet.stop()
    real_cluster.node.kubelet.start()
    real_cluster.apply(pod(namespace, "after"))
    real_cluster.running(namespace, "after")
    (still,) = real_cluster.running(namespace, "before")
    assert still["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    assert seen(real_cluster, namespace, "before") == gpus
    assert len(real_cluster.prepared()) == 2
    real_cluster.eventually(lambda: len(real_cluster.devices()) == 8, "slices are there again")


def test_a_killed_plugin_comes_back_and_holds_what_it_held(real_cluster: Cluster, namespace: str) -> None:
    real_cluster.apply(template(namespace, "one", 4) + pod(namespace, "before"))
    real_cluster.running(namespace, "before")
    os.kill(real_cluster.plugin.pid, signal.SIGKILL)
    real_cluster.apply(pod(namespace, "after"))
    real_cluster.running(namespace, "after")
    assert len({name for names in real_cluster.prepared().values() for name in names}) == 8
    os.kill(real_cluster.plugin.pid, signal.SIGKILL)
    real_cluster.kubectl("delete", "pod", "-n", namespace, "before", "--timeout=60s")
    real_cluster.eventually(lambda: len(real_cluster.prepared()) == 1, "the first claim is unprepared")


def test_a_container_that_starts_again_gets_its_gpus_again(real_cluster: Cluster, namespace: str) -> None:
    real_cluster.apply(template(namespace, "one", 2) + pod(namespace, "crashing", restart="Always"))
    real_cluster.running(namespace, "crashing")
    gpus = seen(real_cluster, namespace, "crashing")
    real_cluster.kubectl("exec", "-n", namespace, "crashing", "--", "kill", "1")

    def restarted() -> bool:
        (status,) = real_cluster.pod(namespace, "crashing")["status"]["containerStatuses"]
        return bool(status["restartCount"] == 1 and "running" in status["state"])

    real_cluster.eventually(restarted, "the container runs again")
    assert seen(real_cluster, namespace, "crashing") == gpus


def test_a_pod_deleted_by_force_leaves_nothing(real_cluster: Cluster, namespace: str) -> None:
    real_cluster.apply(template(namespace, "one") + pod(namespace, "forced"))
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
    real_cluster.apply(template(namespace, "one") + "".join(pod(namespace, name) for name in names))
    real_cluster.running(namespace, *names)
    assert sorted(gpu for name in names for gpu in seen(real_cluster, namespace, name)) == [
        f"GPUPOOL_DEVICE_GPU_{i}" for i in range(8)
    ]


def test_a_wrong_configuration_is_told_in_the_pods_events(real_cluster: Cluster, namespace: str) -> None:
    parameters = "{apiVersion: gpu.gpupool.dev/v1alpha1, kind: GpuConfig, sharing: {strategy: Sometimes}}"
    config = f"[{{opaque: {{driver: gpu.gpupool.dev, parameters: {parameters}}}}}]"
    request = "{name: gpus, exactly: {deviceClassName: gpu.gpupool.dev}}"
    spec = f"{{spec: {{devices: {{requests: [{request}], config: {config}}}}}}}"
    body = CLAIM.format(kind="ResourceClaimTemplate", name="one", namespace=namespace, spec=spec)
    real_cluster.apply(body + pod(namespace, "wrong"))

    def told() -> str:
        events, _ = real_cluster.admin.list(f"/api/v1/namespaces/{namespace}/events")
        return "".join(event["message"] for event in events if event["reason"] == "FailedPrepareDynamicResources")

    message = real_cluster.eventually(told, "event FailedPrepareDynamicResources")
    assert "Sometimes" in message
    assert "strategy" in message
