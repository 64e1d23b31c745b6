"""Kubernetes versions 1.32 to 1.37 and their feature gates.

Source of the table: kubernetes `test/compatibility_lifecycle/reference/feature_list.md` and the gate pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """One Kubernetes minor version with its gates: what every rule that differs between versions asks.

    `Kubernetes.release("1.34", {"DRAPartitionableDevices": True})`; unknown versions or gates raise ApiError.
    """

    minor: int
    gates: Mapping[str, bool]

    @classmethod
    def release(cls, version: str, gates: Mapping[str, bool] | None = None) -> Kubernetes:
        """A version `1.<minor>` (patch and leading v are ignored) with its default gates, changed by `gates`."""
        raise NotImplementedError

    def enabled(self, gate: str) -> bool:
        """Whether a gate is on; one that does not exist in this version is off."""
        raise NotImplementedError
