"""ResourceClaims, their templates, DeviceClasses and allocations, in the shape of resource.k8s.io/v1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dradriver.api.metadata import UID, ObjectMeta
from dradriver.api.nodes import NodeSelector
from dradriver.api.quantity import Quantity
from dradriver.api.slices import DeviceID
from dradriver.api.taints import Taint, Toleration

POD_CLAIM_NAME_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
DELETE_PROTECTION_FINALIZER = "resource.kubernetes.io/delete-protection"


class AllocationMode(StrEnum):
    """How many devices a request takes. A mode this version does not know stays a plain string."""

    EXACT_COUNT = "ExactCount"
    ALL = "All"


class ConfigSource(StrEnum):
    """Who wrote a configuration: the class (administrator) or the claim (user)."""

    FROM_CLASS = "FromClass"
    FROM_CLAIM = "FromClaim"


@dataclass(frozen=True, slots=True)
class Selector:
    """A CEL test of one device. `expression` is None for a kind of selector this version does not know."""

    expression: str | None


@dataclass(frozen=True, slots=True)
class OpaqueConfiguration:
    """Parameters for one driver: a JSON object only that driver reads."""

    driver: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeviceSubRequest:
    """One way to meet a request; names in a claim are `request` or `request/subrequest`."""

    name: str
    device_class_name: str
    selectors: tuple[Selector, ...] = ()
    allocation_mode: str = AllocationMode.EXACT_COUNT
    count: int = 1
    tolerations: tuple[Toleration, ...] = ()
    capacity: Mapping[str, Quantity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExactDeviceRequest:
    """The only way to meet a request; `count` is 0 with mode All."""

    device_class_name: str
    selectors: tuple[Selector, ...] = ()
    allocation_mode: str = AllocationMode.EXACT_COUNT
    count: int = 1
    admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    capacity: Mapping[str, Quantity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """One request of a claim: `exactly` or `first_available`; neither for a kind this version does not know."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceConstraint:
    """A condition over the devices of several requests; no requests named means all of them."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimConfiguration:
    """Driver parameters in a claim's spec; no requests named means all of them."""

    opaque: OpaqueConfiguration | None
    requests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """What is asked; immutable once the claim exists."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[ClaimConfiguration, ...] = ()


@dataclass(frozen=True, slots=True)
class AllocatedDevice:
    """One device given to a claim. `request` is `request` or `request/subrequest`."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = None
    consumed_capacity: Mapping[str, Quantity] = field(default_factory=dict)
    skip_node_operations: tuple[str, ...] = ()

    @property
    def id(self) -> DeviceID:
        """The device's identity in the cluster."""
        return DeviceID(self.driver, self.pool, self.device)


@dataclass(frozen=True, slots=True)
class AllocatedConfiguration:
    """Driver parameters that came with an allocation; class entries stand before claim entries."""

    source: str
    opaque: OpaqueConfiguration | None
    requests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a claim was given; once written it can only be removed."""

    results: tuple[AllocatedDevice, ...] = ()
    config: tuple[AllocatedConfiguration, ...] = ()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class ConsumerReference:
    """Who uses a claim; `resource` is the plural (`pods`)."""

    resource: str
    name: str
    uid: UID
    api_group: str = ""


@dataclass(frozen=True, slots=True)
class ClaimStatus:
    """Where a claim stands. `devices` (drivers' own reports) is kept as JSON: gpupool only shows it."""

    allocation: Allocation | None = None
    reserved_for: tuple[ConsumerReference, ...] = ()
    devices: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceClaim:
    """A claim on devices."""

    metadata: ObjectMeta
    spec: ClaimSpec
    status: ClaimStatus = field(default_factory=ClaimStatus)


@dataclass(frozen=True, slots=True)
class ResourceClaimTemplate:
    """A pattern from which each pod gets a claim of its own; labels and annotations go to the claim."""

    metadata: ObjectMeta
    spec: ClaimSpec
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeviceTaintSelector:
    """Which devices a rule taints: those for which everything given holds, so all devices where nothing is given.

    `device_class_name` and `selectors` exist in 1.33 and 1.34 alone.
    """

    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    device_class_name: str | None = None
    selectors: tuple[Selector, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceTaintRule:
    """A taint that administrators put on devices; without a selector it is on none."""

    metadata: ObjectMeta
    taint: Taint
    selector: DeviceTaintSelector | None = None


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """What administrators let people ask for."""

    metadata: ObjectMeta
    selectors: tuple[Selector, ...] = ()
    config: tuple[OpaqueConfiguration, ...] = ()
    extended_resource_name: str | None = None
