"""What can go wrong with an API server.

ClusterError
├── UnreachableError     nothing answered (address, TLS, time-out), or no kubeconfig that names a server
├── UnauthorizedError    401: the credentials are not taken
├── ForbiddenError       403: they are, but may not do this
├── NotFoundError        404
├── AlreadyExistsError   409 AlreadyExists
├── ConflictError        409: the object changed since it was read
├── GoneError            410: the watch must start from a new list
└── InvalidError         422 and 400: the server refuses the content
"""

from __future__ import annotations


class ClusterError(Exception):
    """Base of everything this room raises; `status` is the HTTP status, 0 where there was none."""

    def __init__(self, message: str, status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class UnreachableError(ClusterError):
    """Nothing answered: address, TLS, time-out, or no kubeconfig that names a server."""


class UnauthorizedError(ClusterError):
    """The credentials are not taken."""


class ForbiddenError(ClusterError):
    """The credentials are taken but may not do this."""


class NotFoundError(ClusterError):
    """No such object or resource."""


class AlreadyExistsError(ClusterError):
    """An object of that name exists."""


class ConflictError(ClusterError):
    """The object changed since it was read."""


class GoneError(ClusterError):
    """The resource version is too old: list again."""


class InvalidError(ClusterError):
    """The server refuses the content; its message names the field."""
