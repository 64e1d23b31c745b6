"""The journal gives back a prefix of what was written, whatever happens to its last bytes, and has room to spare."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dradriver.node import journal as journals
from dradriver.node.claims import Record
from dradriver.node.disk import Disk
from dradriver.node.errors import JournalError
from dradriver.node.journal import Journal

records = st.lists(
    st.dictionaries(st.text(max_size=5), st.one_of(st.text(max_size=20), st.integers(), st.none()), max_size=3),
    max_size=8,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    journal = Journal(path)
    journal.open()
    yield journal
    journal.close()


class FullDisk(Disk):
    """A disk with so many bytes left; removing the spare file gives its bytes back."""

    def __init__(self, room: int) -> None:
        self.room = room

    def write(self, descriptor: int, data: bytes) -> None:
        written = data[: max(self.room, 0)]
        os.write(descriptor, written)
        self.room -= len(written)
        if len(written) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def truncate(self, descriptor: int, size: int) -> None:
        self.room += os.fstat(descriptor).st_size - size
        super().truncate(descriptor, size)

    def remove(self, path: Path) -> None:
        self.room += path.stat().st_size if path.exists() else 0
        super().remove(path)


@given(records, st.data())
def test_cut_at_any_byte_a_prefix_is_read(written: list[Record], data: st.DataObject) -> None:
    lines = [journals.encode(record) for record in written]
    whole = b"".join(lines)
    cut = data.draw(st.integers(0, len(whole)))
    complete = sum(len(b"".join(lines[: n + 1])) <= cut for n in range(len(lines)))
    replay = journals.decode(whole[:cut])
    assert list(replay.records) == written[:complete]
    assert replay.length == len(b"".join(lines[:complete]))
    assert not replay.damaged


@given(records, st.data())
def test_no_changed_byte_gives_a_record_that_was_not_written(written: list[Record], data: st.DataObject) -> None:
    whole = bytearray(b"".join(journals.encode(record) for record in written))
    if whole:
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] ^= data.draw(st.integers(1, 255))
    replay = journals.decode(bytes(whole))
    assert all(record in written for record in replay.records)
    assert len(replay.records) >= len(written) - 2  # a changed line end spoils two


@given(st.binary(max_size=200))
def test_what_is_no_journal_holds_nothing(noise: bytes) -> None:
    assert journals.decode(noise).length == 0


def test_a_torn_tail_is_cut_and_written_over(path: Path, journal: Journal) -> None:
    journal.append({"n": 1})
    with path.open("ab") as file:
        file.write(b"0badc0de {torn")
    again = Journal(path)
    assert again.open() == ({"n": 1},)
    again.append({"n": 2})
    assert journals.decode(path.read_bytes()).records == ({"n": 1}, {"n": 2})
    again.close()


def test_a_damaged_file_is_set_aside_and_what_is_good_is_kept(path: Path, journal: Journal) -> None:
    for n in range(3):
        journal.append({"n": n})
    data = path.read_bytes()
    path.write_bytes(data.replace(b'{"n":1}', b'{"n":7}'))
    again = Journal(path)
    assert again.open() == ({"n": 0}, {"n": 2})
    assert again.set_aside is not None
    assert b'{"n":7}' in again.set_aside.read_bytes()
    assert not journals.decode(path.read_bytes()).damaged
    again.close()


def test_a_record_that_cannot_be_understood_is_damage(path: Path, journal: Journal) -> None:
    journal.append({"n": 1})
    for broken in ({"kind": "prepared"}, {"kind": "preparing", "claim": [1]}, {"kind": "released"}):
        with path.open("ab") as file:
            file.write(journals.encode(broken))
        again = Journal(path)
        assert again.open() == ({"n": 1},)
        assert again.damaged
        again.close()


def test_a_spoilt_last_line_that_ends_is_damage_and_one_that_does_not_is_a_torn_write() -> None:
    line = journals.encode({"n": 1})
    assert journals.decode(line + line.replace(b"1", b"2")).damaged
    assert not journals.decode(line + line[:-1]).damaged


def test_a_file_that_lost_what_was_read_from_it_is_damaged(path: Path, journal: Journal) -> None:
    for n in range(3):
        journal.append({"n": n})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert journal.refresh() == ({"n": 0},)
    assert journal.damaged
    path.unlink()
    assert journal.refresh() == ()
    assert journal.damaged
    assert journal.refresh() is None


def test_a_directory_in_the_place_of_the_spare_is_no_more_than_no_spare(path: Path) -> None:
    path.with_name("journal.spare").mkdir()
    journal = Journal(path, FullDisk(0))
    journal.open()
    with pytest.raises(JournalError, match="free space"):
        journal.append({"n": 1}, must=True)
    journal.close()


def test_what_another_instance_wrote_is_noticed(path: Path, journal: Journal) -> None:
    other = Journal(path)
    other.open()
    assert journal.refresh() is None
    other.append({"n": 1})
    assert journal.refresh() == ({"n": 1},)
    other.compact([{"n": 2}])
    assert journal.refresh() == ({"n": 2},)
    path.unlink()
    assert journal.refresh() == ()
    other.close()


def test_a_full_disk_is_told_and_leaves_nothing_half_written(path: Path) -> None:
    disk = FullDisk(journals.SPARE_BYTES + 30)
    journal = Journal(path, disk)
    journal.open()
    journal.append({"n": 1})
    with pytest.raises(JournalError, match=r"journal .*/journal cannot take a record: No space left") as caught:
        journal.append({"n": "x" * 40})
    assert str(path) in str(caught.value)
    assert journals.decode(path.read_bytes()).records == ({"n": 1},)
    journal.close()


def test_the_spare_room_takes_what_must_be_recorded(path: Path) -> None:
    disk = FullDisk(journals.SPARE_BYTES + 5)
    journal = Journal(path, disk)
    journal.open()
    with pytest.raises(JournalError):
        journal.append({"n": 1})
    journal.append({"n": 1}, must=True)
    assert journals.decode(path.read_bytes()).records == ({"n": 1},)
    journal.close()


def test_without_any_room_even_that_is_told(path: Path) -> None:
    journal = Journal(path, FullDisk(0))
    journal.open()
    with pytest.raises(JournalError, match="free space"):
        journal.append({"n": 1}, must=True)
    assert path.read_bytes() == b""
    journal.close()


def test_compaction_that_fails_keeps_the_journal(path: Path) -> None:
    disk = FullDisk(journals.SPARE_BYTES + 60)
    journal = Journal(path, disk)
    journal.open()
    journal.append({"n": 1})
    with pytest.raises(JournalError):
        journal.compact([{"n": "x" * 100}])
    journal.append({"n": 2})
    assert journals.decode(path.read_bytes()).records == ({"n": 1}, {"n": 2})
    assert {file.name for file in path.parent.iterdir()} == {"journal", "journal.spare"}
    journal.close()


def test_a_state_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="check the directory of --state-dir"):
        Journal(tmp_path / "gone" / "journal").open()
