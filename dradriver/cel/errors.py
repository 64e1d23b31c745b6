"""What can go wrong with an expression, and where in its text.

ValueError
├── CompileError      the API server would refuse the expression
└── EvaluationError   the expression failed on one device
    └── AbortedError  so that && and || cannot absorb it: the cost limit, an internal error of Kubernetes
"""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """A part of an expression's text: code points, 0-based, half-open."""

    start: int
    end: int


class CompileError(ValueError):
    """The API server would refuse this expression; `span` is where, the message says what and how to write it."""

    def __init__(self, span: Span, message: str) -> None:
        super().__init__(message)
        self.span = span


class EvaluationError(ValueError):
    """Evaluation on one device failed: for the scheduler this aborts the pod, it is not "no match".

    `missing_key` names the attribute or capacity that the device does not have, where that was the reason.
    """

    def __init__(self, span: Span, message: str, missing_key: str | None = None) -> None:
        super().__init__(message)
        self.span = span
        self.missing_key = missing_key


class AbortedError(EvaluationError):
    """Evaluation ended as a whole: no `false &&` or `true ||` makes an answer of it."""
