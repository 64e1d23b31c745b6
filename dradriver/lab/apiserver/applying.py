"""The four kinds of patch: JSON patch, merge patch, strategic merge patch and server-side apply.

All take an object in the version of the request and leave it unchanged. Server-side apply remembers for each manager
which fields it last applied, so that a field a manager no longer applies goes unless another manager applies it too;
two managers may own one field, no conflict is reported.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from dradriver.lab.apiserver import statuses
from dradriver.lab.apiserver.schemas import FieldType, Schemas

Json: TypeAlias = dict[str, Any]
Merge: TypeAlias = Callable[[Schemas, str, Any, Any], Any]
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
    verb, path = operation["op"], operation["path"]
    if verb in ("move", "copy"):
        parent, key = _parent(root, operation["from"])
        value = copy.deepcopy(parent[key])
        if verb == "move":
            del parent[key]
        return _operate(root, {"op": "add", "path": path, "value": value})
    parent, key = _parent(root, path)
    if verb == "test":
        if parent[key] != operation["value"]:
            raise ValueError("testing value failed")
    elif verb == "remove":
        del parent[key]
    elif verb == "add" and isinstance(parent, list):
        parent.insert(key, operation["value"])
    elif verb in ("add", "replace"):
        if verb == "replace":
            parent[key]
        parent[key] = operation["value"]
    else:
        raise ValueError(f"unknown operation {verb!r}")
    return None


def _parent(root: Any, path: str) -> tuple[Any, Any]:
    *parents, last = (part.replace("~1", "/").replace("~0", "~") for part in path.split("/"))
    for part in parents:
        root = root[int(part)] if isinstance(root, list) else root[part]
    if isinstance(root, list):
        return root, len(root) if last == "-" else int(last)
    return root, last


def strategic_patch(schemas: Schemas, name: str, current: Any, patch: Any) -> Any:
    """Kubernetes' own merge (apimachinery `strategicpatch`): keyed lists merge by item, `$` directives are obeyed."""
    if not isinstance(patch, Mapping) or patch.get("$patch") == "replace":
        return {k: v for k, v in patch.items() if k != "$patch"} if isinstance(patch, Mapping) else patch
    merged = dict(current) if isinstance(current, Mapping) else {}
    if "$retainKeys" in patch:
        merged = {key: value for key, value in merged.items() if key in patch["$retainKeys"]}
    for key, value in patch.items():
        directive, _, field = key.partition("/")
        if directive == "$deleteFromPrimitiveList":
            merged[field] = [item for item in merged.get(field, ()) if item not in value]
        elif key.startswith("$"):
            continue  # an order of items is not kept
        elif value is None or (isinstance(value, Mapping) and value.get("$patch") == "delete"):
            merged.pop(key, None)
        else:
            merged[key] = _merge_field(strategic_patch, schemas, schemas.field(name, key), merged.get(key), value)
    return merged


def _merge_field(merge: Merge, schemas: Schemas, kind: FieldType, current: Any, value: Any) -> Any:
    if kind.form == "list" and isinstance(value, list):
        if kind.keys is None or any(isinstance(i, Mapping) and i.get("$patch") == "replace" for i in value):
            return [item for item in value if not (isinstance(item, Mapping) and "$patch" in item)]
        return _merge_list(merge, schemas, kind, list(current or ()), value)
    if kind.form == "map" and isinstance(value, Mapping):
        kept = dict(current or {})
        return {
            k: v
            for k, v in (kept | {k: _item(merge, schemas, kind, kept.get(k), v) for k, v in value.items()}).items()
            if v is not None
        }
    return merge(schemas, kind.name, current, value)


def _item(merge: Merge, schemas: Schemas, kind: FieldType, current: Any, value: Any) -> Any:
    return None if value is None else merge(schemas, kind.name, current, value)


def _merge_list(merge: Merge, schemas: Schemas, kind: FieldType, current: list[Any], patch: list[Any]) -> list[Any]:
    for value in patch:
        place = next((i for i, item in enumerate(current) if _token(kind, item) == _token(kind, value)), None)
        if isinstance(value, Mapping) and value.get("$patch") == "delete":
            if place is not None:
                del current[place]
        elif place is None:
            current.append(merge(schemas, kind.name, None, value))
        else:
            current[place] = merge(schemas, kind.name, current[place], value)
    return current


def _token(kind: FieldType, item: Any) -> str:
    """How a list item is named in a tree of owned fields."""
    if not kind.keys:
        return "v:" + json.dumps(item)
    return "k:" + json.dumps({key: item[key] for key in sorted(kind.keys) if key in item}, separators=(",", ":"))


def apply(schemas: Schemas, name: str, current: Json, config: Json, entry: Json) -> Json:
    """Server-side apply of a configuration.

    Args:
        schemas: The shapes of the version of the request.
        name: The kind.
        current: The object, empty when it is to be created.
        config: What is applied.
        entry: The `managedFields` entry to write, without its fields: manager, operation, apiVersion, time.
    """
    managed: list[Json] = current.get("metadata", {}).get("managedFields", [])
    mine = next(
        (e for e in managed if all(e.get(k) == entry.get(k) for k in ("manager", "operation", "subresource"))), None
    )
    others = [e for e in managed if e is not mine]
    tree = _owned(schemas, name, config)
    for field in ("f:name", "f:namespace"):
        tree.get("f:metadata", {}).pop(field, None)
    left = _without((mine or {}).get("fieldsV1", {}), tree)
    for other in others:
        left = _without(left, other.get("fieldsV1", {}))
    merged = _removed(schemas, name, _applied(schemas, name, current, config), left)
    if mine and mine["fieldsV1"] == tree:
        entry = {**entry, "time": mine["time"]}
    merged["metadata"]["managedFields"] = [*others, {**entry, "fieldsType": "FieldsV1", "fieldsV1": tree}]
    return dict(merged)


def _applied(schemas: Schemas, name: str, current: Any, value: Any) -> Any:
    if not isinstance(value, Mapping) or schemas.shape(name) is None:
        return value
    merged = dict(current) if isinstance(current, Mapping) else {}
    for key, inner in value.items():
        merged[key] = _merge_field(_applied, schemas, schemas.field(name, key), merged.get(key), inner)
    return merged


def _owned(schemas: Schemas, name: str, value: Any) -> Tree:
    if not isinstance(value, Mapping) or schemas.shape(name) is None:
        return {}
    tree: Tree = {}
    for key, inner in value.items():
        kind = schemas.field(name, key)
        if kind.form == "list" and kind.keys is not None:
            tree["f:" + key] = {
                _token(kind, item): {".": {}, **_owned(schemas, kind.name, item)} if kind.keys else {} for item in inner
            }
        elif kind.form == "map":
            tree["f:" + key] = {"f:" + k: _owned(schemas, kind.name, v) for k, v in inner.items()}
        elif kind.form == "item" and key not in ("apiVersion", "kind"):
            tree["f:" + key] = _owned(schemas, kind.name, inner)
        elif kind.form == "list":
            tree["f:" + key] = {}
    return tree


def _without(tree: Tree, other: Tree) -> Tree:
    left: Tree = {}
    for key, inner in tree.items():
        if key not in other:
            left[key] = inner
        elif rest := _without(inner, other[key]):
            left[key] = rest
    return left


def _removed(schemas: Schemas, name: str, value: Any, tree: Tree) -> Any:
    """A copy without the fields of a tree; what becomes empty goes too."""
    if not isinstance(value, Mapping):
        return value
    kept = dict(value)
    for token, inner in tree.items():
        field = token.removeprefix("f:")
        if field not in kept:
            continue
        kind = schemas.field(name, field)
        if not inner:
            del kept[field]
            continue
        if kind.form == "list":
            rest: Any = [
                _removed(schemas, kind.name, item, inner.get(_token(kind, item), {}))
                for item in kept[field]
                if _token(kind, item) not in inner or (kind.keys and "." not in inner[_token(kind, item)])
            ]
        elif kind.form == "map":
            gone = {key.removeprefix("f:"): sub for key, sub in inner.items()}
            rest = {
                key: _removed(schemas, kind.name, item, gone.get(key, {}))
                for key, item in kept[field].items()
                if gone.get(key, True)
            }
        else:
            rest = _removed(schemas, kind.name, kept[field], inner)
        kept[field] = rest
        if not rest:
            del kept[field]
    return kept
