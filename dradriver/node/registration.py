"""Being registered with the kubelet.

The kubelet gives GetInfo one second, so it is answered from memory by threads of its own, whatever Prepare is doing. Up
to Kubernetes 1.35 a registration that fails after GetInfo is never tried again unless the socket is made anew
(kubernetes#133725), so that is done until one succeeds, with growing pauses.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from dradriver.node import logs
from dradriver.node.sockets import SocketServer
from dradriver.protocol import pluginregistration_pb2 as messages
from dradriver.protocol import services

log = logs.Logger("registration")

FIRST_WAIT_SECONDS = 15.0
LONGEST_WAIT_SECONDS = 120.0
CHECK_SECONDS = 2.0


class Registration:
    """The registration service and the thread that sees to its success."""

    def __init__(
        self,
        path: Path,
        *,
        driver: str,
        endpoint: Path,
        first_wait: float = FIRST_WAIT_SECONDS,
        check_seconds: float = CHECK_SECONDS,
    ) -> None:
        """`endpoint` is the socket of the DRA services, as the kubelet sees it."""
        self._info = messages.PluginInfo(
            type=services.PLUGIN_TYPE,
            name=driver,
            endpoint=str(endpoint),
            # The kubelet takes the first that it knows.
            supported_versions=[services.DRA_V1.advertised, services.DRA_V1BETA1.advertised],
        )
        handler = services.handler(
            services.REGISTRATION, {"GetInfo": self._get_info, "NotifyRegistrationStatus": self._notify}
        )
        self._server = SocketServer(path, [handler], threads=2)
        self._first_wait = first_wait
        self._check_seconds = check_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="registration", daemon=True)
        self.registered = False
        self.problem = "the kubelet has not called yet"

    def start(self) -> None:
        """Serve, and see to it that a registration succeeds. Raises SettingsError when the socket cannot be made."""
        self._server.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop and remove the socket, from which the kubelet learns that the plugin goes."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._server.stop(1)

    def _get_info(self, _request: Any, _context: Any) -> messages.PluginInfo:
        log.debug("kubelet asked who this is")
        return self._info

    def _notify(self, request: messages.RegistrationStatus, _context: Any) -> messages.RegistrationStatusResponse:
        self.registered = request.plugin_registered
        self.problem = "" if request.plugin_registered else request.error or "refused without a reason"
        if request.plugin_registered:
            log.info("registered with the kubelet", driver=self._info.name)
        else:
            log.problem("kubelet refused the registration", driver=self._info.name, error=self.problem)
        return messages.RegistrationStatusResponse()

    def _watch(self) -> None:
        wait = self._first_wait
        waited = 0.0
        while not self._stop.wait(self._check_seconds):
            waited += self._check_seconds
            if self.registered:
                wait, waited = self._first_wait, 0.0
            if self._server.present and waited < wait:
                continue
            log.info("making the registration socket anew", registered=self.registered, problem=self.problem)
            if waited >= wait:
                wait = min(wait * 2, LONGEST_WAIT_SECONDS)
            waited = 0.0
            self._restart()

    def _restart(self) -> None:
        try:
            self._server.restart()
        except Exception as error:  # noqa: BLE001 - tried again at the next check; nothing else may end this thread
            log.problem("cannot make the registration socket", error=str(error))
