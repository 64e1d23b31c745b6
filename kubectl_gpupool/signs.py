"""Signs and colour: what a terminal can show. Colour never carries meaning alone, every sign has an ASCII twin."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from kubectl_gpupool.options import Flags

_COLOURS = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "dim": "2", "bold": "1"}


@dataclass(frozen=True, slots=True)
class Signs:
    """The signs of this output, and whether it takes colour."""

    branch: str
    last: str
    trunk: str
    colour: bool

    @classmethod
    def of(cls, flags: Flags) -> Signs:
        """By the flags, the locale and where the output goes (NO_COLOR and TERM=dumb count)."""
        encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
        plain = flags.ascii or not encoding.startswith("utf")
        quiet = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty()
        colour = flags.color == "always" or (flags.color == "auto" and not quiet)
        return cls("|-- ", "`-- ", "|   ", colour) if plain else cls("├─ ", "└─ ", "│  ", colour)

    def paint(self, text: str, colour: str) -> str:
        """A text in a colour, where there is colour."""
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.colour and text else text
