"""Reading the shapes: which fields an object may have in one version under one Kubernetes, and what that implies.

From one table come the pruning and the report of unknown fields, the check of types, the keys by which lists merge,
and the OpenAPI document.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dradriver import api
from dradriver.lab.apiserver.shapes import SHAPES

_SCALARS: Mapping[str, Mapping[str, Any]] = {
    "string": {"type": "string"},
    "int": {"type": "integer", "format": "int64"},
    "bool": {"type": "boolean"},
    "quantity": {"type": "string"},
    "time": {"type": "string", "format": "date-time"},
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}


@dataclass(frozen=True, slots=True)
class FieldType:
    """`form` is one of item, list, map; `keys` is None for an atomic list, empty for a set of scalars."""

    form: str
    name: str
    keys: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, text: str) -> FieldType:
        """Read `T`, `{T}`, `[T]` or `[T|a,b]`."""
        if text.startswith("["):
            name, bar, keys = text[1:-1].partition("|")
            return cls("list", name, tuple(filter(None, keys.split(","))) if bar else None)
        return cls("map", text[1:-1]) if text.startswith("{") else cls("item", text)

    @property
    def inner(self) -> FieldType:
        """The type of the items of a list or map."""
        return FieldType("item", self.name)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a shape; with a gate it exists where the gate does, whether on or off."""

    type: FieldType
    gate: str | None
    doc: str


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of one type; an open shape keeps what it does not name."""

    fields: Mapping[str, Field]
    open: bool
    doc: str


class Schemas:
    """The shapes as one version of the API shows them under one Kubernetes."""

    def __init__(self, version: str, kubernetes: api.Kubernetes) -> None:
        self._version = version
        self._kubernetes = kubernetes

    def field(self, name: str, field: str) -> FieldType:
        """The type of a field; `any` where the shape does not say."""
        shape = self._shape(name)
        found = shape.fields.get(field) if shape else None
        return found.type if found else FieldType("item", "any")

    def prune(self, name: str, value: Any, unknown: list[str], path: str = "") -> Any:
        """A copy without the fields that do not exist, whose paths go to `unknown`; quantities in the server's form.

        Raises:
            ApiError: a value is not of its type.
        """
        shape = self._shape(name)
        if shape is None:
            return _scalar(name, value, path)
        if not isinstance(value, Mapping):
            raise api.WireError(path or name, f"expected an object, got {value!r}")
        kept: dict[str, Any] = {}
        for key, inner in value.items():
            here = f"{path}.{key}" if path else key
            field = shape.fields.get(key)
            if field and self._exists(field):
                if inner is not None:
                    kept[key] = self._prune_field(field.type, inner, unknown, here)
            elif shape.open or here in ("apiVersion", "kind"):
                kept |= {key: inner} if inner is not None else {}
            else:
                unknown.append(here)
        return kept

    def _prune_field(self, kind: FieldType, value: Any, unknown: list[str], path: str) -> Any:
        match kind.form, value:
            case "item", _:
                return self.prune(kind.name, value, unknown, path)
            case "map", dict():
                return {key: self.prune(kind.name, item, unknown, f"{path}.{key}") for key, item in value.items()}
            case "list", list() if not kind.keys or all(isinstance(item, dict) for item in value):
                return [self.prune(kind.name, item, unknown, f"{path}[{i}]") for i, item in enumerate(value)]
        raise api.WireError(path, f"expected a {kind.form}, got {value!r}")

    def openapi(self, root: str, prefix: str) -> dict[str, Any]:
        """`components.schemas` of a kind and everything it refers to, named with a prefix."""
        found: dict[str, Any] = {}
        waiting = [root]
        while waiting:
            name = waiting.pop()
            shape = self._shape(name)
            if shape is None or prefix + name in found:
                continue
            fields = {key: field for key, field in shape.fields.items() if self._exists(field)}
            properties = {key: _property(field, prefix) for key, field in fields.items()}
            found[prefix + name] = {"type": "object", "description": shape.doc, "properties": properties}
            if shape.open:
                found[prefix + name]["x-kubernetes-preserve-unknown-fields"] = True
            waiting.extend(field.type.name for field in fields.values())
        return found

    def _shape(self, name: str) -> Shape | None:
        return _shapes().get(f"{name}@{self._version}") or _shapes().get(name)

    def _exists(self, field: Field) -> bool:
        return field.gate is None or field.gate in self._kubernetes.gates


def _scalar(name: str, value: Any, path: str) -> Any:
    """A value of one of the scalar types, checked; a quantity in the form the server writes, a time as it is."""
    if name == "any":
        return value
    kind: Any = {"int": int, "bool": bool}.get(name, str)
    if name == "quantity" and type(value) in (int, float):
        value = str(value)
    if type(value) is not kind:
        raise api.WireError(path or name, f"expected {kind.__name__}, got {value!r}")
    try:
        if name == "time":
            datetime.fromisoformat(value)
        return str(api.Quantity.parse(value.strip())) if name == "quantity" else value
    except ValueError as error:
        raise api.WireError(path or name, f"expected a {name}, got {value!r}") from error


def _property(field: Field, prefix: str) -> dict[str, Any]:
    kind = field.type
    scalar = _SCALARS.get(kind.name)
    inner: dict[str, Any] = (
        dict(scalar) if scalar else {"allOf": [{"$ref": f"#/components/schemas/{prefix}{kind.name}"}]}
    )
    if kind.form == "list":
        inner = {"type": "array", "items": inner, "x-kubernetes-list-type": "atomic"}
        if kind.keys is not None:
            inner["x-kubernetes-list-type"] = "map" if kind.keys else "set"
        if kind.keys:
            inner["x-kubernetes-list-map-keys"] = list(kind.keys)
    elif kind.form == "map":
        inner = {"type": "object", "additionalProperties": inner}
    return {**inner, "description": field.doc} if field.doc else inner


@functools.cache
def _shapes() -> Mapping[str, Shape]:
    shapes: dict[str, Shape] = {}
    for block in re.split(r"\n(?=\w)", SHAPES.strip()):
        head, *lines = block.splitlines()
        name, _, doc = head.partition(" -- ")
        fields: dict[str, Field] = {}
        for line in lines:
            text, _, about = line.strip().partition(" -- ")
            match text.split():
                case ["+", other]:
                    fields |= shapes[other].fields
                case [field, kind, *gate]:
                    fields[field.removesuffix(":")] = Field(FieldType.parse(kind), gate[0] if gate else None, about)
        shapes[name] = Shape(fields, "  *" in lines, doc)
    return shapes
