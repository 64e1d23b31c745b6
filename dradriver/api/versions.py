"""The API group and its served versions."""

from __future__ import annotations

from enum import StrEnum

GROUP = "resource.k8s.io"


class ApiVersion(StrEnum):
    """Served versions of the group, newest first."""

    V1 = "v1"
    V1BETA2 = "v1beta2"
    V1BETA1 = "v1beta1"
