"""JSON of resource.k8s.io v1beta1, v1beta2 and v1, both ways, without loss for known fields.

v1beta1 wraps a device in `basic` and has flat requests; v1beta2 and v1 differ in name alone. Reading takes the
version from the object's own `apiVersion`. Writing over the JSON that was read (`over`) keeps fields this version does
not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from dradriver.api.claims import Allocation, DeviceClass, ResourceClaim, ResourceClaimTemplate
from dradriver.api.slices import ResourceSlice
from dradriver.api.versions import ApiVersion

JsonObject: TypeAlias = Mapping[str, Any]


def read_slice(data: JsonObject) -> ResourceSlice:
    """Read a ResourceSlice. Raises WireError with the path of what is wrong."""
    raise NotImplementedError


def read_claim(data: JsonObject) -> ResourceClaim:
    """Read a ResourceClaim. Raises WireError with the path of what is wrong."""
    raise NotImplementedError


def read_template(data: JsonObject) -> ResourceClaimTemplate:
    """Read a ResourceClaimTemplate. Raises WireError with the path of what is wrong."""
    raise NotImplementedError


def read_class(data: JsonObject) -> DeviceClass:
    """Read a DeviceClass. Raises WireError with the path of what is wrong."""
    raise NotImplementedError


def write_slice(value: ResourceSlice, version: ApiVersion, *, over: JsonObject | None = None) -> dict[str, Any]:
    """JSON of a ResourceSlice; fields are omitted, never written false or empty."""
    raise NotImplementedError


def write_claim(value: ResourceClaim, version: ApiVersion, *, over: JsonObject | None = None) -> dict[str, Any]:
    """JSON of a ResourceClaim, spec and status."""
    raise NotImplementedError


def write_template(value: ResourceClaimTemplate, version: ApiVersion) -> dict[str, Any]:
    """JSON of a ResourceClaimTemplate."""
    raise NotImplementedError


def write_class(value: DeviceClass, version: ApiVersion) -> dict[str, Any]:
    """JSON of a DeviceClass."""
    raise NotImplementedError


def write_allocation(value: Allocation) -> dict[str, Any]:
    """JSON of `status.allocation`, alike in all versions."""
    raise NotImplementedError
