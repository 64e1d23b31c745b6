"""Which versions a server serves, found by asking it, never by its version number."""

from __future__ import annotations

from dataclasses import dataclass

from dradriver import api
from dradriver.cluster.connecting import Connection


@dataclass(frozen=True, slots=True)
class Served:
    """What the server speaks: the newest version of resource.k8s.io that answers, and paths built for it."""

    resource: api.wire.ApiVersion
    server_version: str
    resource_versions: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """`/apis/resource.k8s.io/<version>`."""
        return f"/apis/{api.wire.GROUP}/{self.resource}"


def discover(connection: Connection) -> Served:
    """Ask discovery, then confirm with a real list. Raises ClusterError when no version of the group answers."""
    raise NotImplementedError
