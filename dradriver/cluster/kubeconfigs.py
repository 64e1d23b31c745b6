"""Kubeconfig files: which ones are read, how they join, which cluster, user and namespace are meant.

Follows kubectl: `--kubeconfig` names one file that must exist; otherwise KUBECONFIG is a list in which missing files
are skipped; otherwise `~/.kube/config`. Of two entries with one name the first wins, as does the first
`current-context`. Relative paths mean the folder of the file they stand in, and are made absolute here. Owns no state.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dradriver.cluster.errors import UnreachableError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_CLUSTER_PATHS = ("certificate-authority",)
_USER_PATHS = ("client-certificate", "client-key", "tokenFile")


@dataclass(frozen=True, slots=True)
class Entry:
    """One named cluster, user or context, and the file that it stands in (None: made from flags or the pod)."""

    name: str
    file: Path | None
    content: Mapping[str, Any]

    @property
    def where(self) -> str:
        """Its origin, for messages."""
        return f"kubeconfig {self.file}" if self.file else self.name


@dataclass(frozen=True, slots=True)
class Choice:
    """What a connection is made from. `cluster` and `user` have kubeconfig's own fields; `user` may be absent."""

    cluster: Entry
    user: Entry | None
    namespace: str


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The joined content of one or several files."""

    files: tuple[Path, ...]
    current_context: str
    clusters: Mapping[str, Entry]
    users: Mapping[str, Entry]
    contexts: Mapping[str, Entry]

    def choose(self, context: str | None, cluster: str | None, user: str | None) -> Choice:
        """The cluster, user and namespace of a context (None: the current one), with either replaced by name.

        Raises:
            UnreachableError: something named does not exist, or nothing names a cluster.

        """
        chosen: Mapping[str, Any] = {}
        name = context or self.current_context
        if name:
            chosen = self._entry(self.contexts, "context", name).content
        cluster_name = cluster or str(chosen.get("cluster") or "")
        if not cluster_name:
            raise UnreachableError(
                f"{self.where}: no context is chosen: name one with --context, or set it with "
                f"kubectl config use-context (there are: {_names(self.contexts)})"
            )
        user_name = user or str(chosen.get("user") or "")
        return Choice(
            self._entry(self.clusters, "cluster", cluster_name),
            self._entry(self.users, "user", user_name) if user_name else None,
            str(chosen.get("namespace") or "default"),
        )

    @property
    def where(self) -> str:
        """The files, for messages."""
        return "kubeconfig " + os.pathsep.join(map(str, self.files))

    def _entry(self, entries: Mapping[str, Entry], what: str, name: str) -> Entry:
        if name not in entries:
            raise UnreachableError(
                f'{self.where}: there is no {what} "{name}": check --{what} (there are: {_names(entries)})'
            )
        return entries[name]


def find(explicit: str | None, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The kubeconfig files that exist, in order; empty where there is none. Raises if the explicit one is missing."""
    if explicit:
        path = Path(explicit).expanduser()
        if not path.exists():
            raise UnreachableError(f"kubeconfig {path} does not exist: check --kubeconfig")
        return (path,)
    listed = environment.get("KUBECONFIG", "")
    names = [name for name in listed.split(os.pathsep) if name] or ["~/.kube/config"]
    return tuple(path for path in (Path(name).expanduser() for name in names) if path.is_file())


def in_pod(environment: Mapping[str, str], account: Path = ACCOUNT) -> Choice | None:
    """The cluster that this process runs in as a pod, seen through the pod's service account; None outside a pod."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (account / "token").is_file():
        return None
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    cluster = {"server": server, "certificate-authority": str(account / "ca.crt")}
    try:
        namespace = (account / "namespace").read_text("utf-8").strip()
    except OSError:
        namespace = ""
    user = Entry("the pod's service account", None, {"tokenFile": str(account / "token")})
    return Choice(Entry("the pod's cluster", None, cluster), user, namespace or "default")


def read(files: Sequence[Path]) -> Kubeconfig:
    """Read and join files. Raises UnreachableError naming the file and what is wrong in it."""
    sections: dict[str, dict[str, Entry]] = {"clusters": {}, "users": {}, "contexts": {}}
    current = ""
    for file in files:
        content = _read_file(file)
        current = current or str(content.get("current-context") or "")
        for section, known in sections.items():
            for entry in _entries(file, section, content.get(section)):
                known.setdefault(entry.name, entry)
    return Kubeconfig(tuple(files), current, sections["clusters"], sections["users"], sections["contexts"])


def _read_file(file: Path) -> Mapping[str, Any]:
    try:
        content = yaml.safe_load(file.read_bytes())
    except OSError as error:
        raise UnreachableError(f"kubeconfig {file} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise UnreachableError(f"kubeconfig {file} is not YAML: {' '.join(str(error).split())}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise _malformed(file, "its content", content, "a mapping with clusters, users and contexts")
    return content


def _entries(file: Path, section: str, value: Any) -> list[Entry]:
    """The entries of one section, their relative paths made absolute."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise _malformed(file, section, value, "a list")
    entries = []
    what = section.removesuffix("s")
    for index, item in enumerate(value):
        where = f"{section}[{index}]"
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise _malformed(file, where, item, "a mapping with a name")
        content = item.get(what)
        if not isinstance(content, dict):
            if content is not None:
                raise _malformed(file, f"{where}.{what}", content, "a mapping")
            content = {}
        entries.append(Entry(item["name"], file, _with_absolute_paths(content, file.absolute().parent)))
    return entries


def _with_absolute_paths(content: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    absolute = dict(content)
    for key in (*_CLUSTER_PATHS, *_USER_PATHS):
        if isinstance(value := absolute.get(key), str) and value:
            absolute[key] = str(folder / value)
    command = absolute.get("exec")
    # A bare name is looked up in PATH; only one with a separator is a path (client-go does the same).
    if isinstance(command, dict) and isinstance(program := command.get("command"), str) and os.sep in program:
        absolute["exec"] = {**command, "command": str(folder / program)}
    return absolute


def _malformed(file: Path, where: str, value: Any, expected: str) -> UnreachableError:
    return UnreachableError(f"kubeconfig {file}: {where} is {value!r:.60}, expected {expected}: correct the file")


def _names(entries: Mapping[str, Entry]) -> str:
    return ", ".join(sorted(entries)) or "none"
