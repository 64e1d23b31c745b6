"""The claims prepared on one node: the kubelet's DRA manager.

Claims are read, checked and prepared per pod, one call a driver with all of them; a claim is unprepared when the last
pod that uses it here is done, in every driver that prepared it. Owns the record of prepared claims; one claim is worked
on by one pod at a time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import grpc

from dradriver import cluster
from dradriver.lab import objects
from dradriver.lab.registering import Endpoint, PluginRegistry
from dradriver.protocol import services

CALL_SECONDS = 45.0


class NotReadyError(Exception):
    """A pod cannot start or end yet; the message becomes its event."""


Devices: TypeAlias = list[tuple[tuple[str, ...], tuple[str, ...]]]
"""What a driver answered for a claim: (request names, CDI names) of each device."""


@dataclass(slots=True)
class PreparedClaim:
    """A claim on this node. What it holds is read and changed under `lock` alone.

    Every driver of the allocation is a key of `drivers` from the start, None until its Prepare has succeeded: one that
    failed or never answered may have prepared the claim all the same, so all of them get Unprepare.
    """

    namespace: str
    name: str
    uid: str
    drivers: dict[str, Devices | None]
    pods: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Claims:
    """Prepares and unprepares; safe to use from several threads."""

    def __init__(self, connection: cluster.Connection, served: cluster.Served, registry: PluginRegistry) -> None:
        self._connection = connection
        self._served = served
        self._registry = registry
        self._lock = threading.Lock()
        self._records: dict[str, PreparedClaim] = {}

    def pods(self) -> set[str]:
        """UIDs of the pods that use a claim here."""
        with self._lock:
            return {pod for record in self._records.values() for pod in tuple(record.pods)}

    def prepare(self, pod: Mapping[str, Any]) -> dict[str, Devices]:
        """Prepare all claims of a pod; their devices by the pod's own names for them. Raises NotReadyError."""
        claims: dict[str, Mapping[str, Any]] = {}
        for name, claim_name in objects.claim_names(pod).items():
            if claim_name is None:
                raise NotReadyError(f'pod "{objects.key(pod)[1]}": ResourceClaim not created yet')
            claims[name] = self._checked(pod, claim_name)
            self._refuse_replaced(claims[name])
        endpoints = {driver: self._endpoint(driver) for claim in claims.values() for driver in _drivers(claim)}
        # Up to here nothing has changed: a pod refused so far has nothing to unprepare.
        with self._locked(claims.values()) as records:
            for record in records.values():
                record.pods.add(objects.uid(pod))
            for driver, endpoint in endpoints.items():
                todo = [record for record in records.values() if record.drivers.get(driver, ()) is None]
                if todo:
                    self._call_prepare(endpoint, driver, todo)
            return {
                name: [device for devices in records[objects.uid(claim)].drivers.values() for device in devices or ()]
                for name, claim in claims.items()
            }

    @contextlib.contextmanager
    def _locked(self, claims: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, PreparedClaim]]:
        """The records of claims, locked in the order of their UIDs, made where they are missing."""
        by_uid = {objects.uid(claim): claim for claim in claims}
        with contextlib.ExitStack() as stack:
            yield {uid: self._enter(stack, by_uid[uid]) for uid in sorted(by_uid)}

    def _enter(self, stack: contextlib.ExitStack, claim: Mapping[str, Any]) -> PreparedClaim:
        while True:
            record = self._record(claim)
            record.lock.acquire()
            with self._lock:
                current = self._records.get(record.uid) is record
            if current:
                stack.callback(record.lock.release)
                return record
            record.lock.release()  # it was unprepared while this thread waited

    def _checked(self, pod: Mapping[str, Any], name: str) -> dict[str, Any]:
        namespace = objects.key(pod)[0]
        claim = self._connection.get(f"{self._served.prefix}/namespaces/{namespace}/resourceclaims/{name}")
        if not claim.get("status", {}).get("allocation"):
            raise NotReadyError(f"ResourceClaim {name} is not allocated")
        if not objects.is_reserved_for(claim, pod):
            pod_name = objects.key(pod)[1]
            raise NotReadyError(f"pod {pod_name} ({objects.uid(pod)}) is not allowed to use ResourceClaim {name}")
        return claim

    def _refuse_replaced(self, claim: Mapping[str, Any]) -> None:
        namespace, name = objects.key(claim)
        with self._lock:
            for record in self._records.values():
                if (record.namespace, record.name) == (namespace, name) and record.uid != objects.uid(claim):
                    raise NotReadyError(
                        f"old ResourceClaim with same name {name} and different UID {record.uid} still exists"
                    )

    def _record(self, claim: Mapping[str, Any]) -> PreparedClaim:
        namespace, name = objects.key(claim)
        made = PreparedClaim(namespace, name, objects.uid(claim), dict.fromkeys(_drivers(claim)))
        with self._lock:
            return self._records.setdefault(made.uid, made)

    def _endpoint(self, driver: str) -> Endpoint:
        endpoint = self._registry.endpoint(driver)
        if endpoint is None:
            raise NotReadyError(f"DRA driver {driver} is not registered")
        return endpoint

    def _call_prepare(self, endpoint: Endpoint, driver: str, records: list[PreparedClaim]) -> None:
        answers = self._call(endpoint, "NodePrepareResources", records)
        failures = []
        for record in records:
            answer = answers.get(record.uid)
            if answer is None:
                failures.append(f"NodePrepareResources skipped ResourceClaim {record.name}")
            elif answer.error:
                failures.append(f"NodePrepareResources failed for ResourceClaim {record.name}: {answer.error}")
            else:
                record.drivers[driver] = [
                    (tuple(device.request_names), tuple(device.cdi_device_ids)) for device in answer.devices
                ]
        if failures:
            raise NotReadyError("; ".join(failures))

    def unprepare(self, pod_uid: str) -> None:
        """Give up a pod's claims; those that no other pod here uses are unprepared. Raises NotReadyError."""
        with self._lock:
            records = [record for record in self._records.values() if pod_uid in record.pods]
        for record in records:
            with record.lock:
                if record.pods == {pod_uid}:
                    for driver in tuple(record.drivers):
                        self._call_unprepare(driver, record)
                    with self._lock:
                        del self._records[record.uid]
                record.pods.discard(pod_uid)

    def _call_unprepare(self, driver: str, record: PreparedClaim) -> None:
        answer = self._call(self._endpoint(driver), "NodeUnprepareResources", [record]).get(record.uid)
        if answer is None or answer.error:
            problem = answer.error if answer else "skipped"
            raise NotReadyError(f"NodeUnprepareResources failed for ResourceClaim {record.name}: {problem}")
        record.drivers[driver] = None

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


def _drivers(claim: Mapping[str, Any]) -> list[str]:
    """The drivers of an allocated claim, each once."""
    return list(
        dict.fromkeys(result["driver"] for result in claim["status"]["allocation"]["devices"].get("results") or ())
    )
