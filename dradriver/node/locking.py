"""The node's lock: one call at a time changes state, across threads and across two instances during an update.

A file lock belongs to the open file, so each call opens the file anew; waiting is bounded.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from dradriver.node.errors import LockError

_POLL_SECONDS = 0.02


class NodeLock:
    """`serialize.lock` in the plugin's directory, the name the Go helper uses too."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.Lock()

    @contextlib.contextmanager
    def held(self, seconds: float) -> Iterator[None]:
        """Hold the lock. Raises LockError when it is not free in time."""
        deadline = time.monotonic() + seconds
        if not self._threads.acquire(timeout=seconds):
            raise self._busy(seconds)
        try:
            descriptor = self._open()
            try:
                self._lock(descriptor, deadline, seconds)
                yield
            finally:
                os.close(descriptor)
        finally:
            self._threads.release()

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LockError(f"lock {self._path} cannot be opened: {error.strerror}; check --plugins-dir") from error

    def _lock(self, descriptor: int, deadline: float, seconds: float) -> None:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise self._busy(seconds) from None
                time.sleep(_POLL_SECONDS)
            else:
                return

    def _busy(self, seconds: float) -> LockError:
        return LockError(
            f"{self._path} was not free within {seconds:g} s: another prepare or another instance of the plugin "
            "is at work; the kubelet tries again"
        )
