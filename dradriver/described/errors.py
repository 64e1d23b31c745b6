"""What can be wrong with described hardware.

DescriptionError    a description that cannot be used: file, key, value seen and remedy, in one line
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable
from typing import Final

_SHOWN: Final = 60
"""Characters of a wrong value that a message repeats."""
_REPR: Final = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = _SHOWN


class DescriptionError(ValueError):
    """A description that cannot be used; the message is one line."""

    def __init__(self, file: str, path: str, problem: str, remedy: str) -> None:
        super().__init__(": ".join(part for part in (file, path, f"{problem}; {remedy}") if part))


def shown(value: object) -> str:
    """A value as a message repeats it: on one line, and not the whole of a long one (aliases make huge ones of few)."""
    text = _REPR.repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def choices(seen: str, known: Iterable[str]) -> str:
    """A remedy for a word that is not known: the near ones, or all of a few."""
    names = sorted(known)
    near = difflib.get_close_matches(seen, names, n=3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    few = 30
    return f"known: {', '.join(names[:few])}{', ...' if len(names) > few else ''}"
