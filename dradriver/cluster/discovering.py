"""Which versions a server serves, found by asking it, never by its version number.

The preferred version is no guide: servers with everything on have named a beta as preferred. Discovery is none alone:
it may name a version in which the main kinds are gone. So the newest one that answers a list is taken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dradriver import api
from dradriver.cluster.connecting import Connection
from dradriver.cluster.errors import ClusterError, ForbiddenError, NotFoundError

_OLDEST_MINOR = 32
_NEWEST_MINOR = 37
_FIRST_MINOR_WITH_V1 = 34


@dataclass(frozen=True, slots=True)
class Served:
    """What the server speaks: the newest version of resource.k8s.io that answers, and paths built for it.

    `server_version` is as the server writes it (`v1.34.2+k3s1`), empty where it did not tell. `resource_versions` are
    all versions of the group that discovery names, alpha ones included.
    """

    resource: api.wire.ApiVersion
    server_version: str
    resource_versions: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """`/apis/resource.k8s.io/<version>`."""
        return f"/apis/{api.wire.GROUP}/{self.resource}"

    def kubernetes(self) -> api.Kubernetes:
        """The rules of this server's minor version, with its default gates. Raises ClusterError below 1.32."""
        return assume_kubernetes(self.server_version)[0]

    def assumptions(self) -> tuple[str, ...]:
        """What `kubernetes` takes for granted, as sentences."""
        return assume_kubernetes(self.server_version)[1]


def discover(connection: Connection) -> Served:
    """Ask discovery, then confirm with a real list. Raises ClusterError when no version of the group answers."""
    server_version = _server_version(connection)
    try:
        group = connection.get(f"/apis/{api.wire.GROUP}")
        names = tuple(str(version.get("version")) for version in group.get("versions") or ())
    except NotFoundError:
        names = ()
    except ForbiddenError:  # discovery may be closed to this caller; then the lists alone tell
        names = tuple(api.wire.ApiVersion)
    for version in api.wire.ApiVersion:
        if version in names and _answers(connection, version):
            return Served(version, server_version, names)
    raise ClusterError(_off(connection.server, server_version))


def assume_kubernetes(server_version: str) -> tuple[api.Kubernetes, tuple[str, ...]]:
    """The rules for a server's version and what that takes for granted. Raises ClusterError below 1.32."""
    minor = minor_of(server_version)
    if minor is not None and minor < _OLDEST_MINOR:
        raise ClusterError(f"the server is Kubernetes {server_version}: gpupool needs 1.{_OLDEST_MINOR} or newer")
    known = _NEWEST_MINOR if minor is None else min(minor, _NEWEST_MINOR)
    # Off by default in 1.32 and 1.33, but where its objects are, it is on.
    rules = api.Kubernetes.release(f"1.{known}", {"DynamicResourceAllocation": True})
    assumption = f"Kubernetes {rules} with its default feature gates"
    if minor is None:
        assumption += ": the server's version is unknown"
    elif minor > _NEWEST_MINOR:
        assumption += f", the newest known here, in place of {server_version}"
    return rules, (assumption,)


def minor_of(server_version: str) -> int | None:
    """34 for `v1.34.2+k3s1`, None for what is no version of Kubernetes 1."""
    match = re.match(r"v?1\.(\d+)", server_version)
    return int(match[1]) if match else None


def _server_version(connection: Connection) -> str:
    try:
        return str(connection.get("/version").get("gitVersion") or "")
    except (ForbiddenError, NotFoundError):
        return ""


def _answers(connection: Connection, version: str) -> bool:
    try:
        connection.get(f"/apis/{api.wire.GROUP}/{version}/resourceslices", {"limit": "1"})
    except ForbiddenError:
        return True  # authorization comes after routing: what may not be read is served
    except NotFoundError:
        return False
    return True


def _off(server: str, server_version: str) -> str:
    minor = minor_of(server_version)
    message = f"{server} does not serve {api.wire.GROUP}: Dynamic Resource Allocation is off or missing"
    if minor is None:
        return f"{message}: it needs Kubernetes 1.34 or newer, or 1.32 with the feature switched on"
    if minor < _OLDEST_MINOR:
        return f"{message}: the server is {server_version}, gpupool needs 1.{_OLDEST_MINOR} or newer"
    if minor >= _FIRST_MINOR_WITH_V1:
        return (
            f"{message}: on {server_version} it is on by default, so look for resource.k8s.io/v1=false in the API "
            "server's --runtime-config and for DynamicResourceAllocation=false in its --feature-gates"
        )
    versions = ",".join(f"{api.wire.GROUP}/{version}=true" for version in api.Kubernetes.release(f"1.{minor}").served)
    return (
        f"{message}: on {server_version} set the feature gate DynamicResourceAllocation=true on API server, controller "
        f"manager, scheduler and kubelets, and --runtime-config={versions} on the API server"
    )
