"""Loops: what `all`, `exists`, `map` and their kin do with the elements of a list or the keys of a map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dradriver.cel import values
from dradriver.cel.errors import AbortedError, EvaluationError
from dradriver.cel.frames import Closure, Frame
from dradriver.cel.libraries import lists
from dradriver.cel.syntax import Iteration
from dradriver.cel.values import Failure


@dataclass(frozen=True, slots=True)
class Loop:
    """A compiled comprehension: its range, the slots of its one or two variables, its condition and result."""

    range: Closure
    slots: tuple[int, ...]
    condition: Closure | None
    result: Closure | None

    def turns(self, frame: Frame) -> Iterator[Any]:
        """Set the variables for each element in turn, and give the first of them."""
        elements = self.range(frame)
        for first, second in _items(elements, pairs=len(self.slots) > 1):
            frame.spend(1)
            frame.slots[self.slots[0]] = first
            if len(self.slots) > 1:
                frame.slots[self.slots[1]] = second
            yield first

    def chosen(self, frame: Frame) -> Iterator[Any]:
        """The turns whose condition holds."""
        for first in self.turns(frame):
            if self.condition is None or _holds(self.condition(frame)):
                yield first

    def results(self, frame: Frame) -> Iterator[tuple[Any, Any]]:
        """The first variable and the result of each chosen turn."""
        if self.result is not None:
            for first in self.chosen(frame):
                yield first, self.result(frame)


def _items(elements: Any, *, pairs: bool) -> Iterator[tuple[Any, Any]]:
    if type(elements) is tuple:
        return enumerate(elements) if pairs else ((element, None) for element in elements)
    if isinstance(elements, dict):
        return ((values.value_of_key(key), value) for key, value in elements.items())
    raise Failure(f"got '{values.name_of_type(elements)}', expected iterable type")


def _holds(value: Any) -> bool:
    if type(value) is not bool:
        raise values.no_overload()
    return value


def _quantifier(*, decided: bool) -> Callable[[Loop], Closure]:
    """`all` is decided by a false, `exists` by a true; either wins over errors of other elements."""

    def fold(loop: Loop) -> Closure:
        def run(frame: Frame) -> bool:
            error: Exception | None = None
            for _ in loop.turns(frame):
                try:
                    value = _holds(loop.condition(frame)) if loop.condition is not None else decided
                except (AbortedError, values.Abort):
                    raise
                except (EvaluationError, Failure) as failed:
                    error = error or failed
                    continue
                if value is decided:
                    return decided
            if error is not None:
                raise error
            return not decided

        return run

    return fold


def _exists_one(loop: Loop) -> Closure:
    return lambda frame: sum(1 for _ in loop.chosen(frame)) == 1


def _filter(loop: Loop) -> Closure:
    return lambda frame: tuple(loop.chosen(frame))


def _map(loop: Loop) -> Closure:
    return lambda frame: tuple([result for _, result in loop.results(frame)])


def _transform_map(loop: Loop) -> Closure:
    return lambda frame: {values.key_of(first): result for first, result in loop.results(frame)}


def _transform_entries(loop: Loop) -> Closure:
    def run(frame: Frame) -> dict[Any, Any]:
        built: dict[Any, Any] = {}
        for _, result in loop.results(frame):
            if not isinstance(result, dict):
                raise values.no_overload()
            for key, value in result.items():
                if key in built:
                    raise Failure(f"insert failed: key {values.value_of_key(key)} already exists")
                built[key] = value
        return built

    return run


def _sort_by(loop: Loop) -> Closure:
    def run(frame: Frame) -> tuple[Any, ...]:
        pairs = list(loop.results(frame))
        return lists.sort(tuple(element for element, _ in pairs), tuple(key for _, key in pairs))

    return run


FOLDS: dict[Iteration, Callable[[Loop], Closure]] = {
    Iteration.ALL: _quantifier(decided=False),
    Iteration.EXISTS: _quantifier(decided=True),
    Iteration.EXISTS_ONE: _exists_one,
    Iteration.FILTER: _filter,
    Iteration.MAP: _map,
    Iteration.TRANSFORM_LIST: _map,
    Iteration.TRANSFORM_MAP: _transform_map,
    Iteration.TRANSFORM_MAP_ENTRY: _transform_entries,
    Iteration.SORT_BY: _sort_by,
}
