"""Preparing and unpreparing: idempotent on disk, whole wherever the process may die, true after a full disk."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dradriver import api
from dradriver.node import state as states
from dradriver.node.claims import PreparedClaim
from dradriver.node.disk import Disk
from dradriver.node.errors import CdiError, JournalError, LockError, PrepareError
from dradriver.node.locking import NodeLock
from dradriver.node.state import State

Make = Callable[..., PreparedClaim]


class Killed(BaseException):
    """Stands for SIGKILL: nothing after it runs, but for what `finally` frees in memory."""


class DyingDisk(Disk):
    """Dies before its n-th operation; counts them when n is None. A write may be torn."""

    def __init__(self, dies_at: int | None = None, *, torn: bool = False) -> None:
        self.operations = 0
        self._dies_at = dies_at
        self._torn = torn

    def _step(self) -> None:
        if self._dies_at is not None and self.operations >= self._dies_at:
            raise Killed
        self.operations += 1

    def write(self, descriptor: int, data: bytes) -> None:
        if self._torn and self.operations == self._dies_at:
            os.write(descriptor, data[: len(data) // 2])
        self._step()
        super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        self._step()
        super().sync(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        self._step()
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        self._step()
        super().remove(path)


class FailingDisk(Disk):
    """Writes fail while `full`, those for the CDI directory while `cdi_full`."""

    full = False
    cdi_full = False

    def write(self, descriptor: int, data: bytes) -> None:
        if self.full:
            os.write(descriptor, data[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(descriptor, data)

    def create(self, path: Path, data: bytes, *, mode: int = 0o600) -> None:
        if self.cdi_full and path.parent.name == "cdi":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().create(path, data, mode=mode)


def _planning(claim: PreparedClaim) -> Callable[[Sequence[PreparedClaim]], PreparedClaim]:
    def plan(holders: Sequence[PreparedClaim]) -> PreparedClaim:
        held = {device.name for holder in holders if holder.uid != claim.uid for device in holder.devices}
        if any(device.name in held for device in claim.devices):
            raise PrepareError("held")
        return claim

    return plan


def _prepare(state: State, claim: PreparedClaim) -> PreparedClaim:
    return state.prepare(claim.uid, _planning(claim))


def _files(node: Any) -> set[str]:
    return {path.name for path in (node.root / "cdi").glob("*")}


def _file_of(claim: PreparedClaim) -> str:
    return f"k8s.gpu.gpupool.dev-claim_{claim.uid}.json"


def test_a_prepared_claim_survives_a_restart_and_is_prepared_again_alike(node: Any, make_prepared: Make) -> None:
    claim = make_prepared("train", "gpu-0", "gpu-1")
    _prepare(node.state(), claim)
    state = node.state()
    assert state.held() == (claim,)
    length = node.journal.stat().st_size
    assert _prepare(state, claim) == claim
    assert node.journal.stat().st_size == length
    assert _files(node) == {_file_of(claim)}


def test_a_file_that_was_wiped_is_there_again_after_prepare(node: Any, make_prepared: Make) -> None:
    claim = make_prepared("train", "gpu-0")
    state = node.state()
    _prepare(state, claim)
    node.cdi().path(claim.uid).unlink()
    _prepare(state, claim)
    assert _files(node) == {_file_of(claim)}


def test_unprepare_twice_and_of_unknown_claims_succeeds(node: Any, make_prepared: Make) -> None:
    claim = make_prepared("train", "gpu-0")
    state = node.state()
    _prepare(state, claim)
    assert state.unprepare(claim.uid)
    assert not state.unprepare(claim.uid)
    assert not state.unprepare(api.UID("never-seen"))
    assert state.held() == ()
    assert _files(node) == set()
    assert node.state().held() == ()


def test_another_instance_unprepares_what_this_one_prepared(node: Any, make_prepared: Make) -> None:
    claim = make_prepared("train", "gpu-0")
    old, new = node.state(), node.state()
    _prepare(old, claim)
    assert new.unprepare(claim.uid)
    _prepare(old, make_prepared("other", "gpu-0"))
    assert [held.name for held in old.held()] == ["other"]


def test_a_plan_that_refuses_changes_nothing(node: Any, make_prepared: Make) -> None:
    state = node.state()
    _prepare(state, make_prepared("train", "gpu-0"))
    before = node.journal.read_bytes()
    with pytest.raises(PrepareError):
        _prepare(state, make_prepared("other", "gpu-0"))
    assert node.journal.read_bytes() == before


def test_a_missing_device_node_is_an_error_and_nothing_stays_booked(node: Any, make_prepared: Make) -> None:
    state = node.state()
    (node.root / "dev" / "nvidia1").unlink()
    with pytest.raises(CdiError, match=r"no device node .*/dev/nvidia1"):
        _prepare(state, make_prepared("train", "gpu-1"))
    assert state.held() == ()
    (node.root / "dev" / "nvidia1").touch()
    _prepare(state, make_prepared("other", "gpu-1"))


def test_a_cdi_directory_that_is_full_leaves_nothing_booked_and_a_retry_succeeds(
    node: Any, make_prepared: Make
) -> None:
    disk = FailingDisk()
    state = node.state(disk)
    claim = make_prepared("train", "gpu-0")
    disk.cdi_full = True
    with pytest.raises(CdiError, match="No space left"):
        _prepare(state, claim)
    assert node.state().held() == ()
    assert _files(node) == set()
    disk.cdi_full = False
    assert _prepare(state, claim) == claim


def test_a_full_disk_refuses_prepare_naming_the_file_and_still_unprepares(node: Any, make_prepared: Make) -> None:
    disk = FailingDisk()
    state = node.state(disk)
    held, refused = make_prepared("held", "gpu-0"), make_prepared("refused", "gpu-1")
    _prepare(state, held)
    disk.full = True
    with pytest.raises(JournalError, match=str(node.journal)):
        _prepare(state, refused)
    assert state.unprepare(held.uid)  # not even the spare room helps here: released all the same
    assert state.held() == ()
    assert _files(node) == set()
    disk.full = False
    state.settle()
    assert node.state().held() == ()


def test_a_release_that_was_never_recorded_is_doubtful_at_the_next_start(node: Any, make_prepared: Make) -> None:
    disk = FailingDisk()
    state = node.state(disk)
    claim = make_prepared("train", "gpu-0")
    _prepare(state, claim)
    disk.full = True
    state.unprepare(claim.uid)
    again = node.state()
    assert again.doubtful() == (claim,)
    assert _files(node) == set()
    again.confirm(claim.uid)
    assert _files(node) == {_file_of(claim)}
    assert again.doubtful() == ()


def test_a_claim_prepared_anew_is_not_released_by_the_record_still_owed(node: Any, make_prepared: Make) -> None:
    disk = FailingDisk()
    state = node.state(disk)
    claim = make_prepared("train", "gpu-0")
    _prepare(state, claim)
    disk.full = True
    state.unprepare(claim.uid)
    disk.full = False
    _prepare(state, claim)
    state.settle()
    assert state.held() == (claim,)
    assert node.state().held() == (claim,)


def test_claims_of_another_boot_are_doubtful_until_prepared_again(node: Any, make_prepared: Make) -> None:
    claim = make_prepared("train", "gpu-0", boot="boot-1")
    _prepare(node.state(), claim)
    node.cdi().path(claim.uid).unlink()  # on tmpfs
    rebooted = node.state(boot="boot-2")
    assert rebooted.doubtful() == (claim,)
    _prepare(rebooted, make_prepared("train", "gpu-0", boot="boot-2"))
    assert rebooted.doubtful() == ()
    assert node.state(boot="boot-2").doubtful() == ()


def test_a_damaged_journal_is_rebuilt_from_cdi_files(node: Any, make_prepared: Make) -> None:
    lost, kept = make_prepared("lost", "gpu-0"), make_prepared("kept", "gpu-1")
    state = node.state()
    _prepare(state, lost)
    _prepare(state, kept)
    lines = node.journal.read_bytes().splitlines(keepends=True)
    node.journal.write_bytes(b"".join(b"spoilt\n" if str(lost.uid).encode() in line else line for line in lines))
    again = node.state()
    assert {claim.uid for claim in again.held()} == {lost.uid, kept.uid}
    assert {claim.uid for claim in again.doubtful()} == {lost.uid, kept.uid}
    assert _files(node) == {_file_of(lost), _file_of(kept)}
    assert len(list(node.root.glob("journal.damaged-*"))) == 1


def test_a_file_that_is_not_as_it_should_be_is_written_again_at_start(node: Any, make_prepared: Make) -> None:
    claim = make_prepared("train", "gpu-0")
    _prepare(node.state(), claim)
    path = node.cdi().path(claim.uid)
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    node.state()
    assert path.read_bytes() == whole
    before = path.stat()
    node.state()
    assert path.stat().st_ino == before.st_ino


def test_files_that_tell_of_no_claim_of_this_boot_are_removed_at_start(node: Any, make_prepared: Make) -> None:
    node.cdi().write(make_prepared("stray", "gpu-0", boot="boot-0"))
    node.cdi().path(api.UID("spoilt")).write_text("{")
    foreign = node.root / "cdi" / "nvidia.yaml"
    foreign.touch()
    node.state()
    assert _files(node) == {"nvidia.yaml"}


def test_what_cannot_be_removed_at_start_does_not_keep_the_plugin_from_starting(node: Any, make_prepared: Make) -> None:
    _prepare(node.state(), make_prepared("train", "gpu-0"))
    node.cdi().path(api.UID("odd")).mkdir()
    node.cdi().path(api.UID("odd")).with_name(".k8s.gpu.gpupool.dev-claim_odd.json.tmp").mkdir()
    assert [claim.name for claim in node.state().held()] == ["train"]


def _without_last_line(data: bytes) -> bytes:
    return b"".join(data.splitlines(keepends=True)[:-1])


SPOILING: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda _: b"",
    "noise": lambda data: b"x" * len(data),
    "zeros": lambda data: bytes(len(data)),
    "last line cut": _without_last_line,
    "last line torn": lambda data: data[:-3],
    "last line spoilt": lambda data: data[:-5] + b"?" + data[-4:],
    "first line spoilt": lambda data: b"?" + data[1:],
    "line ends changed": lambda data: data.replace(b"\n", b"\r\n"),
    "twice": lambda data: data + data,
    "backwards": lambda data: b"".join(reversed(data.splitlines(keepends=True))),
}


@pytest.mark.parametrize("spoil", SPOILING.values(), ids=SPOILING)
def test_no_claim_is_lost_with_the_journal(node: Any, make_prepared: Make, spoil: Callable[[bytes], bytes]) -> None:
    """Neither at a start, nor under a plugin that runs."""
    claims = [make_prepared("a", "gpu-0"), make_prepared("b", "gpu-1")]
    state = node.state()
    for claim in claims:
        _prepare(state, claim)
    whole = node.journal.read_bytes()
    node.journal.write_bytes(spoil(whole))
    with pytest.raises(PrepareError, match="held"):
        _prepare(state, make_prepared("late", "gpu-0"))
    assert list(state.held()) == claims
    node.journal.write_bytes(spoil(whole))
    again = node.state()
    assert sorted(again.held(), key=lambda claim: claim.name) == claims
    assert _files(node) == {_file_of(claim) for claim in claims}


def test_a_state_directory_that_was_wiped_is_written_anew_from_memory(node: Any, make_prepared: Make) -> None:
    state = node.state()
    _prepare(state, claim := make_prepared("train", "gpu-0"))
    node.journal.unlink()
    state.settle()
    node.cdi().path(claim.uid).unlink()
    assert node.state().doubtful() == state.doubtful() == (claim,)


def test_a_file_that_is_wiped_while_the_plugin_runs_is_put_back(node: Any, make_prepared: Make) -> None:
    state = node.state()
    _prepare(state, make_prepared("gone", "gpu-0"))
    _prepare(state, claim := make_prepared("train", "gpu-1"))
    state.unprepare(make_prepared("gone").uid)
    node.cdi().path(claim.uid).unlink()
    state.settle()
    assert _files(node) == {_file_of(claim)}


def test_a_journal_that_is_long_because_much_is_held_is_not_written_anew_at_every_call(
    node: Any, make_prepared: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(states, "COMPACT_BYTES", 1)
    state = node.state()
    for n in range(4):
        _prepare(state, make_prepared(f"c{n}", f"gpu-{n}"))
    inode = node.journal.stat().st_ino
    state.unprepare(make_prepared("c0").uid)
    assert node.journal.stat().st_ino == inode


STORY = ((), ("a",), ("a", "b"), ("b",), ("b", "c"), ("c",))
"""Which claims are held after each step."""


def _story(state: State, make: Make, done: list[int]) -> None:
    """Two claims come, one goes, a third takes its device, the second goes."""
    steps = (
        lambda: _prepare(state, make("a", "gpu-0")),
        lambda: _prepare(state, make("b", "gpu-1", "gpu-2")),
        lambda: state.unprepare(make("a").uid),
        lambda: _prepare(state, make("c", "gpu-0")),
        lambda: state.unprepare(make("b").uid),
    )
    for number, step in enumerate(steps, 1):
        step()
        done.append(number)


@pytest.mark.parametrize("torn", [False, True])
def test_killed_before_any_operation_the_next_start_has_a_whole_state(
    node: Any, make_prepared: Make, tmp_path: Path, *, torn: bool
) -> None:
    whole = DyingDisk()
    _story(node.state(whole), make_prepared, [])
    assert whole.operations > 30
    for at in range(whole.operations):
        root = tmp_path / f"{at}"
        root.mkdir()
        mortal = type(node)(root)
        done: list[int] = [0]
        with pytest.raises(Killed):
            _story(mortal.state(DyingDisk(at, torn=torn)), make_prepared, done)
        state = mortal.state()
        assert tuple(sorted(claim.name for claim in state.held())) in STORY[done[-1] : done[-1] + 2]
        _check_whole(mortal, state, make_prepared)


def _check_whole(node: Any, state: State, make: Make) -> None:
    held = state.held()
    believed = {_file_of(claim) for claim in held} - {_file_of(claim) for claim in state.doubtful()}
    assert believed <= _files(node) <= {_file_of(claim) for claim in held}
    for name in _files(node):
        assert json.loads((node.root / "cdi" / name).read_bytes())["devices"]
    # Life goes on: what is held can be released, and then everything can be prepared.
    for claim in held:
        state.unprepare(claim.uid)
    _prepare(state, make("d", "gpu-0", "gpu-1", "gpu-2"))
    assert _files(node) == {_file_of(make("d"))}


def test_a_lock_held_elsewhere_is_waited_for_and_then_told(tmp_path: Path) -> None:
    first, second = NodeLock(tmp_path / "lock"), NodeLock(tmp_path / "lock")
    with first.held(1), pytest.raises(LockError, match="another instance"), second.held(0.05):
        pass
    with second.held(0.05):
        pass
