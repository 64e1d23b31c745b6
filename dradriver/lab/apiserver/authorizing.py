"""Who is calling and whether they may: tokens, impersonation, RBAC-shaped refusals, a node's own slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from dradriver import api
from dradriver.lab.apiserver import kinds, statuses
from dradriver.lab.apiserver.requesting import Target
from dradriver.lab.apiserver.statuses import RefusedError
from dradriver.lab.identities import Identity

Json: TypeAlias = Mapping[str, Any]

_ANONYMOUS = Identity("anonymous", "system:anonymous", ("system:unauthenticated",), token="")
_GRANULAR_STATUS = "DRAResourceClaimGranularStatusAuthorization"


class Authorizer:
    """Knows the identities of one server."""

    def __init__(self, identities: Iterable[Identity], kubernetes: api.Kubernetes) -> None:
        self._by_token = {identity.token: identity for identity in identities}
        self._kubernetes = kubernetes

    def authenticate(self, headers: Mapping[str, str]) -> Identity:
        """Tell who sent a request. Raises RefusedError (401) for a token nobody has."""
        header = headers.get("Authorization") or ""
        if not header:
            return _ANONYMOUS
        caller = self._by_token.get(header.removeprefix("Bearer ").strip())
        if caller is None:
            raise RefusedError(401, "Unauthorized", "Unauthorized")
        user = headers.get("Impersonate-User")
        if user is None:
            return caller
        if not caller.may("impersonate", "users", user):
            why = f'User "{caller.user}" cannot impersonate resource "users" in API group "" at the cluster scope'
            raise RefusedError(403, "Forbidden", f'users "{user}" is forbidden: {why}')
        known = (identity for identity in self._by_token.values() if identity.user == user)
        return next(known, Identity(user, user, token=""))

    def authorize(self, caller: Identity, verb: str, target: Target, fields: str) -> None:
        """Let a request through or raise RefusedError (403)."""
        kind = target.kind
        resource = kind.group_resource + (f"/{target.subresource}" if target.subresource else "")
        if not caller.may(verb, resource, target.name):
            plural = kind.plural + (f"/{target.subresource}" if target.subresource else "")
            scope = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
            why = f'User "{caller.user}" cannot {verb} resource "{plural}" in API group "{kind.group}" {scope}'
            raise statuses.forbidden(kind, target.name, why)
        many = verb in ("list", "watch", "deletecollection")
        if kind is kinds.SLICE and many and _is_kubelet(caller) and f"spec.nodeName={caller.node}" not in fields:
            why = "can only list/watch/deletecollection resourceslices with nodeName field selector"
            raise statuses.forbidden(kind, "", why)

    def admit(self, caller: Identity, target: Target, new: Json | None, old: Json | None) -> None:
        """Refuse writes that depend on the object: other nodes' slices, parts of a claim's status."""
        if target.kind is kinds.SLICE and caller.node:
            name = target.name or (new or {}).get("metadata", {}).get("name", "")
            for node in {kinds.field_value(obj, "spec.nodeName") for obj in (new, old) if obj is not None}:
                if node != caller.node:
                    raise statuses.forbidden(target.kind, name, _not_own(caller, node))
        if target.kind is kinds.CLAIM and new and old and self._kubernetes.enabled(_GRANULAR_STATUS):
            self._admit_status(caller, target, new.get("status") or {}, old.get("status") or {})

    def _admit_status(self, caller: Identity, target: Target, new: Json, old: Json) -> None:
        """Kubernetes 1.36+ (kubernetes#138149): who may write which part of a claim's status."""
        resource = target.kind.group_resource
        binding = any(new.get(field) != old.get(field) for field in ("allocation", "reservedFor"))
        if binding and not caller.may("update", f"{resource}/binding", target.name):
            why = f'User "{caller.user}" cannot update resource "resourceclaims/binding": it guards status.allocation'
            raise statuses.forbidden(target.kind, target.name, f"{why} and status.reservedFor")
        before = old.get("devices", ())
        changed = [d for d in new.get("devices", ()) if d not in before]
        changed += [d for d in before if d not in new.get("devices", ())]
        verbs = ["arbitrary-node:update", *(["associated-node:update"] if caller.node else [])]
        for driver in {device.get("driver", "") for device in changed}:
            if not binding and not any(caller.may(verb, f"{resource}/driver", driver) for verb in verbs):
                why = f'User "{caller.user}" cannot {verbs[-1]} resource "resourceclaims/driver" named "{driver}"'
                raise statuses.forbidden(target.kind, target.name, why)


def _is_kubelet(caller: Identity) -> bool:
    return caller.user.startswith("system:node:")


def _not_own(caller: Identity, node: str) -> str:
    if _is_kubelet(caller):
        return "can only create ResourceSlice with the same NodeName as the requesting node"
    whose = f"resourceslices on node '{node}'" if node else "cluster resourceslices"
    return f"this user running on node '{caller.node}' may not modify {whose}"
