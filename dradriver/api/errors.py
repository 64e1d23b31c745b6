"""What can be wrong with API values.

ApiError
├── QuantityError     text that is no Kubernetes quantity
├── VersionError      text that is no strict semantic version
├── WireError         JSON that has not the shape of the object it claims to be
└── ParametersError   opaque parameters that this driver cannot take
"""

from __future__ import annotations


class ApiError(ValueError):
    """Base of everything this room raises; the message names the object, the value and the remedy."""


class QuantityError(ApiError):
    """Text that is no Kubernetes quantity."""


class VersionError(ApiError):
    """Text that is no strict semantic version (2.0.0: three parts, no leading zeros, no `v`)."""


class WireError(ApiError):
    """JSON that has not the shape of the object it claims to be; `path` is a JSON path into it."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path


class ParametersError(ApiError):
    """Opaque parameters that this driver cannot take; `path` points into them."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
