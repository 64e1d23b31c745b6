"""Compiled expressions: what the rest of gpupool sees of CEL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from dradriver import api


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
    """Evaluation on one device failed: for the scheduler this aborts the pod, it is not "no match"."""

    def __init__(self, span: Span, message: str, missing_key: str | None = None) -> None:
        super().__init__(message)
        self.span = span
        self.missing_key = missing_key


@dataclass(frozen=True, slots=True)
class Observation:
    """A value of the device that the decision rests on: `path` as written (`device.attributes["d"].x`)."""

    path: str
    span: Span
    value: Any
    present: bool = True


@dataclass(frozen=True, slots=True)
class Trace:
    """How one device was decided: `deciding` is the smallest conjunct that made it false (or erred), None if true."""

    outcome: bool | EvaluationError
    deciding: Span | None
    observations: tuple[Observation, ...]


class Program:
    """One compiled expression; safe to share between threads."""

    text: str

    def evaluate(self, driver: str, device: api.Device) -> bool:
        """Test one device. Raises EvaluationError."""
        raise NotImplementedError

    def trace(self, driver: str, device: api.Device) -> Trace:
        """Test one device and tell what decided."""
        raise NotImplementedError


def compile_expression(text: str, kubernetes: api.Kubernetes) -> Program:
    """Compile an expression as the API server of this version would. Raises CompileError."""
    raise NotImplementedError
