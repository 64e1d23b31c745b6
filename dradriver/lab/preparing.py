"""The claims prepared on one node: the kubelet's DRA manager.

Claims are read, checked and prepared per pod, one call a driver with all of them; a claim is unprepared when the last
pod that uses it here is done, in every driver that prepared it. Owns the record of prepared claims; one claim is worked
on by one pod at a time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc

from dradriver import cluster
from dradriver.lab import objects
from dradriver.lab.registering import Endpoint, PluginRegistry
from dradriver.protocol import services

CALL_SECONDS = 45.0


class NotReadyError(Exception):
    """A pod cannot start or end yet; the message becomes its event."""


@dataclass(slots=True)
class PreparedClaim:
    """A claim on this node: who uses it and what each driver answered, (request names, CDI names) a device."""

    namespace: str
    name: str
    uid: str
    pods: set[str] = field(default_factory=set)
    devices: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Claims:
    """Prepares and unprepares; safe to use from several threads."""

    def __init__(self, connection: cluster.Connection, served: cluster.Served, registry: PluginRegistry) -> None:
        self._connection = connection
        self._served = served
        self._registry = registry
        self._lock = threading.Lock()
        self._claims: dict[str, PreparedClaim] = {}

    def pods(self) -> set[str]:
        """UIDs of the pods that use a claim here."""
        with self._lock:
            return {pod for claim in self._claims.values() for pod in claim.pods}

    def prepare(self, pod: Mapping[str, Any]) -> dict[str, PreparedClaim]:
        """Prepare all claims of a pod; by the pod's own names for them."""
        prepared: dict[str, PreparedClaim] = {}
        todo: dict[str, list[PreparedClaim]] = {}
        for name, claim_name in objects.claim_names(pod).items():
            if claim_name is None:
                raise NotReadyError(f'pod "{objects.key(pod)[1]}": ResourceClaim not created yet')
            claim = self._checked(pod, claim_name)
            record = self._record(claim)
            prepared[name] = record
            for driver in {result["driver"] for result in claim["status"]["allocation"]["devices"].get("results", ())}:
                todo.setdefault(driver, []).append(record)
        endpoints = {driver: self._endpoint(driver) for driver in todo}
        for record in prepared.values():
            record.pods.add(objects.uid(pod))
        for driver, records in todo.items():
            self._call_prepare(endpoints[driver], driver, records)
        return prepared

    def _checked(self, pod: Mapping[str, Any], name: str) -> dict[str, Any]:
        namespace = objects.key(pod)[0]
        claim = self._connection.get(f"{self._served.prefix}/namespaces/{namespace}/resourceclaims/{name}")
        if not claim.get("status", {}).get("allocation"):
            raise NotReadyError(f"ResourceClaim {name} is not allocated")
        if not objects.is_reserved_for(claim, pod):
            pod_name = objects.key(pod)[1]
            raise NotReadyError(f"pod {pod_name} ({objects.uid(pod)}) is not allowed to use ResourceClaim {name}")
        return claim

    def _record(self, claim: Mapping[str, Any]) -> PreparedClaim:
        namespace, name = objects.key(claim)
        uid = objects.uid(claim)
        with self._lock:
            for other in self._claims.values():
                if (other.namespace, other.name) == (namespace, name) and other.uid != uid:
                    raise NotReadyError(
                        f"old ResourceClaim with same name {name} and different UID {other.uid} still exists"
                    )
            return self._claims.setdefault(uid, PreparedClaim(namespace, name, uid))

    def _endpoint(self, driver: str) -> Endpoint:
        endpoint = self._registry.endpoint(driver)
        if endpoint is None:
            raise NotReadyError(f"DRA driver {driver} is not registered")
        return endpoint

    def _call_prepare(self, endpoint: Endpoint, driver: str, records: list[PreparedClaim]) -> None:
        with contextlib.ExitStack() as stack:
            for record in sorted(records, key=lambda record: record.uid):
                stack.enter_context(record.lock)
            missing = [record for record in records if driver not in record.devices]
            if not missing:
                return
            answers = self._call(endpoint, "NodePrepareResources", missing)
            failures = []
            for record in missing:
                answer = answers.get(record.uid)
                if answer is None:
                    failures.append(f"NodePrepareResources skipped ResourceClaim {record.name}")
                elif answer.error:
                    failures.append(f"NodePrepareResources failed for ResourceClaim {record.name}: {answer.error}")
                else:
                    record.devices[driver] = [
                        (tuple(device.request_names), tuple(device.cdi_device_ids)) for device in answer.devices
                    ]
            if failures:
                raise NotReadyError("; ".join(failures))

    def unprepare(self, pod_uid: str) -> None:
        """Give up a pod's claims; those that no other pod here uses are unprepared."""
        with self._lock:
            records = [record for record in self._claims.values() if pod_uid in record.pods]
        for record in records:
            with record.lock:
                if record.pods == {pod_uid}:
                    for driver in list(record.devices):
                        self._call_unprepare(driver, record)
                    with self._lock:
                        self._claims.pop(record.uid, None)
                record.pods.discard(pod_uid)

    def _call_unprepare(self, driver: str, record: PreparedClaim) -> None:
        answer = self._call(self._endpoint(driver), "NodeUnprepareResources", [record]).get(record.uid)
        if answer is None or answer.error:
            problem = answer.error if answer else "skipped"
            raise NotReadyError(f"NodeUnprepareResources failed for ResourceClaim {record.name}: {problem}")
        del record.devices[driver]

    def _call(self, endpoint: Endpoint, method: str, records: list[PreparedClaim]) -> Mapping[str, Any]:
        request: Any = endpoint.service.methods[method][0]()
        for record in records:
            request.claims.add(namespace=record.namespace, uid=record.uid, name=record.name)
        try:
            answer = services.caller(endpoint.channel, endpoint.service, method)(request, timeout=CALL_SECONDS)
        except (grpc.RpcError, ValueError) as error:
            # A channel that was closed meanwhile raises ValueError.
            details = error.details() if isinstance(error, grpc.Call) else str(error)
            raise NotReadyError(f"{method} failed: {details}") from error
        return dict(answer.claims)
