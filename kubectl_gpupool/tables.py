"""Tables as kubectl prints them: upper-case heads, three spaces between columns, never cut or wrapped."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

GAP = "   "


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, with_heads: bool = True) -> str:
    """Lines of a table; an empty cell reads `<none>`."""
    cells = [[cell or "<none>" for cell in row] for row in rows]
    if with_heads:
        cells.insert(0, list(heads))
    widths = [max((_width(row[column]) for row in cells), default=0) for column in range(len(heads))]
    return "\n".join(
        GAP.join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
