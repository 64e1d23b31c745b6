"""What a machine must have for a real cluster, told as sentences that name the package to install."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

ASK_SECONDS = 60.0
_PT_INTERP = 3


def missing_go(module: Path) -> list[str]:
    """What is missing to build a module, whose file says which Go it wants."""
    if not module.exists():
        return [
            (
                f"the sources of a real cluster ({module}) are only in a checkout of gpupool: use one, "
                "or the embedded control plane"
            )
        ]
    if shutil.which("go"):
        return []
    wanted = next(line.split()[1] for line in module.read_text().splitlines() if line.startswith("go "))
    return [
        (
            f"Go {wanted} or newer is not installed: apt-get install golang-go where that is new enough, "
            "or unpack it from go.dev/dl"
        )
    ]


def missing_for_runc() -> list[str]:
    """What is missing to build runc beside Go: a compiler and libseccomp."""
    found = [
        f"{program} is not installed: apt-get install {package}"
        for program, package in (("gcc", "gcc libc6-dev"), ("pkg-config", "pkg-config"))
        if shutil.which(program) is None
    ]
    if not found:
        asked = subprocess.run(["pkg-config", "--exists", "libseccomp"], timeout=ASK_SECONDS, check=False)  # noqa: S607 - on PATH as above
        if asked.returncode:
            found.append("the headers of libseccomp are not installed: apt-get install libseccomp-dev")
    return found


def missing_for_pods() -> list[str]:
    """What is missing to run pods."""
    found = [] if static_busybox() else ["no static busybox is installed: apt-get install busybox-static"]
    found += [
        f"{program} is not installed: apt-get install util-linux"
        for program in ("unshare", "nsenter")
        if shutil.which(program) is None
    ]
    if os.geteuid() != 0:
        found.append("this is not root, whom a node with real pods needs: use sudo, or the embedded kubelet")
    return found


def static_busybox() -> Path | None:
    """A busybox that runs in an otherwise empty container."""
    found = shutil.which("busybox")
    return Path(found) if found and _is_static(Path(found)) else None


def _is_static(program: Path) -> bool:
    """Whether an ELF file names no interpreter."""
    with program.open("rb") as file:
        head = file.read(64)
        if head[:5] != b"\x7fELF\x02":
            return False
        (offset,), (size, count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
        file.seek(offset)
        headers = file.read(size * count)
    return all(struct.unpack_from("<I", headers, i * size)[0] != _PT_INTERP for i in range(count))
