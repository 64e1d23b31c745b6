"""Other ways to write an expression: what a person may have meant, made from the part that left devices behind.

Every rewriting is text only; whether it helps is for the allocator to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches

from dradriver import api, cel
from dradriver.explain.explanations import Expression

GIB = 1 << 30
_MOST_VALUES = 2

_QUANTITY = re.compile(r'quantity\("([^"]*)"\)')
_COMPARISON = re.compile(r"(.+?)\s*(==|>=|<=|>|<)\s*(\"[^\"]*\"|-?\d+)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What to change, in words, and the whole expression with it.

    `meant` tells that it only says better what was meant; otherwise other devices are asked for.
    """

    change: str
    text: str
    meant: bool = True


def rewritings(expression: Expression, known: Sequence[str]) -> Iterator[Rewriting]:
    """Ways to write an expression so that its failing part may pass, the most likely meant first.

    `known` are the names of attributes and capacities that devices have.
    """
    if expression.missing:
        yield from _respelled(expression, known)
        yield from _guarded(expression)
    elif expression.error:
        yield from _unquoted(expression)
    else:
        yield from _smaller(expression)
        yield from _nominal(expression, known)
        yield from _revalued(expression)
    yield from _shortened(expression)


def _respelled(expression: Expression, known: Sequence[str]) -> Iterator[Rewriting]:
    """An attribute that does not exist, spelled as one that does."""
    missing = expression.missing.rpartition("/")[2]
    folded = {name.casefold(): name for name in known}
    close = get_close_matches(missing.casefold(), folded, n=_MOST_VALUES, cutoff=0.6)
    close += [name for name in folded if missing.casefold() in name and name not in close]
    for name in close:
        if folded[name] != missing:
            part = re.sub(rf"\b{re.escape(missing)}\b", folded[name], _part(expression))
            yield Rewriting(f"write {folded[name]} in place of {missing}", _with(expression, part))


def _guarded(expression: Expression) -> Iterator[Rewriting]:
    """A part that errs on devices without an attribute, after a test that they have it."""
    if expression.path and expression.path.rpartition(".")[2].isidentifier():
        guard = f"has({expression.path})"
        yield Rewriting(f"write {guard} && before it", _with(expression, f"{guard} && {_part(expression)}"))


def _unquoted(expression: Expression) -> Iterator[Rewriting]:
    """A number in quotes: text and numbers do not compare."""
    comparison = _COMPARISON.fullmatch(_part(expression))
    number = comparison.group(3).strip('"') if comparison else ""
    if comparison and number.isdigit():
        left, operator, asked = comparison.groups()
        yield Rewriting(f"write {number} in place of {asked}", _with(expression, f"{left} {operator} {number}"))


def _smaller(expression: Expression) -> Iterator[Rewriting]:
    """A quantity that is a little more than devices have."""
    quantity = _QUANTITY.search(_part(expression))
    largest = _largest(expression)
    if quantity and largest is not None and largest.value >= GIB:
        smaller = f'quantity("{int(largest.value // GIB)}Gi")'
        if smaller != quantity.group(0):
            part = _part(expression).replace(quantity.group(0), smaller)
            change = f"write {smaller} in place of {quantity.group(0)}: these devices have {largest.text}"
            yield Rewriting(change, _with(expression, part))


def _nominal(expression: Expression, known: Sequence[str]) -> Iterator[Rewriting]:
    """A round number of GiB that was meant as the number in a product's name."""
    asked = re.search(r'quantity\("(\d+)Gi?"\)', _part(expression))
    domain = re.search(r'device\.capacity\["([^"]+)"\]\.memory\b', expression.path)
    if asked and domain and "nominalMemoryGB" in known and "nominalMemoryGB" not in expression.text:
        part = f'device.attributes["{domain.group(1)}"].nominalMemoryGB >= {asked.group(1)}'
        yield Rewriting(f"write {part}", _with(expression, part))


def _revalued(expression: Expression) -> Iterator[Rewriting]:
    """A comparison with a value that devices have."""
    comparison = _COMPARISON.fullmatch(_part(expression))
    values = [seen.value for seen in expression.seen if seen.value is not None]
    if not comparison or not values:
        return
    left, operator, asked = comparison.groups()
    for value in _nearest(operator, asked, values):
        yield Rewriting(
            f"write {value} in place of {asked}", _with(expression, f"{left} {operator} {value}"), meant=False
        )


def _nearest(operator: str, asked: str, values: Sequence[str]) -> Sequence[str]:
    """The seen values that would pass the comparison, nearest first; a strict one cannot be met by what was seen."""
    if asked.startswith('"'):
        if operator != "==":
            return ()
        alike = sorted(values, key=lambda value: -SequenceMatcher(None, asked.casefold(), value.casefold()).ratio())
        return alike[:_MOST_VALUES]
    numbers = sorted((int(v) for v in values if v.lstrip("-").isdigit()), key=lambda n: abs(n - int(asked)))
    return [str(number) for number in numbers[:_MOST_VALUES]] if operator in ("==", ">=", "<=") else ()


def _shortened(expression: Expression) -> Iterator[Rewriting]:
    """The expression without the part, where it is one conjunct of several."""
    text, span = expression.text, expression.failing
    before, after = text[: span.start].rstrip(), text[span.end :].lstrip()
    said = f"leave out {' '.join(_part(expression).split())}"
    if before.endswith("&&"):
        yield Rewriting(said, f"{before[:-2].rstrip()} {after}".strip(), meant=False)
    elif after.startswith("&&"):
        yield Rewriting(said, f"{before} {after[2:].lstrip()}".strip(), meant=False)


def _largest(expression: Expression) -> api.Quantity | None:
    try:
        return max(
            (api.Quantity.parse(seen.value) for seen in expression.seen if seen.value is not None),
            key=lambda quantity: quantity.value,
            default=None,
        )
    except api.ApiError:
        return None


def _part(expression: Expression) -> str:
    return expression.text[slice(*expression.failing)]


def _with(expression: Expression, part: str) -> str:
    span: cel.Span = expression.failing
    return expression.text[: span.start] + part + expression.text[span.end :]
