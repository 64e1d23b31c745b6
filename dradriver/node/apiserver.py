"""The API server as the node plugin sees it: opened when first needed, so that sockets are served before it answers.

Loading the client and asking discovery takes longer than anything else at start, and the server may be away; nothing
that can do without it waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from dradriver import api, cluster

REQUEST_SECONDS = 8.0
"""Time-out of one request, for whoever opens the connection; the kubelet gives a whole call of its own 45 s."""
DISCOVERY_SECONDS = 5.0
"""How long a call of the kubelet waits for what the publisher's thread finds out about the server."""


class ApiServer:
    """A connection that opens itself and knows which version of the group to use.

    Only the publisher's thread calls `served` and so waits for connecting and discovery; the rest is for all threads.
    """

    def __init__(self, opening: Callable[[], cluster.Connection]) -> None:
        self._opening = opening
        self._connection: cluster.Connection | None = None
        self._served: cluster.Served | None = None
        self._stale = False
        self._known = threading.Event()

    def connection(self) -> cluster.Connection:
        """The connection. Raises ClusterError."""
        if self._connection is None:
            self._connection = self._opening()
        return self._connection

    def served(self) -> cluster.Served:
        """What the server serves. Raises ClusterError."""
        if self._served is None or self._stale:
            self._served = cluster.discover(self.connection())
            self._stale = False
            self._known.set()
        return self._served

    def rediscover(self) -> None:
        """Ask anew what is served: a path is gone, so perhaps the version is. The old holds until then."""
        self._stale = True

    def claim(self, namespace: str, name: str) -> api.ResourceClaim:
        """A claim as it is now. Raises ClusterError (NotFoundError when there is none) or WireError."""
        connection, path = self._claims(namespace)
        return api.wire.read_claim(connection.get(f"{path}/{name}"))

    def claim_by_uid(self, namespace: str, uid: api.UID) -> api.ResourceClaim | None:
        """A claim found in the list of its namespace; None when it is gone for certain. Raises as `claim`.

        A 404 to its own path could also mean that the server has dropped this version of the group.
        """
        connection, path = self._claims(namespace)
        items, _ = connection.list(path)
        return next((api.wire.read_claim(item) for item in items if item["metadata"]["uid"] == uid), None)

    def _claims(self, namespace: str) -> tuple[cluster.Connection, str]:
        self._known.wait(DISCOVERY_SECONDS)
        connection, served = self._connection, self._served
        if connection is None or served is None:
            raise cluster.UnreachableError("the API server has not answered since this plugin started")
        return connection, f"{served.prefix}/namespaces/{namespace}/resourceclaims"

    def close(self) -> None:
        """Close idle connections."""
        if self._connection is not None:
            self._connection.close()

    def node_uid(self, name: str) -> api.UID:
        """The UID of a node. Raises ClusterError."""
        return api.UID(self.connection().get(f"/api/v1/nodes/{name}")["metadata"]["uid"])
