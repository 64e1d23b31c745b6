"""Tables as kubectl prints them: upper-case heads, three spaces between columns, never wrapped.

In a pipe nothing is cut. On a terminal that is too narrow the widest cells lose their middle.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from kubectl_gpupool.signs import Signs

GAP = "   "
_NARROWEST = 12


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], signs: Signs, *, with_heads: bool = True) -> str:
    """Lines of a table; an empty cell reads `<none>`."""
    cells = [[cell or "<none>" for cell in row] for row in rows]
    return _lines([list(heads), *cells] if with_heads else cells, signs)


def columns(rows: Iterable[Sequence[str]], signs: Signs) -> str:
    """Lines of cells in columns without heads; empty cells stay empty."""
    return _lines([list(row) for row in rows], signs)


def _lines(cells: list[list[str]], signs: Signs) -> str:
    if not cells:
        return ""
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    if signs.width is not None:
        widths = _fitted(widths, signs.width)
        cells = [[_cut(cell, width, signs.gap) for cell, width in zip(row, widths, strict=True)] for row in cells]
    return "\n".join(
        GAP.join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def _fitted(widths: Sequence[int], room: int) -> list[int]:
    """Column widths that fit, the widest reduced first, none below what can still be recognised."""
    fitted = list(widths)
    excess = sum(fitted) + len(GAP) * (len(fitted) - 1) - room
    while excess > 0 and max(fitted) > _NARROWEST:
        fitted[fitted.index(max(fitted))] -= 1
        excess -= 1
    return fitted


def _cut(text: str, width: int, gap: str) -> str:
    """A text without its middle, as wide as it may be."""
    if _width(text) <= width or not text.isascii():
        return text
    kept = width - len(gap)
    return text[: kept - kept // 2] + gap + text[len(text) - kept // 2 :]


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
