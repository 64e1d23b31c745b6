"""The verbs: what each request does to the store, and what it answers.

Order at a write, as on a real server: authorize, decode (misspelt fields are reported or warned of), convert, drop
what no gate allows, complete, check, admit, store. Everything from reading the old object on happens under the store's
lock, so a patch never races another write.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dradriver import api
from dradriver.lab.apiserver import (
    applying,
    converting,
    decoding,
    discovery,
    kinds,
    selecting,
    statuses,
    tables,
    watching,
)
from dradriver.lab.apiserver.addressing import Target, find_target
from dradriver.lab.apiserver.authorizing import Authorizer
from dradriver.lab.apiserver.rules import Rules
from dradriver.lab.apiserver.schemas import Schemas
from dradriver.lab.apiserver.storage import Json, Removal, Store
from dradriver.lab.identities import Identity

Build: TypeAlias = Callable[[Json], Json]
Logs: TypeAlias = Callable[[Json, str], str | None]
"""What a container of a pod has written; None where nothing runs."""

_OPEN_PATHS = ("/healthz", "/livez", "/readyz")
# kubectl falls back to it for kinds that version 3 does not have, and reads it as protobuf: `swagger: "2.0"`.
_EMPTY_OPENAPI_V2 = "\n\x032.0"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_LONGEST_WATCH_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Request:
    """One request, its query reduced to the last value of each parameter."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def as_table(self) -> bool:
        """Whether the client wants rows to print."""
        return "as=Table" in (self.headers.get("Accept") or "")


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: a JSON document, plain text, or a stream of documents (None: nothing to say yet)."""

    code: int
    body: Json | str | Iterator[Json | None]
    warnings: list[str] = field(default_factory=list)


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
        self._clock = clock
        self._bookmark_seconds = bookmark_seconds
        self._logs = logs
        self._rules = Rules(kubernetes, store.now, self._labels)

    def respond(self, request: Request) -> Answer:
        """Answer a request. Raises RefusedError."""
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
        act = {
            ("get", True): lambda: self._shown(request, target, 200, self._store.get(target.kind, target.key)),
            ("list", False): lambda: self._list(request, target),
            ("watch", False): lambda: self._watch(request, target),
            ("watch", True): lambda: self._watch(request, target),
            ("create", False): lambda: self._create(request, target, caller),
            ("create", "binding"): lambda: self._bind(request, target),
            ("get", "log"): lambda: self._log(request, target),
            ("update", True): lambda: self._replace(request, target, caller),
            ("patch", True): lambda: self._patch(request, target, caller),
            ("delete", True): lambda: self._delete(request, target, caller),
            ("deletecollection", False): lambda: self._delete_collection(request, target, caller),
        }.get((verb, target.subresource if target.subresource in ("binding", "log") else bool(target.name)))
        if act is None or (target.subresource and verb in ("watch", "delete")):
            message = "the server does not allow this method on the requested resource"
            raise statuses.RefusedError(405, "MethodNotAllowed", message)
        return act()

    def _labels(self, namespace: str) -> Mapping[str, str]:
        meta = self._store.get(kinds.NAMESPACE, ("", namespace))["metadata"]
        return dict(meta.get("labels") or {})

    def _show(self, target: Target) -> Build:
        return lambda obj: converting.show(target.kind, obj, target.version)

    def _shown(
        self, request: Request, target: Target, code: int, obj: Json, warnings: list[str] | None = None
    ) -> Answer:
        body = self._show(target)(obj)
        if request.as_table:
            body = self._table(request, [body], {"resourceVersion": obj["metadata"]["resourceVersion"]}, target)
        return Answer(code, body, warnings or [])

    def _table(self, request: Request, items: list[Json], meta: Json, target: Target, *, header: bool = True) -> Json:
        include = request.query.get("includeObject", "Metadata")
        return tables.table(target.kind, items, self._clock(), include=include, meta=meta, header=header)

    def _list(self, request: Request, target: Target) -> Answer:
        test = _test(request, target)
        found, version = self._store.items(target.kind, target.namespace)
        meta: Json = {"resourceVersion": str(version)}
        chosen = [(key, obj) for key, obj in found if test(obj)]
        if token := request.query.get("continue"):
            started, after = _read_token(token)
            self._store.check_version(target.kind, started)
            meta["resourceVersion"] = str(started)
            chosen = [(key, obj) for key, obj in chosen if key > after]
        limit = int(request.query.get("limit") or 0)
        if limit and len(chosen) > limit:
            meta["continue"] = _write_token(int(meta["resourceVersion"]), chosen[limit - 1][0])
            meta["remainingItemCount"] = len(chosen) - limit
            chosen = chosen[:limit]
        items = [self._show(target)(obj) for _, obj in chosen]
        if request.as_table:
            return Answer(200, self._table(request, items, meta, target))
        items = [{k: v for k, v in item.items() if k not in ("apiVersion", "kind")} for item in items]
        kind = f"{target.kind.kind}List"
        return Answer(200, {"kind": kind, "apiVersion": target.api_version, "metadata": meta, "items": items})

    def _watch(self, request: Request, target: Target) -> Answer:
        query = request.query
        wish = watching.Wish(
            version=int(query.get("resourceVersion") or 0),
            initial_end=query.get("sendInitialEvents") == "true",
            bookmarks=query.get("allowWatchBookmarks") == "true",
            seconds=min(float(query.get("timeoutSeconds") or _LONGEST_WATCH_SECONDS), _LONGEST_WATCH_SECONDS),
        )
        test = _test(request, target)
        events = watching.watch(
            self._store,
            target,
            test,
            wish,
            self._show(target),
            bookmark_seconds=self._bookmark_seconds,
            clock=self._clock,
        )
        return Answer(200, self._table_events(request, target, events) if request.as_table else events)

    def _table_events(self, request: Request, target: Target, events: Iterator[Json | None]) -> Iterator[Json | None]:
        header = True
        for event in events:
            if event is None or event["type"] in ("BOOKMARK", "ERROR"):
                yield event
                continue
            meta = {"resourceVersion": event["object"]["metadata"]["resourceVersion"]}
            yield {**event, "object": self._table(request, [event["object"]], meta, target, header=header)}
            header = False

    def _create(self, request: Request, target: Target, caller: Identity, body: Json | None = None) -> Answer:
        body = decoding.read_object(request.body) if body is None else body
        meta = body.setdefault("metadata", {})
        if target.kind.namespaced and meta.setdefault("namespace", target.namespace) != target.namespace:
            raise statuses.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        if meta.get("resourceVersion"):
            raise statuses.bad_request("resourceVersion should not be set on objects to be created")
        warnings = self._unknown_fields(request, target, body)
        new = converting.take(target.kind, body, target.version, self._kubernetes)
        if target.kind is not kinds.NODE and target.kind.subresources:
            new.pop("status", None)
        self._settle(target, caller, new, None, body)
        created = self._store.create(target.kind, new, dry_run=_dry_run(request))
        return self._shown(request, target, 201, created, warnings)

    def _update(self, request: Request, target: Target, caller: Identity, build: Build) -> Answer:
        warnings: list[str] = []

        def change(old: Json) -> Json:
            body = build(self._show(target)(copy.deepcopy(old)))
            warnings.extend(self._unknown_fields(request, target, body))
            meta = body.setdefault("metadata", {})
            if meta.setdefault("name", target.name) != target.name:
                raise statuses.bad_request(
                    f"the name of the object ({meta['name']}) does not match the name on the URL"
                )
            if target.kind.namespaced:
                meta["namespace"] = target.namespace
            new = converting.take(target.kind, body, target.version, self._kubernetes)
            new = _confine(target, new, old)
            self._settle(target, caller, new, old, body)
            return new

        updated = self._store.update(target.kind, target.key, change, dry_run=_dry_run(request))
        return self._shown(request, target, 200, updated, warnings)

    def _replace(self, request: Request, target: Target, caller: Identity) -> Answer:
        body = decoding.read_object(request.body)
        return self._update(request, target, caller, lambda _: body)

    def _settle(self, target: Target, caller: Identity, new: Json, old: Json | None, body: Json) -> None:
        self._rules.complete(target.kind, new, old)
        early = converting.unset_fields(target.kind, body, target.version, self._kubernetes)
        self._rules.check(target.kind, new, old, list(early))
        self._authorizer.admit(caller, target, new, old)

    def _unknown_fields(self, request: Request, target: Target, body: Json) -> list[str]:
        wanted = request.query.get("fieldValidation", "Warn")
        if wanted == "Ignore":
            return []
        unknown = Schemas(target.version, self._kubernetes).unknown(target.kind.kind, body)
        problems = [f'unknown field "{path}"' for path in unknown]
        if problems and wanted == "Strict":
            kind = target.kind.kind
            message = f'{kind} in version "{target.version}" cannot be handled as a {kind}: '
            raise statuses.bad_request(f"{message}strict decoding error: {', '.join(problems)}")
        return problems

    def _patch(self, request: Request, target: Target, caller: Identity) -> Answer:
        patch = decoding.read_document(request.body)
        schemas, kind = Schemas(target.version, self._kubernetes), target.kind.kind
        match (request.headers.get("Content-Type") or "").partition(";")[0]:
            case "application/json-patch+json":
                return self._update(request, target, caller, lambda shown: applying.json_patch(shown, patch))
            case "application/merge-patch+json":
                return self._update(request, target, caller, lambda shown: applying.merge_patch(shown, patch))
            case "application/strategic-merge-patch+json":
                build: Build = lambda shown: applying.strategic_patch(schemas, kind, shown, patch)  # noqa: E731 - as above
                return self._update(request, target, caller, build)
            case "application/apply-patch+yaml":
                return self._apply(request, target, caller, patch)
        raise statuses.RefusedError(415, "UnsupportedMediaType", "the body of the request was in an unknown format")

    def _apply(self, request: Request, target: Target, caller: Identity, config: Json) -> Answer:
        manager = request.query.get("fieldManager")
        if not manager:
            raise statuses.bad_request("fieldManager is required for apply patch")
        entry = {"manager": manager, "operation": "Apply", "apiVersion": target.api_version, "time": self._store.now()}
        if target.subresource:
            entry["subresource"] = target.subresource
        schemas = Schemas(target.version, self._kubernetes)
        config.get("metadata", {}).pop("managedFields", None)

        def build(shown: Json | None) -> Json:
            return applying.apply(schemas, target.kind.kind, shown, config, entry)

        try:
            return self._update(request, target, caller, build)
        except statuses.RefusedError as error:
            if error.code != 404 or target.subresource:  # noqa: PLR2004 - not found: apply creates
                raise
        body = {"apiVersion": target.api_version, "kind": target.kind.kind, **config}
        body.setdefault("metadata", {})["name"] = target.name
        collection = Target(target.kind, target.version, target.namespace)
        self._authorizer.authorize(caller, "create", collection, "")
        return self._create(request, collection, caller, applying.apply(schemas, target.kind.kind, None, body, entry))

    def _delete(self, request: Request, target: Target, caller: Identity) -> Answer:
        self._authorizer.admit(caller, target, None, self._store.get(target.kind, target.key))
        last, gone = self._store.delete(target.kind, target.key, _removal(request))
        if not gone:
            return self._shown(request, target, 200, last)
        return Answer(200, statuses.success(target.kind, target.name, last["metadata"]["uid"]))

    def _delete_collection(self, request: Request, target: Target, caller: Identity) -> Answer:
        test, removal = _test(request, target), _removal(request)
        chosen = [(key, obj) for key, obj in self._store.items(target.kind, target.namespace)[0] if test(obj)]
        for key, obj in chosen:
            self._authorizer.admit(caller, target, None, obj)
            self._store.delete(target.kind, key, removal)
        return Answer(200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})

    def _log(self, request: Request, target: Target) -> Answer:
        pod = self._store.get(target.kind, target.key)
        container = request.query.get("container") or pod["spec"]["containers"][0]["name"]
        text = self._logs(pod, container)
        if text is None:
            why = f'container "{container}" in pod "{target.name}" is waiting to start'
            raise statuses.bad_request(why)
        return Answer(200, text)

    def _bind(self, request: Request, target: Target) -> Answer:
        node = decoding.read_object(request.body).get("target", {}).get("name")

        def change(pod: Json) -> Json:
            spec = pod["spec"]
            if spec.get("nodeName"):
                why = f'pod {target.name} is already assigned to node "{spec["nodeName"]}"'
                raise statuses.conflict(target.kind, target.name, why)
            if spec.get("schedulingGates") or "deletionTimestamp" in pod["metadata"]:
                raise statuses.conflict(target.kind, target.name, f"pod {target.name} is gated or being deleted")
            conditions = [c for c in pod["status"].get("conditions", ()) if c["type"] != "PodScheduled"]
            conditions.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": self._store.now()})
            spec["nodeName"], pod["status"]["conditions"] = node, conditions
            return pod

        self._store.update(target.kind, target.key, change)
        return Answer(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})


def _test(request: Request, target: Target) -> selecting.Test:
    fields = request.query.get("fieldSelector", "")
    if target.name:
        fields = f"metadata.name={target.name}"
    return selecting.parse_selectors(target.kind, request.query.get("labelSelector", ""), fields)


def _dry_run(request: Request) -> bool:
    return request.query.get("dryRun") == "All"


def _confine(target: Target, new: Json, old: Json) -> Json:
    """What a write to the object leaves to its status, and what a write to the status leaves to the object."""
    meta, before = new["metadata"], old["metadata"]
    if target.subresource == "status":
        kept = {**before, "resourceVersion": meta.get("resourceVersion")}
        status = {"status": new["status"]} if "status" in new else {}
        return {**{k: v for k, v in old.items() if k != "status"}, "metadata": kept, **status}
    if "status" in target.kind.subresources:
        new.pop("status", None)
        new |= {"status": old["status"]} if "status" in old else {}
    if "managedFields" not in meta and "managedFields" in before:
        meta["managedFields"] = before["managedFields"]
    return new


def _removal(request: Request) -> Removal:
    options = decoding.read_object(request.body) if request.body else {}
    wanted = options.get("preconditions") or {}
    grace = options.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    policy = options.get("propagationPolicy", request.query.get("propagationPolicy"))
    return Removal(
        grace_seconds=None if grace is None else int(grace),
        uid=wanted.get("uid"),
        resource_version=wanted.get("resourceVersion"),
        orphan=policy == "Orphan",
        dry_run=_dry_run(request) or "All" in (options.get("dryRun") or ()),
    )


def _write_token(version: int, after: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps([version, *after]).encode()).decode()


def _read_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        version, namespace, name = json.loads(base64.urlsafe_b64decode(token))
        return int(version), (str(namespace), str(name))
    except ValueError as error:
        raise statuses.bad_request(f"continue key is not valid: {token!r}") from error


def _review(caller: Identity, body: Json) -> Json:
    """Answer `kubectl auth can-i`."""
    asked = body.get("spec", {}).get("resourceAttributes") or {}
    resource = asked.get("resource", "") + (f".{asked['group']}" if asked.get("group") else "")
    resource += f"/{asked['subresource']}" if asked.get("subresource") else ""
    allowed = caller.may(asked.get("verb", ""), resource, asked.get("name", ""))
    return {**body, "status": {"allowed": allowed}}
