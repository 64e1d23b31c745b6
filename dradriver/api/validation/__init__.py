"""The server's rules for slices, classes, claims and templates, per Kubernetes version.

The driver asks before it publishes, `explain -f` before a manifest is applied, and the lab's API server at every write:
one place for each rule. Source: kubernetes `pkg/apis/resource/validation` of each minor, and the declarative rules of
1.35 and later. Fields whose gate is off count as absent, as the server drops them before it checks.
"""

from __future__ import annotations

from dradriver.api.claims import ClaimSpec, DeviceClass
from dradriver.api.dropping import kept_claim_spec, kept_class, kept_slice
from dradriver.api.gates import Kubernetes
from dradriver.api.slices import ResourceSlice
from dradriver.api.validation import claims, slices
from dradriver.api.validation.problems import Problem

__all__ = ["Problem", "check_claim_spec", "check_class", "check_slice"]


def check_slice(resource_slice: ResourceSlice, kubernetes: Kubernetes) -> tuple[Problem, ...]:
    """Every rule a ResourceSlice breaks; empty when the server would take it."""
    return tuple(slices.check_spec(kept_slice(resource_slice, kubernetes), kubernetes))


def check_claim_spec(spec: ClaimSpec, kubernetes: Kubernetes, *, path: str = "spec") -> tuple[Problem, ...]:
    """Every rule the spec of a claim (or of a template: `spec.spec`) breaks, CEL left out."""
    return tuple(claims.check_spec(path, kept_claim_spec(spec, kubernetes), kubernetes))


def check_class(device_class: DeviceClass, kubernetes: Kubernetes) -> tuple[Problem, ...]:
    """Every rule a DeviceClass breaks, CEL left out."""
    return tuple(claims.check_class_spec(kept_class(device_class, kubernetes), kubernetes))
