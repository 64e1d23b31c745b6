"""Regular expressions in RE2's syntax (cel-go `matches`, apiserver `pkg/cel/library/regex.go`)."""

from __future__ import annotations

from dataclasses import replace

from dradriver.cel.declarations import Overload, function, member
from dradriver.cel.kinds import BOOL, INT, STRING, list_of
from dradriver.cel.libraries import patterns
from dradriver.cel.values import Failure


def _compiled(pattern: str) -> patterns.Pattern:
    try:
        return patterns.compile_pattern(pattern)
    except patterns.PatternError as error:
        raise Failure(str(error)) from None


def _matches(text: str, pattern: str) -> bool:
    return _compiled(pattern).search(text) is not None


def _find(text: str, pattern: str) -> str:
    found = _compiled(pattern).search(text)
    return "" if found is None else text[found[0] : found[1]]


def _find_all(text: str, pattern: str, count: int = -1) -> tuple[str, ...]:
    return tuple(text[start:end] for start, end in _compiled(pattern).spans(text, count))


def _cost(text: str, pattern: str, _: int = 0) -> int:
    """A search costs the text times the program; several states of the program are one step."""
    return (len(text) + 1) * len(_compiled(pattern)) // _STATES_PER_STEP


_STATES_PER_STEP = 5
_PAIR = (STRING, STRING)

_OVERLOADS = (
    function("matches", _PAIR, BOOL, _matches),
    member("matches", _PAIR, BOOL, _matches),
    member("find", _PAIR, STRING, _find),
    member("findAll", _PAIR, list_of(STRING), _find_all),
    member("findAll", (STRING, STRING, INT), list_of(STRING), _find_all),
)
OVERLOADS: tuple[Overload, ...] = tuple(replace(overload, cost=_cost) for overload in _OVERLOADS)
