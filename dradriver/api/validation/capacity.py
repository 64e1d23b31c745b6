"""Rules of how a shared capacity may be asked for (KEP-5075)."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from dradriver.api.devices import Capacity, RequestPolicy, ValidRange
from dradriver.api.gates import Kubernetes
from dradriver.api.limits import limits_of
from dradriver.api.quantity import Quantity
from dradriver.api.validation.problems import Problem, each, forbidden, invalid, required


def check_policy(path: str, capacity: Capacity, policy: RequestPolicy, kubernetes: Kubernetes) -> Iterator[Problem]:
    """Every rule a request policy breaks."""
    if policy.valid_values and policy.valid_range is not None:
        rule = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        yield forbidden(path, rule)
    elif policy.valid_values:
        yield from _check_values(path, capacity.value, policy, limits_of(kubernetes).valid_values)
    elif policy.valid_range is not None:
        if policy.default is None:
            yield required(f"{path}.default", "required when validRange is defined")
        else:
            place = f"{path}.validRange"
            yield from _check_range(place, capacity.value, policy.default, policy.valid_range, kubernetes)


def _check_values(path: str, most: Quantity, policy: RequestPolicy, limit: int) -> Iterator[Problem]:
    place = f"{path}.validValues"
    values = policy.valid_values
    if policy.default is None:
        yield required(f"{path}.default", "required when validValues is defined")
        return
    for index in range(1, len(values)):
        if values[index - 1] > values[index]:
            yield invalid(f"{place}[{index}]", str(values[index]), "values must be sorted in ascending order")
    yield from each(place, values, limit, lambda at, value: _check_within(at, value, most, "option"), key=str)
    if policy.default not in values:
        yield invalid(place, str(policy.default), "default value is not valid according to the requestPolicy")


def _check_within(path: str, value: Quantity, most: Quantity, noun: str) -> Iterator[Problem]:
    if value > most:
        yield invalid(path, str(value), f"{noun} is larger than capacity value: {most}")


def _check_range(
    path: str, most: Quantity, default: Quantity, valid: ValidRange, kubernetes: Kubernetes
) -> Iterator[Problem]:
    yield from _check_within(f"{path}.min", valid.minimum, most, "min")
    if default < valid.minimum:
        yield invalid(f"{path}.default", str(default), f"default is less than min: {valid.minimum}")
    if valid.maximum is not None:
        yield from _check_within(f"{path}.max", valid.maximum, most, "max")
        if valid.minimum > valid.maximum:
            yield invalid(f"{path}.max", str(valid.minimum), f"min is larger than max: {valid.maximum}")
        if default > valid.maximum:
            yield invalid(f"{path}.default", str(default), f"default is more than max: {valid.maximum}")
    if valid.step is not None:
        ends = (default,) if valid.maximum is None else (default, valid.maximum)
        if valid.step.value <= 0:
            yield invalid(f"{path}.step", str(valid.step), "must be greater than zero")
            return
        if (first := valid.minimum + valid.step) > most:
            yield invalid(f"{path}.step", str(valid.step), f"one step {first} is larger than capacity value: {most}")
        fine = kubernetes.enabled("DRAFractionalCapacityRange")
        for end in ends:
            if not _is_on_step(end, valid.minimum, valid.step, fine=fine):
                rule = f"value is not a multiple of a given step ({valid.step}) from ({valid.minimum})"
                yield invalid(f"{path}.step", str(end), rule)


def _is_on_step(value: Quantity, first: Quantity, step: Quantity, *, fine: bool) -> bool:
    """Whether a value is whole steps from the first; servers without the gate round all figures up to integers."""
    if fine:
        return (value.value - first.value) % step.value == 0
    return (ceil(value.value) - ceil(first.value)) % ceil(step.value) == 0
