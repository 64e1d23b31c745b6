r"""Regular expressions as Go's `regexp` (RE2): parsed into a small program, run in time linear in the text.

Python's `re` would do neither: it takes what RE2 refuses (look-around, back-references) and can take exponential time.
Not modelled: \p{Script} (general categories are), and full case folding under (?i) beyond one-to-one pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from typing import TypeAlias

from dradriver.cel.libraries.charsets import CharSet, is_word
from dradriver.cel.values import COST_EXCEEDED, Abort

MAX_STEPS = 5_000_000
"""Steps of one search: beyond it the cost limit of a selector would be exceeded."""


class Operation(Enum):
    """What one instruction does."""

    TAKE = "take a character of a set"
    SPLIT = "go on at two places, the first preferred"
    JUMP = "go on elsewhere"
    ASSERT = "go on if the position is right"


class Position(Enum):
    """What an assertion asks of a position."""

    TEXT_START = "\\A"
    TEXT_END = "\\z"
    LINE_START = "(?m)^"
    LINE_END = "(?m)$"
    BOUNDARY = "\\b"
    NO_BOUNDARY = "\\B"


Instruction: TypeAlias = tuple[Operation, CharSet | Position | None, int, int]
"""Operation, its set or position, and one or two jumps relative to the instruction."""


class PatternError(ValueError):
    """A pattern that Go's regexp refuses."""

    def __init__(self, reason: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {reason}: `{part}`")


class Pattern:
    """One compiled pattern; immutable."""

    def __init__(self, program: tuple[Instruction, ...]) -> None:
        self._program = program

    def __len__(self) -> int:
        """Instructions of the program."""
        return len(self._program)

    def search(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """The leftmost match from a position on, by the preferences of the pattern."""
        steps = 0
        found: tuple[int, int] | None = None
        threads: list[tuple[int, int]] = []
        for at in range(start, len(text) + 1):
            if found is None:
                threads.append((0, at))
            ready, matched = self._follow(threads, text, at)
            found = matched or found
            if at == len(text) or (not ready and found is not None):
                break
            steps += len(ready) + 1
            if steps > MAX_STEPS:
                raise Abort(COST_EXCEEDED)
            threads = [(pc + 1, began) for pc, began in ready if self._takes(pc, text[at])]
        return found

    def spans(self, text: str, count: int) -> Iterator[tuple[int, int]]:
        """All matches that do not overlap, at most `count` where that is not negative."""
        at, last_end = 0, -1
        while count != 0 and at <= len(text):
            found = self.search(text, at)
            if found is None:
                return
            start, end = found
            if not (start == end == last_end):
                yield found
                count -= 1
            at = end if end > start else end + 1
            last_end = end

    def _takes(self, pc: int, character: str) -> bool:
        wanted = self._program[pc][1]
        return isinstance(wanted, CharSet) and character in wanted

    def _follow(
        self,
        threads: list[tuple[int, int]],
        text: str,
        at: int,
    ) -> tuple[list[tuple[int, int]], tuple[int, int] | None]:
        """Run threads, in order of preference, up to instructions that take a character, or to the end: a match."""
        ready: list[tuple[int, int]] = []
        seen: set[int] = set()
        stack = list(reversed(threads))
        while stack:
            pc, began = stack.pop()
            if pc in seen:
                continue
            seen.add(pc)
            if pc == len(self._program):
                return ready, (began, at)
            operation, argument, first, second = self._program[pc]
            if operation is Operation.TAKE:
                ready.append((pc, began))
            elif operation is Operation.SPLIT:
                stack.append((pc + second, began))
                stack.append((pc + first, began))
            elif operation is Operation.JUMP:
                stack.append((pc + first, began))
            elif isinstance(argument, Position) and _holds(argument, text, at):
                stack.append((pc + 1, began))
        return ready, None


def _holds(position: Position, text: str, at: int) -> bool:
    match position:
        case Position.TEXT_START:
            return at == 0
        case Position.TEXT_END:
            return at == len(text)
        case Position.LINE_START:
            return at == 0 or text[at - 1] == "\n"
        case Position.LINE_END:
            return at == len(text) or text[at] == "\n"
    before = at > 0 and is_word(text[at - 1])
    after = at < len(text) and is_word(text[at])
    return (before != after) is (position is Position.BOUNDARY)


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> Pattern:
    """Compile a pattern. Raises PatternError."""
    from dradriver.cel.libraries.pattern_parsing import parse  # noqa: PLC0415 - it builds the instructions above

    return Pattern(parse(pattern))
