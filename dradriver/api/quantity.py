"""Kubernetes quantities: exact amounts with decimal or binary suffixes.

The rules are those of apimachinery `pkg/api/resource` (quantity.go, suffix.go, amount.go), which every component of a
cluster reads with: digits finer than nano round away from zero, binary forms are capped at 2**63-1, and what stands for
nothing at all (`+`, `.`, `Ki`) is zero. Values are exact fractions, so nothing else is ever rounded.

Two departures, both where the server itself loses the value: amounts beyond the suffix E are written with an exponent
(the server would write 1000E as 1), and exponents beyond 1000 are refused instead of computed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Final

from dradriver.api.errors import QuantityError


class QuantityForm(StrEnum):
    """How a quantity was written, and is written again."""

    DECIMAL_EXPONENT = "DecimalExponent"
    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"


_PATTERN: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)", re.ASCII)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _BINARY.items()}
_NANO: Final = 10**9
_MAX: Final = 2**63 - 1
_MAX_EXPONENT: Final = 1000
_MAX_LENGTH: Final = 1000
_KIBI: Final = 1024
_SHORT: Final = 18
"""Digits of which the server knows that they fit in 64 bits."""
_NO_DIGITS_LIMIT: Final = {
    QuantityForm.DECIMAL_SI: 18,
    QuantityForm.BINARY_SI: 40,
    QuantityForm.DECIMAL_EXPONENT: _MAX_EXPONENT,
}
"""Up to which exponent the server takes a suffix without a number for zero; `Pi`, `Ei` and `e-10` it refuses."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact amount, compared, hashed and added by value: `Quantity.parse("1Ki") == Quantity.parse("1024")`.

    `text` keeps what was read so that writing back changes nothing; `str()` gives the form the server writes.
    """

    value: Fraction
    text: str
    form: QuantityForm
    canonical: str

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read a quantity as the server does. Raises QuantityError."""
        return _parse(text)

    @classmethod
    def of(cls, value: Fraction | int, form: QuantityForm = QuantityForm.DECIMAL_SI) -> Quantity:
        """The quantity of an exact amount, in its canonical text."""
        canonical = _written(Fraction(value), form)
        return cls(Fraction(value), canonical, form, canonical)

    @classmethod
    def of_mib(cls, mib: int) -> Quantity:
        """The quantity `<mib>Mi`."""
        return _parse(f"{mib}Mi")

    def __str__(self) -> str:
        return self.canonical

    def __eq__(self, other: object) -> bool:
        return self.value == other.value if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)

    def __lt__(self, other: Quantity) -> bool:
        return self.value < other.value

    def __le__(self, other: Quantity) -> bool:
        return self.value <= other.value

    def __gt__(self, other: Quantity) -> bool:
        return self.value > other.value

    def __ge__(self, other: Quantity) -> bool:
        return self.value >= other.value

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity.of(self.value + other.value, self.form if self.value else other.form)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity.of(self.value - other.value, self.form if self.value else other.form)

    def __neg__(self) -> Quantity:
        return Quantity.of(-self.value, self.form)


@lru_cache(maxsize=65536)
def _parse(text: str) -> Quantity:
    match = _PATTERN.fullmatch(text) if 0 < len(text) <= _MAX_LENGTH else None
    if match is None:
        raise _refusal(text)
    sign, whole, fraction, suffix = match.groups(default="")
    form, exponent = _interpret(suffix, text)
    if not whole + fraction and not _DECIMAL["n"] <= exponent <= _NO_DIGITS_LIMIT[form]:
        raise _refusal(text)
    whole = whole.lstrip("0") or "0"
    amount = Fraction(int(whole + fraction), 10 ** len(fraction))
    if form is QuantityForm.BINARY_SI:
        amount = min(_round_up(amount * 2**exponent), Fraction(_MAX))
        kept = _keeps_binary_text(whole, fraction, exponent)
    else:
        amount = _scaled(amount, exponent)
        kept = _keeps_decimal_text(whole + fraction, exponent - len(fraction))
    value = -amount if sign == "-" else amount
    return Quantity(value, text, form, text if kept else _written(value, form))


def _refusal(text: str) -> QuantityError:
    return QuantityError(f"{text[:80]!r} is no quantity: write a number with a suffix, such as 500m, 4, 80Gi or 1e3")


def _interpret(suffix: str, text: str) -> tuple[QuantityForm, int]:
    if suffix in _DECIMAL:
        return QuantityForm.DECIMAL_SI, _DECIMAL[suffix]
    if suffix in _BINARY:
        return QuantityForm.BINARY_SI, _BINARY[suffix]
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        raise _refusal(text)
    exponent = int(match[1])
    if exponent > _MAX_EXPONENT:
        raise QuantityError(f"{text[:80]!r} is no quantity: its exponent is over {_MAX_EXPONENT}")
    return QuantityForm.DECIMAL_EXPONENT, exponent


def _scaled(amount: Fraction, exponent: int) -> Fraction:
    if exponent >= 0:
        return _round_up(amount * 10**exponent)
    # Below this everything but zero is less than a nano: no need for its power of ten.
    return _round_up(amount / 10 ** min(-exponent, _MAX_LENGTH + 9))


def _round_up(amount: Fraction) -> Fraction:
    """The amount in whole nanos, rounded away from zero (amounts are not negative here)."""
    return amount if amount.denominator == 1 else Fraction(ceil(amount * _NANO), _NANO)


def _keeps_binary_text(whole: str, fraction: str, exponent: int) -> bool:
    """Whether the server writes a binary quantity as it was read: few digits and no power of 1024 to take out."""
    return not fraction and len(whole) + exponent * 3 // 10 <= _SHORT - 4 and int(whole) % 8 != 0


def _keeps_decimal_text(digits: str, scale: int) -> bool:
    """Whether the server writes a decimal quantity as it was read, be it `+1`, `01` or `1.500`."""
    return (
        len(digits) <= _SHORT
        and scale >= _DECIMAL["n"]
        and scale % 3 == 0
        and not digits.endswith("000")
        and not digits.startswith("0")
    )


def _written(value: Fraction, form: QuantityForm) -> str:
    """The canonical text: no fraction, the largest suffix that loses nothing."""
    if form is QuantityForm.BINARY_SI and value.denominator == 1 and _KIBI <= abs(value) <= _MAX:
        number, exponent = _without_factors(value.numerator, _KIBI)
        return f"{number}{_BINARY_SUFFIXES.get(exponent * 10, '')}"
    nanos = _round_up(abs(value)) * _NANO
    number, exponent = _without_factors(nanos.numerator if value > 0 else -nanos.numerator, 1000)
    power = exponent * 3 - 9 if number else 0
    if form is QuantityForm.DECIMAL_EXPONENT or power not in _DECIMAL_SUFFIXES:
        return f"{number}e{power}" if power else str(number)
    return f"{number}{_DECIMAL_SUFFIXES[power]}"


def _without_factors(number: int, factor: int) -> tuple[int, int]:
    times = 0
    while number and number % factor == 0:
        number //= factor
        times += 1
    return number, times
