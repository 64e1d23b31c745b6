"""A node plugin as a process: the real one, started again whenever it ends.

Restarts come after growing pauses. The process inherits the lab's lock, so that what outlives a killed lab is found.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

log = logging.getLogger(__name__)

FIRST_RESTART_SECONDS = 0.1
LONGEST_RESTART_SECONDS = 5.0
STEADY_SECONDS = 10.0
"""Who ran this long starts with the shortest pause again."""
STOP_SECONDS = 8.0
"""A plugin gives calls in progress 5 s."""
KILL_SECONDS = 5.0


class PluginProcess:
    """One node's plugin. Owns the process and the thread that waits for it."""

    def __init__(
        self,
        node: str,
        flags: Mapping[str, object],
        output: Path,
        *,
        lock: int | None = None,
        longest_restart: float = LONGEST_RESTART_SECONDS,
    ) -> None:
        """`flags` are those of `gpupool-node`; `output` gets what it says; `lock` is a descriptor that it inherits."""
        self._node = node
        self._command = [sys.executable, "-m", "dradriver.main", *(f"--{name}={flags[name]}" for name in flags)]
        self._output = output
        self._inherited = () if lock is None else (lock,)
        self._longest_restart = longest_restart
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name=f"plugin-{node}", daemon=True)
        self.ends = 0
        """How often it ended by itself."""

    @property
    def pid(self) -> int | None:
        """The process that runs now."""
        return self._process.pid if self._process and self._process.returncode is None else None

    def start(self) -> None:
        """Start the process; raises OSError where that cannot be."""
        self._process = self._spawn()
        self._thread.start()

    def stop(self) -> None:
        """End the process: ask, then kill."""
        self._stopping.set()
        if self._process is None:
            return
        self._process.terminate()
        self._thread.join(STOP_SECONDS)
        if self._thread.is_alive():
            log.warning("plugin does not end, killing it node=%s", self._node)
            self._process.kill()
            self._thread.join(KILL_SECONDS)

    def last_line(self) -> str:
        """What the process said last."""
        try:
            lines = self._output.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return lines[-1] if lines else ""

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self._output.open("ab") as output:
            return subprocess.Popen(  # noqa: S603 - our own program
                self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=self._inherited
            )

    def _run(self) -> None:
        pause = FIRST_RESTART_SECONDS
        started = time.monotonic()
        while self._process:
            status = self._process.wait()
            if time.monotonic() - started > STEADY_SECONDS:
                pause = FIRST_RESTART_SECONDS
            if self._stopping.wait(pause):
                return
            self.ends += 1
            log.warning("plugin ended, starting it again node=%s status=%d", self._node, status)
            pause = min(pause * 2, self._longest_restart)
            started = time.monotonic()
            try:
                self._process = self._spawn()
            except OSError:
                log.exception("cannot start the plugin node=%s", self._node)
            if self._stopping.is_set():  # stop() may have met the process before this one
                self._process.terminate()
