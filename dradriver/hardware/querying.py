"""Asking one GPU question after question: what fails becomes a sentence, and the other questions are still asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from dradriver.hardware.errors import QueryError

P = ParamSpec("P")
T = TypeVar("T")


class Questions:
    """Questions to one GPU and what went wrong with them, as sentences for the log."""

    def __init__(self) -> None:
        self._problems: dict[str, None] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """Each sentence once: a call that fails for one link of eighteen often fails for all."""
        return tuple(self._problems)

    def note(self, problem: str) -> None:
        """Keep a sentence about something odd."""
        self._problems[problem] = None

    def ask(self, question: Callable[P, T | None], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The answer, or None with one more problem. A GPU that is lost ends the questions (GpuLostError)."""
        try:
            return question(*args, **kwargs)
        except QueryError as error:
            self.note(f"{error}; left out")
            return None
