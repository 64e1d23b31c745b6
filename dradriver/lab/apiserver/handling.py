"""From a request to who may do what with it: authenticate, find what the path names, authorize, act."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dradriver import api
from dradriver.lab.apiserver import decoding, discovery, statuses
from dradriver.lab.apiserver.addressing import Target, find_target
from dradriver.lab.apiserver.authorizing import Authorizer
from dradriver.lab.apiserver.reading import Reader
from dradriver.lab.apiserver.requesting import Answer, Request
from dradriver.lab.apiserver.storage import Json, Store
from dradriver.lab.apiserver.writing import Writer
from dradriver.lab.identities import Identity

Logs: TypeAlias = Callable[[Json, str], str | None]
"""What a container of a pod has written; None where nothing runs."""

_OPEN_PATHS = ("/healthz", "/livez", "/readyz")
# kubectl falls back to it for kinds that version 3 does not have, and reads it as protobuf: `swagger: "2.0"`.
_EMPTY_OPENAPI_V2 = "\n\x032.0"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Endpoints:
    """Everything behind the HTTP server."""

    def __init__(
        self,
        kubernetes: api.Kubernetes,
        store: Store,
        authorizer: Authorizer,
        clock: Callable[[], float],
        *,
        bookmark_seconds: float,
        logs: Logs,
    ) -> None:
        self._kubernetes = kubernetes
        self._store = store
        self._authorizer = authorizer
        self._logs = logs
        self._reader = Reader(store, clock, bookmark_seconds=bookmark_seconds)
        self._writer = Writer(kubernetes, store, authorizer, self._reader)

    def respond(self, request: Request) -> Answer:
        """Answer a request. Raises RefusedError."""
        try:
            return self._respond(request)
        except api.ApiError as error:
            raise statuses.bad_request(str(error)) from error

    def _respond(self, request: Request) -> Answer:
        caller = self._authorizer.authenticate(request.headers)
        if request.path.rstrip("/") in _OPEN_PATHS:
            return Answer(200, "ok")
        if request.path == "/openapi/v2":
            return Answer(200, _EMPTY_OPENAPI_V2)
        if request.method == "GET" and (document := discovery.describe(request.path, self._kubernetes)):
            return Answer(200, document)
        if request.path == _REVIEWS and request.method == "POST":
            return Answer(201, _review(caller, decoding.read_object(request.body)))
        target = find_target(request.path, self._kubernetes)
        if target is None:
            raise statuses.unknown_path()
        return self._act(request, target, caller)

    def _act(self, request: Request, target: Target, caller: Identity) -> Answer:
        verb = _VERBS.get(request.method, "")
        if verb == "get" and request.query.get("watch") in ("true", "1"):
            verb = "watch"
        elif verb in ("get", "delete") and not target.name:
            verb = {"get": "list", "delete": "deletecollection"}[verb]
        self._authorizer.authorize(caller, verb, target, request.query.get("fieldSelector", ""))
        read, write = self._reader, self._writer
        act = {
            ("get", True): lambda: read.get(request, target),
            ("list", False): lambda: read.list(request, target),
            ("watch", False): lambda: read.watch(request, target),
            ("watch", True): lambda: read.watch(request, target),
            ("get", "log"): lambda: self._log(request, target),
            ("create", False): lambda: write.create(request, target, caller),
            ("create", "binding"): lambda: write.bind(request, target),
            ("update", True): lambda: write.replace(request, target, caller),
            ("patch", True): lambda: write.patch(request, target, caller),
            ("delete", True): lambda: write.delete(request, target, caller),
            ("deletecollection", False): lambda: write.delete_collection(request, target, caller),
        }.get((verb, target.subresource if target.subresource in ("binding", "log") else bool(target.name)))
        if act is None or (target.subresource and verb in ("watch", "delete")):
            message = "the server does not allow this method on the requested resource"
            raise statuses.RefusedError(405, "MethodNotAllowed", message)
        return act()

    def _log(self, request: Request, target: Target) -> Answer:
        pod = self._store.get(target.kind, target.key)
        container = request.query.get("container") or pod["spec"]["containers"][0]["name"]
        text = self._logs(pod, container)
        if text is None:
            why = f'container "{container}" in pod "{target.name}" is waiting to start'
            raise statuses.bad_request(why)
        return Answer(200, text)


def _review(caller: Identity, body: Json) -> Json:
    """Answer `kubectl auth can-i`."""
    asked = decoding.as_object(decoding.as_object(body.get("spec")).get("resourceAttributes") or {})
    resource = asked.get("resource", "") + (f".{asked['group']}" if asked.get("group") else "")
    resource += f"/{asked['subresource']}" if asked.get("subresource") else ""
    allowed = caller.may(asked.get("verb", ""), resource, asked.get("name", ""))
    return {**body, "status": {"allowed": allowed}}
