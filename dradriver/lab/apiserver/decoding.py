"""Reading the body of a request: JSON, YAML, and the little protobuf that kubectl insists on.

`kubectl create namespace|configmap|secret|serviceaccount|quota` and `kubectl auth can-i` send protobuf whatever the
server says it takes; these kinds are read here, with field numbers from kubernetes/api `generated.proto`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import yaml

from dradriver.lab.apiserver import statuses

Json: TypeAlias = dict[str, Any]
Message: TypeAlias = Mapping[int, tuple[str, str]]

_MAGIC = b"k8s\0"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_META = {1: ("metadata", "ObjectMeta")}
_MESSAGES: Mapping[str, Message] = {
    "Unknown": {1: ("type", "TypeMeta"), 2: ("raw", "raw")},
    "TypeMeta": {1: ("apiVersion", "string"), 2: ("kind", "string")},
    "ObjectMeta": {
        1: ("name", "string"),
        2: ("generateName", "string"),
        3: ("namespace", "string"),
        11: ("labels", "{string}"),
        12: ("annotations", "{string}"),
    },
    "Namespace": _META,
    "ServiceAccount": _META,
    "ConfigMap": {**_META, 2: ("data", "{string}"), 3: ("binaryData", "{bytes}")},
    "Secret": {**_META, 2: ("data", "{bytes}"), 3: ("type", "string"), 4: ("stringData", "{string}")},
    "ResourceQuota": {**_META, 2: ("spec", "ResourceQuotaSpec")},
    "ResourceQuotaSpec": {1: ("hard", "{Quantity}")},
    "Quantity": {1: ("string", "string")},
    "SelfSubjectAccessReview": {**_META, 2: ("spec", "SelfSubjectAccessReviewSpec")},
    "SelfSubjectAccessReviewSpec": {1: ("resourceAttributes", "ResourceAttributes")},
    "ResourceAttributes": {
        number: (name, "string")
        for number, name in enumerate(("namespace", "verb", "group", "version", "resource", "subresource", "name"), 1)
    },
}


def read_document(body: bytes) -> Any:
    """Read a body. Raises RefusedError."""
    try:
        return _read_protobuf(body) if body.startswith(_MAGIC) else json.loads(body)
    except ValueError:
        try:
            return yaml.safe_load(body)
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise statuses.bad_request(f"the object provided is unrecognized: {error}") from error


def read_object(body: bytes) -> Json:
    """Read a body that must be an object. Raises RefusedError."""
    return as_object(read_document(body))


def as_object(document: Any) -> Json:
    """A part of a body that must be an object, as must its metadata. Raises RefusedError."""
    if not isinstance(document, dict) or not isinstance(document.get("metadata", {}), dict):
        raise statuses.bad_request(f"the object provided is unrecognized: it is no object: {str(document)[:80]}")
    return document


def _read_protobuf(body: bytes) -> Json:
    try:
        envelope = _message("Unknown", body[len(_MAGIC) :])
        identity: Json = envelope["type"]
        return {**identity, **_message(identity["kind"], envelope["raw"])}
    except (KeyError, IndexError) as error:
        why = f"the body is protobuf of a kind that is read as JSON or YAML only: {error}"
        raise statuses.RefusedError(415, "UnsupportedMediaType", why) from error


def _message(name: str, data: bytes) -> Json:
    fields = _MESSAGES[name]
    found: Json = {}
    for number, value in _pairs(data):
        if number not in fields or isinstance(value, int):
            continue
        key, kind = fields[number]
        if kind.startswith("{"):
            entry = {n: v for n, v in _pairs(value) if isinstance(v, bytes)}
            item = _value(kind[1:-1], entry.get(2, b""))
            found.setdefault(key, {})[entry[1].decode()] = item["string"] if kind == "{Quantity}" else item
        elif value or kind not in ("string", "ObjectMeta"):
            found[key] = _value(kind, value)
    return found


def _value(kind: str, data: bytes) -> Any:
    match kind:
        case "string":
            return data.decode()
        case "bytes":
            return base64.b64encode(data).decode()
        case "raw":
            return data
    return _message(kind, data)


def _pairs(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        if tag & 7 == _BYTES:
            length, position = _varint(data, position)
            yield tag >> 3, data[position : position + length]
            position += length
        elif tag & 7 == _VARINT:
            value, position = _varint(data, position)
            yield tag >> 3, value
        else:
            position += {_FIXED64: 8, _FIXED32: 4}[tag & 7]


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004 - the top bit says that more follows
            return value, position
