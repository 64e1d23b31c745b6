"""The real allocators of Kubernetes 1.32 to 1.37, as programs that answer cases: built with Go, asked over pipes.

Run as a command it builds what is missing: `python tests/oracle/oracles.py [MINOR ...]`. Programs are kept in the
user's cache directory under a key made of their sources and locked modules. Nothing is built without being asked.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

GO = Path(__file__).with_name("go")
MINORS = range(32, 38)
OWN_SIGNATURE = (32, 33)
"""Minors whose allocator is on v1beta1 and has a signature of its own; all later ones share one."""

BUILD = ("go", "build", "-trimpath", "-ldflags", "-s -w", "-o")
BUILD_SECONDS = 1800


def sources(minor: int) -> list[Path]:
    """The files that make up one program, go.mod first."""
    own = minor in OWN_SIGNATURE
    names = ["main.go", "api_v1beta1.go" if own else "api_v1.go", f"allocate_{minor if own else 34}.go"]
    return [GO / f"1.{minor}" / "go.mod", GO / f"1.{minor}" / "go.sum", *(GO / name for name in names)]


def program(minor: int) -> Path:
    """Where the program of a minor is, or would be."""
    key = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources(minor))).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "gpupool" / "oracle" / f"1.{minor}-{key}"


def build(minor: int) -> Path:
    """Build the program of a minor if it is not there: a minute, some more where modules must be fetched."""
    target = program(minor)
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        for source in sources(minor):
            shutil.copy(source, folder)
        made = Path(folder) / "oracle"
        subprocess.run([*BUILD, str(made), "."], cwd=folder, check=True, timeout=BUILD_SECONDS)
        made.replace(target)
    return target


class Oracle:
    """One running program. Close it (or use it as a context) so that no process stays behind."""

    def __init__(self, minor: int) -> None:
        self._process = subprocess.Popen(
            [program(minor)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one question; a program is told to give up after 2 seconds, which 1.32 and 1.33 cannot."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the program."""
        self._process.communicate(timeout=10)


def built() -> Iterator[int]:
    """The minors whose programs are there."""
    return (minor for minor in MINORS if program(minor).exists())


if __name__ == "__main__":
    for wanted in [int(text.removeprefix("1.")) for text in sys.argv[1:]] or MINORS:
        sys.stdout.write(f"{build(wanted)}\n")
