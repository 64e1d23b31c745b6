"""What serves the lab's API and places its pods: our own API server, claim controller and scheduler.

A real control plane (`dradriver.lab.realcluster`) stands in for them where it is asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from dradriver import api, cluster
from dradriver.lab.apiserver import ApiServer
from dradriver.lab.certificates import Certificates
from dradriver.lab.claiming import ClaimController
from dradriver.lab.identities import Identity
from dradriver.lab.scheduling import Scheduler

Logs = Callable[[dict[str, Any], str], str | None]
"""What a pod's container has written, for `kubectl logs`."""


class ControlPlane(Protocol):
    """One control plane. `start` once, `stop` once, also after a start that failed."""

    @property
    def url(self) -> str:
        """Where it is, known before it starts."""

    @property
    def certificates(self) -> Certificates:
        """What its clients trust."""

    def start(self) -> None:
        """Start it and wait until it serves."""

    def stop(self) -> None:
        """End it."""


class EmbeddedControlPlane:
    """The stand-ins, in threads of this process."""

    def __init__(
        self,
        kubernetes: api.Kubernetes,
        everyone: Iterable[Identity],
        certificates: Certificates,
        *,
        logs: Logs,
        connecting: Callable[[], cluster.Connection],
    ) -> None:
        """Put them together.

        Args:
            kubernetes: The version to emulate.
            everyone: Who may talk to the server.
            certificates: The server's.
            logs: What a container has written.
            connecting: Opens the controllers' own connection, once the server is up.
        """
        self._kubernetes = kubernetes
        self._connecting = connecting
        self._server = ApiServer(kubernetes, everyone, certificates, logs=logs)
        self._controllers: list[ClaimController | Scheduler] = []
        self.url = self._server.url
        self.certificates = certificates

    def start(self) -> None:
        """Start the server, then the controllers."""
        self._server.start()
        connection = self._connecting()
        served = cluster.discover(connection)
        self._controllers = [ClaimController(connection, served), Scheduler(connection, served, self._kubernetes)]
        for controller in self._controllers:
            controller.start()

    def stop(self) -> None:
        """End the controllers, then the server."""
        at_once(controller.stop for controller in self._controllers)
        self._server.stop()


def at_once(calls: Iterator[Callable[[], None]]) -> None:
    """Make calls in a thread each and wait for all."""
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
