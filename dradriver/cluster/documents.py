"""Kubernetes objects in files: YAML or JSON, one or many documents, single objects or Lists in Lists."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dradriver.cluster import yamls

_DEEPEST = 3


class SnapshotError(Exception):
    """A file that is no snapshot: the message names the file, the object and what to do."""


@dataclass(frozen=True, slots=True)
class Document:
    """One object and where it stands: `cluster.yaml: items[3]`."""

    where: str
    content: dict[str, Any]


@dataclass(frozen=True, slots=True)
class File:
    """The objects of a file, Lists taken apart, and the resource version of its first List that has one."""

    name: str
    documents: tuple[Document, ...]
    resource_version: str


def read_file(path: Path) -> File:
    """Read a file; `-` is standard input. Raises SnapshotError naming the file and the place."""
    name = "standard input" if str(path) == "-" else str(path)
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise SnapshotError(f"{name} cannot be read: {error.strerror}: check the path") from error
    roots = [root for root in _parse(name, data) if root is not None]
    if not roots:
        raise SnapshotError(f"{name} is empty: expected Kubernetes objects, as kubectl get ... -o yaml writes them")
    documents: list[Document] = []
    versions: list[str] = []
    for number, root in enumerate(roots, 1):
        where = f"{name}: document {number}" if len(roots) > 1 else name
        documents.extend(_taken_apart(where, root, versions))
    return File(name, tuple(documents), next(filter(None, versions), ""))


def _parse(name: str, data: bytes) -> list[Any]:
    wrong: Exception | None = None
    if re.match(rb'\s*\{\s*"', data):
        try:
            return [json.loads(data)]
        except (ValueError, RecursionError) as error:
            wrong = error  # YAML in flow style is left
    try:
        return yamls.load_all(data)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        what, cause = ("JSON", wrong) if wrong else ("YAML", error)
        raise SnapshotError(f"{name} is not {what}: {' '.join(str(cause).split())}: correct the file") from error


def _taken_apart(where: str, root: Any, versions: list[str], depth: int = 0) -> Iterator[Document]:
    if not isinstance(root, dict) or not isinstance(root.get("kind"), str):
        raise SnapshotError(f"{where} is {root!r:.60}, expected a Kubernetes object with apiVersion and kind")
    kind = root["kind"]
    if not kind.endswith("List") or "items" not in root:
        yield Document(where, root)
        return
    items = root["items"] if root["items"] is not None else []
    if not isinstance(items, list):
        raise SnapshotError(f"{where}: items of the {kind} is {items!r:.60}, expected a list")
    if depth > _DEEPEST:
        raise SnapshotError(f"{where}: Lists are nested more than {_DEEPEST} deep: make it one List")
    metadata = root.get("metadata")
    versions.append(str(metadata.get("resourceVersion") or "") if isinstance(metadata, dict) else "")
    for index, item in enumerate(items):
        # Items of a typed list carry neither kind nor apiVersion on the wire.
        if kind != "List" and isinstance(item, dict):
            item.setdefault("apiVersion", root.get("apiVersion"))
            item.setdefault("kind", kind.removesuffix("List"))
        separator = ", " if ": " in where else ": "
        yield from _taken_apart(f"{where}{separator}items[{index}]", item, versions, depth + 1)
