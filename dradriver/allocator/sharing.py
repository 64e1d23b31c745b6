"""Devices that many claims may have at once, each a part of their capacity (KEP-5075).

What a request takes of each capacity follows from the capacity's policy; what is free is the capacity less what held
shares consume, less what the search has given out. The same comparison, with nothing consumed, is how any device is
found large enough for a request.
Source: dynamic-resource-allocation `structured/internal/*/consumable_capacity.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from math import ceil
from typing import TypeAlias

from dradriver import api
from dradriver.allocator.pools import Candidate
from dradriver.allocator.variants import Rules

Consumed: TypeAlias = Mapping[str, api.Quantity]
"""Amounts by the name of the capacity."""

_LARGEST = 2**63 - 1
_THOUSANDTHS = 1000
_FEW = 18
"""Digits of a quantity that upstream keeps in 64 bits and a scale."""


class UnfitError(Exception):
    """An amount that makes the scheduler abort: the message names the capacity."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f'capacity "{name}": {reason}')


def shareable(device: api.Device, rules: Rules) -> bool:
    """Whether many claims may have a device."""
    return rules.consumable and device.allow_multiple_allocations


def consumed(wanted: Consumed, device: api.Device, rules: Rules) -> dict[str, api.Quantity]:
    """What a request takes of each capacity of a device. Raises UnfitError."""
    return {name: _consumed(name, wanted.get(name), capacity, rules) for name, capacity in device.capacity.items()}


def fits(wanted: Consumed, device: api.Device, used: Mapping[str, Fraction], rules: Rules) -> bool:
    """Whether a device has what a request asks, beside what is used of it already. Raises UnfitError."""
    if not rules.consumable:
        return True
    if not all(name in device.capacity for name in wanted):
        return False
    taken = consumed(wanted, device, rules)
    for name, amount in taken.items():
        if rules.capacity_strict and amount.value < 0:
            raise UnfitError(name, "capacity value is negative")
    return all(
        not _violates(taken[name], capacity.request_policy, rules)
        and taken[name].value + used.get(name, 0) <= capacity.value.value
        for name, capacity in device.capacity.items()
    )


class Shares:
    """What is used of every shared device: by claims that hold shares, and by the search. Owned by one search.

    `held` tells which shares of a device claims hold; None where they hold none at all.
    """

    def __init__(self, rules: Rules, held: Callable[[api.DeviceID], Iterable[api.AllocatedDevice]] | None) -> None:
        self._rules = rules
        self._shares = held
        self._held: dict[api.DeviceID, dict[str, Fraction] | None] = {}
        self._taken: dict[api.DeviceID, dict[str, Fraction]] = {}
        self._count: dict[api.DeviceID, int] = {}

    def fits(self, wanted: Consumed, candidate: Candidate) -> bool:
        """Whether what is left of a device is enough. Raises UnfitError."""
        if candidate.plain and not wanted and self._shares is None:
            return True
        return self.fits_at(wanted, candidate.id, candidate.device)

    def fits_at(self, wanted: Consumed, identity: api.DeviceID, device: api.Device) -> bool:
        """The same for any device of a slice. Raises UnfitError."""
        return fits(wanted, device, self.used(identity), self._rules)

    def known(self, candidate: Candidate) -> bool:
        """Whether someone has a share of a device already, so that its counters are consumed."""
        return candidate.id in self._taken or self._holding(candidate.id) is not None

    def take(self, wanted: Consumed, candidate: Candidate) -> dict[str, api.Quantity]:
        """Give a share out. Raises UnfitError."""
        amounts = consumed(wanted, candidate.device, self._rules)
        taken = self._taken.setdefault(candidate.id, {})
        for name, amount in amounts.items():
            taken[name] = taken.get(name, Fraction(0)) + amount.value
        self._count[candidate.id] = self._count.get(candidate.id, 0) + 1
        return amounts

    def give(self, candidate: Candidate, amounts: Consumed) -> None:
        """Take a share back; the last one leaves no trace, as up to 1.35 any that leaves nothing consumed."""
        self._count[candidate.id] -= 1
        taken = self._taken.get(candidate.id, {})
        for name, amount in amounts.items():
            if name in taken:
                taken[name] -= amount.value
        forgotten = self._rules.shares_keep_counters and not any(taken.values())
        if not self._count[candidate.id] or forgotten:
            self._taken.pop(candidate.id, None)

    def used(self, device: api.DeviceID) -> Mapping[str, Fraction]:
        """What is used of each capacity of a device."""
        held, taken = self._holding(device) or {}, self._taken.get(device, {})
        if not taken:
            return held
        return {name: held.get(name, Fraction(0)) + taken.get(name, Fraction(0)) for name in {*held, *taken}}

    def _holding(self, device: api.DeviceID) -> dict[str, Fraction] | None:
        """What claims consume of a device; None where none is known to have a share."""
        if self._shares is None:
            return None
        if device not in self._held:
            shares = [
                s for s in self._shares(device) if s.consumed_capacity or not self._rules.shares_known_by_capacity
            ]
            amounts: dict[str, Fraction] = {}
            for name, amount in (item for share in shares for item in share.consumed_capacity.items()):
                amounts[name] = amounts.get(name, Fraction(0)) + amount.value
            self._held[device] = amounts if shares else None
        return self._held[device]


def _consumed(name: str, wanted: api.Quantity | None, capacity: api.Capacity, rules: Rules) -> api.Quantity:
    policy = capacity.request_policy
    if wanted is None:
        return policy.default if policy is not None and policy.default is not None else capacity.value
    if policy is not None and policy.valid_range is not None:
        return _in_steps(name, wanted, policy.valid_range, rules)
    if policy is not None and policy.valid_values:
        return next((value for value in policy.valid_values if wanted <= value), wanted)
    return wanted


def _in_steps(name: str, wanted: api.Quantity, valid: api.ValidRange, rules: Rules) -> api.Quantity:
    """At least the minimum, and a whole number of steps above it."""
    if wanted < valid.minimum:
        return valid.minimum
    if valid.step is None:
        return wanted
    unit = _unit(valid, rules)
    start, step = _units(valid.minimum, unit), _units(valid.step, unit)
    if rules.capacity_strict:
        _check_representable(name, wanted, unit)
    over = _units(wanted, unit) - start
    # Go divides towards zero, so an amount that was misread as less than the minimum (up to 1.36) still gets a step.
    steps = abs(over) // step * (1 if over >= 0 else -1) + (over % step != 0)
    amount = start + step * steps
    if rules.capacity_strict and amount > _LARGEST:
        bound = "MaxInt64" if unit == 1 else "the milli-value range"
        raise UnfitError(name, _unrepresentable(f"rounding request {wanted} up to the next step passes {bound}"))
    form = valid.step.form if rules.capacity_strict else api.QuantityForm.BINARY_SI
    return api.Quantity.of(Fraction(_wrapped(amount), unit), form)


def _check_representable(name: str, wanted: api.Quantity, unit: int) -> None:
    if unit == 1 and wanted.value > _LARGEST:
        raise UnfitError(name, _unrepresentable(f"request {wanted} exceeds MaxInt64"))
    if unit != 1 and not _is_whole(wanted, unit):
        raise UnfitError(name, _unrepresentable(f"request {wanted} is not a representable milli value"))


def _unrepresentable(reason: str) -> str:
    return f"capacity request cannot be represented in the device's range arithmetic: {reason}"


def _violates(amount: api.Quantity, policy: api.RequestPolicy | None, rules: Rules) -> bool:
    """Whether an amount is not one that the policy allows; its default always is."""
    if policy is None or amount == policy.default:
        return False
    if policy.valid_range is None:
        return bool(policy.valid_values) and amount not in policy.valid_values
    valid = policy.valid_range
    if valid.maximum is not None and amount > valid.maximum:
        return True
    if valid.step is None:
        return False
    unit = _unit(valid, rules)
    if unit != 1 and not _is_whole(amount, unit):
        return True
    return (_units(amount, unit) - _units(valid.minimum, unit)) % _units(valid.step, unit) != 0


def _unit(valid: api.ValidRange, rules: Rules) -> int:
    """Parts of one that a range is computed in: whole numbers, or thousandths where they hold all its bounds."""
    bounds = [bound for bound in (valid.minimum, valid.maximum, valid.step) if bound is not None]
    fine = rules.fractional and all(_is_whole(bound, _THOUSANDTHS) for bound in bounds)
    return _THOUSANDTHS if fine else 1


def _is_whole(amount: api.Quantity, unit: int) -> bool:
    parts = amount.value * unit
    return parts.denominator == 1 and -_LARGEST <= parts <= _LARGEST


def _units(amount: api.Quantity, unit: int) -> int:
    """An amount in whole units, rounded away from zero, in 64 bits as upstream reads it.

    What does not fit reads as nothing, or cut to its low bits where it has many digits (quantity.go, Value).
    """
    parts = amount.value * unit
    number = ceil(parts) if parts >= 0 else -ceil(-parts)
    digits = amount.text.lstrip("+-0").rstrip("eEinumkMGTPK")
    if abs(number) > _LARGEST and len(digits) <= _FEW:
        return 0
    return _wrapped(number)


def _wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63
