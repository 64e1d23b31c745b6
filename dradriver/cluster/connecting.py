"""A connection: kubeconfig and credentials by `kubernetes`, requests and answers as raw JSON.

Raw, because typed models drop fields that they do not know, and what is read here may be written back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from dradriver.cluster import kubeconfigs
from dradriver.cluster.errors import ClusterError, GoneError, InvalidError, UnreachableError
from dradriver.cluster.kubeconfigs import Choice, Entry
from dradriver.cluster.requesting import Request
from dradriver.cluster.watching import Lines, Watch

Objects: TypeAlias = list[dict[str, Any]]

_PAGE = 500
_NO_LIMIT_SECONDS = 3600.0  # what a time-out of 0, kubectl's word for none, means here
_PAGED_ATTEMPTS = 2  # lists whose continue token expired are begun again; after these in one piece


@dataclass(frozen=True, slots=True)
class Location:
    """Where the server is and who asks: kubectl's own global flags; None means what the kubeconfig says.

    `request_timeout` is in seconds, for one request and its answer.
    """

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


class Sender(Protocol):
    """What a connection sends its requests through."""

    server: str

    def send(self, request: Request, seconds: float) -> bytes:
        """The body of the answer, which came within about `seconds`. Raises ClusterError for anything else."""

    def stream(self, request: Request, idle_seconds: float) -> Lines:
        """An accepted answer that goes on; it ends after a silence of `idle_seconds`."""

    def close(self) -> None:
        """Close idle connections."""


class Connection:
    """One API server under one identity; safe to share between threads. Paths start with `/api` or `/apis`.

    Every method raises ClusterError. A GET whose connection breaks off before the answer is repeated once, nothing
    else is.
    """

    def __init__(self, sender: Sender, namespace: str, request_timeout: float) -> None:
        self.server = sender.server
        self.namespace = namespace
        self._sender = sender
        self._seconds = request_timeout if request_timeout > 0 else _NO_LIMIT_SECONDS

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """GET one object (or any document)."""
        return self._send(Request("GET", path, query or {}))

    def list(self, path: str, *, field_selector: str = "", label_selector: str = "") -> tuple[Objects, str]:
        """All items, read in pages, and the list's resource version. Each item gets its apiVersion and kind."""
        selectors = _selectors(field_selector, label_selector)
        for _ in range(_PAGED_ATTEMPTS):
            try:
                return self._list_paged(path, {**selectors, "limit": str(_PAGE)})
            except GoneError:
                continue
        return self._list_paged(path, selectors)

    def create(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST an object to its collection."""
        return self._send(Request("POST", path, {}, _json(body)))

    def replace(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """PUT an object (its path may end in /status)."""
        return self._send(Request("PUT", path, {}, _json(body)))

    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """PATCH with a JSON merge patch."""
        return self._send(Request("PATCH", path, {}, _json(patch), "application/merge-patch+json"))

    def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_seconds: int | None = None,
    ) -> dict[str, Any]:
        """DELETE, with preconditions and grace period where given. The answer is the object, or a Status."""
        given = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {key: value for key, value in given.items() if value is not None}
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions:
            options["preconditions"] = preconditions
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        return self._send(Request("DELETE", path, {}, _json(options)))

    def watch(
        self,
        path: str,
        *,
        resource_version: str,
        field_selector: str = "",
        label_selector: str = "",
        server_seconds: float,
        idle_seconds: float,
    ) -> Watch:
        """Events after `resource_version`, bookmarks included. The server is asked to end it after `server_seconds`.

        Sends the request before it returns, so what the server refuses (403, 410) is raised here.
        """
        query = {
            **_selectors(field_selector, label_selector),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, round(server_seconds))),
        }
        return Watch(self.server, path, self._sender.stream(Request("GET", path, query), idle_seconds))

    def close(self) -> None:
        """Close idle connections; a later request opens new ones."""
        self._sender.close()

    def _list_paged(self, path: str, query: Mapping[str, str]) -> tuple[Objects, str]:
        items: Objects = []
        token = ""
        while True:
            page = self._send(Request("GET", path, {**query, "continue": token} if token else query))
            metadata = page.get("metadata") or {}
            api_version, kind = page.get("apiVersion", ""), str(page.get("kind", "")).removesuffix("List")
            for item in page.get("items") or ():
                if not isinstance(item, dict):
                    raise ClusterError(f"GET {path} on {self.server}: item {str(item)[:80]!r} is no object")
                item.setdefault("apiVersion", api_version)
                item.setdefault("kind", kind)
                items.append(item)
            token = metadata.get("continue") or ""
            if not token:
                return items, str(metadata.get("resourceVersion") or "")

    def _send(self, request: Request) -> dict[str, Any]:
        body = self._sender.send(request, self._seconds)
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise ClusterError(
                f"{request} on {self.server} answered {body[:80]!r}, expected a JSON object: "
                "check that the address is an API server's"
            )
        return document


def connect(location: Location) -> Connection:
    """Open a connection from a kubeconfig, or from the pod's account where there is none.

    Nothing is sent to the server yet; an exec plugin or identity provider may run.

    Raises:
        UnreachableError: no kubeconfig that names a server, or something wrong in it.
        UnauthorizedError: a login in the kubeconfig failed.
        InvalidError: flags that do not go together.

    """
    from dradriver.cluster.transporting import Transport  # noqa: PLC0415 - brings `kubernetes`, 0.3 s of import

    choice = _overridden(_choice(location), location)
    transport = Transport(choice, _impersonation(choice, location))
    return Connection(transport, choice.namespace, location.request_timeout)


def _choice(location: Location) -> Choice:
    files = kubeconfigs.find(location.kubeconfig, os.environ)
    if files:
        config = kubeconfigs.read(files)
        if location.server is None or location.context or location.cluster or config.current_context:
            return config.choose(location.context, location.cluster, location.user)
    if location.server is not None:
        return Choice(Entry("--server", None, {}), None, "default")
    if pod := kubeconfigs.in_pod(os.environ):
        return pod
    raise UnreachableError(
        "no kubeconfig found: give --kubeconfig, or set KUBECONFIG (looked at KUBECONFIG, ~/.kube/config and the "
        "service account of a pod)"
    )


def _overridden(choice: Choice, location: Location) -> Choice:
    cluster = dict(choice.cluster.content)
    if location.server is not None:
        cluster["server"] = location.server
        cluster.pop("tls-server-name", None)
    if location.certificate_authority is not None:
        cluster.pop("certificate-authority-data", None)
        cluster["certificate-authority"] = os.path.abspath(location.certificate_authority)  # noqa: PTH100 - `..` stays
    if location.insecure_skip_tls_verify:
        cluster["insecure-skip-tls-verify"] = True
    user = choice.user
    if location.token is not None:
        # The whole user goes: a server that is shown a client certificate as well takes that for the identity.
        user = Entry("--token", None, {"token": location.token})
    return replace(choice, cluster=replace(choice.cluster, content=cluster), user=user)


def _impersonation(choice: Choice, location: Location) -> tuple[tuple[str, str], ...]:
    content: Mapping[str, Any] = choice.user.content if choice.user else {}
    user = location.impersonate_user or content.get("as")
    groups = location.impersonate_groups or tuple(content.get("as-groups") or ())
    if groups and not user:
        raise InvalidError(f"--as-group {groups[0]} needs --as: name the user to act as")
    return tuple(
        [("Impersonate-User", str(user))] * bool(user) + [("Impersonate-Group", str(group)) for group in groups]
    )


def _selectors(field_selector: str, label_selector: str) -> dict[str, str]:
    selectors = {"fieldSelector": field_selector, "labelSelector": label_selector}
    return {key: value for key, value in selectors.items() if value}


def _json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()
