"""CDI files: what a container gets, one file for each prepared claim.

The kind is `k8s.<driver>/claim`; a device is named after the claim's UID, because runtimes remember names and a name
must never get other content. Files carry annotations, so they need version 0.6.0; with a lower one containerd resolves
none of their devices. A file is written whole or not at all, and only when every device node in it exists: an empty
or half-true file would start a container without its GPU.

The record of the claim is kept in the file as well: what the journal lost can be told from it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dradriver import api
from dradriver.node.claims import PreparedClaim, PreparedDevice, read_claim, write_claim
from dradriver.node.disk import Disk
from dradriver.node.errors import CdiError

CDI_VERSION = "0.6.0"
CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
"""Nodes beside a GPU's own; those that exist are given. Paths only: their numbers move between boots."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A file of the host that every container with a GPU gets, read-only."""

    host_path: Path
    container_path: str


class CdiDirectory:
    """The CDI files of one driver in one directory; files of others are never touched."""

    def __init__(self, directory: Path, driver: str, dev_root: Path, disk: Disk | None = None) -> None:
        """`dev_root` is the directory that holds the host's `dev/`."""
        self._directory = directory
        self._driver = driver
        self._dev_root = dev_root
        self._disk = disk or Disk()

    def ids(self, claim: PreparedClaim, device: PreparedDevice) -> tuple[str, ...]:
        """The fully qualified CDI names of one device of a claim."""
        return (f"k8s.{self._driver}/claim={_device_name(claim.uid, device)}",)

    def path(self, uid: api.UID) -> Path:
        """The file of a claim."""
        return self._directory / f"k8s.{self._driver}-claim_{uid}.json"

    def write(self, claim: PreparedClaim, mounts: Sequence[Mount] = ()) -> None:
        """Write a claim's file anew. Raises CdiError; the old file, if any, then stays as it was."""
        path = self.path(claim.uid)
        if not claim.devices:
            self.remove(claim.uid)
            return
        self._check_nodes(claim)
        data = json.dumps(self._spec(claim, mounts), indent=1).encode()
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._disk.replace(path, data, mode=0o644)
        except OSError as error:
            raise CdiError(
                f"CDI file {path} cannot be written: {error.strerror}; free space on its disk or check --cdi-dir"
            ) from error

    def remove(self, uid: api.UID) -> None:
        """Remove a claim's file; one that is gone is no error. Raises CdiError."""
        path = self.path(uid)
        try:
            self._disk.remove(path)
        except OSError as error:
            raise CdiError(
                f"CDI file {path} cannot be removed: {error.strerror}; check that --cdi-dir is writable"
            ) from error

    def present(self) -> tuple[api.UID, ...]:
        """UIDs of the claims that have a file."""
        prefix = f"k8s.{self._driver}-claim_"
        return tuple(
            sorted(
                api.UID(path.name.removeprefix(prefix).removesuffix(".json"))
                for path in self._directory.glob(f"{prefix}*.json")
            )
        )

    def recorded(self, uid: api.UID) -> PreparedClaim | None:
        """The claim as its file records it; None when the file does not tell."""
        try:
            spec = json.loads(self.path(uid).read_bytes())
            claim = read_claim(json.loads(spec["annotations"][f"{self._driver}/prepared"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return claim if claim.uid == uid else None

    def clear_temporaries(self) -> None:
        """Remove what an interrupted write left."""
        for path in self._directory.glob(f".k8s.{self._driver}-claim_*.tmp"):
            with contextlib.suppress(OSError):  # no runtime reads it
                path.unlink(missing_ok=True)

    def _check_nodes(self, claim: PreparedClaim) -> None:
        for device in claim.devices:
            missing = [str(path) for node in device.nodes if not (path := self._host(node)).exists()]
            if missing or not device.nodes:
                raise CdiError(
                    f"device {device.name} ({device.uuid}) cannot be given to a container: "
                    f"no device node {', '.join(missing) or 'is known for it'}; "
                    "load the driver's modules (nvidia-modprobe -c) and look at --dev-root"
                )

    def _host(self, node: str) -> Path:
        return self._dev_root / node.removeprefix("/")

    def _node_edit(self, node: str) -> dict[str, str]:
        host = self._host(node)
        return {"path": node} if str(host) == node else {"path": node, "hostPath": str(host)}

    def _spec(self, claim: PreparedClaim, mounts: Sequence[Mount]) -> dict[str, Any]:
        common: dict[str, Any] = {"env": ["NVIDIA_VISIBLE_DEVICES=void"]}
        if nodes := [node for node in CONTROL_NODES if self._host(node).exists()]:
            common["deviceNodes"] = [self._node_edit(node) for node in nodes]
        if mounts:
            common["mounts"] = [
                {
                    "hostPath": str(mount.host_path),
                    "containerPath": mount.container_path,
                    "options": ["ro", "nosuid", "nodev", "rbind", "rprivate"],
                }
                for mount in mounts
            ]
        return {
            "cdiVersion": CDI_VERSION,
            "kind": f"k8s.{self._driver}/claim",
            "annotations": {
                f"{self._driver}/claim-namespace": claim.namespace,
                f"{self._driver}/claim-name": claim.name,
                f"{self._driver}/claim-uid": claim.uid,
                f"{self._driver}/prepared": json.dumps(write_claim(claim), separators=(",", ":")),
            },
            "containerEdits": common,
            "devices": [
                {
                    "name": _device_name(claim.uid, device),
                    "containerEdits": {
                        "env": [f"GPUPOOL_DEVICE_{_variable(device)}={device.uuid}"],
                        "deviceNodes": [self._node_edit(node) for node in device.nodes],
                    },
                }
                for device in claim.devices
            ],
        }


def _device_name(uid: api.UID, device: PreparedDevice) -> str:
    return f"{uid}-{_share_name(device)}"


def _share_name(device: PreparedDevice) -> str:
    return device.name if device.share_id is None else f"{device.name}-{device.share_id}"


def _variable(device: PreparedDevice) -> str:
    """Edits of all a container's devices are merged, so each device has a variable of its own."""
    return _share_name(device).upper().replace("-", "_").replace(".", "_")
