"""From a URL to what it names: kind, version, namespace, object, subresource."""

from __future__ import annotations

from dataclasses import dataclass

from dradriver import api
from dradriver.lab.apiserver import kinds
from dradriver.lab.apiserver.kinds import Kind


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about; an empty name means the collection, an empty namespace all of them or none."""

    kind: Kind
    version: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The key of the object in the store."""
        return self.namespace, self.name

    @property
    def api_version(self) -> str:
        """The apiVersion of objects in this request and its answer."""
        return f"{self.kind.group}/{self.version}" if self.kind.group else self.version


def find_target(path: str, kubernetes: api.Kubernetes) -> Target | None:
    """What a path names, or None when nothing served has that path."""
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            return None
    if version not in kinds.served_versions(group, kubernetes):
        return None
    namespace = ""
    if rest[0:1] == ["namespaces"] and len(rest) > 2 and rest[2] != "status":  # noqa: PLR2004 - namespaces/NAME/PLURAL
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 3:  # noqa: PLR2004 - PLURAL/NAME/SUBRESOURCE
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    kind = kinds.find_kind(group, plural)
    if kind is None or (namespace and not kind.namespaced) or (name and kind.namespaced and not namespace):
        return None
    if subresource and subresource not in kind.subresources:
        return None
    return Target(kind, version, namespace, name, subresource)
