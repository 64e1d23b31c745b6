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
    try:
        if kind.group == kinds.RESOURCE_GROUP:
            metadata = body.get("metadata") or {}
            body = {**_WRITE[kind.kind](wire.read(body), wire.ApiVersion.V1), "metadata": metadata}
        return dict(schemas.normalize(kind.kind, body))
    except api.ApiError as error:
        message = f"{kind.kind} in version {version!r} cannot be handled as a {kind.kind}: {error}"
        raise statuses.bad_request(message) from error


def unset_fields(kind: Kind, body: Json, version: str, kubernetes: api.Kubernetes) -> Iterator[api.validation.Problem]:
    """What only the client's own JSON shows of a slice: fields set to nothing, attributes without a value."""
    if kind is not kinds.SLICE:
        return
    spec = body.get("spec") or {}
    flat = version == wire.ApiVersion.V1BETA1
    devices = [device.get("basic") or {} if flat else device for device in spec.get("devices") or ()]
    places = [("spec", spec), *((f"spec.devices[{i}]", device) for i, device in enumerate(devices))]
    schemas = Schemas(version, kubernetes)
    for path, place in places:
        for name, value in (place.get("attributes") or {}).items():
            if not schemas.normalize("DeviceAttribute", value):
                message = "Required value: exactly one value must be specified"
                yield api.validation.Problem(f"{path}.attributes[{name}]", message)
        if not flat:  # its fields are plain values, those of v1beta2 and v1 pointers
            yield from _empty_pointers(path, place)


def _empty_pointers(path: str, place: Json) -> Iterator[api.validation.Problem]:
    for field in ("allNodes", "perDeviceNodeSelection"):
        if place.get(field) is False:
            message = "Invalid value: false: must be either unset or set to true"
            yield api.validation.Problem(f"{path}.{field}", message)
    if place.get("nodeName") == "":
        message = 'Invalid value: "": must be either unset or set to a non-empty string'
        yield api.validation.Problem(f"{path}.nodeName", message)
