"""Who may talk to the lab's API server, what each may do, and the kubeconfig by which they do it.

Four kinds of identity, as on a real cluster: the administrator, the control plane's controllers, each node's kubelet
and, on each node, the plugin's service account, whose token is bound to that node.
"""

from __future__ import annotations

import base64
import os
import secrets
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import yaml

_PLUGIN_ACCOUNT = "system:serviceaccount:gpupool-system:gpupool-node"
_RESOURCE = "resource.k8s.io"
_READ = ("get", "list", "watch")


@dataclass(frozen=True, slots=True)
class Rule:
    """Verbs on resources named `plural.group` or `plural.group/subresource`; `*` is any.

    `names` limits a rule to objects of these names. Verbs include the synthetic ones by which Kubernetes 1.36+ guards
    parts of a claim's status (kubernetes#138149).
    """

    verbs: tuple[str, ...]
    resources: tuple[str, ...]
    names: tuple[str, ...] = ()

    def allows(self, verb: str, resource: str, name: str) -> bool:
        """Whether this rule lets a request through."""
        return (
            ("*" in self.verbs or verb in self.verbs)
            and ("*" in self.resources or resource in self.resources)
            and (not self.names or name in self.names)
        )


@dataclass(frozen=True, slots=True)
class Identity:
    """One caller. `name` is for files and logs; `node` is the node that the token is bound to, if any."""

    name: str
    user: str
    groups: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    node: str = ""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def may(self, verb: str, resource: str, name: str = "") -> bool:
        """Whether any rule lets a request through."""
        return any(rule.allows(verb, resource, name) for rule in self.rules)


def administrator() -> Identity:
    """Everything, as `system:masters` may."""
    return Identity("admin", "admin", ("system:masters",), (Rule(("*",), ("*",)),))


def controllers() -> Identity:
    """The claim controller and the scheduler."""
    return Identity("controllers", "system:kube-controller-manager", rules=(Rule(("*",), ("*",)),))


def kubelet(node: str) -> Identity:
    """What the Node authorizer lets a kubelet do; slices of its own node only (kept by the server)."""
    rules = (
        Rule((*_READ, "delete"), ("pods",)),
        Rule(("get", "update", "patch"), ("pods/status", "nodes/status")),
        Rule((*_READ, "create", "update", "patch"), ("nodes",)),
        Rule(("get",), (f"resourceclaims.{_RESOURCE}", "configmaps", "secrets", "serviceaccounts")),
        Rule((*_READ, "create", "update", "patch", "delete", "deletecollection"), (f"resourceslices.{_RESOURCE}",)),
        Rule(("create", "patch", "update"), ("events",)),
    )
    return Identity(f"kubelet-{node}", f"system:node:{node}", ("system:nodes",), rules, node)


def plugin(node: str, driver: str) -> Identity:
    """The node plugin's service account: what its manifest grants, slices of its own node only (kept by the server)."""
    rules = (
        Rule((*_READ, "create", "update", "patch", "delete"), (f"resourceslices.{_RESOURCE}",)),
        Rule(("get", "list"), (f"resourceclaims.{_RESOURCE}",)),
        Rule(("get", "update", "patch"), (f"resourceclaims.{_RESOURCE}/status",)),
        Rule(("associated-node:update", "associated-node:patch"), (f"resourceclaims.{_RESOURCE}/driver",), (driver,)),
        Rule(("get",), ("nodes",)),
        Rule(("create", "patch"), ("events",)),
    )
    groups = ("system:serviceaccounts", "system:serviceaccounts:gpupool-system")
    return Identity(f"plugin-{node}", _PLUGIN_ACCOUNT, groups, rules, node)


def write_kubeconfig(path: Path, server: str, ca: bytes, identity: Identity, *, namespace: str = "default") -> None:
    """Write a kubeconfig of one context, readable by its owner alone, whole or not at all.

    Args:
        path: The file; its directory exists.
        server: URL of the API server.
        ca: Certificate of the authority, PEM.
        identity: Whose token it holds.
        namespace: The context's namespace.
    """
    name = "gpupool-lab"
    authority = base64.b64encode(ca).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": identity.name, "user": {"token": identity.token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": identity.name, "namespace": namespace}}],
        "current-context": name,
    }
    write_private(path, yaml.safe_dump(config, sort_keys=False).encode())


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:  # mkstemp makes it 0600
            file.write(content)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
