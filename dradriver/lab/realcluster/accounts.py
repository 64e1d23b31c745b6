"""The lab's identities on a real API server: static tokens, RBAC from the same rules, tokens bound to a node."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from dradriver import cluster
from dradriver.lab.identities import Identity, Rule

_RBAC = "rbac.authorization.k8s.io"
_ACCOUNT_PREFIX = "system:serviceaccount:"
TOKEN_SECONDS = 24 * 3600


def control_plane() -> tuple[Identity, Identity]:
    """The controller manager and the scheduler: users that every server has roles for."""
    names = ("kube-controller-manager", "kube-scheduler")
    return Identity(names[0], f"system:{names[0]}"), Identity(names[1], f"system:{names[1]}")


def token_file(identities: Iterable[Identity]) -> bytes:
    """The lines of kube-apiserver's `--token-auth-file`."""
    lines = (f'{each.token},{each.user},{each.name},"{",".join(each.groups)}"\n' for each in identities)
    return "".join(lines).encode()


def bind_service_account(connection: cluster.Connection, identity: Identity) -> Identity:
    """The identity of a service account with a token bound to its node, as the account's pods there have it.

    Makes the account, and a role with the identity's rules, where they are missing. The Node object must exist.
    Raises ClusterError.
    """
    namespace, account = identity.user.removeprefix(_ACCOUNT_PREFIX).split(":")
    _ensure(
        connection, "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    )
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    _ensure(connection, accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}})
    _ensure(connection, f"/apis/{_RBAC}/v1/clusterroles", _role(account, identity.rules))
    _ensure(connection, f"/apis/{_RBAC}/v1/clusterrolebindings", _binding(namespace, account))
    node = connection.get(f"/api/v1/nodes/{identity.node}")
    bound = {"apiVersion": "v1", "kind": "Node", "name": identity.node, "uid": node["metadata"]["uid"]}
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"boundObjectRef": bound, "expirationSeconds": TOKEN_SECONDS},
    }
    answer = connection.create(f"{accounts}/{account}/token", request)
    return replace(identity, token=answer["status"]["token"])


def _ensure(connection: cluster.Connection, path: str, body: dict[str, Any]) -> None:
    with contextlib.suppress(cluster.AlreadyExistsError):
        connection.create(path, body)


def _role(name: str, rules: Sequence[Rule]) -> dict[str, Any]:
    entries = [_entry(rule, resource) for rule in rules for resource in rule.resources]
    return {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": entries}


def _entry(rule: Rule, resource: str) -> dict[str, Any]:
    head, slash, subresource = resource.partition("/")
    plural, _, group = head.partition(".")
    entry = {"apiGroups": [group], "resources": [f"{plural}{slash}{subresource}"], "verbs": list(rule.verbs)}
    return entry | ({"resourceNames": list(rule.names)} if rule.names else {})


def _binding(namespace: str, account: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": account},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": account},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
