"""Kubernetes quantities: exact amounts with decimal or binary suffixes (apimachinery `resource.Quantity`)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact amount, compared, hashed and added by value: `Quantity.parse("1Ki") == Quantity.parse("1024")`.

    `text` keeps what was read so that writing back changes nothing; `str()` gives the canonical form the server writes.
    """

    value: Fraction
    text: str

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read a quantity as the server does. Raises QuantityError."""
        raise NotImplementedError

    @classmethod
    def of_mib(cls, mib: int) -> Quantity:
        """The quantity `<mib>Mi`."""
        raise NotImplementedError
