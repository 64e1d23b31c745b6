"""Refusals as an API server words them: every error a client sees is a `Status` object made here.

RefusedError   carries the HTTP code, the machine-readable reason and the details that kubectl prints from
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dradriver import api
from dradriver.lab.apiserver.kinds import Kind


class RefusedError(Exception):
    """A request that the server does not carry out."""

    def __init__(self, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = dict(details or {})

    def status(self) -> dict[str, Any]:
        """The answer's body."""
        body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": str(self)}
        details = {"details": self.details} if self.details else {}
        return {**body, "reason": self.reason, **details, "code": self.code}


def success() -> dict[str, Any]:
    """The answer to what is done and has nothing to show."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def deleted(kind: Kind, last: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to the deletion of an object that is gone."""
    meta = last["metadata"]
    return {**success(), "details": {**_details(kind, meta["name"]), "uid": meta["uid"]}}


def bad_request(message: str) -> RefusedError:
    """400: the request cannot be understood."""
    return RefusedError(400, "BadRequest", message)


def unknown_path() -> RefusedError:
    """404: no such resource."""
    return RefusedError(404, "NotFound", "the server could not find the requested resource")


def not_found(kind: Kind, name: str) -> RefusedError:
    """404: no such object."""
    return RefusedError(404, "NotFound", f'{kind.group_resource} "{name}" not found', _details(kind, name))


def already_exists(kind: Kind, name: str) -> RefusedError:
    """409: the name is taken."""
    message = f'{kind.group_resource} "{name}" already exists'
    return RefusedError(409, "AlreadyExists", message, _details(kind, name))


def conflict(kind: Kind, name: str, why: str = "") -> RefusedError:
    """409: the object is not what the writer believes it is."""
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {kind.group_resource} "{name}": {why}'
    return RefusedError(409, "Conflict", message, _details(kind, name))


def forbidden(kind: Kind, name: str, why: str) -> RefusedError:
    """403: the caller may not do this."""
    quoted = f' "{name}"' if name else ""
    message = f"{kind.group_resource}{quoted} is forbidden: {why}"
    return RefusedError(403, "Forbidden", message, _details(kind, name))


def invalid(kind: Kind, name: str, problems: Sequence[api.validation.Problem]) -> RefusedError:
    """422: the content breaks rules, each named with its field."""
    lines = [f"{problem.path}: {problem.message}" for problem in problems]
    causes = [{"message": problem.message, "field": problem.path} for problem in problems]
    group = f".{kind.group}" if kind.group else ""
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    details = {**_details(kind, name), "kind": kind.kind, "causes": causes}
    return RefusedError(422, "Invalid", f'{kind.kind}{group} "{name}" is invalid: {text}', details)


def expired(version: int, oldest: int) -> RefusedError:
    """410: the history no longer reaches back that far."""
    return RefusedError(410, "Expired", f"too old resource version: {version} ({oldest})")


def _details(kind: Kind, name: str) -> dict[str, Any]:
    return {"name": name, "kind": kind.plural} | ({"group": kind.group} if kind.group else {})
