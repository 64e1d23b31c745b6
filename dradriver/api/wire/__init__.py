"""JSON of resource.k8s.io v1beta1, v1beta2 and v1, both ways, without loss for known fields.

v1beta1 wraps a device in `basic` and has flat requests; v1beta2 and v1 differ in name alone. Reading takes the
version from the object's own `apiVersion`, or from the caller for the items of a list, which carry none. Writing over
the JSON that was read (`over`) keeps fields this version does not know. Reading judges shape, not content: what is
missing reads as the server's empty value and is for `validation` to refuse; the server's defaults are filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from dradriver.api.claims import (
    Allocation,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dradriver.api.errors import WireError
from dradriver.api.slices import ResourceSlice
from dradriver.api.versions import GROUP as GROUP
from dradriver.api.versions import ApiVersion as ApiVersion
from dradriver.api.wire.claims import ALLOCATION, CLAIM, CLASS, TAINT_RULE, TEMPLATE
from dradriver.api.wire.devices import SLICE
from dradriver.api.wire.shapes import Shape, ShapeError, as_object, at, expected

JsonObject: TypeAlias = Mapping[str, Any]
Object: TypeAlias = ResourceSlice | ResourceClaim | ResourceClaimTemplate | DeviceClass

_SHAPES: Mapping[str, Mapping[ApiVersion, Shape]] = {
    "ResourceSlice": SLICE,
    "ResourceClaim": CLAIM,
    "ResourceClaimTemplate": TEMPLATE,
    "DeviceClass": dict.fromkeys(ApiVersion, CLASS),
}
KINDS = tuple(_SHAPES)
"""The kinds that `read` knows."""


def read(data: JsonObject, version: ApiVersion | None = None) -> Object:
    """Read an object of any of KINDS, as its `kind` says. Raises WireError with the path of what is wrong."""
    value: Object = _read(data, version, None)
    return value


def read_slice(data: JsonObject, version: ApiVersion | None = None) -> ResourceSlice:
    """Read a ResourceSlice. Raises WireError with the path of what is wrong."""
    value: ResourceSlice = _read(data, version, "ResourceSlice")
    return value


def read_claim(data: JsonObject, version: ApiVersion | None = None) -> ResourceClaim:
    """Read a ResourceClaim. Raises WireError with the path of what is wrong."""
    value: ResourceClaim = _read(data, version, "ResourceClaim")
    return value


def read_template(data: JsonObject, version: ApiVersion | None = None) -> ResourceClaimTemplate:
    """Read a ResourceClaimTemplate. Raises WireError with the path of what is wrong."""
    value: ResourceClaimTemplate = _read(data, version, "ResourceClaimTemplate")
    return value


def read_class(data: JsonObject, version: ApiVersion | None = None) -> DeviceClass:
    """Read a DeviceClass. Raises WireError with the path of what is wrong."""
    value: DeviceClass = _read(data, version, "DeviceClass")
    return value


def read_taint_rule(data: JsonObject) -> DeviceTaintRule:
    """Read a DeviceTaintRule, alike in all versions. Raises WireError with the path of what is wrong."""
    try:
        value: DeviceTaintRule = TAINT_RULE.read(data)
    except ShapeError as error:
        raise WireError(error.path or "DeviceTaintRule", str(error)) from error
    return value


def write_slice(value: ResourceSlice, version: ApiVersion, *, over: JsonObject | None = None) -> dict[str, Any]:
    """JSON of a ResourceSlice; fields are omitted, never written false or empty."""
    return _write(value, "ResourceSlice", version, over)


def write_claim(value: ResourceClaim, version: ApiVersion, *, over: JsonObject | None = None) -> dict[str, Any]:
    """JSON of a ResourceClaim, spec and status."""
    return _write(value, "ResourceClaim", version, over)


def write_template(value: ResourceClaimTemplate, version: ApiVersion) -> dict[str, Any]:
    """JSON of a ResourceClaimTemplate."""
    return _write(value, "ResourceClaimTemplate", version, None)


def write_class(value: DeviceClass, version: ApiVersion) -> dict[str, Any]:
    """JSON of a DeviceClass."""
    return _write(value, "DeviceClass", version, None)


def write_allocation(value: Allocation) -> dict[str, Any]:
    """JSON of `status.allocation`, alike in all versions."""
    return ALLOCATION.write(value, None)


def read_allocation(data: JsonObject) -> Allocation:
    """Read `status.allocation`. Raises WireError with the path of what is wrong, from the allocation on."""
    try:
        value: Allocation = ALLOCATION.read(data)
    except ShapeError as error:
        raise WireError(error.path or "allocation", str(error)) from error
    return value


def _read(data: JsonObject, version: ApiVersion | None, kind: str | None) -> Any:
    try:
        kind = _kind(as_object(data), kind)
        return _SHAPES[kind][_version(data, version)].read(data)
    except ShapeError as error:
        raise WireError(error.path or kind or "object", str(error)) from error


def _write(value: Object, kind: str, version: ApiVersion, over: JsonObject | None) -> dict[str, Any]:
    identity = {"apiVersion": f"{GROUP}/{version}", "kind": kind}
    if over is not None and over.get("apiVersion", identity["apiVersion"]) != identity["apiVersion"]:
        raise WireError("apiVersion", f"cannot write {identity['apiVersion']} over JSON of {over['apiVersion']}")
    return identity | _SHAPES[kind][version].write(value, over)


def _kind(data: JsonObject, wanted: str | None) -> str:
    kind = data.get("kind") or wanted
    if kind not in _SHAPES or (wanted is not None and kind != wanted):
        raise at("kind", expected(wanted or f"one of {', '.join(KINDS)}", kind))
    return str(kind)


def _version(data: JsonObject, version: ApiVersion | None) -> ApiVersion:
    text = data.get("apiVersion")
    if not text and version is not None:
        return version
    for known in ApiVersion:
        if text == f"{GROUP}/{known}":
            return known
    raise at("apiVersion", expected(f"one of {', '.join(f'{GROUP}/{known}' for known in ApiVersion)}", text))
