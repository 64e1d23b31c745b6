"""Shapes of ResourceSlices and their devices in each version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dradriver.api.devices import (
    AttributeValue,
    Capacity,
    CounterConsumption,
    CounterSet,
    Device,
    RequestPolicy,
    ValidRange,
)
from dradriver.api.quantity import Quantity
from dradriver.api.semver import Version
from dradriver.api.slices import Pool, ResourceSlice
from dradriver.api.taints import Taint, TaintEffect
from dradriver.api.versions import ApiVersion
from dradriver.api.wire.objects import EFFECT, METADATA, NODE_SELECTOR, STRINGS
from dradriver.api.wire.shapes import (
    BOOLEAN,
    INTEGER,
    QUANTITY,
    STRING,
    UNKNOWN,
    Codec,
    Converted,
    Field,
    Fields,
    Group,
    ListOf,
    MapOf,
    Shape,
    ShapeError,
    as_object,
    required,
)


class _Attribute:
    """One of `bool`, `int`, `string`, `version` or their plurals.

    Versions are not checked here: their syntax is a rule of validation, not of shape.
    """

    _SCALARS: Final[Mapping[str, Codec]] = {
        "string": STRING,
        "int": INTEGER,
        "bool": BOOLEAN,
        "version": Converted(Version),
    }
    _CODECS: Final[Mapping[str, Codec]] = {
        **_SCALARS,
        **{f"{key}s": ListOf(codec) for key, codec in _SCALARS.items()},
    }
    _KEYS: Final = {str: "string", int: "int", bool: "bool", Version: "version"}

    def read(self, data: Any) -> Any:
        for key, item in as_object(data).items():
            codec = self._CODECS.get(key)
            if codec is None or item is None:
                continue
            try:
                return codec.read(item)
            except ShapeError as error:
                error.steps.append(f".{key}")
                raise
        return UNKNOWN

    def write(self, value: AttributeValue, over: Any) -> dict[str, Any]:
        key = self._KEYS[type(value[0] if isinstance(value, tuple) else value)]
        key += "s" if isinstance(value, tuple) else ""
        older = over.items() if isinstance(over, Mapping) else ()
        kept = {old: item for old, item in older if old not in self._CODECS}
        return {**kept, key: self._CODECS[key].write(value, None)}


class _Amount:
    """A quantity inside `{"value": ...}`, as counters are."""

    _FIELDS: Final = Fields(required("value", "value", QUANTITY))

    def read(self, data: Any) -> Quantity:
        value: Quantity = self._FIELDS.read(data)["value"]
        return value

    def write(self, value: Quantity, over: Any) -> dict[str, Any]:
        return {**(over if isinstance(over, Mapping) else {}), "value": value.text}


_AMOUNTS: Final = MapOf(_Amount())
_CAPACITY: Final = Shape(
    Capacity,
    required("value", "value", QUANTITY),
    Field(
        "request_policy",
        "requestPolicy",
        Shape(
            RequestPolicy,
            Field("default", "default", QUANTITY),
            Field("valid_values", "validValues", ListOf(QUANTITY)),
            Field(
                "valid_range",
                "validRange",
                Shape(
                    ValidRange,
                    required("minimum", "min", QUANTITY),
                    Field("maximum", "max", QUANTITY),
                    Field("step", "step", QUANTITY),
                ),
            ),
        ),
    ),
)
TAINT: Final = Shape(
    Taint,
    Field("key", "key", STRING, missing="", always=True),
    Field("value", "value", STRING),
    Field("effect", "effect", EFFECT, missing=TaintEffect.NONE, always=True),
    Field("time_added", "timeAdded", STRING, optional=True),
)
_NAME: Final = Field("name", "name", STRING, missing="", always=True)
_DEVICE_FIELDS: Final = (
    Field("attributes", "attributes", MapOf(_Attribute())),
    Field("capacity", "capacity", MapOf(_CAPACITY)),
    Field(
        "consumes_counters",
        "consumesCounters",
        ListOf(
            Shape(
                CounterConsumption,
                Field("counter_set", "counterSet", STRING, missing="", always=True),
                Field("counters", "counters", _AMOUNTS, missing={}, always=True),
                Field("compatibility_groups", "compatibilityGroups", STRINGS),
            ),
            identity=("counterSet",),
        ),
    ),
    Field("node_name", "nodeName", STRING),
    Field("node_selector", "nodeSelector", NODE_SELECTOR),
    Field("all_nodes", "allNodes", BOOLEAN),
    Field("taints", "taints", ListOf(TAINT, identity=("key",))),
    Field("binds_to_node", "bindsToNode", BOOLEAN),
    Field("binding_conditions", "bindingConditions", STRINGS),
    Field("binding_failure_conditions", "bindingFailureConditions", STRINGS),
    Field("allow_multiple_allocations", "allowMultipleAllocations", BOOLEAN),
)
_DEVICE: Final = Shape(Device, _NAME, *_DEVICE_FIELDS)
_WRAPPED_DEVICE: Final = Shape(Device, _NAME, Group("basic", Fields(*_DEVICE_FIELDS), always=True))
_POOL: Final = Shape(
    Pool,
    _NAME,
    Field("generation", "generation", INTEGER, missing=0, always=True),
    Field("resource_slice_count", "resourceSliceCount", INTEGER, missing=0, always=True),
)
_COUNTER_SET: Final = Shape(CounterSet, _NAME, Field("counters", "counters", _AMOUNTS, missing={}, always=True))


def _slice(device: Shape) -> Shape:
    return Shape(
        ResourceSlice,
        Field("metadata", "metadata", METADATA, always=True),
        Group(
            "spec",
            Fields(
                Field("driver", "driver", STRING, missing="", always=True),
                required("pool", "pool", _POOL),
                Field("node_name", "nodeName", STRING),
                Field("node_selector", "nodeSelector", NODE_SELECTOR),
                Field("all_nodes", "allNodes", BOOLEAN),
                Field("per_device_node_selection", "perDeviceNodeSelection", BOOLEAN),
                Field("devices", "devices", ListOf(device, identity=("name",))),
                Field("shared_counters", "sharedCounters", ListOf(_COUNTER_SET, identity=("name",))),
                Field("skip_node_operations", "skipNodeOperations", STRINGS),
            ),
            always=True,
        ),
    )


SLICE: Final[Mapping[ApiVersion, Shape]] = {
    ApiVersion.V1: _slice(_DEVICE),
    ApiVersion.V1BETA2: _slice(_DEVICE),
    ApiVersion.V1BETA1: _slice(_WRAPPED_DEVICE),
}
