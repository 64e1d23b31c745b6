"""What a container would get: CDI files applied as a container runtime applies them (CDI specification 0.6).

Only what the node plugins write is understood: environment, device nodes and mounts. As with a real runtime a name that
no file or more than one file defines, and a device node that does not exist on the host, are errors; a file that is no
CDI file defines nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class UnresolvableError(Exception):
    """A container cannot be made; the message is what a runtime would report."""


@dataclass(slots=True)
class ContainerView:
    """What CDI adds to one container. Device nodes map the path inside to the path on the host."""

    environment: dict[str, str] = field(default_factory=dict)
    device_nodes: dict[str, str] = field(default_factory=dict)
    mounts: dict[str, str] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """The view as a person reads it."""
        yield from (f"cdi file    {path}" for path in self.files)
        yield from (f"env         {name}={value}" for name, value in sorted(self.environment.items()))
        yield from (f"device node {inside}" for inside in sorted(self.device_nodes))
        yield from (f"mount       {inside}" for inside in sorted(self.mounts))


def view(cdi_directory: Path, names: Iterable[str]) -> ContainerView:
    """What the CDI devices of these names add to a container. Raises UnresolvableError."""
    specs = dict(_specs(cdi_directory))
    seen = ContainerView()
    for name in dict.fromkeys(names):
        kind, _, device_name = name.partition("=")
        path, spec, device = _find(specs, kind, device_name)
        if path not in seen.files:
            seen.files.append(path)
            _apply(seen, spec.get("containerEdits") or {}, name)
        _apply(seen, device.get("containerEdits") or {}, name)
    return seen


def _specs(directory: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted(directory.glob("*.json")):
        try:
            spec = json.loads(path.read_bytes())
        except (FileNotFoundError, ValueError):
            continue
        if isinstance(spec, dict):
            yield path, spec


def _find(specs: Mapping[Path, dict[str, Any]], kind: str, name: str) -> tuple[Path, dict[str, Any], Mapping[str, Any]]:
    found = [
        (path, spec, device)
        for path, spec in specs.items()
        if spec.get("kind") == kind
        for device in spec.get("devices") or ()
        if device.get("name") == name
    ]
    if len(found) != 1:
        problem = "unresolvable" if not found else "conflicting"
        raise UnresolvableError(f"CDI device injection failed: {problem} CDI devices {kind}={name}")
    return found[0]


def _apply(seen: ContainerView, edits: Mapping[str, Any], name: str) -> None:
    for entry in edits.get("env") or ():
        key, _, value = entry.partition("=")
        seen.environment[key] = value
    for node in edits.get("deviceNodes") or ():
        host = Path(node.get("hostPath") or node["path"])
        if not host.exists():
            raise UnresolvableError(f"CDI device {name}: no such device node on the host: {host}")
        seen.device_nodes[node["path"]] = str(host)
    for mount in edits.get("mounts") or ():
        if not Path(mount["hostPath"]).exists():
            raise UnresolvableError(f"CDI device {name}: no such path on the host: {mount['hostPath']}")
        seen.mounts[mount["containerPath"]] = mount["hostPath"]
