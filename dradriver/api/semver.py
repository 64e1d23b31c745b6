"""Strict semantic versions 2.0.0, as `version` attributes hold them.

The server parses them with blang/semver `Parse`: three parts, no leading zeros, no `v`, numbers within 64 bits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from dradriver.api.errors import VersionError

_NUMBER: Final = r"(0|[1-9][0-9]*)"
_IDENTIFIERS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_STRICT: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_IDENTIFIERS}))?(?:\+{_IDENTIFIERS})?")
_VENDOR: Final = re.compile(r"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?([-+].+)?")
_LIMIT: Final = 2**64
_MAX_DIGITS: Final = 20

_Identifier: TypeAlias = tuple[int, int, str]
Precedence: TypeAlias = tuple[int, int, int, bool, tuple[_Identifier, ...]]


@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version; ordered by precedence (build metadata ignored), equal by text as matchAttribute compares."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read a strict version. Raises VersionError."""
        _precedence(text)
        return cls(text)

    @classmethod
    def padded(cls, text: str) -> Version | None:
        """Make a vendor's version strict (550.90.07 → 550.90.7, 575.64 → 575.64.0), None where it cannot be."""
        match = _VENDOR.fullmatch(text.strip())
        if match is None:
            return None
        parts = (part.lstrip("0") or "0" for part in match.groups(default="0")[:3])
        try:
            return cls.parse(".".join(parts) + (match[4] or ""))
        except VersionError:
            return None

    @property
    def precedence(self) -> Precedence:
        """What orders versions: major, minor, patch, whether it is a release, pre-release identifiers."""
        return _precedence(self.text)

    def __str__(self) -> str:
        return self.text

    def __lt__(self, other: Version) -> bool:
        return self.precedence < other.precedence

    def __le__(self, other: Version) -> bool:
        return self.precedence <= other.precedence

    def __gt__(self, other: Version) -> bool:
        return self.precedence > other.precedence

    def __ge__(self, other: Version) -> bool:
        return self.precedence >= other.precedence


@lru_cache(maxsize=4096)
def _precedence(text: str) -> Precedence:
    match = _STRICT.fullmatch(text)
    if match is None:
        raise VersionError(
            f"{text[:80]!r} is no semantic version: write three numbers without leading zeros, as 1.20.3"
        )
    major, minor, patch = (_number(match[part], text) for part in (1, 2, 3))
    identifiers = match[4].split(".") if match[4] else []
    return major, minor, patch, not identifiers, tuple(_identifier(item, text) for item in identifiers)


def _identifier(item: str, text: str) -> _Identifier:
    if not item.isdigit():
        return 1, 0, item
    if item.startswith("0") and item != "0":
        raise VersionError(f"{text[:80]!r} is no semantic version: {item[:80]!r} has a leading zero")
    return 0, _number(item, text), ""


def _number(digits: str, text: str) -> int:
    if len(digits) > _MAX_DIGITS or int(digits) >= _LIMIT:
        raise VersionError(f"{text[:80]!r} is no semantic version: {digits[:80]} does not fit in 64 bits")
    return int(digits)
