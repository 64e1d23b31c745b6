"""How fast a loop that talks to a server may go: waits after errors, and the pace of what goes well.

Pure: the time and the randomness are passed in.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """All waits of a reflector, in seconds. Pairs are ranges, drawn anew each time so that nodes do not act in step."""

    first_backoff: float = 0.5
    longest_backoff: float = 30.0
    longest_retry_after: float = 120.0  # a server's Retry-After beyond this is taken for this
    healthy_after: float = 60.0  # so long without an error, and the next one counts as the first
    between_watches: float = 1.0  # from start to start, when a server keeps ending them without an error
    idle: tuple[float, float] = (70.0, 90.0)  # silence on a watch; servers send a bookmark about every minute
    server: tuple[float, float] = (300.0, 600.0)  # how long the server is asked to keep a watch


class Backoff:
    """Exponential waits with jitter, for one loop.

    A single success does not reset it, time without errors does: otherwise a server that answers one good event and
    then fails, again and again, would be asked without a pause.
    """

    def __init__(self, pace: Pace, rng: random.Random) -> None:
        self._pace = pace
        self._random = rng
        self._failures = 0
        self._last = float("-inf")

    def wait_after_error(self, now: float, retry_after: float | None = None) -> float:
        """Seconds to wait after an error at `now`: between half and all of the exponential step, or what was asked."""
        pace = self._pace
        if now - self._last > pace.healthy_after:
            self._failures = 0
        step = min(pace.longest_backoff, pace.first_backoff * 2.0 ** min(self._failures, 32))
        self._failures += 1
        wait = step * self._random.uniform(0.5, 1.0)
        if retry_after is not None:
            wait = max(wait, min(retry_after, pace.longest_retry_after) * self._random.uniform(1.0, 1.1))
        self._last = now + wait
        return wait
