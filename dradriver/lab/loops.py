"""A level-triggered loop: something changed, so look at everything again, soon, once.

Owns one thread. A pass that raises is logged and tried again with growing pauses; changes that arrive during a pass
lead to one more pass. `stop()` ends it within one pass.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from dradriver import cluster

log = logging.getLogger(__name__)

SETTLE_SECONDS = 0.02
"""Changes come in bursts; a pass waits this long for the rest of one."""
LONGEST_RETRY_SECONDS = 5.0
STOP_SECONDS = 10.0


class Loop:
    """Runs `work` whenever `wake()` was called, and every `period` seconds."""

    def __init__(self, name: str, work: Callable[[], None], *, period: float = 10.0) -> None:
        self._work = work
        self._period = period
        self._awake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread; the first pass runs at once."""
        self._awake.set()
        self._thread.start()

    def wake(self, _: object = None) -> None:
        """Something changed."""
        self._awake.set()

    def stop(self) -> None:
        """End the loop after the pass that runs now."""
        self._stopping.set()
        self._awake.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        pause = SETTLE_SECONDS
        while not self._stopping.is_set():
            self._awake.wait(self._period)
            self._stopping.wait(SETTLE_SECONDS)
            self._awake.clear()
            if self._stopping.is_set():
                return
            try:
                self._work()
                pause = SETTLE_SECONDS
            except (cluster.ConflictError, cluster.NotFoundError, cluster.AlreadyExistsError) as error:
                log.debug("saw an old state, looking again loop=%s error=%s", self._thread.name, error)
                self._awake.set()
            except Exception:
                log.exception("pass failed, trying again loop=%s seconds=%.2f", self._thread.name, pause)
                self._stopping.wait(pause)
                pause = min(pause * 2, LONGEST_RETRY_SECONDS)
                self._awake.set()
