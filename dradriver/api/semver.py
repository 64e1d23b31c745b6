"""Strict semantic versions 2.0.0, as `version` attributes hold them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version; ordered by precedence (build metadata ignored), equal by text as matchAttribute compares."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read a strict version. Raises VersionError."""
        raise NotImplementedError

    @classmethod
    def padded(cls, text: str) -> Version | None:
        """Make a vendor's version strict (550.90.07 → 550.90.7, 575.64 → 575.64.0), None where it cannot be."""
        raise NotImplementedError
