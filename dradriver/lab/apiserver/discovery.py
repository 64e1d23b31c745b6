"""What clients ask before they ask for objects: version, API groups, resources and OpenAPI."""

from __future__ import annotations

from typing import Any

from dradriver import api
from dradriver.lab.apiserver import kinds
from dradriver.lab.apiserver.schemas import Schemas

Json = dict[str, Any]

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_WRITE_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string"}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]


def describe(path: str, kubernetes: api.Kubernetes) -> Json | None:
    """The discovery document at a path, or None."""
    match path.strip("/").split("/"):
        case ["version"]:
            return _version(kubernetes)
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [_group(group, kubernetes) for group in kinds.GROUPS if group]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", group] if group and group in kinds.GROUPS:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, kubernetes)}
        case ["api", "v1"]:
            return _resources("", "v1")
        case ["apis", group, version] if version in kinds.served_versions(group, kubernetes):
            return _resources(group, version)
        case ["openapi", "v3"]:
            served = [(group, v) for group in kinds.GROUPS for v in kinds.served_versions(group, kubernetes)]
            paths = [f"apis/{group}/{version}" if group else f"api/{version}" for group, version in served]
            return {"paths": {p: {"serverRelativeURL": f"/openapi/v3/{p}?hash={kubernetes}"} for p in paths}}
        case ["openapi", "v3", "api", "v1"]:
            return _openapi("", "v1", kubernetes)
        case ["openapi", "v3", "apis", group, version] if version in kinds.served_versions(group, kubernetes):
            return _openapi(group, version, kubernetes)
    return None


def _version(kubernetes: api.Kubernetes) -> Json:
    return {"major": "1", "minor": str(kubernetes.minor), "gitVersion": f"v{kubernetes}.0", "platform": "linux/amd64"}


def _group(name: str, kubernetes: api.Kubernetes) -> Json:
    served = kinds.served_versions(name, kubernetes)
    versions = [{"groupVersion": f"{name}/{version}", "version": str(version)} for version in served]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resources(group: str, version: str) -> Json:
    found: list[Json] = []
    for kind in (kind for kind in kinds.KINDS if kind.group == group):
        entry = {"name": kind.plural, "singularName": kind.kind.lower(), "namespaced": kind.namespaced}
        names = {"shortNames": list(kind.short_names)} if kind.short_names else {}
        found.append({**entry, **names, "kind": kind.kind, "verbs": list(_VERBS)})
        for subresource in kind.subresources:
            entry = {"name": f"{kind.plural}/{subresource}", "singularName": "", "namespaced": kind.namespaced}
            binds = subresource == "binding"
            verbs = {"binding": ["create"], "log": ["get"]}.get(subresource, ["get", "patch", "update"])
            found.append({**entry, "kind": "Binding" if binds else kind.kind, "verbs": verbs})
    name = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": found}


def _openapi(group: str, version: str, kubernetes: api.Kubernetes) -> Json:
    schemas = Schemas(version, kubernetes)
    components: Json = {}
    paths: Json = {}
    package = f"io.k8s.api.{group.partition('.')[0] or 'core'}.{version}."
    for kind in (kind for kind in kinds.KINDS if kind.group == group):
        components |= schemas.openapi(kind.kind, package)
        identity = {"group": group, "version": version, "kind": kind.kind}
        own = components[package + kind.kind]
        own["properties"] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, **own["properties"]}
        own["x-kubernetes-group-version-kind"] = [identity]
        base = f"/{'apis/' + group if group else 'api'}/{version}/"
        base += ("namespaces/{namespace}/" if kind.namespaced else "") + kind.plural
        schema = {"schema": {"$ref": f"#/components/schemas/{package}{kind.kind}"}}
        answer = {"responses": {"200": {"description": "OK", "content": {"application/json": schema}}}}
        common = {"parameters": _WRITE_PARAMETERS, "x-kubernetes-group-version-kind": identity, **answer}
        content: Json = {"content": {media_type: {} for media_type in _PATCHES}}
        post = {**common, "x-kubernetes-action": "post", "requestBody": {"content": {"application/json": schema}}}
        paths[base] = {"post": post}
        paths[base + "/{name}"] = {"patch": {**common, "x-kubernetes-action": "patch", "requestBody": content}}
    info = {"title": "Kubernetes", "version": str(kubernetes)}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": components}}
