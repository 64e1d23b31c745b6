"""From what a client sends to what is stored, and back: unknown and dropped fields, versions, canonical values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from dradriver import api
from dradriver.api import wire
from dradriver.api.validation import Problem
from dradriver.lab.apiserver import kinds, statuses
from dradriver.lab.apiserver.requesting import Target
from dradriver.lab.apiserver.schemas import Schemas

Json: TypeAlias = dict[str, Any]

_WRITE: Mapping[str, Callable[[Any, wire.ApiVersion], Json]] = {
    kinds.SLICE.kind: wire.write_slice,
    kinds.CLAIM.kind: wire.write_claim,
    kinds.TEMPLATE.kind: wire.write_template,
    kinds.CLASS.kind: wire.write_class,
}


class Taken(NamedTuple):
    """An object as it is to be stored, paths of fields nobody knows, and what only the client's own JSON shows."""

    obj: Json
    unknown: list[str]
    problems: list[Problem]


def show(target: Target, stored: Json) -> Json:
    """A stored object in the version of a request. Metadata is passed through."""
    if target.api_version == stored["apiVersion"]:
        return stored
    return _written(target, wire.read(stored), target.version, stored["metadata"])


def take(target: Target, body: Json, kubernetes: api.Kubernetes) -> Taken:
    """A client's object as it is to be stored.

    Raises:
        RefusedError: the body is not of the kind and version of the request, or has not its shape.
    """
    kind, unknown, problems = target.kind.kind, list[str](), list[Problem]()
    for field, wanted in (("apiVersion", target.api_version), ("kind", kind)):
        if body.setdefault(field, wanted) != wanted:
            raise statuses.bad_request(f"the {field} of the data ({body[field]}) is not that of the request ({wanted})")
    try:
        kept = Schemas(target.version, kubernetes).prune(kind, body, unknown)
        if target.kind.group == kinds.RESOURCE_GROUP:
            if target.kind is kinds.SLICE:
                problems = list(_unset_fields(kept.get("spec") or {}, target.version))
            value = _without_gated(wire.read(kept), kubernetes)
            kept = _written(target, value, wire.ApiVersion.V1, kept.get("metadata") or {})
    except api.ApiError as error:
        message = f"{kind} in version {target.version!r} cannot be handled as a {kind}: {error}"
        raise statuses.bad_request(message) from error
    return Taken(kept, unknown, problems)


def _written(target: Target, value: wire.Object, version: str, metadata: Json) -> Json:
    return {**_WRITE[target.kind.kind](value, wire.ApiVersion(version)), "metadata": metadata}


def _without_gated(value: wire.Object, kubernetes: api.Kubernetes) -> wire.Object:
    match value:
        case api.ResourceSlice():
            return api.kept_slice(value, kubernetes)
        case api.DeviceClass():
            return api.kept_class(value, kubernetes)
        case api.ResourceClaimTemplate():
            return replace(value, spec=api.kept_claim_spec(value.spec, kubernetes))
        case api.ResourceClaim():
            spec = api.kept_claim_spec(value.spec, kubernetes)
            return replace(value, spec=spec, status=api.kept_claim_status(value.status, kubernetes))


def _unset_fields(spec: Json, version: str) -> Iterator[Problem]:
    """Fields of a slice that are set to nothing, and attributes without a value: typed values do not have them."""
    flat = version == wire.ApiVersion.V1BETA1
    devices = [device.get("basic") or {} if flat else device for device in spec.get("devices") or ()]
    for path, place in (("spec", spec), *((f"spec.devices[{i}]", device) for i, device in enumerate(devices))):
        for name, value in (place.get("attributes") or {}).items():
            if not value:
                yield Problem(f"{path}.attributes[{name}]", "Required value: exactly one value must be specified")
        if flat:
            continue  # its fields are plain values, those of v1beta2 and v1 pointers
        for field in ("allNodes", "perDeviceNodeSelection"):
            if place.get(field) is False:
                yield Problem(f"{path}.{field}", "Invalid value: false: must be either unset or set to true")
        if place.get("nodeName") == "":
            message = 'Invalid value: "": must be either unset or set to a non-empty string'
            yield Problem(f"{path}.nodeName", message)
