"""Sets of characters in patterns: ranges, Perl's and POSIX' classes, Unicode's general categories."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

Ranges = tuple[tuple[str, str], ...]

_DIGITS: Ranges = (("0", "9"),)
_SPACES: Ranges = (("\t", "\n"), ("\f", "\r"), (" ", " "))
_WORDS: Ranges = (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))
PERL: dict[str, Ranges] = {"d": _DIGITS, "s": _SPACES, "w": _WORDS}
POSIX: dict[str, Ranges] = {
    "alnum": (("0", "9"), ("A", "Z"), ("a", "z")),
    "alpha": (("A", "Z"), ("a", "z")),
    "ascii": (("\x00", "\x7f"),),
    "blank": (("\t", "\t"), (" ", " ")),
    "cntrl": (("\x00", "\x1f"), ("\x7f", "\x7f")),
    "digit": _DIGITS,
    "graph": (("!", "~"),),
    "lower": (("a", "z"),),
    "print": ((" ", "~"),),
    "punct": (("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": (("\t", "\r"), (" ", " ")),
    "upper": (("A", "Z"),),
    "word": _WORDS,
    "xdigit": (("0", "9"), ("A", "F"), ("a", "f")),
}
CATEGORIES = frozenset(
    {
        "C",
        "Cc",
        "Cf",
        "Co",
        "L",
        "Ll",
        "Lm",
        "Lo",
        "Lt",
        "Lu",
        "M",
        "Mc",
        "Me",
        "Mn",
        "N",
        "Nd",
        "Nl",
        "No",
        "P",
        "Pc",
        "Pd",
        "Pe",
        "Pf",
        "Pi",
        "Po",
        "Ps",
        "S",
        "Sc",
        "Sk",
        "Sm",
        "So",
        "Z",
        "Zl",
        "Zp",
        "Zs",
    }
)


@dataclass(frozen=True, slots=True)
class CharSet:
    """Characters of some ranges, categories or inner sets; all others where negated."""

    ranges: Ranges = ()
    categories: tuple[str, ...] = ()
    inner: tuple[CharSet, ...] = ()
    negated: bool = False
    folded: bool = False

    def __contains__(self, character: str) -> bool:
        found = self._has(character)
        if not found and self.folded:
            found = any(self._has(other) for other in (character.lower(), character.upper()) if len(other) == 1)
        return found is not self.negated

    def _has(self, character: str) -> bool:
        if any(low <= character <= high for low, high in self.ranges):
            return True
        if self.categories and unicodedata.category(character).startswith(self.categories):
            return True
        return any(character in other for other in self.inner)


def is_word(character: str) -> bool:
    r"""Whether a character counts for \b: ASCII letters, digits and _, as in RE2."""
    return any(low <= character <= high for low, high in _WORDS)
