"""Why an expression was false on a device, or failed: the smallest conjunct that decided, and what it read.

&& is gone into, through nesting, parentheses and `cel.bind`; a false || counts as one, since each side had to fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dradriver.cel import reading, syntax
from dradriver.cel.errors import AbortedError, EvaluationError, Span
from dradriver.cel.evaluating import Compiler, Scope
from dradriver.cel.frames import Closure, Frame, lookup
from dradriver.cel.values import ABSENT


@dataclass(frozen=True, slots=True)
class Observation:
    """A value of the device that the decision rests on: `path` as written (`device.attributes["d"].x`)."""

    path: str
    span: Span
    value: Any
    present: bool = True


@dataclass(frozen=True, slots=True)
class Trace:
    """How one device was decided: `deciding` is the smallest conjunct that made it false (or erred), None if true.

    `observations` are what that conjunct reads, or all that the expression reads if it is true; what only evaluation
    tells (`device.attributes[x]`) is not among them.
    """

    outcome: bool | EvaluationError
    deciding: Span | None
    observations: tuple[Observation, ...]


@dataclass(frozen=True, slots=True)
class _Read:
    path: str
    span: Span
    value: Closure


class Conjunct:
    """A part of an expression that has to be true; `parts` are the conjuncts it consists of, empty if it is one."""

    def __init__(self, text: str, node: syntax.Node, compiler: Compiler, scope: Scope) -> None:
        self.span = node.span
        self._reads = tuple(_reads(text, node, scope))
        self._emptied: int | None = None
        self._parts: tuple[Conjunct, ...] = ()
        self._evaluate: Closure | None = None
        if isinstance(node, syntax.Bind):
            self._emptied, inner = compiler.bound(node, scope)
            self._parts = (Conjunct(text, node.body, compiler, inner),)
        elif isinstance(node, syntax.Logical) and node.operator == "&&":
            self._parts = tuple(Conjunct(text, term, compiler, scope) for term in node.terms)
        else:
            self._evaluate = compiler.compile(node, scope)

    def decide(self, frame: Frame) -> tuple[Any, Conjunct]:
        """The value, or the error as a value, and the smallest conjunct it comes from: a false one before an error.

        Each smallest conjunct is evaluated at most once.
        """
        if self._evaluate is not None:
            return _outcome(self._evaluate, frame), self
        if self._emptied is not None:
            frame.slots.pop(self._emptied, None)
        failed: tuple[Any, Conjunct] | None = None
        for part in self._parts:
            outcome, deciding = part.decide(frame)
            if outcome is False or isinstance(outcome, AbortedError):
                return outcome, deciding
            if outcome is not True:
                failed = failed or (outcome, deciding)
        return failed or (True, self)

    def observe(self, frame: Frame) -> tuple[Observation, ...]:
        """What the conjunct reads, each path once, in the order of the text."""
        seen: dict[str, Observation] = {}
        for read in self._reads:
            value = read.value(frame)
            present = value is not ABSENT
            seen.setdefault(read.path, Observation(read.path, read.span, value if present else None, present))
        return tuple(seen.values())


def _outcome(closure: Closure, frame: Frame) -> Any:
    try:
        return closure(frame)
    except EvaluationError as error:
        return error


def _reads(text: str, node: syntax.Node, scope: Scope) -> Iterator[_Read]:
    for read in reading.reads(node, scope.aliases):
        span = read.node.span
        match read.reference:
            case reading.Entry() as entry:
                yield _Read(_path(text, read.node, entry), span, lookup(entry))
            case reading.Field.DRIVER:
                yield _Read(reading.Field.DRIVER.value, span, lambda frame: frame.driver)
            case reading.Field.SHARED:
                yield _Read(reading.Field.SHARED.value, span, lambda frame: frame.device.allow_multiple_allocations)


def _path(text: str, node: syntax.Node, entry: reading.Entry) -> str:
    """As written, where it is written out; names given by `cel.bind`, tests with `in` and `.?` in the common form."""
    written = text[node.span.start : node.span.end]
    plain = isinstance(node, syntax.Select | syntax.Index) and not node.optional
    return written if plain and written.startswith("device.") else entry.path
