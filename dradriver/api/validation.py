"""The server's rules for slices, classes, claims and templates, per Kubernetes version.

The driver asks before it publishes, `explain -f` before a manifest is applied, and the lab's API server at every write:
one place for each rule (facts: resource.k8s.io validation.go of each minor).
"""

from __future__ import annotations

from dataclasses import dataclass

from dradriver.api.claims import ClaimSpec, DeviceClass
from dradriver.api.gates import Kubernetes
from dradriver.api.slices import ResourceSlice


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule. `path` is a JSON path in v1 shape, `message` names the value seen and the limit."""

    path: str
    message: str


def check_slice(resource_slice: ResourceSlice, kubernetes: Kubernetes) -> tuple[Problem, ...]:
    """Every rule a ResourceSlice breaks; empty when the server would take it."""
    raise NotImplementedError


def check_claim_spec(spec: ClaimSpec, kubernetes: Kubernetes, *, path: str = "spec") -> tuple[Problem, ...]:
    """Every rule the spec of a claim (or of a template: `spec.spec`) breaks, CEL left out."""
    raise NotImplementedError


def check_class(device_class: DeviceClass, kubernetes: Kubernetes) -> tuple[Problem, ...]:
    """Every rule a DeviceClass breaks, CEL left out."""
    raise NotImplementedError
