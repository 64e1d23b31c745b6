"""How much the server takes, per Kubernetes minor (constants of resource.k8s.io `types.go` of each)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from dradriver.api.gates import Kubernetes


@dataclass(frozen=True, slots=True)
class Limits:
    """Largest sizes; None where a minor has no such limit. Texts are measured in bytes of UTF-8."""

    devices: int = 128
    advanced_devices: int | None = None
    """Devices of a slice of which any has taints, counters or list attributes."""
    attributes_and_capacities: int = 32
    attribute_values: int | None = None
    """Values of one device's attributes, each item of a list counted."""
    attribute_bytes: int = 64
    taints: int = 4
    counters_apart: bool = False
    """Whether counter sets stand in slices of their own, and names reach over the pool (1.35+)."""
    shared_counters: int | None = None
    """Counters over all counter sets of a slice (up to 1.34)."""
    device_counters: int | None = None
    """Counters one device consumes (up to 1.34)."""
    slice_counters: int | None = None
    """Counters all devices of a slice consume (up to 1.34)."""
    counter_sets: int | None = None
    counters_in_set: int | None = None
    consumptions: int | None = None
    """Counter sets one device consumes from."""
    counters_in_consumption: int | None = None
    compatibility_groups: int = 2
    binding_conditions: int = 4
    valid_values: int = 10
    requests: int = 32
    subrequests: int = 8
    constraints: int = 32
    configurations: int = 32
    selectors: int = 32
    tolerations: int | None = None
    expression_bytes: int = 10 * 1024
    parameter_bytes: int = 10 * 1024
    results: int = 32
    reserved_for: int = 256


_BY_MINOR: Final = {32: Limits()}
_BY_MINOR[33] = replace(_BY_MINOR[32], shared_counters=32, device_counters=32, slice_counters=1024)
_BY_MINOR[34] = _BY_MINOR[33]
_BY_MINOR[35] = replace(
    _BY_MINOR[32],
    advanced_devices=64,
    taints=16,
    counters_apart=True,
    counter_sets=8,
    counters_in_set=32,
    consumptions=2,
    counters_in_consumption=32,
    tolerations=16,
)
_BY_MINOR[36] = replace(_BY_MINOR[35], attribute_values=48)
_BY_MINOR[37] = _BY_MINOR[36]


def limits_of(kubernetes: Kubernetes) -> Limits:
    """The limits of a Kubernetes version."""
    return _BY_MINOR[kubernetes.minor]
