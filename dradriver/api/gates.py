"""Kubernetes versions 1.32 to 1.37 and their feature gates.

Source of the table: kubernetes `test/compatibility_lifecycle/reference/feature_list.md` and the gate pages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from dradriver.api.errors import ApiError
from dradriver.api.versions import ApiVersion

OLDEST_MINOR: Final = 32
NEWEST_MINOR: Final = 37

# One column for each minor from 1.32: `.` no such gate, `-` off by default, `+` on by default, `L` on and locked.
_TABLE: Final = {
    "DRAAdminAccess":                              "--++LL",
    "DRAConsumableCapacity":                       "..--++",
    "DRADerivedAttributes":                        ".....-",
    "DRADeviceBindingConditions":                  "..--++",
    "DRADeviceCompatibilityGroups":                ".....-",
    "DRADeviceTaintRules":                         "...--+",
    "DRADeviceTaints":                             ".---++",
    "DRAExtendedResource":                         "..--+L",
    "DRAFractionalCapacityRange":                  ".....+",
    "DRAListTypeAttributes":                       "....--",
    "DRANodeAllocatableResources":                 "....--",
    "DRAOptionalNodeOperations":                   ".....-",
    "DRAPartitionableDevices":                     ".---++",
    "DRAPartitionableDevicesType":                 ".....-",
    "DRAPrioritizedList":                          ".-+++L",
    "DRAResourceClaimDeviceStatus":                "-++++L",
    "DRAResourceClaimGranularStatusAuthorization": "....++",
    "DRAResourcePoolStatus":                       "....--",
    "DRASchedulerFilterTimeout":                   "..++++",
    "DRAWorkloadResourceClaims":                   "....--",
    "DynamicResourceAllocation":                   "--+LLL",
    "GenericWorkload":                             "...---",
    "KubeletPodResourcesDynamicResources":         "--++LL",
    "KubeletPodResourcesGet":                      "--++LL",
    "NodeDeclaredFeatures":                        "...-+L",
    "ResourceHealthStatus":                        "----++",
    "ResourceHealthStatusMessage":                 "....++",
    "SchedulerPreQueueingHints":                   ".....-",
}  # fmt: skip
_VERSION: Final = re.compile(r"v?1\.([0-9]{1,3})(?:[.+-].*)?")


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """One Kubernetes minor version with its gates: what every rule that differs between versions asks.

    `Kubernetes.release("1.34", {"DRAPartitionableDevices": True})`; unknown versions or gates raise ApiError. A gate
    that the version locks may still be set, so that questions of the kind "what if" can be asked.
    """

    minor: int
    gates: Mapping[str, bool] = field(hash=False)

    @classmethod
    def release(cls, version: str, gates: Mapping[str, bool] | None = None) -> Kubernetes:
        """A version `1.<minor>` (patch and leading v are ignored) with its default gates, changed by `gates`."""
        match = _VERSION.fullmatch(version)
        minor = int(match[1]) if match else -1
        if not OLDEST_MINOR <= minor <= NEWEST_MINOR:
            known = ", ".join(f"1.{minor}" for minor in range(OLDEST_MINOR, NEWEST_MINOR + 1))
            raise ApiError(f"Kubernetes version {version!r} is not known here: choose one of {known}")
        chosen = {gate: state in "+L" for gate in _TABLE if (state := _state(gate, minor)) != "."}
        for gate, enabled in (gates or {}).items():
            if gate not in chosen:
                raise ApiError(_unknown_gate(gate, minor, list(chosen)))
            chosen[gate] = enabled
        return cls(minor, chosen)

    def enabled(self, gate: str) -> bool:
        """Whether a gate is on; one that does not exist in this version is off."""
        return self.gates.get(gate, False)

    def locked(self, gate: str) -> bool:
        """Whether a real cluster of this version cannot turn the gate off."""
        return gate in _TABLE and _state(gate, self.minor) == "L"

    @property
    def served(self) -> tuple[ApiVersion, ...]:
        """The API versions the lab's server of this minor serves, newest first.

        Real servers serve what their administrator enabled; up to 1.33 nothing without being asked, from 1.34 v1.
        """
        if self.minor >= 34:  # noqa: PLR2004 - the minor in which v1 came
            return (ApiVersion.V1,)
        return (ApiVersion.V1BETA1,) if self.minor == OLDEST_MINOR else (ApiVersion.V1BETA2, ApiVersion.V1BETA1)

    def __str__(self) -> str:
        return f"1.{self.minor}"


def _state(gate: str, minor: int) -> str:
    return _TABLE[gate][minor - OLDEST_MINOR]


def _unknown_gate(gate: str, minor: int, known: list[str]) -> str:
    if gate in _TABLE:
        return f"feature gate {gate!r} does not exist in Kubernetes 1.{minor}: choose one of {', '.join(known)}"
    nearest = get_close_matches(gate, known, n=1)
    hint = f"did you mean {nearest[0]}? " if nearest else ""
    return f"feature gate {gate!r} is not known in Kubernetes 1.{minor}: {hint}choose one of {', '.join(known)}"
