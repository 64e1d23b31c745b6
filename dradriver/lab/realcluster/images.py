"""An image without a registry: a static busybox as an OCI archive, for pods and as the sandbox's image."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

IMAGE = "gpupool.dev/busybox:1"
_OCI = "application/vnd.oci.image"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_ASK_SECONDS = 10.0


def write_image(busybox: Path, archive: Path, machine: str) -> None:
    """Write the archive of IMAGE: busybox under the names of all its commands; it sleeps unless told otherwise.

    Args:
        busybox: A static busybox.
        archive: The file to write.
        machine: As `os.uname` calls it.
    """
    architecture = _ARCHITECTURES.get(machine, machine)
    layer = _layer(busybox)
    config = _json(
        {
            "architecture": architecture,
            "os": "linux",
            "config": {"Env": ["PATH=/bin"], "Entrypoint": ["/bin/sleep", "2147483647"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{_OCI}.manifest.v1+json",
            "config": _descriptor("config.v1+json", config),
            "layers": [_descriptor("layer.v1.tar", layer)],
        }
    )
    entry = _descriptor("manifest.v1+json", manifest)
    entry["platform"] = {"architecture": architecture, "os": "linux"}
    entry["annotations"] = {"io.containerd.image.name": IMAGE}
    index = _json({"schemaVersion": 2, "mediaType": f"{_OCI}.index.v1+json", "manifests": [entry]})
    files = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": index}
    for blob in (layer, config, manifest):
        files["blobs/" + _digest(blob).replace(":", "/")] = blob
    with tarfile.open(archive, "w") as tar:
        for name, content in files.items():
            _add(tar, name, content)


def _layer(busybox: Path) -> bytes:
    listed = subprocess.run(  # noqa: S603 - found on PATH by our caller
        [busybox, "--list"], capture_output=True, text=True, timeout=_ASK_SECONDS, check=True
    )
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for directory in ("bin", "dev", "etc", "proc", "sys", "tmp"):
            entry = tarfile.TarInfo(directory)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        _add(tar, "bin/busybox", busybox.read_bytes(), 0o755)
        _add(tar, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")
        for command in listed.stdout.split():
            if command != "busybox":
                entry = tarfile.TarInfo(f"bin/{command}")
                entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(entry)
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _descriptor(kind: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": f"{_OCI}.{kind}", "digest": _digest(content), "size": len(content)}
