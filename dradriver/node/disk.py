"""The few file operations that durable state rests on, in one place so that tests can fail or stop at each of them.

`replace` is atomic and durable: after a crash the file has its old content or its new one. Temporary names never end
in `.json`, because container runtimes read every such file of the CDI directory.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


class Disk:
    """The real disk."""

    def write(self, descriptor: int, data: bytes) -> None:
        """Write all of `data`, or raise OSError having written some of it."""
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    def sync(self, descriptor: int) -> None:
        """Return once what was written is on the medium."""
        os.fsync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        """Cut a file."""
        os.ftruncate(descriptor, size)

    def rename(self, source: Path, target: Path) -> None:
        """Put a file in another's place, for good."""
        source.rename(target)
        self.sync_directory(target.parent)

    def remove(self, path: Path) -> None:
        """Remove a file; one that is gone already is no error."""
        path.unlink(missing_ok=True)

    def sync_directory(self, directory: Path) -> None:
        """Make renames in a directory durable."""
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def create(self, path: Path, data: bytes, *, mode: int = 0o600) -> None:
        """Write a new file and sync it; nothing of it stays when that fails."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        try:
            self.write(descriptor, data)
            self.sync(descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                self.remove(path)
            raise
        finally:
            os.close(descriptor)

    def replace(self, path: Path, data: bytes, *, mode: int = 0o600) -> None:
        """Give a file new content, atomically and durably."""
        temporary = path.with_name(f".{path.name}.tmp")
        self.create(temporary, data, mode=mode)
        try:
            self.rename(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                self.remove(temporary)
            raise
