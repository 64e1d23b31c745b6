"""A connection: kubeconfig and credentials by `kubernetes`, requests and answers as raw JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Location:
    """Where the server is and who asks: kubectl's own global flags; None means what the kubeconfig says."""

    kubeconfig: str | None = None
    context: str | None = None
    cluster: str | None = None
    user: str | None = None
    server: str | None = None
    token: str | None = None
    certificate_authority: str | None = None
    insecure_skip_tls_verify: bool = False
    impersonate_user: str | None = None
    impersonate_groups: tuple[str, ...] = ()
    request_timeout: float = 30.0


class Connection:
    """One API server under one identity; safe to share between threads. Paths start with `/api` or `/apis`."""

    server: str
    namespace: str

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """GET one object (or any document). Raises ClusterError, as do all methods."""
        raise NotImplementedError

    def list(
        self, path: str, *, field_selector: str = "", label_selector: str = ""
    ) -> tuple[list[dict[str, Any]], str]:
        """All items, read in pages, and the list's resource version. Each item gets its apiVersion and kind."""
        raise NotImplementedError

    def create(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST an object to its collection."""
        raise NotImplementedError

    def replace(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """PUT an object (its path may end in /status)."""
        raise NotImplementedError

    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """PATCH with a JSON merge patch."""
        raise NotImplementedError

    def delete(self, path: str, *, uid: str | None = None, resource_version: str | None = None) -> dict[str, Any]:
        """DELETE, with preconditions where given."""
        raise NotImplementedError

    def watch(
        self,
        path: str,
        *,
        resource_version: str,
        field_selector: str = "",
        label_selector: str = "",
        server_seconds: float,
        idle_seconds: float,
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Events (type, object), bookmarks included, until the server closes; ERROR events raise (410: GoneError)."""
        raise NotImplementedError


def connect(location: Location) -> Connection:
    """Open a connection from a kubeconfig, or from the pod's account where there is none. Raises ClusterError."""
    raise NotImplementedError
