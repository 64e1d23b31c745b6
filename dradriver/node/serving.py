"""The DRA services: what the kubelet calls, in v1 and v1beta1, from one implementation.

Every claim of a request has an entry in the response: one left out fails the whole pod. What goes wrong with one claim
is that claim's error; only a request that cannot be read at all would be an error of the call.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from dradriver import api
from dradriver.node import logs
from dradriver.node.claims import PreparedClaim, PreparedDevice
from dradriver.node.errors import NodeError, PrepareError
from dradriver.node.observing import Tally
from dradriver.protocol import dra_v1_pb2, dra_v1beta1_pb2, services

log = logs.Logger("serving")

Prepare = Callable[[api.UID, str, str, Callable[[], bool]], PreparedClaim]
"""Prepare a claim (uid, namespace, name) if, once it is its turn, it is still wanted. Raises NodeError."""
Unprepare = Callable[[api.UID], bool]
"""Release a claim; whether it was held. Raises NodeError."""
CdiIds = Callable[[PreparedClaim, PreparedDevice], tuple[str, ...]]

_CANNOT = {"prepare": "cannot prepare claim", "unprepare": "cannot unprepare claim"}

_UID = re.compile(r"[0-9A-Za-z-]{1,63}")

CALL_SECONDS = 12.0
"""When a call stops beginning work on further claims; the kubelet gives up after 45 s."""


class Services:
    """The handlers of both versions."""

    def __init__(self, prepare: Prepare, unprepare: Unprepare, cdi_ids: CdiIds, tally: Tally) -> None:
        self._prepare = prepare
        self._unprepare = unprepare
        self._cdi_ids = cdi_ids
        self._tally = tally
        self._request_ids = itertools.count(1)

    def handlers(self) -> tuple[Any, ...]:
        """What a gRPC server is given."""
        return tuple(
            services.handler(
                service,
                {
                    "NodePrepareResources": self._preparing(service.advertised, messages),
                    "NodeUnprepareResources": self._unpreparing(service.advertised, messages),
                },
            )
            for service, messages in ((services.DRA_V1, dra_v1_pb2), (services.DRA_V1BETA1, dra_v1beta1_pb2))
        )

    def _preparing(self, version: str, messages: ModuleType) -> Callable[[Any, Any], Any]:
        with_shares = "share_id" in messages.Device.DESCRIPTOR.fields_by_name

        def handle(request: Any, context: Any) -> Any:
            number = self._begin("NodePrepareResources", version, request.claims)
            deadline = time.monotonic() + CALL_SECONDS
            response = messages.NodePrepareResourcesResponse()
            for claim in request.claims:
                entry = response.claims[claim.uid]  # a map of messages makes the entry when it is asked for
                with self._tally.timed("prepare") as outcome:
                    try:
                        _check_reference(claim)
                        _check_time(deadline)
                        _check_wanted(context)
                        prepared = self._prepare(api.UID(claim.uid), claim.namespace, claim.name, context.is_active)
                        for device in prepared.devices:
                            self._add(entry, prepared, device, with_shares=with_shares)
                    except Exception as error:  # noqa: BLE001 - becomes the claim's error, so that other claims live
                        del entry.devices[:]
                        entry.error = outcome.error = _text("prepare", number, claim, error)
                if not entry.error:
                    log.info(
                        "prepared claim",
                        claim=f"{claim.namespace}/{claim.name}",
                        uid=claim.uid,
                        devices=",".join(device.device_name for device in entry.devices),
                        requestID=number,
                        seconds=outcome.seconds,
                    )
            return response

        return handle

    def _add(self, entry: Any, claim: PreparedClaim, device: PreparedDevice, *, with_shares: bool) -> None:
        added = entry.devices.add(
            request_names=device.requests,
            pool_name=device.pool,
            device_name=device.name,
            cdi_device_ids=self._cdi_ids(claim, device),
        )
        if with_shares and device.share_id is not None:
            added.share_id = device.share_id

    def _unpreparing(self, version: str, messages: ModuleType) -> Callable[[Any, Any], Any]:
        def handle(request: Any, _context: Any) -> Any:
            number = self._begin("NodeUnprepareResources", version, request.claims)
            response = messages.NodeUnprepareResourcesResponse()
            for claim in request.claims:
                entry = response.claims[claim.uid]
                with self._tally.timed("unprepare") as outcome:
                    try:
                        held = _is_reference(claim) and self._unprepare(api.UID(claim.uid))
                    except Exception as error:  # noqa: BLE001 - as in prepare
                        entry.error = outcome.error = _text("unprepare", number, claim, error)
                if not entry.error:
                    log.info(
                        "unprepared claim" if held else "nothing to unprepare",
                        claim=f"{claim.namespace}/{claim.name}",
                        uid=claim.uid,
                        requestID=number,
                        seconds=outcome.seconds,
                    )
            return response

        return handle

    def _begin(self, method: str, version: str, claims: Iterable[Any]) -> int:
        number = next(self._request_ids)
        log.debug(
            "kubelet called",
            method=method,
            version=version,
            requestID=number,
            claims=",".join(f"{claim.namespace}/{claim.name}:{claim.uid}" for claim in claims),
        )
        return number


def _check_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise PrepareError("not begun, other claims of the call took too long; the kubelet tries again")


def _is_reference(claim: Any) -> bool:
    """Whether this can name a claim at all; what is made of it are paths, on the server and on disk."""
    names = api.names.is_dns_subdomain(claim.name) and api.names.is_dns_label(claim.namespace)
    return names and _UID.fullmatch(claim.uid) is not None


def _check_reference(claim: Any) -> None:
    if not _is_reference(claim):
        raise PrepareError(
            f"{claim.namespace!r}/{claim.name!r} with UID {claim.uid!r} can be no claim; see the kubelet"
        )


def _check_wanted(context: Any) -> None:
    if not context.is_active():
        raise PrepareError("not begun, the kubelet gave up the call before its turn came")


def _text(what: str, number: int, claim: Any, error: Exception) -> str:
    pairs = {"claim": f"{claim.namespace}/{claim.name}", "uid": claim.uid, "requestID": number}
    if isinstance(error, NodeError):
        log.problem(_CANNOT[what], **pairs, error=str(error))
        return str(error)
    log.bug(_CANNOT[what], error, **pairs)
    return f"{what} failed in a way nobody foresaw ({type(error).__name__}: {error}); the plugin's log has the place"
