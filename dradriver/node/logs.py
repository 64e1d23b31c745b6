"""Log lines: a constant message and key-value pairs, one line for each outcome, details at `-v`.

2026-12-01T04:17:22.123Z INFO  prepared claim claim=team-a/train uid=6f0c devices=4 seconds=0.012
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import TextIO

_ROOT = "dradriver"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@+%,")


class Logger:
    """Writes lines of one part of the plugin."""

    def __init__(self, part: str) -> None:
        self._log = logging.getLogger(f"{_ROOT}.node.{part}")

    def debug(self, message: str, **pairs: object) -> None:
        """Log a detail."""
        self._write(logging.DEBUG, message, pairs)

    def info(self, message: str, **pairs: object) -> None:
        """Log an outcome."""
        self._write(logging.INFO, message, pairs)

    def problem(self, message: str, **pairs: object) -> None:
        """Log what someone should look at."""
        self._write(logging.ERROR, message, pairs)

    def bug(self, message: str, error: BaseException, **pairs: object) -> None:
        """Log an exception that nobody foresaw, with where it came from."""
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        place = "" if traceback is None else f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
        self._write(logging.ERROR, message, {**pairs, "error": f"{type(error).__name__}: {error}", "at": place})
        self._log.debug("traceback", exc_info=error)

    def _write(self, level: int, message: str, pairs: dict[str, object]) -> None:
        if self._log.isEnabledFor(level):
            self._log.log(level, "%s", " ".join([message, *(f"{key}={_value(value)}" for key, value in pairs.items())]))


def start(verbosity: int, stream: TextIO | None = None) -> None:
    """Send the lines to a stream, standard error unless said otherwise."""
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    formatter = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)-5s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    root = logging.getLogger(_ROOT)
    root.handlers[:] = [handler]
    root.propagate = False
    root.setLevel(logging.DEBUG if verbosity > 0 else logging.INFO)


def _value(value: object) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return text if text and _PLAIN.issuperset(text) else json.dumps(text, ensure_ascii=False)
