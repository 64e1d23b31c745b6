"""Writing: create, update, patch, apply, delete, bind.

Order, as on a real server: decode (misspelt fields are reported or warned of), convert, drop what no gate allows,
complete, check, admit, store. Everything from reading the old object on happens under the store's lock, so a patch
never races another write.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from dradriver import api
from dradriver.lab.apiserver import applying, converting, decoding, kinds, statuses
from dradriver.lab.apiserver.addressing import Target
from dradriver.lab.apiserver.authorizing import Authorizer
from dradriver.lab.apiserver.reading import Reader
from dradriver.lab.apiserver.requesting import Answer, Request
from dradriver.lab.apiserver.rules import Rules
from dradriver.lab.apiserver.schemas import Schemas
from dradriver.lab.apiserver.storage import Json, Removal, Store
from dradriver.lab.identities import Identity

Build: TypeAlias = Callable[[Json], Any]


class Writer:
    """Changes the store on behalf of a caller who may."""

    def __init__(self, kubernetes: api.Kubernetes, store: Store, authorizer: Authorizer, reader: Reader) -> None:
        self._kubernetes = kubernetes
        self._store = store
        self._authorizer = authorizer
        self._reader = reader
        self._rules = Rules(kubernetes, store.now, self._labels)

    def create(self, request: Request, target: Target, caller: Identity, body: Json | None = None) -> Answer:
        """Add an object to a collection."""
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
        created = self._store.create(target.kind, new, dry_run=request.dry_run)
        return self._reader.shown(request, target, 201, created, warnings)

    def _update(self, request: Request, target: Target, caller: Identity, build: Build) -> Answer:
        warnings: list[str] = []

        def change(old: Json) -> Json:
            body = _built(build, self._reader.show(target)(copy.deepcopy(old)))
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

        updated = self._store.update(target.kind, target.key, change, dry_run=request.dry_run)
        return self._reader.shown(request, target, 200, updated, warnings)

    def replace(self, request: Request, target: Target, caller: Identity) -> Answer:
        """PUT of an object."""
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

    def patch(self, request: Request, target: Target, caller: Identity) -> Answer:
        """PATCH of an object, in any of its four forms."""
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
        decoding.as_object(config).get("metadata", {}).pop("managedFields", None)

        def build(shown: Json) -> Json:
            return applying.apply(schemas, target.kind.kind, shown, config, entry)

        try:
            return self._update(request, target, caller, build)
        except statuses.RefusedError as error:
            if error.code != 404 or target.subresource:  # noqa: PLR2004 - not found: apply creates
                raise
        config = {"apiVersion": target.api_version, "kind": target.kind.kind, **config}
        config.setdefault("metadata", {})["name"] = target.name
        collection = Target(target.kind, target.version, target.namespace)
        self._authorizer.authorize(caller, "create", collection, "")
        return self.create(request, collection, caller, _built(build, {}))

    def delete(self, request: Request, target: Target, caller: Identity) -> Answer:
        """DELETE of an object."""
        self._authorizer.admit(caller, target, None, self._store.get(target.kind, target.key))
        last, gone = self._store.delete(target.kind, target.key, _removal(request))
        if not gone:
            return self._reader.shown(request, target, 200, last)
        return Answer(200, statuses.success(target.kind, target.name, last["metadata"]["uid"]))

    def delete_collection(self, request: Request, target: Target, caller: Identity) -> Answer:
        """DELETE of what the selectors choose."""
        test, removal = request.selects(target), _removal(request)
        chosen = [(key, obj) for key, obj in self._store.items(target.kind, target.namespace)[0] if test(obj)]
        for key, obj in chosen:
            self._authorizer.admit(caller, target, None, obj)
            self._store.delete(target.kind, key, removal)
        return Answer(200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})

    def bind(self, request: Request, target: Target) -> Answer:
        """Give a pod its node: the `binding` subresource."""
        node = decoding.as_object(decoding.read_object(request.body).get("target")).get("name")

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

    def _labels(self, namespace: str) -> Mapping[str, str]:
        meta = self._store.get(kinds.NAMESPACE, ("", namespace))["metadata"]
        return dict(meta.get("labels") or {})


def _built(build: Build, shown: Json) -> Json:
    """What a patch makes of an object. Raises RefusedError for a patch that does not fit it."""
    try:
        body = build(shown)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise statuses.bad_request(f"the patch does not fit the object: {error!r}") from error
    return decoding.as_object(body)


def _confine(target: Target, new: Json, old: Json) -> Json:
    """What a write to the object leaves to its status, and what a write to the status leaves to the object."""
    meta, before = new["metadata"], old["metadata"]
    if target.subresource == "status":
        managed = {"managedFields": meta["managedFields"]} if "managedFields" in meta else {}
        kept = {**before, **managed, "resourceVersion": meta.get("resourceVersion")}
        status = {"status": new["status"]} if "status" in new else {}
        return {**{k: v for k, v in old.items() if k != "status"}, "metadata": kept, **status}
    if "status" in target.kind.subresources:
        new.pop("status", None)
        new |= {"status": old["status"]} if "status" in old else {}
    if "managedFields" not in meta and "managedFields" in before:
        meta["managedFields"] = before["managedFields"]
    return new


def _seconds(value: Any) -> int:
    if not str(value).isdecimal():
        raise statuses.bad_request(f"invalid gracePeriodSeconds: {value!r} is no number that is not negative")
    return int(value)


def _removal(request: Request) -> Removal:
    options = decoding.read_object(request.body) if request.body else {}
    wanted = decoding.as_object(options.get("preconditions") or {})
    grace = options.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    policy = options.get("propagationPolicy", request.query.get("propagationPolicy"))
    return Removal(
        grace_seconds=None if grace is None else _seconds(grace),
        uid=wanted.get("uid"),
        resource_version=wanted.get("resourceVersion"),
        orphan=policy == "Orphan",
        dry_run=request.dry_run or "All" in (options.get("dryRun") or ()),
    )
