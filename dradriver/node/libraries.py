"""The driver's user-space libraries, which a container needs in exactly the version of the loaded kernel modules.

They are mounted under `/usr/local/nvidia`, where CUDA images have their loader look, so that no hook has to run in the
container. A driver root without them gives none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dradriver.node.cdi import Mount

CONTAINER_ROOT = "/usr/local/nvidia"
_LIBRARY_DIRECTORIES = (
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
)
_PROGRAMS = ("nvidia-smi", "nvidia-debugdump")


def find(driver_root: Path, version: str | None) -> tuple[Mount, ...]:
    """Mounts of the libraries whose names end in the driver's version, each also by the name programs load it by."""
    if not version:
        return ()
    mounts: dict[str, Mount] = {}
    for mount in _all(driver_root, version):
        mounts.setdefault(mount.container_path, mount)
    return tuple(mounts.values())


def _all(driver_root: Path, version: str) -> Iterator[Mount]:
    suffix = f".so.{version}"
    for directory in _LIBRARY_DIRECTORIES:
        for library in sorted((driver_root / directory).glob(f"lib*{suffix}")):
            yield Mount(library, f"{CONTAINER_ROOT}/lib64/{library.name}")
            yield Mount(library, f"{CONTAINER_ROOT}/lib64/{library.name.removesuffix(suffix)}.so.1")
    for name in _PROGRAMS:
        program = driver_root / "usr/bin" / name
        if program.is_file():
            yield Mount(program, f"{CONTAINER_ROOT}/bin/{name}")
