"""Answers that are no success, as errors of this room: the one place where HTTP statuses and `Status` objects are read.

Every message names the server, the request and what to do. The server's own words are kept: it names the object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from dradriver.cluster.errors import (
    AlreadyExistsError,
    ClusterError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    UnauthorizedError,
)

_BY_REASON: Mapping[str, type[ClusterError]] = {
    "AlreadyExists": AlreadyExistsError,
    "Expired": GoneError,
    "Gone": GoneError,
}
_BY_STATUS: Mapping[int, type[ClusterError]] = {
    400: InvalidError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
}
_REMEDIES: Mapping[type[ClusterError], str] = {
    UnauthorizedError: "log in again, or check --token, --user and the kubeconfig's credentials",
    ForbiddenError: "ask for a role that allows it (kubectl auth can-i --list shows what is allowed)",
    NotFoundError: "check the name, the namespace and that the server serves this kind",
    AlreadyExistsError: "choose another name, or change the object that exists",
    ConflictError: "read the object again and repeat the change",
    GoneError: "list again",
    InvalidError: "correct the field that the message names",
}
_OTHERWISE = "try again; if it stays, look at the API server's log"
_LONGEST_QUOTE = 300  # of a body that is no Status: an HTML page of a proxy says enough in its first lines


def refusal(server: str, request: str, status: int, body: bytes, headers: Mapping[str, str]) -> ClusterError:
    """The error for an answer with an HTTP status of 300 or more.

    Args:
        server: URL of the server.
        request: method and path, for the message.
        status: the HTTP status.
        body: the answer's body: a `Status` object, or whatever a proxy in between says.
        headers: the answer's headers (Retry-After).

    """
    try:
        content = json.loads(body)
    except ValueError:
        content = {}
    if not isinstance(content, dict) or content.get("kind") != "Status":
        quote = " ".join(body[:_LONGEST_QUOTE].decode("utf-8", "replace").split())
        content = {"message": quote or "no explanation"}
    return _error(server, request, status, content, _retry_after(headers.get("Retry-After")))


def refusal_in_watch(server: str, request: str, status: Mapping[str, Any]) -> ClusterError:
    """The error for an ERROR event of a watch, whose object is a `Status`."""
    code = status.get("code")
    return _error(server, request, code if isinstance(code, int) else 500, status, None)


def _error(
    server: str, request: str, status: int, content: Mapping[str, Any], retry_after: float | None
) -> ClusterError:
    kind = _BY_REASON.get(str(content.get("reason", "")), _BY_STATUS.get(status, ClusterError))
    details = content.get("details")
    if retry_after is None and isinstance(details, dict):
        retry_after = _retry_after(details.get("retryAfterSeconds"))
    words = str(content.get("message") or content.get("reason") or "no explanation").rstrip(".")
    where = urlsplit(server).netloc or server
    message = f"{words} ({request} on {where} answered {status}): {_REMEDIES.get(kind, _OTHERWISE)}"
    return kind(message, status, retry_after)


def _retry_after(value: Any) -> float | None:
    """Seconds; the date form of the header is not used by API servers and counts as absent."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return seconds if 0 < seconds < float("inf") else None
