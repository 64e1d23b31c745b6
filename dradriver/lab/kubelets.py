"""The kubelet of one node: its Node object, its pods from bound to gone, the wiping of slices, what containers get.

Containers do not run; a pod is "running" when every claim is prepared and every CDI name of every container resolves.
Facts of the kubelet it keeps to: failures to prepare become the event FailedPrepareDynamicResources and are tried
again; a pod's end waits until its claims are unprepared; all slices of the node are deleted at start, those of a driver
when it has been away for a while.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dradriver import cluster
from dradriver.lab import containers, objects
from dradriver.lab.loops import Loop
from dradriver.lab.preparing import Claims, NotReadyError, PreparedClaim
from dradriver.lab.registering import PluginRegistry
from dradriver.protocol import services

log = logging.getLogger(__name__)

WIPE_SECONDS = 30.0
FIRST_RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 8.0
WORKERS = 8


@dataclass(frozen=True, slots=True)
class NodePlaces:
    """Directories of one node that kubelet and plugin share."""

    plugins: Path
    registry: Path
    cdi: Path


class Kubelet:
    """One node's kubelet. Owns its Node object, the pods bound to it, and its record of prepared claims."""

    def __init__(
        self,
        connection: cluster.Connection,
        served: cluster.Served,
        node: str,
        places: NodePlaces,
        *,
        services_known: Mapping[str, services.Service],
        wipe_seconds: float = WIPE_SECONDS,
    ) -> None:
        self._connection = connection
        self._served = served
        self._node = node
        self._places = places
        self._wipe_seconds = wipe_seconds
        self._registry = PluginRegistry(places.registry, dict(services_known), self._plugin_changed)
        self._loop = Loop(f"kubelet-{node}", self._pass, period=1.0)
        self._pods = cluster.Reflector(
            connection, "/api/v1/pods", field_selector=f"spec.nodeName={node}", on_change=self._loop.wake
        )
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix=f"kubelet-{node}")
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._retries: dict[str, float] = {}
        self._claims = Claims(connection, served, self._registry)
        self._views: dict[tuple[str, str], containers.ContainerView] = {}
        self._wipes: dict[str, threading.Timer] = {}
        self._stopping = False

    def start(self) -> None:
        """Register the node, delete what slices an earlier life left, and start working."""
        self._create_node()
        self._wipe(f"spec.nodeName={self._node}")
        self._registry.start()
        self._pods.start()
        self._loop.start()

    def stop(self) -> None:
        """Stop working; pods and claims stay as they are."""
        self._stopping = True
        self._loop.stop()
        self._registry.stop()
        self._pods.stop()
        with self._lock:
            wipes = list(self._wipes.values())
        for timer in wipes:
            timer.cancel()
        self._workers.shutdown(wait=True, cancel_futures=True)

    def is_registered(self, driver: str) -> bool:
        """Whether a plugin of this driver is connected."""
        return self._registry.endpoint(driver) is not None

    def log(self, pod_uid: str, container: str) -> list[str] | None:
        """What a container got, as lines; None while it does not run."""
        with self._lock:
            view = self._views.get((pod_uid, container))
        return None if view is None else list(view.lines())

    # Node and slices

    def _create_node(self) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self._node, "labels": {"kubernetes.io/hostname": self._node}},
        }
        try:
            self._connection.create("/api/v1/nodes", body)
        except cluster.AlreadyExistsError:
            log.debug("node exists node=%s", self._node)
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": objects.now()}
        capacity = {"cpu": "64", "memory": "512Gi", "pods": "110"}
        status = {"conditions": [ready], "capacity": capacity, "allocatable": capacity}
        self._connection.merge(f"/api/v1/nodes/{self._node}/status", {"status": status})

    def _plugin_changed(self, driver: str, connected: bool) -> None:  # noqa: FBT001 - the registry's callback
        with self._lock:
            timer = self._wipes.pop(driver, None)
            if timer:
                timer.cancel()
            if not connected and not self._stopping:
                selector = f"spec.nodeName={self._node},spec.driver={driver}"
                timer = threading.Timer(self._wipe_seconds, self._wipe, [selector])
                timer.daemon = True
                self._wipes[driver] = timer
                timer.start()
        if connected:
            self._loop.wake()

    def _wipe(self, selector: str) -> None:
        path = f"{self._served.prefix}/resourceslices"
        try:
            slices, _ = self._connection.list(path, field_selector=selector)
            for entry in slices:
                self._connection.delete(f"{path}/{entry['metadata']['name']}", uid=objects.uid(entry))
                log.info("wiped slice node=%s slice=%s", self._node, entry["metadata"]["name"])
        except cluster.NotFoundError:
            log.debug("slice went by itself node=%s", self._node)
        except cluster.ClusterError as error:
            log.warning("cannot wipe slices node=%s error=%s", self._node, error)

    # Pods

    def _pass(self) -> None:
        if not self._pods.wait_synced(0):
            return
        pods = self._pods.items()
        for pod in pods:
            if self._has_work(pod):
                self._submit(pod)
        present = {objects.uid(pod) for pod in pods}
        for pod_uid in self._claims.pods() - present:
            self._submit_ghost(pod_uid)

    def _has_work(self, pod: Mapping[str, Any]) -> bool:
        if objects.is_deleted(pod) or objects.is_final(pod):
            return True
        return bool(pod.get("status", {}).get("phase") != "Running")

    def _submit(self, pod: Mapping[str, Any]) -> None:
        with self._lock:
            if objects.uid(pod) in self._busy or self._stopping:
                return
            self._busy.add(objects.uid(pod))
        self._workers.submit(self._sync, pod)

    def _submit_ghost(self, pod_uid: str) -> None:
        """A pod that is gone although its claims are still prepared (deleted by force)."""
        with self._lock:
            if pod_uid in self._busy or self._stopping:
                return
            self._busy.add(pod_uid)
        self._workers.submit(self._sync, {"metadata": {"uid": pod_uid, "name": "", "namespace": ""}, "spec": {}})

    def _sync(self, pod: Mapping[str, Any]) -> None:
        uid = objects.uid(pod)
        pause = 0.0
        try:
            if objects.is_deleted(pod) or objects.is_final(pod) or not pod["metadata"]["name"]:
                self._end(pod)
            else:
                self._begin(pod)
            self._retries.pop(uid, None)
        except (NotReadyError, cluster.ClusterError) as error:
            pause = self._retries[uid] = min(self._retries.get(uid, FIRST_RETRY_SECONDS / 2) * 2, LONGEST_RETRY_SECONDS)
            log.info("pod has to wait node=%s pod=%s error=%s", self._node, pod["metadata"]["name"], error)
        except Exception:
            log.exception("pod failed node=%s pod=%s", self._node, pod["metadata"]["name"])
            pause = LONGEST_RETRY_SECONDS
        if pause:
            again = threading.Timer(pause, self._free, [uid])
            again.daemon = True
            again.start()
        else:
            self._free(uid)

    def _free(self, uid: str) -> None:
        with self._lock:
            self._busy.discard(uid)
        self._loop.wake()

    def _begin(self, pod: Mapping[str, Any]) -> None:
        try:
            claims = self._claims.prepare(pod)
            views = {
                container["name"]: containers.view(self._places.cdi, _cdi_names(container, claims))
                for container in _containers(pod)
            }
        except (NotReadyError, containers.UnresolvableError) as error:
            self._report(pod, str(error))
            raise NotReadyError(str(error)) from error
        with self._lock:
            self._views.update({(objects.uid(pod), name): view for name, view in views.items()})
        self._connection.merge(objects.pod_path(pod, "status"), {"status": _running(pod, self._node)})
        log.info("pod runs node=%s pod=%s/%s", self._node, *objects.key(pod))

    def _end(self, pod: Mapping[str, Any]) -> None:
        self._claims.unprepare(objects.uid(pod))
        with self._lock:
            for key in [key for key in self._views if key[0] == objects.uid(pod)]:
                del self._views[key]
        if objects.is_deleted(pod):
            try:
                self._connection.delete(objects.pod_path(pod), uid=objects.uid(pod), grace_seconds=0)
            except (cluster.NotFoundError, cluster.ConflictError):
                log.debug("pod is gone pod=%s/%s", *objects.key(pod))

    def _report(self, pod: Mapping[str, Any], message: str) -> None:
        text = f"Failed to prepare dynamic resources: {message}"
        event = objects.event(
            pod, "Pod", reason="FailedPrepareDynamicResources", message=text, component=f"kubelet, {self._node}"
        )
        self._connection.create(f"/api/v1/namespaces/{objects.key(pod)[0]}/events", event)


def _containers(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from pod["spec"].get("initContainers") or ()
    yield from pod["spec"].get("containers") or ()


def _cdi_names(container: Mapping[str, Any], claims: Mapping[str, PreparedClaim]) -> Iterator[str]:
    """CDI names of the devices a container references; a reference without a request means all of the claim."""
    for entry in (container.get("resources") or {}).get("claims") or ():
        record = claims.get(entry["name"])
        request = entry.get("request")
        for devices in record.devices.values() if record else ():
            for requests, names in devices:
                if not request or not requests or request in requests:
                    yield from names


def _running(pod: Mapping[str, Any], node: str) -> dict[str, Any]:
    now = objects.now()
    kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    return {
        "phase": "Running",
        "startTime": now,
        "hostIP": "127.0.0.1",
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in kinds],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container.get("image", ""),
                "imageID": f"{node}/{container.get('image', '')}",
                "containerID": f"lab://{objects.uid(pod)}/{container['name']}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": now}},
            }
            for container in pod["spec"].get("containers") or ()
        ],
    }
