"""Writing: create, update, patch, apply, delete, bind.

Order, as on a real server: decode, report or warn of misspelt fields, drop what no gate allows, convert, complete,
check, admit, store. Everything from reading the old object on happens under the store's lock, so a patch never races
another write.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from dradriver import api
from dradriver.lab.apiserver import applying, converting, decoding, kinds, statuses
from dradriver.lab.apiserver.authorizing import Authorizer
from dradriver.lab.apiserver.reading import Reader
from dradriver.lab.apiserver.requesting import Answer, Call, Target
from dradriver.lab.apiserver.rules import Rules
from dradriver.lab.apiserver.schemas import FieldType, Schemas
from dradriver.lab.apiserver.storage import Json, Removal, Store

Build: TypeAlias = Callable[[Json], Any]


class Writer:
    """Changes the store on behalf of callers who may."""

    def __init__(self, kubernetes: api.Kubernetes, store: Store, authorizer: Authorizer, reader: Reader) -> None:
        self._kubernetes = kubernetes
        self._store = store
        self._authorizer = authorizer
        self._reader = reader
        self._rules = Rules(kubernetes, store.now, self._labels)

    def create(self, call: Call) -> Answer:
        """POST to a collection."""
        return self._create(call, call.object())

    def _create(self, call: Call, body: Json) -> Answer:
        target, meta = call.target, body.setdefault("metadata", {})
        if target.kind.namespaced and meta.setdefault("namespace", target.namespace) != target.namespace:
            raise statuses.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        if meta.get("resourceVersion"):
            raise statuses.bad_request("resourceVersion should not be set on objects to be created")
        new, warnings = self._accept(call, body, None)
        created = self._store.create(target.kind, new, dry_run=call.dry_run)
        return self._reader.shown(call, 201, created, warnings)

    def update(self, call: Call) -> Answer:
        """PUT of an object."""
        body = call.object()
        return self._update(call, lambda _: body)

    def patch(self, call: Call) -> Answer:
        """PATCH of an object, in any of its four forms."""
        patch = decoding.read_document(call.body)
        schemas = Schemas(call.target.version, self._kubernetes)
        kind = FieldType("item", call.target.kind.kind)
        match call.headers.get("Content-Type", "").partition(";")[0]:
            case "application/json-patch+json":
                return self._update(call, lambda shown: applying.json_patch(shown, patch))
            case "application/merge-patch+json":
                return self._update(call, lambda shown: applying.merge_patch(shown, patch))
            case "application/strategic-merge-patch+json":
                return self._update(call, lambda shown: applying.strategic_patch(schemas, kind, shown, patch))
            case "application/apply-patch+yaml":
                config, entry = self._applied(call, decoding.as_object(patch))
                return self._apply(call, lambda shown: applying.apply(schemas, kind, shown, config, entry))
        raise statuses.RefusedError(415, "UnsupportedMediaType", "the body of the request was in an unknown format")

    def _applied(self, call: Call, config: Json) -> tuple[Json, Json]:
        """What is applied, and the entry that says by whom."""
        target, manager = call.target, call.query.get("fieldManager")
        if not manager:
            raise statuses.bad_request("fieldManager is required for apply patch")
        entry = {"manager": manager, "operation": "Apply", "apiVersion": target.api_version, "time": self._store.now()}
        if target.subresource:
            entry["subresource"] = target.subresource
        meta = {**config.get("metadata", {}), "name": target.name}
        meta.pop("managedFields", None)
        return {"apiVersion": target.api_version, "kind": target.kind.kind, **config, "metadata": meta}, entry

    def _apply(self, call: Call, build: Build) -> Answer:
        target = call.target
        try:
            return self._update(call, build)
        except statuses.RefusedError as error:
            if error.code != 404 or target.subresource:  # noqa: PLR2004 - not found: apply creates
                raise
        collection = Target(target.kind, target.version, target.namespace)
        self._authorizer.authorize(call.caller, "create", collection, "")
        return self._create(call, _built(build, {}))

    def _update(self, call: Call, build: Build) -> Answer:
        target, warnings = call.target, list[str]()

        def change(old: Json) -> Json:
            body = _built(build, converting.show(target, copy.deepcopy(old)))
            meta = body.setdefault("metadata", {})
            if meta.setdefault("name", target.name) != target.name:
                raise statuses.bad_request(
                    f"the name of the object ({meta['name']}) does not match the name on the URL"
                )
            if target.kind.namespaced:
                meta["namespace"] = target.namespace
            new, warned = self._accept(call, body, old)
            warnings.extend(warned)
            return new

        updated = self._store.update(target.kind, target.key, change, dry_run=call.dry_run)
        return self._reader.shown(call, 200, updated, warnings)

    def _accept(self, call: Call, body: Json, old: Json | None) -> tuple[Json, list[str]]:
        """What is to be stored for a body, and warnings of what is not. Raises RefusedError."""
        target = call.target
        new, unknown, problems = converting.take(target, body, self._kubernetes)
        warnings = _unknown_fields(target, call.query.get("fieldValidation", "Warn"), unknown)
        new = _confine(target, new, old)
        self._rules.complete(target.kind, new, old)
        self._rules.check(target.kind, new, old, problems)
        self._authorizer.admit(call.caller, target, new, old)
        return new, warnings

    def delete(self, call: Call) -> Answer:
        """DELETE of an object."""
        target = call.target
        self._authorizer.admit(call.caller, target, None, self._store.get(target.kind, target.key))
        last, gone = self._store.delete(target.kind, target.key, _removal(call))
        return Answer(200, statuses.deleted(target.kind, last)) if gone else self._reader.shown(call, 200, last)

    def delete_collection(self, call: Call) -> Answer:
        """DELETE of what the selectors choose."""
        kind, test, removal = call.target.kind, call.test(), _removal(call)
        for key, obj in self._store.items(kind)[0]:
            if test(obj):
                self._authorizer.admit(call.caller, call.target, None, obj)
                try:
                    self._store.delete(kind, key, removal)
                except statuses.RefusedError as error:
                    if error.code != 404:  # noqa: PLR2004 - gone meanwhile, perhaps with its owner
                        raise
        return Answer(200, statuses.success())

    def bind(self, call: Call) -> Answer:
        """Give a pod its node: the `binding` subresource."""
        target, node = call.target, decoding.as_object(call.object().get("target")).get("name")

        def change(pod: Json) -> Json:
            spec = pod["spec"]
            if spec.get("nodeName"):
                why = f'pod {target.name} is already assigned to node "{spec["nodeName"]}"'
                raise statuses.conflict(target.kind, target.name, why)
            if spec.get("schedulingGates") or "deletionTimestamp" in pod["metadata"]:
                raise statuses.conflict(target.kind, target.name, f"pod {target.name} is gated or being deleted")
            conditions = [c for c in pod["status"].get("conditions", ()) if c.get("type") != "PodScheduled"]
            conditions.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": self._store.now()})
            spec["nodeName"], pod["status"]["conditions"] = node, conditions
            return pod

        self._store.update(target.kind, target.key, change)
        return Answer(201, statuses.success())

    def _labels(self, namespace: str) -> Mapping[str, str]:
        return self._store.get(kinds.NAMESPACE, ("", namespace))["metadata"].get("labels") or {}


def _built(build: Build, shown: Json) -> Json:
    """What a patch makes of an object. Raises RefusedError for a patch that does not fit it."""
    try:
        body = build(shown)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise statuses.bad_request(f"the patch does not fit the object: {error!r}") from error
    return decoding.as_object(body)


def _unknown_fields(target: Target, wanted: str, paths: list[str]) -> list[str]:
    """Warnings of misspelt fields, as `fieldValidation` wants. Raises RefusedError where it wants an error."""
    problems = [f'unknown field "{path}"' for path in paths]
    if problems and wanted == "Strict":
        kind = target.kind.kind
        message = f'{kind} in version "{target.version}" cannot be handled as a {kind}: '
        raise statuses.bad_request(f"{message}strict decoding error: {', '.join(problems)}")
    return [] if wanted == "Ignore" else problems


def _confine(target: Target, new: Json, old: Json | None) -> Json:
    """What a write to the object leaves to its status, and what a write to the status leaves to the object."""
    if old is None:
        if target.kind is not kinds.NODE and target.kind.subresources:
            new.pop("status", None)
        return new
    meta, before = new.get("metadata") or {}, old["metadata"]
    managed = {key: value for m in (before, meta) for key, value in m.items() if key == "managedFields"}
    if target.subresource == "status":
        kept = {**before, **managed, "resourceVersion": meta.get("resourceVersion")}
        status = {"status": new["status"]} if "status" in new else {}
        return {**{k: v for k, v in old.items() if k != "status"}, "metadata": kept, **status}
    if "status" in target.kind.subresources:
        new.pop("status", None)
        new |= {"status": old["status"]} if "status" in old else {}
    meta |= managed
    return new


def _removal(call: Call) -> Removal:
    options = call.object() if call.body else {}
    wanted = decoding.as_object(options.get("preconditions") or {})
    grace = options.get("gracePeriodSeconds", call.query.get("gracePeriodSeconds"))
    if grace is not None and not str(grace).isdecimal():
        raise statuses.bad_request(f"invalid gracePeriodSeconds: {grace!r} is no number that is not negative")
    return Removal(
        grace_seconds=None if grace is None else int(grace),
        uid=wanted.get("uid"),
        resource_version=wanted.get("resourceVersion"),
        orphan=options.get("propagationPolicy", call.query.get("propagationPolicy")) == "Orphan",
        dry_run=call.dry_run or "All" in (options.get("dryRun") or ()),
    )
