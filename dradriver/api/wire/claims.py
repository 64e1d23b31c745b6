"""Shapes of claims, templates, classes and allocations in each version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dradriver.api.claims import (
    AllocatedConfiguration,
    AllocatedDevice,
    Allocation,
    AllocationMode,
    ClaimConfiguration,
    ClaimSpec,
    ClaimStatus,
    ConfigSource,
    ConsumerReference,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    DeviceTaintRule,
    DeviceTaintSelector,
    ExactDeviceRequest,
    OpaqueConfiguration,
    ResourceClaim,
    ResourceClaimTemplate,
    Selector,
)
from dradriver.api.versions import ApiVersion
from dradriver.api.wire.devices import TAINT
from dradriver.api.wire.objects import METADATA, NODE_SELECTOR, STRINGS, TEXTS_BY_KEY, TOLERATIONS
from dradriver.api.wire.shapes import (
    BOOLEAN,
    INTEGER,
    OBJECT,
    QUANTITY,
    STRING,
    UNKNOWN,
    Converted,
    Field,
    Fields,
    Group,
    ListOf,
    MapOf,
    Shape,
    member_or_text,
    required,
)


class _Selector:
    """`{"cel": {"expression": ...}}`, or a kind of selector that this version does not know."""

    _FIELDS: Final = Fields(Field("cel", "cel", Shape(Selector, required("expression", "expression", STRING))))

    def read(self, data: Any) -> Selector:
        selector: Selector = self._FIELDS.read(data).get("cel", Selector(None))
        return selector

    def write(self, value: Selector, over: Any) -> dict[str, Any]:
        older = over if isinstance(over, Mapping) else {}
        if value.expression is None:
            return dict(older)
        return {**older, "cel": {**older.get("cel", {}), "expression": value.expression}}


_OPAQUE: Final = Shape(
    OpaqueConfiguration,
    Field("driver", "driver", STRING, missing="", always=True),
    required("parameters", "parameters", OBJECT),
)


class _ClassConfiguration:
    """`{"opaque": ...}` in a class; other kinds of configuration are for drivers of another time."""

    _FIELDS: Final = Fields(Field("opaque", "opaque", _OPAQUE))

    def read(self, data: Any) -> Any:
        return self._FIELDS.read(data).get("opaque", UNKNOWN)

    def write(self, value: OpaqueConfiguration, over: Any) -> dict[str, Any]:
        older = over if isinstance(over, Mapping) else {}
        return {**older, "opaque": _OPAQUE.write(value, older.get("opaque"))}


def _complete_count(values: dict[str, Any]) -> None:
    """The defaults that the server fills in: ExactCount, and one device."""
    mode = values.setdefault("allocation_mode", AllocationMode.EXACT_COUNT)
    if mode != AllocationMode.EXACT_COUNT:
        values.setdefault("count", 0)
    elif not values.get("count"):
        values["count"] = 1


def _mode(text: str) -> str:
    return member_or_text(AllocationMode, text or AllocationMode.EXACT_COUNT)


def _source(text: str) -> str:
    return member_or_text(ConfigSource, text)


_NAME: Final = Field("name", "name", STRING, missing="", always=True)
_SELECTORS: Final = Field("selectors", "selectors", ListOf(_Selector()))
_HOW: Final = (
    Field("device_class_name", "deviceClassName", STRING, missing="", always=True),
    _SELECTORS,
    Field("allocation_mode", "allocationMode", Converted(_mode)),
    Field("count", "count", INTEGER),
    Field("tolerations", "tolerations", TOLERATIONS),
    Group("capacity", Fields(Field("capacity", "requests", MapOf(QUANTITY)))),
)
_EXACTLY: Final = Shape(
    ExactDeviceRequest, *_HOW, Field("admin_access", "adminAccess", BOOLEAN), complete=_complete_count
)
_SUBREQUESTS: Final = ListOf(Shape(DeviceSubRequest, _NAME, *_HOW, complete=_complete_count), identity=("name",))
_FIRST_AVAILABLE: Final = Field("first_available", "firstAvailable", _SUBREQUESTS)
_REQUEST: Final = Shape(DeviceRequest, _NAME, Field("exactly", "exactly", _EXACTLY), _FIRST_AVAILABLE)


class _FlatRequest:
    """A request of v1beta1: the fields of `exactly` stand beside `name`; any of them makes it one."""

    _OUTER: Final = Shape(DeviceRequest, _NAME, _FIRST_AVAILABLE)

    def read(self, data: Any) -> DeviceRequest:
        outer: DeviceRequest = self._OUTER.read(data)
        if not any(data.get(key) for key in _EXACTLY.fields.by_key):
            return outer
        return DeviceRequest(outer.name, _EXACTLY.read(data), outer.first_available)

    def write(self, value: DeviceRequest, over: Any) -> dict[str, Any]:
        older = over if isinstance(over, Mapping) else {}
        flat = {key: item for key, item in older.items() if key not in _EXACTLY.fields.by_key}
        written = self._OUTER.write(value, flat)
        if value.exactly is not None:
            known = {key: item for key, item in older.items() if key in _EXACTLY.fields.by_key}
            written |= _EXACTLY.write(value.exactly, known)
        return written


_CONSTRAINTS: Final = ListOf(
    Shape(
        DeviceConstraint,
        Field("requests", "requests", STRINGS),
        Field("match_attribute", "matchAttribute", STRING, optional=True),
        Field("distinct_attribute", "distinctAttribute", STRING, optional=True),
    )
)
_CONFIGURATIONS: Final = ListOf(
    Shape(
        ClaimConfiguration,
        Field("opaque", "opaque", _OPAQUE, missing=None),
        Field("requests", "requests", STRINGS),
    )
)
_RESULTS: Final = ListOf(
    Shape(
        AllocatedDevice,
        Field("request", "request", STRING, missing="", always=True),
        Field("driver", "driver", STRING, missing="", always=True),
        Field("pool", "pool", STRING, missing="", always=True),
        Field("device", "device", STRING, missing="", always=True),
        Field("admin_access", "adminAccess", BOOLEAN),
        Field("tolerations", "tolerations", TOLERATIONS),
        Field("binding_conditions", "bindingConditions", STRINGS),
        Field("binding_failure_conditions", "bindingFailureConditions", STRINGS),
        Field("share_id", "shareID", STRING, optional=True),
        Field("consumed_capacity", "consumedCapacity", MapOf(QUANTITY)),
        Field("skip_node_operations", "skipNodeOperations", STRINGS),
    ),
    identity=("request", "driver", "pool", "device", "shareID"),
)
_ALLOCATED_CONFIGURATIONS: Final = ListOf(
    Shape(
        AllocatedConfiguration,
        Field("source", "source", Converted(_source), missing="", always=True),
        Field("opaque", "opaque", _OPAQUE, missing=None),
        Field("requests", "requests", STRINGS),
    )
)
ALLOCATION: Final = Shape(
    Allocation,
    Group(
        "devices", Fields(Field("results", "results", _RESULTS), Field("config", "config", _ALLOCATED_CONFIGURATIONS))
    ),
    Field("node_selector", "nodeSelector", NODE_SELECTOR),
    Field("allocation_timestamp", "allocationTimestamp", STRING, optional=True),
)
_STATUS: Final = Shape(
    ClaimStatus,
    Field("allocation", "allocation", ALLOCATION),
    Field(
        "reserved_for",
        "reservedFor",
        ListOf(
            Shape(
                ConsumerReference,
                Field("api_group", "apiGroup", STRING),
                Field("resource", "resource", STRING, missing="", always=True),
                Field("name", "name", STRING, missing="", always=True),
                Field("uid", "uid", STRING, missing="", always=True),
            ),
            identity=("uid",),
        ),
    ),
    Field("devices", "devices", ListOf(OBJECT)),
)


def _spec(request: Any) -> Shape:
    return Shape(
        ClaimSpec,
        Group(
            "devices",
            Fields(
                Field("requests", "requests", ListOf(request, identity=("name",))),
                Field("constraints", "constraints", _CONSTRAINTS),
                Field("config", "config", _CONFIGURATIONS),
            ),
        ),
    )


def _claim(spec: Shape) -> Shape:
    return Shape(
        ResourceClaim,
        Field("metadata", "metadata", METADATA, missing=METADATA.read({}), always=True),
        Field("spec", "spec", spec, missing=ClaimSpec(), always=True),
        Field("status", "status", _STATUS),
    )


def _template(spec: Shape) -> Shape:
    of_claims = Fields(Field("labels", "labels", TEXTS_BY_KEY), Field("annotations", "annotations", TEXTS_BY_KEY))
    return Shape(
        ResourceClaimTemplate,
        Field("metadata", "metadata", METADATA, missing=METADATA.read({}), always=True),
        Group("spec", Fields(Group("metadata", of_claims), required("spec", "spec", spec)), always=True),
    )


_SPECS: Final = {
    ApiVersion.V1: _spec(_REQUEST),
    ApiVersion.V1BETA2: _spec(_REQUEST),
    ApiVersion.V1BETA1: _spec(_FlatRequest()),
}
CLAIM: Final = {version: _claim(spec) for version, spec in _SPECS.items()}
TEMPLATE: Final = {version: _template(spec) for version, spec in _SPECS.items()}


TAINT_RULE: Final = Shape(
    DeviceTaintRule,
    Field("metadata", "metadata", METADATA, missing=METADATA.read({}), always=True),
    Group(
        "spec",
        Fields(
            required("taint", "taint", TAINT),
            Field(
                "selector",
                "deviceSelector",
                Shape(
                    DeviceTaintSelector,
                    Field("driver", "driver", STRING, optional=True),
                    Field("pool", "pool", STRING, optional=True),
                    Field("device", "device", STRING, optional=True),
                    Field("device_class_name", "deviceClassName", STRING, optional=True),
                    _SELECTORS,
                ),
            ),
        ),
        always=True,
    ),
)
CLASS: Final = Shape(
    DeviceClass,
    Field("metadata", "metadata", METADATA, missing=METADATA.read({}), always=True),
    Group(
        "spec",
        Fields(
            _SELECTORS,
            Field("config", "config", ListOf(_ClassConfiguration())),
            Field("extended_resource_name", "extendedResourceName", STRING, optional=True),
        ),
        always=True,
    ),
)
