"""The kubelet of one node: its Node object, its pods from bound to gone, the wiping of slices, what containers get.

Containers do not run; a pod is "running" when every claim is prepared and every CDI name of every container resolves.
Facts of the kubelet it keeps to: failures to prepare become the event FailedPrepareDynamicResources and are tried
again; a pod's end waits until its claims are unprepared; all slices of the node are deleted at start, those of a driver
when it has been away for a while.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from dradriver import cluster
from dradriver.lab import containers, objects
from dradriver.lab.loops import Loop
from dradriver.lab.places import NodeHome
from dradriver.lab.preparing import Claims, Devices, NotReadyError
from dradriver.lab.registering import KNOWN_SERVICES, PluginRegistry
from dradriver.protocol import services

log = logging.getLogger(__name__)

WIPE_SECONDS = 30.0
WIPE_RETRY_SECONDS = 1.0
FIRST_RETRY_SECONDS = 0.25
LONGEST_RETRY_SECONDS = 8.0
PERIOD_SECONDS = 0.5
WORKERS = 8


@dataclass(frozen=True, slots=True)
class _Retry:
    """When a pod that could not begin or end is tried again; a change from begin to end does not wait."""

    due: float
    pause: float
    ending: bool


class Kubelet:
    """One node's kubelet. Owns its Node object, the pods bound to it, and its record of prepared claims."""

    def __init__(
        self,
        connection: cluster.Connection,
        served: cluster.Served,
        node: str,
        places: NodeHome,
        *,
        services_known: Mapping[str, services.Service] = KNOWN_SERVICES,
        wipe_seconds: float = WIPE_SECONDS,
    ) -> None:
        """Put the parts together.

        Args:
            connection: Under the kubelet's own identity.
            served: What the server serves.
            node: Name of the node.
            places: Directories that it shares with the plugins.
            services_known: The DRA services that it can call, by the words plugins advertise them by.
            wipe_seconds: How long a driver may be away before its slices are deleted.
        """
        self._connection = connection
        self._served = served
        self._node = node
        self._places = places
        self._wipe_seconds = wipe_seconds
        self._registry = PluginRegistry(places.registry, dict(services_known), self._plugin_changed)
        self._loop = Loop(f"kubelet-{node}", self._pass, period=PERIOD_SECONDS)
        self._pods = cluster.Reflector(
            connection, "/api/v1/pods", field_selector=f"spec.nodeName={node}", on_change=self._loop.wake
        )
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix=f"kubelet-{node}")
        self._claims = Claims(connection, served, self._registry)
        self._lock = threading.Lock()  # guards what follows; never held during a call
        self._busy: set[str] = set()
        self._retries: dict[str, _Retry] = {}
        self._views: dict[str, dict[str, containers.ContainerView]] = {}
        """What the containers of each running pod got, by UID and container."""
        self._wipes: dict[str, threading.Timer] = {}
        self._stopping = False

    def start(self) -> None:
        """Register the node, delete what slices an earlier life left, and start working."""
        self._create_node()
        self._wipe("", f"spec.nodeName={self._node}")
        self._registry.start()
        self._pods.start()
        self._loop.start()

    def stop(self) -> None:
        """Stop working; pods and claims stay as they are."""
        with self._lock:
            self._stopping = True
            wipes = list(self._wipes.values())
        for timer in wipes:
            timer.cancel()
        self._loop.stop()
        self._registry.stop()  # cuts calls in progress
        self._pods.stop()
        self._workers.shutdown(wait=True, cancel_futures=True)
        for timer in wipes:
            timer.join()

    def is_registered(self, driver: str) -> bool:
        """Whether a plugin of this driver is connected."""
        return self._registry.endpoint(driver) is not None

    def log(self, pod_uid: str, container: str) -> list[str] | None:
        """What a container got, as lines; None while it does not run."""
        with self._lock:
            view = self._views.get(pod_uid, {}).get(container)
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
            timer = self._wipes.get(driver)
            if timer and connected:
                timer.cancel()
                del self._wipes[driver]
        if connected:
            self._loop.wake()
        elif timer is None:
            self._wipe_later(driver, f"spec.nodeName={self._node},spec.driver={driver}", self._wipe_seconds)

    def _wipe_later(self, driver: str, selector: str, seconds: float) -> None:
        timer = threading.Timer(seconds, self._wipe, [driver, selector])
        timer.daemon = True
        with self._lock:
            if not self._stopping:
                self._wipes[driver] = timer
                timer.start()

    def _wipe(self, driver: str, selector: str) -> None:
        with self._lock:
            self._wipes.pop(driver, None)
        path = f"{self._served.prefix}/resourceslices"
        try:
            slices, _ = self._connection.list(path, field_selector=selector)
            for entry in slices:
                with contextlib.suppress(cluster.NotFoundError):
                    self._connection.delete(f"{path}/{entry['metadata']['name']}", uid=objects.uid(entry))
                    log.info("wiped slice node=%s slice=%s", self._node, entry["metadata"]["name"])
        except cluster.ClusterError as error:
            log.warning("cannot wipe slices, trying again node=%s error=%s", self._node, error)
            self._wipe_later(driver, selector, WIPE_RETRY_SECONDS)

    # Pods

    def _pass(self) -> None:
        if not self._pods.synced:
            return
        pods = {objects.uid(pod): pod for pod in self._pods.items()}
        held = self._claims.pods()
        for uid, pod in pods.items():
            if self._has_work(pod, held):
                self._submit(uid, pod)
        with self._lock:
            ended = (held | self._views.keys() | self._retries.keys()) - pods.keys()
        for uid in ended:
            self._submit(uid, None)

    def _has_work(self, pod: Mapping[str, Any], held: set[str]) -> bool:
        uid = objects.uid(pod)
        with self._lock:
            runs = uid in self._views
        if objects.is_final(pod) and not objects.is_deleted(pod):
            return uid in held or runs
        return objects.is_deleted(pod) or not runs

    def _submit(self, uid: str, pod: Mapping[str, Any] | None) -> None:
        """Have a pod begun or ended; None is one that is gone (deleted by force, or after it ended)."""
        ending = pod is None or objects.is_deleted(pod) or objects.is_final(pod)
        with self._lock:
            retry = self._retries.get(uid)
            waits = retry is not None and retry.ending == ending and time.monotonic() < retry.due
            if uid in self._busy or waits or self._stopping:
                return
            self._busy.add(uid)
        self._workers.submit(self._sync, uid, pod, ending)

    def _sync(self, uid: str, pod: Mapping[str, Any] | None, ending: bool) -> None:  # noqa: FBT001 - see _Retry
        failed = True
        try:
            if pod is None or ending:
                self._end(uid, pod)
            else:
                self._begin(pod)
            failed = False
        except (NotReadyError, cluster.ClusterError) as error:
            log.info("pod has to wait node=%s pod=%s error=%s", self._node, uid, error)
        except Exception:
            log.exception("pod failed node=%s pod=%s", self._node, uid)
        with self._lock:
            self._busy.discard(uid)
            last = self._retries.pop(uid, None)
            if failed:
                pause = min(last.pause * 2, LONGEST_RETRY_SECONDS) if last else FIRST_RETRY_SECONDS
                self._retries[uid] = _Retry(time.monotonic() + pause, pause, ending)
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
        self._show(objects.uid(pod), views)  # first: whoever reads that the pod runs may ask for its log at once
        try:
            status = objects.status_patch(pod, _running(pod, self._node))
            self._connection.merge(objects.pod_path(pod, "status"), status)
        except cluster.ClusterError:
            self._show(objects.uid(pod), None)
            raise
        log.info("pod runs node=%s pod=%s/%s", self._node, *objects.key(pod))

    def _end(self, uid: str, pod: Mapping[str, Any] | None) -> None:
        self._claims.unprepare(uid)
        self._show(uid, None)
        if pod is not None and objects.is_deleted(pod):
            with contextlib.suppress(cluster.NotFoundError, cluster.ConflictError):
                self._connection.delete(objects.pod_path(pod), uid=uid, grace_seconds=0)

    def _show(self, uid: str, views: dict[str, containers.ContainerView] | None) -> None:
        """Keep what a pod's containers get; None once they are gone."""
        with self._lock:
            if views is None:
                self._views.pop(uid, None)
            else:
                self._views[uid] = views

    def _report(self, pod: Mapping[str, Any], message: str) -> None:
        text = f"Failed to prepare dynamic resources: {message}"
        event = objects.event(
            pod, "Pod", reason="FailedPrepareDynamicResources", message=text, component=f"kubelet, {self._node}"
        )
        self._connection.create(f"/api/v1/namespaces/{objects.key(pod)[0]}/events", event)


def _containers(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from pod["spec"].get("initContainers") or ()
    yield from pod["spec"].get("containers") or ()


def _cdi_names(container: Mapping[str, Any], claims: Mapping[str, Devices]) -> Iterator[str]:
    """CDI names of the devices a container references; a reference without a request means all of the claim."""
    for entry in (container.get("resources") or {}).get("claims") or ():
        request = entry.get("request")
        for requests, names in claims.get(entry["name"], ()):
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
