"""From a request to who may do what with it: authenticate, find what the path names, authorize, act."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from dradriver import api
from dradriver.lab.apiserver import decoding, discovery, statuses
from dradriver.lab.apiserver.authorizing import Authorizer
from dradriver.lab.apiserver.reading import Reader
from dradriver.lab.apiserver.requesting import Answer, Call, find_target
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
        self, kubernetes: api.Kubernetes, store: Store, authorizer: Authorizer, reader: Reader, logs: Logs
    ) -> None:
        self._kubernetes = kubernetes
        self._store = store
        self._authorizer = authorizer
        self._logs = logs
        writer = Writer(kubernetes, store, authorizer, reader)
        self._actions: Mapping[tuple[str, str], Callable[[Call], Answer]] = {
            ("list", "collection"): reader.list,
            ("watch", "collection"): reader.watch,
            ("create", "collection"): writer.create,
            ("deletecollection", "collection"): writer.delete_collection,
            ("get", "object"): reader.get,
            ("watch", "object"): reader.watch,
            ("update", "object"): writer.update,
            ("patch", "object"): writer.patch,
            ("delete", "object"): writer.delete,
            ("get", "status"): reader.get,
            ("update", "status"): writer.update,
            ("patch", "status"): writer.patch,
            ("create", "binding"): writer.bind,
            ("get", "log"): self._log,
        }

    def respond(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Answer:
        """Answer a request. Raises RefusedError."""
        caller = self._authorizer.authenticate(headers)
        if path.rstrip("/") in _OPEN_PATHS:
            return Answer(200, "ok")
        if path == "/openapi/v2":
            return Answer(200, _EMPTY_OPENAPI_V2)
        if method == "GET" and (document := discovery.describe(path, self._kubernetes)):
            return Answer(200, document)
        if (method, path) == ("POST", _REVIEWS):
            return Answer(201, _review(caller, decoding.as_object(decoding.read_document(body))))
        target = find_target(path, self._kubernetes)
        if target is None:
            raise statuses.unknown_path()
        return self._act(_VERBS.get(method, ""), Call(target, caller, query, headers, body))

    def _act(self, verb: str, call: Call) -> Answer:
        target = call.target
        if verb == "get" and call.query.get("watch") in ("true", "1"):
            verb = "watch"
        elif verb in ("get", "delete") and not target.name:
            verb = {"get": "list", "delete": "deletecollection"}[verb]
        self._authorizer.authorize(call.caller, verb, target, call.query.get("fieldSelector", ""))
        place = target.subresource or ("object" if target.name else "collection")
        act = self._actions.get((verb, place))
        if act is None:
            message = "the server does not allow this method on the requested resource"
            raise statuses.RefusedError(405, "MethodNotAllowed", message)
        return act(call)

    def _log(self, call: Call) -> Answer:
        pod = self._store.get(call.target.kind, call.target.key)
        container = call.query.get("container") or pod["spec"]["containers"][0]["name"]
        text = self._logs(pod, container)
        if text is None:
            raise statuses.bad_request(f'container "{container}" in pod "{call.target.name}" is waiting to start')
        return Answer(200, text)


def _review(caller: Identity, body: Json) -> Json:
    """Answer `kubectl auth can-i`."""
    asked = decoding.as_object(decoding.as_object(body.get("spec")).get("resourceAttributes") or {})
    resource = asked.get("resource", "") + (f".{asked['group']}" if asked.get("group") else "")
    resource += f"/{asked['subresource']}" if asked.get("subresource") else ""
    allowed = caller.may(asked.get("verb", ""), resource, asked.get("name", ""))
    return {**body, "status": {"allowed": allowed}}
