"""The four kinds of patch: JSON patch, merge patch, strategic merge patch and server-side apply.

All take an object in the version of the request and leave it unchanged. Server-side apply remembers for each manager
which fields it last applied, so that a field a manager no longer applies goes unless another manager applies it too;
two managers may own one field, no conflict is reported.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from dradriver.lab.apiserver import statuses
from dradriver.lab.apiserver.schemas import FieldType, Schemas

Json: TypeAlias = dict[str, Any]
Tree: TypeAlias = dict[str, Any]
"""Owned fields as `fieldsV1` has them: `f:` fields, `k:` items of keyed lists, `v:` members of sets."""


def merge_patch(current: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(current) if isinstance(current, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patch(current: Json, operations: Any) -> Json:
    """RFC 6902. Raises RefusedError."""
    result: Any = {"": copy.deepcopy(current)}
    for operation in operations if isinstance(operations, list) else [operations]:
        try:
            _operate(result, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            message = f"the server rejected our request due to an error in our request: {operation}: {error}"
            raise statuses.RefusedError(422, "Invalid", message) from error
    return dict(result[""])


def _operate(root: Any, operation: Mapping[str, Any]) -> None:
    verb, value = operation["op"], operation.get("value")
    if verb in ("move", "copy"):
        parent, key = _place(root, operation["from"])
        value = copy.deepcopy(parent[key])
        if verb == "move":
            del parent[key]
        verb = "add"
    parent, key = _place(root, operation["path"])
    if verb != "add":
        there = parent[key]
    if verb == "test" and there != value:
        raise ValueError("testing value failed")
    if verb == "remove":
        del parent[key]
    elif verb == "add" and isinstance(parent, list):
        parent.insert(key, value)
    elif verb in ("add", "replace"):
        parent[key] = value
    elif verb != "test":
        raise ValueError(f"unknown operation {verb!r}")


def _place(root: Any, path: str) -> tuple[Any, Any]:
    *parents, last = (part.replace("~1", "/").replace("~0", "~") for part in path.split("/"))
    for part in parents:
        root = root[int(part)] if isinstance(root, list) else root[part]
    if isinstance(root, list):
        return root, len(root) if last == "-" else int(last)
    return root, last


def strategic_patch(schemas: Schemas, kind: FieldType, current: Any, patch: Any) -> Any:
    """Kubernetes' own merge (apimachinery `strategicpatch`): keyed lists merge by item, `$` directives are obeyed."""
    if kind.form == "list" and isinstance(patch, list):
        if kind.keys is None or any(_directive(item) == "replace" for item in patch):
            return [item for item in patch if not _directive(item)]
        items = {_token(kind, item): item for item in current or ()}
        for item in patch:
            token = _token(kind, item)
            if _directive(item) == "delete":
                items.pop(token, None)
            else:
                items[token] = strategic_patch(schemas, kind.inner, items.get(token), item)
        return list(items.values())
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(current) if isinstance(current, Mapping) and _directive(patch) != "replace" else {}
    for key, value in patch.items():
        word, _, field = key.partition("/")
        if word == "$deleteFromPrimitiveList":
            merged[field] = [item for item in merged.get(field, ()) if item not in value]
        elif value is None or _directive(value) == "delete":
            merged.pop(key, None)
        elif not key.startswith("$"):  # the others keep an order of items, or say which keys of a union stay
            merged[key] = strategic_patch(schemas, _type_of(schemas, kind, key), merged.get(key), value)
    return merged


def _directive(item: Any) -> Any:
    return item.get("$patch") if isinstance(item, Mapping) else None


def _type_of(schemas: Schemas, kind: FieldType, key: str) -> FieldType:
    return kind.inner if kind.form == "map" else schemas.field(kind.name, key)


def _token(kind: FieldType, item: Any) -> str:
    """How a list item is named in a tree of owned fields."""
    if not kind.keys:
        return "v:" + json.dumps(item)
    return "k:" + json.dumps({key: item[key] for key in sorted(kind.keys) if key in item}, separators=(",", ":"))


def apply(schemas: Schemas, kind: FieldType, current: Json, config: Json, entry: Json) -> Json:
    """Server-side apply of a configuration.

    Args:
        schemas: The shapes of the version of the request.
        kind: The type of the object.
        current: The object, empty when it is to be created.
        config: What is applied.
        entry: The `managedFields` entry to write, without its fields: manager, operation, apiVersion, time.
    """
    managed: list[Json] = current.get("metadata", {}).get("managedFields", [])
    identity = ("manager", "operation", "subresource")
    mine = next((e for e in managed if all(e.get(key) == entry.get(key) for key in identity)), None)
    others = [e for e in managed if e is not mine]
    owned = _owned(schemas, kind, config)
    for field in ("f:apiVersion", "f:kind"):
        owned.pop(field, None)
    for field in ("f:name", "f:namespace"):
        owned.get("f:metadata", {}).pop(field, None)
    left = (mine or {}).get("fieldsV1", {})
    for tree in (owned, *(other.get("fieldsV1", {}) for other in others)):
        left = _without(left, tree)
    merged = _removed(schemas, kind, strategic_patch(schemas, kind, current, config), left)
    if mine and mine["fieldsV1"] == owned:
        entry = {**entry, "time": mine["time"]}
    merged["metadata"]["managedFields"] = [*others, {**entry, "fieldsType": "FieldsV1", "fieldsV1": owned}]
    return dict(merged)


def _parts(schemas: Schemas, kind: FieldType, value: Any) -> Iterable[tuple[str, Any, FieldType, Any]]:
    """What of a value can be owned by itself: token, key, type and value; nothing of scalars and atomic lists."""
    if isinstance(value, Mapping):
        return [("f:" + key, key, _type_of(schemas, kind, key), item) for key, item in value.items()]
    if isinstance(value, list) and kind.form == "list" and kind.keys is not None:
        return [(_token(kind, item), index, kind.inner, item) for index, item in enumerate(value)]
    return ()


def _owned(schemas: Schemas, kind: FieldType, value: Any) -> Tree:
    own: Tree = {".": {}} if kind.form == "list" and kind.keys else {}
    return {token: {**own, **_owned(schemas, part, item)} for token, _, part, item in _parts(schemas, kind, value)}


def _without(tree: Tree, other: Tree) -> Tree:
    left: Tree = {}
    for key, inner in tree.items():
        if key not in other:
            left[key] = inner
        elif rest := _without(inner, other[key]):
            left[key] = rest
    return left


def _removed(schemas: Schemas, kind: FieldType, value: Any, tree: Tree) -> Any:
    """A copy without the fields of a tree; what becomes empty goes too."""
    parts = _parts(schemas, kind, value)
    if not parts:
        return value
    kept: Json = {}
    for token, key, part, item in parts:
        if token not in tree:
            kept[key] = item
        elif tree[token] and "." not in tree[token] and (rest := _removed(schemas, part, item, tree[token])):
            kept[key] = rest
    return list(kept.values()) if isinstance(value, list) else kept
