"""Reading the body of a request: JSON, YAML, and the little protobuf that kubectl insists on.

`kubectl create namespace|configmap|serviceaccount|quota` and `kubectl auth can-i` send protobuf whatever the server
says it takes; these kinds are read here, with field numbers from kubernetes/api `generated.proto`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import yaml

from dradriver.lab.apiserver import statuses

Json: TypeAlias = dict[str, Any]

_MAGIC = b"k8s\0"
_BYTES = 2
_META = (1, "metadata", "ObjectMeta")
# Number, name and type of the fields that are read: `string`, a map `{string}` or `{Quantity}`, or another message.
_MESSAGES: Mapping[str, tuple[tuple[int, str, str], ...]] = {
    "TypeMeta": ((1, "apiVersion", "string"), (2, "kind", "string")),
    "ObjectMeta": (
        *((1, "name", "string"), (2, "generateName", "string"), (3, "namespace", "string")),
        *((11, "labels", "{string}"), (12, "annotations", "{string}")),
    ),
    "Namespace": (_META,),
    "ServiceAccount": (_META,),
    "ConfigMap": (_META, (2, "data", "{string}")),
    "ResourceQuota": (_META, (2, "spec", "ResourceQuotaSpec")),
    "ResourceQuotaSpec": ((1, "hard", "{Quantity}"),),
    "SelfSubjectAccessReview": (_META, (2, "spec", "SelfSubjectAccessReviewSpec")),
    "SelfSubjectAccessReviewSpec": ((1, "resourceAttributes", "ResourceAttributes"),),
    "ResourceAttributes": tuple(
        (number, name, "string")
        for number, name in enumerate(("namespace", "verb", "group", "version", "resource", "subresource", "name"), 1)
    ),
}


def read_document(body: bytes) -> Any:
    """Read a body. Raises RefusedError."""
    try:
        return _read_protobuf(body) if body.startswith(_MAGIC) else json.loads(body)
    except ValueError:
        try:
            return json.loads(json.dumps(yaml.safe_load(body), default=str))  # YAML has dates and sets, JSON has not
        except (yaml.YAMLError, ValueError, TypeError) as error:
            raise statuses.bad_request(f"the object provided is unrecognized: {error}") from error


def as_object(document: Any) -> Json:
    """A part of a body that must be an object, as must its metadata. Raises RefusedError."""
    if not isinstance(document, dict) or not isinstance(document.get("metadata", {}), dict):
        raise statuses.bad_request(f"the object provided is unrecognized: it is no object: {str(document)[:80]}")
    return document


def _read_protobuf(body: bytes) -> Json:
    try:
        envelope = dict(_parts(body.removeprefix(_MAGIC)))
        identity = _message("TypeMeta", envelope[1])
        return {**identity, **_message(identity["kind"], envelope[2])}
    except (KeyError, IndexError) as error:
        why = f"the body is protobuf of a kind that is read as JSON or YAML only: {error}"
        raise statuses.RefusedError(415, "UnsupportedMediaType", why) from error


def _message(name: str, data: bytes) -> Json:
    fields = {number: (key, kind) for number, key, kind in _MESSAGES[name]}
    found: Json = {}
    for number, value in _parts(data):
        key, kind = fields.get(number, ("", ""))
        if kind.startswith("{"):
            entry = {1: b"", 2: b""} | dict(_parts(value))
            text = dict(_parts(entry[2]))[1] if kind == "{Quantity}" else entry[2]
            found.setdefault(key, {})[entry[1].decode()] = text.decode()
        elif kind and value:
            found[key] = value.decode() if kind == "string" else _message(kind, value)
    return found


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbers and contents of the fields that are no numbers."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        value, position = _varint(data, position)
        if tag & 7 == _BYTES:
            yield tag >> 3, data[position : position + value]
            position += value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004 - the top bit says that more follows
            return value, position
