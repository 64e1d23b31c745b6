r"""The journal: records of what this node prepared, append-only, each with a checksum of the bytes written.

One record is one line: `<crc32, 8 hex digits> <JSON>\n`. The file is only appended to; it becomes shorter by writing a
new one and renaming it over the old. What it guarantees: after a crash at any byte the records read are a prefix of
those written, and every record whose `append` returned is among them. A torn tail is cut. A file damaged in any other
way is set aside under another name and what can still be read of it is kept; `damaged` tells that something is missing.

Room is kept aside in a second file, given up when a record that must be written finds the disk full.
Callers hold the node's lock; another instance may have written in between, which `refresh` notices.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dradriver.node.claims import Record, is_readable
from dradriver.node.disk import Disk
from dradriver.node.errors import JournalError

SPARE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Replay:
    """What a journal held. `length` is that of its whole part; `damaged`: a bad line is more than a torn last one."""

    records: tuple[Record, ...]
    length: int
    damaged: bool = False


def encode(record: Record) -> bytes:
    """One line of the journal."""
    body = json.dumps(record, separators=(",", ":"), sort_keys=True).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def decode(data: bytes) -> Replay:
    """Read a journal's bytes; never raises."""
    records: list[Record] = []
    length = 0
    position = 0
    bad = damaged = False
    for line in data.splitlines(keepends=True):
        position += len(line)
        record = _decode_line(line)
        if record is None:
            bad = True
            damaged = damaged or line.endswith(b"\n")
            continue
        records.append(record)
        if bad:
            damaged = True
        else:
            length = position
    return Replay(tuple(records), length, damaged)


def _decode_line(line: bytes) -> Record | None:
    checksum, separator, body = line[:8], line[8:9], line[9:-1]
    if separator != b" " or line[-1:] != b"\n" or checksum != b"%08x" % zlib.crc32(body):
        return None
    try:
        record = json.loads(body)
    except ValueError:
        return None
    return record if isinstance(record, dict) and is_readable(record) else None


class Journal:
    """An open journal. Not safe for threads: callers hold the node's lock."""

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        self.path = path
        self._disk = disk or Disk()
        self._spare = path.with_name(f"{path.name}.spare")
        self._descriptor = -1
        self._length = 0
        # Of the last reading: whether it found less than was once written, and where a damaged file went.
        self.damaged = False
        self.set_aside: Path | None = None

    def open(self) -> tuple[Record, ...]:
        """Read the records, cut a torn tail, set a damaged file aside. Raises JournalError."""
        self.damaged, self.set_aside = False, None
        try:
            records = self._read()
        except OSError as error:
            raise JournalError(
                f"journal {self.path} cannot be opened: {error.strerror}; check the directory of --state-dir"
            ) from error
        self._keep_spare()
        return records

    def refresh(self) -> tuple[Record, ...] | None:
        """The records anew when another instance wrote to the journal, None when nothing changed."""
        length = self._length
        try:
            known = os.fstat(self._descriptor)
            found = self.path.stat()
        except OSError:  # closed, or gone from its directory, from which no instance ever takes it
            is_ours = True
        else:
            is_ours = (found.st_ino, found.st_dev) == (known.st_ino, known.st_dev)
            if is_ours and found.st_size == length:
                return None
        records = self.open()
        # Instances only append to a file, or put another in its place.
        self.damaged = self.damaged or (is_ours and self._length < length)
        return records

    def append(self, record: Record, *, must: bool = False) -> None:
        """Write one record durably, or raise JournalError having written nothing.

        `must` gives up the spare room when the disk is full: for records of what is already done.
        """
        line = encode(record)
        try:
            self._append(line)
        except OSError as error:
            if not must:
                raise self._full(error) from error
            try:
                self._disk.remove(self._spare)
                self._append(line)
            except OSError as again:
                raise self._full(again) from again

    def compact(self, records: Sequence[Record]) -> None:
        """Put a journal of these records in this one's place. Raises JournalError and keeps the old one."""
        try:
            self._disk.replace(self.path, b"".join(encode(record) for record in records))
            self._read()
        except OSError as error:
            raise self._full(error) from error
        self._keep_spare()

    @property
    def present(self) -> bool:
        """Whether the file is in its directory."""
        return self.path.exists()

    @property
    def length(self) -> int:
        """Bytes in the file."""
        return self._length

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self) -> tuple[Record, ...]:
        self.close()
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        replay = decode(self.path.read_bytes())
        if replay.damaged:
            return self._replace_damaged(replay)
        self._length = replay.length
        self._cut()
        if not replay.records:
            self._disk.sync_directory(self.path.parent)  # the file may be new, and must not be lost with its name
        return replay.records

    def _replace_damaged(self, replay: Replay) -> tuple[Record, ...]:
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
            number += 1
        # The good records are in place before the damaged file loses its name: a link, then a rename over it.
        os.link(self.path, aside)
        self._disk.replace(self.path, b"".join(encode(record) for record in replay.records))
        records = self._read()
        self.damaged, self.set_aside = True, aside
        return records

    def _append(self, line: bytes) -> None:
        self._cut()
        try:
            self._disk.write(self._descriptor, line)
            self._disk.sync(self._descriptor)
        except OSError:
            with contextlib.suppress(OSError):  # if it fails here, the next append or start cuts
                self._cut()
            raise
        self._length += len(line)

    def _cut(self) -> None:
        if os.fstat(self._descriptor).st_size != self._length:
            self._disk.truncate(self._descriptor, self._length)
            self._disk.sync(self._descriptor)

    def _keep_spare(self) -> None:
        if not self._spare.exists():
            with contextlib.suppress(OSError):  # a full disk: tried again after the next compaction or start
                self._disk.create(self._spare, bytes(SPARE_BYTES))

    def _full(self, error: OSError) -> JournalError:
        return JournalError(f"journal {self.path} cannot take a record: {error.strerror}; free space on its disk")
