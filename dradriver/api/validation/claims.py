"""Rules of claims, templates and classes. CEL is judged elsewhere, apart from the length of an expression."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from dradriver.api import names
from dradriver.api.claims import (
    AllocationMode,
    ClaimConfiguration,
    ClaimSpec,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    OpaqueConfiguration,
    Selector,
)
from dradriver.api.gates import Kubernetes
from dradriver.api.limits import Limits, limits_of
from dradriver.api.taints import Toleration, TolerationOperator
from dradriver.api.validation.problems import (
    Problem,
    dns_label,
    dns_subdomain,
    driver_name,
    each,
    fully_qualified_name,
    invalid,
    label_key,
    label_value,
    required,
    too_long,
    unsupported,
)

_RequestNames = Mapping[str, frozenset[str]]
_NATIVE: Final = "kubernetes.io/"


def check_spec(path: str, spec: ClaimSpec, kubernetes: Kubernetes) -> Iterator[Problem]:
    """Every rule the spec of a claim breaks."""
    limits = limits_of(kubernetes)
    known = {request.name: frozenset(sub.name for sub in request.first_available) for request in spec.requests}
    path += ".devices"
    yield from each(
        f"{path}.requests",
        spec.requests,
        limits.requests,
        lambda place, request: _check_request(place, request, limits, kubernetes),
        key=lambda request: request.name,
    )
    yield from each(
        f"{path}.constraints",
        spec.constraints,
        limits.constraints,
        lambda place, constraint: _check_constraint(place, constraint, known, kubernetes),
    )
    yield from each(
        f"{path}.config",
        spec.config,
        limits.configurations,
        lambda place, config: _check_configuration(place, config, known, kubernetes),
    )


def check_class_spec(device_class: DeviceClass, kubernetes: Kubernetes) -> Iterator[Problem]:
    """Every rule the spec of a class breaks."""
    limits = limits_of(kubernetes)
    yield from _check_selectors("spec.selectors", device_class.selectors, limits)
    yield from each(
        "spec.config",
        device_class.config,
        limits.configurations,
        lambda place, config: _check_opaque(f"{place}.opaque", config, limits),
    )
    name = device_class.extended_resource_name
    if name is not None and not _is_extended_resource_name(name):
        yield invalid("spec.extendedResourceName", name, "must be a valid extended resource name")


def _is_extended_resource_name(name: str) -> bool:
    """Source: kubernetes `pkg/apis/core/v1/helper` IsExtendedResourceName; quota puts `requests.` before it."""
    is_ours = "/" in name and _NATIVE not in name and not name.startswith("requests.")
    return is_ours and names.is_label_key(f"requests.{name}")


def _check_request(path: str, request: DeviceRequest, limits: Limits, kubernetes: Kubernetes) -> Iterator[Problem]:
    yield from dns_label(f"{path}.name", request.name)
    rule = "exactly one of `exactly` or `firstAvailable` is required"
    if request.exactly is not None and request.first_available:
        yield invalid(path, "{`exactly`, `firstAvailable`}", f"{rule}, but multiple fields are set")
    elif request.exactly is not None:
        yield from _check_choice(f"{path}.exactly", request.exactly, limits)
    elif request.first_available:
        yield from each(
            f"{path}.firstAvailable",
            request.first_available,
            limits.subrequests,
            lambda place, subrequest: _check_subrequest(place, subrequest, limits),
            key=lambda subrequest: subrequest.name,
        )
    elif not kubernetes.enabled("DRAPrioritizedList"):
        yield required(f"{path}.exactly", "`firstAvailable` needs the feature gate DRAPrioritizedList")
    else:
        yield required(path, rule)


def _check_subrequest(path: str, subrequest: DeviceSubRequest, limits: Limits) -> Iterator[Problem]:
    yield from dns_label(f"{path}.name", subrequest.name)
    yield from _check_choice(path, subrequest, limits)


def _check_choice(path: str, choice: ExactDeviceRequest | DeviceSubRequest, limits: Limits) -> Iterator[Problem]:
    yield from dns_subdomain(f"{path}.deviceClassName", choice.device_class_name)
    yield from _check_selectors(f"{path}.selectors", choice.selectors, limits)
    match choice.allocation_mode:
        case AllocationMode.ALL:
            if choice.count != 0:
                yield invalid(f"{path}.count", choice.count, "must not be specified when allocationMode is 'All'")
        case AllocationMode.EXACT_COUNT:
            if choice.count <= 0:
                yield invalid(f"{path}.count", choice.count, "must be greater than zero")
        case _:
            modes = sorted(AllocationMode)
            yield unsupported(f"{path}.allocationMode", choice.allocation_mode, modes)
    yield from each(f"{path}.tolerations", choice.tolerations, limits.tolerations, _check_toleration)


def _check_selectors(path: str, selectors: tuple[Selector, ...], limits: Limits) -> Iterator[Problem]:
    yield from each(path, selectors, limits.selectors, lambda place, selector: _check_selector(place, selector, limits))


def _check_selector(path: str, selector: Selector, limits: Limits) -> Iterator[Problem]:
    if selector.expression is None:
        yield required(f"{path}.cel")
    else:
        yield from too_long(f"{path}.cel.expression", selector.expression, limits.expression_bytes)


def _check_toleration(path: str, toleration: Toleration) -> Iterator[Problem]:
    if toleration.key:
        yield from label_key(f"{path}.key", toleration.key)
    match toleration.operator:
        case TolerationOperator.EXISTS:
            if toleration.value:
                yield invalid(f"{path}.value", toleration.value, "must be empty for operator `Exists`")
        case TolerationOperator.EQUAL:
            yield from label_value(f"{path}.value", toleration.value)
        case _:
            yield unsupported(f"{path}.operator", toleration.operator, sorted(TolerationOperator))


def _check_constraint(
    path: str, constraint: DeviceConstraint, known: _RequestNames, kubernetes: Kubernetes
) -> Iterator[Problem]:
    yield from _check_references(f"{path}.requests", constraint.requests, known, kubernetes)
    if constraint.match_attribute is not None:
        yield from fully_qualified_name(f"{path}.matchAttribute", constraint.match_attribute)
    elif constraint.distinct_attribute is not None:
        yield from fully_qualified_name(f"{path}.distinctAttribute", constraint.distinct_attribute)
    elif kubernetes.enabled("DRAConsumableCapacity"):
        yield required(path, 'exactly one of "matchAttribute" or "distinctAttribute" is required')
    else:
        yield required(f"{path}.matchAttribute")


def _check_configuration(
    path: str, config: ClaimConfiguration, known: _RequestNames, kubernetes: Kubernetes
) -> Iterator[Problem]:
    yield from _check_references(f"{path}.requests", config.requests, known, kubernetes)
    if config.opaque is None:
        yield required(f"{path}.opaque")
    else:
        yield from _check_opaque(f"{path}.opaque", config.opaque, limits_of(kubernetes))


def _check_references(
    path: str, references: tuple[str, ...], known: _RequestNames, kubernetes: Kubernetes
) -> Iterator[Problem]:
    yield from each(
        path,
        references,
        limits_of(kubernetes).requests,
        lambda place, reference: _check_reference(place, reference, known),
        key=str,
    )


def _check_reference(path: str, reference: str, known: _RequestNames) -> Iterator[Problem]:
    request, slash, subrequest = reference.partition("/")
    if request not in known or (slash and subrequest not in known[request]):
        rule = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
        yield invalid(path, reference, rule)


def _check_opaque(path: str, opaque: OpaqueConfiguration, limits: Limits) -> Iterator[Problem]:
    yield from driver_name(f"{path}.driver", opaque.driver)
    text = json.dumps(opaque.parameters, separators=(",", ":"), ensure_ascii=False)
    yield from too_long(f"{path}.parameters", text, limits.parameter_bytes)
