"""The MIG instances of a described node, on disk, so that every process and a restarted plugin see the same ones.

`instances.json` in the state directory is replaced as a whole by rename, so a reader never needs the lock; a change
reads, decides and writes under an exclusive lock of `instances.lock`, which the system frees when its holder dies.
GPUs are kept by UUID: one that the description gained begins as described, one that it lost is forgotten.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from dradriver.described import partitioning
from dradriver.described.description import Description
from dradriver.described.errors import DescriptionError
from dradriver.described.partitioning import Partitioning

_FORMAT: Final = 1
_log = logging.getLogger(__name__)

Stamp: TypeAlias = tuple[int, int, int]
"""Inode, time and size of a file: what changes when it is replaced or edited."""


class Store:
    """The state directory of one node, made where it is missing. Raises DescriptionError where it cannot be used."""

    def __init__(self, description: Description, directory: Path) -> None:
        self._described = {gpu.uuid: gpu.partitioning for gpu in description.gpus}
        self._file = directory / "instances.json"
        self._lock = directory / "instances.lock"
        self._seen: Stamp | None = None
        self._kept: dict[str, Partitioning] = {}
        try:
            directory.mkdir(parents=True, exist_ok=True)
            with self._locked():
                before = self._read() if self._file.exists() else {}
                after = {uuid: before.get(uuid, initial) for uuid, initial in self._described.items()}
                if after != before or not self._file.exists():
                    self._write(after)
        except OSError as error:
            remedy = "give a directory that can be written"
            raise DescriptionError(str(directory), "", error.strerror or str(error), remedy) from error

    def partitioning(self, uuid: str) -> Partitioning:
        """The instances of a GPU now; those seen last where the file was damaged meanwhile, which is told once."""
        seen = stamp(self._file)
        if seen is None:  # deleted under a running plugin: as after a reboot
            return self._described[uuid]
        if seen != self._seen:
            self._seen = seen
            try:
                self._kept = self._read()
            except (DescriptionError, OSError) as error:
                _log.warning("instances not changed: %s", error)
        return self._kept.get(uuid, self._described[uuid])

    def change(self, uuid: str, change: Callable[[Partitioning], Partitioning]) -> Partitioning:
        """Replace a GPU's instances by what `change` makes of the present ones; what it raises changes nothing."""
        with self._locked():
            kept = self._read() if self._file.exists() else dict(self._described)
            kept[uuid] = change(kept.get(uuid, self._described[uuid]))
            self._write(kept)
            return kept[uuid]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # held for a read and a write, never while waiting for anything
            yield
        finally:
            os.close(descriptor)

    def _read(self) -> dict[str, Partitioning]:
        try:
            document = json.loads(self._file.read_text(encoding="utf-8"))
            if document["format"] != _FORMAT:
                raise ValueError(f"format {document['format']}")  # noqa: TRY301 - told like any other damage
            return {uuid: partitioning.from_json(value) for uuid, value in document["gpus"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problem = f"not the state of described hardware ({error})"
            raise DescriptionError(str(self._file), "", problem, "delete it to begin as described") from error

    def _write(self, kept: dict[str, Partitioning]) -> None:
        gpus = {uuid: partitioning.to_json(value) for uuid, value in kept.items()}
        temporary = self._file.with_suffix(".tmp")  # one writer at a time: the lock is held
        with temporary.open("w", encoding="utf-8") as file:
            json.dump({"format": _FORMAT, "gpus": gpus}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._file)


def stamp(file: Path) -> Stamp | None:
    """What tells that a file changed; None where there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
