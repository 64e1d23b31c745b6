"""Reading the shapes: which fields an object may have in one version under one Kubernetes, and what that implies.

From one table come the pruning of unknown fields and of fields behind a disabled gate, the report of misspelt fields,
the keys by which lists merge, and the OpenAPI document.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dradriver import api
from dradriver.lab.apiserver.shapes import SHAPES

_FIELD = re.compile(r"  (?P<name>\w+): (?P<type>\S+)(?: (?P<gate>DRA\w+))?(?: -- (?P<doc>.*))?")
_BLOCK = re.compile(r"(?P<name>[\w@]+)(?P<open> \*)?(?: -- (?P<doc>.*))?")
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


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a shape."""

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

    def shape(self, name: str) -> Shape | None:
        """The shape of a type in this version; None for scalars and unknown names."""
        blocks = _blocks()
        return blocks.get(f"{name}@{self._version}") or blocks.get(name)

    def field(self, name: str, field: str) -> FieldType:
        """The type of a field; `any` where the shape does not say."""
        shape = self.shape(name)
        found = shape.fields.get(field) if shape else None
        return found.type if found else FieldType("item", "any")

    def unknown(self, name: str, value: Any, path: str = "") -> Iterator[str]:
        """Paths of fields that this version does not know, as the strict decoder words them."""
        shape = self.shape(name)
        if shape is None or not isinstance(value, Mapping):
            return
        for key, inner in value.items():
            here = f"{path}.{key}" if path else key
            known = shape.fields.get(key)
            if known is None or not self._exists(known):
                if not (shape.open or (not path and key in ("apiVersion", "kind"))):
                    yield here
                continue
            for place, item in _items(known.type, inner):
                yield from self.unknown(known.type.name, item, here + place)

    def normalize(self, name: str, value: Any, path: str = "") -> Any:
        """A copy as a server keeps it: without unknown fields and those whose gate is off, quantities in one form.

        Raises:
            ApiError: a value is not of its type.
        """
        shape = self.shape(name)
        if shape is None:
            return _scalar(name, value, path)
        if not isinstance(value, Mapping):
            raise api.WireError(path or name, f"expected an object, got {value!r}")
        kept: dict[str, Any] = {}
        for key, inner in value.items():
            known = shape.fields.get(key)
            if inner is None:
                continue
            if known is None:
                if shape.open or key in ("apiVersion", "kind"):
                    kept[key] = inner
            elif known.gate is None or self._kubernetes.enabled(known.gate):
                kept[key] = self._normalize_field(known.type, inner, f"{path}.{key}" if path else key)
        return kept

    def _normalize_field(self, kind: FieldType, value: Any, path: str) -> Any:
        if kind.form == "item":
            return self.normalize(kind.name, value, path)
        wanted = list if kind.form == "list" else dict
        if not isinstance(value, wanted):
            raise api.WireError(path, f"expected a {kind.form}, got {value!r}")
        if isinstance(value, dict):
            return {key: self.normalize(kind.name, item, f"{path}.{key}") for key, item in value.items()}
        return [self.normalize(kind.name, item, f"{path}[{index}]") for index, item in enumerate(value)]

    def _exists(self, field: Field) -> bool:
        return field.gate is None or field.gate in self._kubernetes.gates

    def openapi(self, root: str, prefix: str) -> dict[str, Any]:
        """`components.schemas` of a kind and everything it refers to, named with a prefix."""
        found: dict[str, Any] = {}
        waiting = [root]
        while waiting:
            name = waiting.pop()
            shape = self.shape(name)
            if shape is None or prefix + name in found:
                continue
            fields = {key: field for key, field in shape.fields.items() if self._exists(field)}
            properties = {key: _property(field, prefix) for key, field in fields.items()}
            found[prefix + name] = {"type": "object", "description": shape.doc, "properties": properties}
            if shape.open:
                found[prefix + name]["x-kubernetes-preserve-unknown-fields"] = True
            waiting.extend(field.type.name for field in fields.values())
        return found


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


def _items(kind: FieldType, value: Any) -> Iterator[tuple[str, Any]]:
    if kind.form == "list" and isinstance(value, list):
        yield from ((f"[{index}]", item) for index, item in enumerate(value))
    elif kind.form == "map" and isinstance(value, Mapping):
        yield from ((f".{key}", item) for key, item in value.items())
    else:
        yield "", value


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
def _blocks() -> Mapping[str, Shape]:
    blocks: dict[str, tuple[dict[str, Field], bool, str]] = {}
    fields: dict[str, Field] = {}
    for line in SHAPES.strip().splitlines():
        if line == "  *":
            name = next(reversed(blocks))
            blocks[name] = (fields, True, blocks[name][2])
        elif match := _FIELD.fullmatch(line):
            fields[match["name"]] = Field(FieldType.parse(match["type"]), match["gate"], match["doc"] or "")
        elif match := _BLOCK.fullmatch(line):
            fields = {}
            blocks[match["name"]] = (fields, bool(match["open"]), match["doc"] or "")
        else:
            raise ValueError(f"no field and no block: {line!r}")
    return {name: Shape(*parts) for name, parts in blocks.items()}
