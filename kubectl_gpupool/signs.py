"""Signs and colour: what the output can show. Colour never carries meaning alone, every sign has an ASCII twin."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass

from kubectl_gpupool.options import Flags

_COLOURS = {"red": "31", "green": "32", "yellow": "33"}


@dataclass(frozen=True, slots=True)
class Signs:
    """The signs of an output, whether it takes colour, and its width in columns: None where nothing is ever cut."""

    branch: str = "|-- "
    last: str = "`-- "
    gap: str = ".."
    colour: bool = False
    width: int | None = None

    @classmethod
    def of(cls, flags: Flags) -> Signs:
        """By the flags, the locale and where standard output goes (NO_COLOR and TERM=dumb count)."""
        terminal = sys.stdout.isatty()
        encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
        plain = flags.ascii or not encoding.startswith("utf")
        quiet = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb" or not terminal
        colour = flags.color == "always" or (flags.color == "auto" and not quiet)
        width = shutil.get_terminal_size().columns if terminal else None
        if plain:
            return cls(colour=colour, width=width)
        return cls("├─ ", "└─ ", "…", colour, width)

    def paint(self, text: str, colour: str) -> str:
        """A text in a colour, where there is colour."""
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.colour and text else text
