"""The vocabulary of resource.k8s.io: immutable values in the shape of v1, their JSON, limits, quantities, versions.

Pure: no I/O, no clocks, no third-party packages. Other rooms import this package (`from dradriver import api`) and use
what it re-exports; its submodules are private.
"""

from dradriver.api import names as names
from dradriver.api import parameters as parameters
from dradriver.api import validation as validation
from dradriver.api import wire as wire
from dradriver.api.claims import (
    DELETE_PROTECTION_FINALIZER,
    POD_CLAIM_NAME_ANNOTATION,
    AllocatedConfiguration,
    AllocatedDevice,
    Allocation,
    AllocationMode,
    ClaimConfiguration,
    ClaimSpec,
    ClaimStatus,
    ConfigSource,
    ConsumerReference,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    DeviceTaintRule,
    DeviceTaintSelector,
    ExactDeviceRequest,
    OpaqueConfiguration,
    ResourceClaim,
    ResourceClaimTemplate,
    Selector,
)
from dradriver.api.devices import (
    AttributeScalar,
    AttributeValue,
    Capacity,
    CounterConsumption,
    CounterSet,
    Device,
    RequestPolicy,
    ValidRange,
)
from dradriver.api.dropping import kept_claim_spec, kept_claim_status, kept_class, kept_slice
from dradriver.api.errors import ApiError, ParametersError, QuantityError, VersionError, WireError
from dradriver.api.gates import NEWEST_MINOR, OLDEST_MINOR, Kubernetes
from dradriver.api.limits import Limits, limits_of
from dradriver.api.metadata import UID, ObjectMeta, OwnerReference
from dradriver.api.nodes import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, selects
from dradriver.api.quantity import Quantity, QuantityForm
from dradriver.api.semver import Version
from dradriver.api.slices import DeviceID, Pool, ResourceSlice
from dradriver.api.taints import Taint, TaintEffect, Toleration, TolerationOperator, tolerates

__all__ = [
    "DELETE_PROTECTION_FINALIZER",
    "NEWEST_MINOR",
    "OLDEST_MINOR",
    "POD_CLAIM_NAME_ANNOTATION",
    "UID",
    "AllocatedConfiguration",
    "AllocatedDevice",
    "Allocation",
    "AllocationMode",
    "ApiError",
    "AttributeScalar",
    "AttributeValue",
    "Capacity",
    "ClaimConfiguration",
    "ClaimSpec",
    "ClaimStatus",
    "ConfigSource",
    "ConsumerReference",
    "CounterConsumption",
    "CounterSet",
    "Device",
    "DeviceClass",
    "DeviceConstraint",
    "DeviceID",
    "DeviceRequest",
    "DeviceSubRequest",
    "DeviceTaintRule",
    "DeviceTaintSelector",
    "ExactDeviceRequest",
    "Kubernetes",
    "Limits",
    "Node",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "ObjectMeta",
    "OpaqueConfiguration",
    "OwnerReference",
    "ParametersError",
    "Pool",
    "Quantity",
    "QuantityError",
    "QuantityForm",
    "RequestPolicy",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
    "Selector",
    "Taint",
    "TaintEffect",
    "Toleration",
    "TolerationOperator",
    "ValidRange",
    "Version",
    "VersionError",
    "WireError",
    "kept_claim_spec",
    "kept_claim_status",
    "kept_class",
    "kept_slice",
    "limits_of",
    "names",
    "parameters",
    "selects",
    "tolerates",
    "validation",
    "wire",
]
