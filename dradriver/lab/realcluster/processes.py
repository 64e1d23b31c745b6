"""One program of a real cluster as a process with a log, and waiting for such processes with a bound."""

from __future__ import annotations

import logging
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from dradriver.lab.realcluster.errors import StartError

log = logging.getLogger(__name__)

POLL_SECONDS = 0.05
STOP_SECONDS = 10.0
KILL_SECONDS = 5.0
LAST_LINES = 12
_TAIL_BYTES = 20_000


class Process:
    """A program that runs until it is stopped; it can be started again. Output is appended to its log."""

    def __init__(
        self,
        command: Sequence[str | Path],
        output: Path,
        *,
        name: str = "",
        environment: Mapping[str, str] | None = None,
        inherited: Sequence[int] = (),
    ) -> None:
        """Describe the process.

        Args:
            command: The program's file and its arguments.
            output: Its log; the directory exists.
            name: What to call it, unless by its program.
            environment: All of its environment; None for ours.
            inherited: Descriptors to pass on.
        """
        self.command = [str(word) for word in command]
        self.output = output
        self.name = name or Path(self.command[0]).name
        self._environment = environment
        self._inherited = tuple(inherited)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process that runs now."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> None:
        """Start it. Raises StartError where the program cannot be run."""
        try:
            with self.output.open("ab") as output:
                self._process = subprocess.Popen(  # noqa: S603 - programs that we built, or that the caller chose
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd="/",
                    env=self._environment,
                    pass_fds=self._inherited,
                )
        except OSError as error:
            raise StartError(f"cannot run {self.command[0]}: {error.strerror}") from error

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """End it: ask, wait so long, then kill."""
        if self.pid is None or self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            log.warning("process does not end, killing it name=%s", self.name)
            self.kill()

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(KILL_SECONDS)

    def check(self) -> None:
        """Raises StartError where it has ended."""
        if self.pid is None:
            status = "was not started" if self._process is None else f"ended with status {self._process.returncode}"
            raise StartError(f"{self.name} {status}; it last said ({self.output}):\n{self.last_lines()}")

    def last_lines(self) -> str:
        """What it said last."""
        try:
            with self.output.open("rb") as file:
                file.seek(max(0, self.output.stat().st_size - _TAIL_BYTES))
                lines = file.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join(lines[-LAST_LINES:])


def wait_until(condition: Callable[[], bool], processes: Iterable[Process], seconds: float, awaited: str) -> None:
    """Wait until `condition` holds while all `processes` run.

    Raises:
        StartError: one of them ended, or `seconds` passed.
    """
    processes = tuple(processes)
    until = time.monotonic() + seconds
    while not condition():
        for process in processes:
            process.check()
        if time.monotonic() > until:
            said = "\n".join(f"{process.output}:\n{process.last_lines()}" for process in processes)
            raise StartError(f"no {awaited} after {seconds:.0f} s; last said:\n{said}")
        time.sleep(POLL_SECONDS)
