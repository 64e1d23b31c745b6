"""From what a client sends to what is stored, and back: versions, dropped fields, canonical values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from dradriver import api
from dradriver.api import wire
from dradriver.lab.apiserver import kinds, statuses
from dradriver.lab.apiserver.kinds import Kind
from dradriver.lab.apiserver.schemas import Schemas

Json: TypeAlias = dict[str, Any]

_WRITE: Mapping[str, Callable[[Any, wire.ApiVersion], Json]] = {
    kinds.SLICE.kind: wire.write_slice,
    kinds.CLAIM.kind: wire.write_claim,
    kinds.TEMPLATE.kind: wire.write_template,
    kinds.CLASS.kind: wire.write_class,
}


def show(kind: Kind, stored: Json, version: str) -> Json:
    """A stored object in a served version. Metadata is passed through."""
    if kind.group != kinds.RESOURCE_GROUP or version == wire.ApiVersion.V1:
        return stored
    shown = _WRITE[kind.kind](wire.read(stored), wire.ApiVersion(version))
    return {**shown, "metadata": stored["metadata"]}


def take(kind: Kind, body: Json, version: str, kubernetes: api.Kubernetes) -> Json:
    """A client's object as it is to be stored: fields nobody knows or whose gate is off are gone.

    Raises:
        RefusedError: the body is not of this kind and version, or has not its shape.
    """
    group_version = f"{kind.group}/{version}" if kind.group else version
    for field, wanted in (("apiVersion", group_version), ("kind", kind.kind)):
        if body.setdefault(field, wanted) != wanted:
            raise statuses.bad_request(f"the {field} of the data ({body[field]}) is not that of the request ({wanted})")
    schemas = Schemas("v1", kubernetes)
    if kind.group != kinds.RESOURCE_GROUP:
        return dict(schemas.prune(kind.kind, body))
    try:
        stored = _WRITE[kind.kind](wire.read(body), wire.ApiVersion.V1)
    except api.WireError as error:
        message = f"{kind.kind} in version {version!r} cannot be handled as a {kind.kind}: {error}"
        raise statuses.bad_request(message) from error
    pruned = schemas.prune(kind.kind, {**stored, "metadata": body.get("metadata") or {}})
    return dict(pruned)


def explicit_empties(kind: Kind, body: Json, version: str) -> Iterator[api.validation.Problem]:
    """Where v1beta2 and v1, whose fields are pointers, want a field unset rather than empty."""
    if kind is not kinds.SLICE or version == wire.ApiVersion.V1BETA1:
        return
    spec = body.get("spec") or {}
    places = [("spec", spec), *((f"spec.devices[{i}]", device) for i, device in enumerate(spec.get("devices") or ()))]
    for path, place in places:
        for field in ("allNodes", "perDeviceNodeSelection"):
            if place.get(field) is False:
                message = "Invalid value: false: must be either unset or set to true"
                yield api.validation.Problem(f"{path}.{field}", message)
        if place.get("nodeName") == "":
            message = 'Invalid value: "": must be either unset or set to a non-empty string'
            yield api.validation.Problem(f"{path}.nodeName", message)
