"""Credentials as a kubeconfig or a pod gives them: exec plugins, OIDC, tokens, token files, passwords.

The `kubernetes` package obtains them; this module keeps them current (before every request when they expire, and after
a 401), says what failed instead of going on without credentials, and writes a renewed OIDC token back as kubectl does.
Imported only when a connection is opened, because `kubernetes` takes 0.3 s to import.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from kubernetes.client import Configuration
from kubernetes.config.kube_config import KubeConfigLoader

from dradriver.cluster.errors import ClusterError, UnauthorizedError, UnreachableError
from dradriver.cluster.kubeconfigs import Choice, Entry

_log = logging.getLogger(__name__)
_REREAD_SECONDS = 60.0  # of a token file, which the kubelet rotates; client-go's own period
_TLS_KEYS = ("client-certificate", "client-certificate-data", "client-key", "client-key-data")
_kube_config_loader: Any = KubeConfigLoader  # ships no types


class Credentials:
    """What goes into the Authorization header of one kubeconfig user; safe to share between threads.

    The lock keeps two threads from running a login at once and guards everything below it.
    """

    def __init__(self, choice: Choice, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._choice = choice
        # Like kubectl, no credentials are obtained for, or sent over, plain HTTP.
        self._user = choice.user if str(choice.cluster.content.get("server", "")).startswith("https:") else None
        self.configuration: Any = Configuration()
        self._load()

    def header(self) -> str | None:
        """The Authorization header's value now, None for a caller without (a client certificate, or anonymous)."""
        with self._lock:
            if self._user and "tokenFile" in self._user.content and self._clock() - self._loaded_at > _REREAD_SECONDS:
                self._try_load()
            with _overheard() as complaints:
                value = self.configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
            for complaint in complaints:
                _log.warning("credentials could not be renewed: %s", complaint)
        return str(value).strip() if value else None

    def renew(self, refused: str | None) -> bool:
        """After a 401: obtain credentials anew. True when they now differ from the refused ones."""
        if refused is None:
            return False
        with self._lock:
            self._try_load()
        return self.header() != refused

    def _try_load(self) -> None:
        try:
            self._load()
        except ClusterError as error:
            _log.warning("credentials could not be renewed: %s", error)

    def _load(self) -> None:
        """Fill the configuration (TLS material is not loaded here).

        Raises:
            UnauthorizedError: an exec plugin or identity provider gave no credentials.
            UnreachableError: the entry is malformed.

        """
        self._loaded_at = self._clock()
        user = self._user
        where = f"{user.where}: user {user.name!r}" if user else self._choice.cluster.where
        with _overheard() as complaints:
            try:
                config = _for_library(self._choice.cluster, user)
                persist = functools.partial(_persist, user, config) if user and user.file else None
                _kube_config_loader(config_dict=config, config_persister=persist).load_and_set(self.configuration)
            # The library lets anything of yaml, requests, oauthlib, json and its own through.
            except Exception as error:
                raise UnreachableError(f"{where}: {' '.join(str(error).split()) or type(error).__name__}") from error
        # The library logs a failed exec plugin and goes on as nobody, which the server then answers with a bare 401.
        if user and "exec" in user.content and not (self.configuration.api_key or self.configuration.cert_file):
            raise UnauthorizedError(_failed_plugin(where, user.content["exec"], complaints))


def _for_library(cluster: Entry, user: Entry | None) -> dict[str, Any]:
    """A kubeconfig of one context, without the TLS material, which the library would write to temporary files."""
    place = {key: value for key, value in cluster.content.items() if not key.startswith("certificate-authority")}
    # Copied deep: the library writes renewed tokens into what it is given.
    credentials = copy.deepcopy(dict(user.content)) if user else {}
    for key in _TLS_KEYS:
        credentials.pop(key, None)
    if "tokenFile" in credentials:
        credentials.pop("token", None)  # client-go prefers the file, the library the token
    return {
        "current-context": "chosen",
        "contexts": [{"name": "chosen", "context": {"cluster": "chosen", "user": "chosen"}}],
        "clusters": [{"name": "chosen", "cluster": place}],
        "users": [{"name": "chosen", "user": credentials}],
    }


def _failed_plugin(where: str, plugin: Any, complaints: list[str]) -> str:
    command = plugin.get("command", "") if isinstance(plugin, Mapping) else ""
    hint = plugin.get("installHint", "") if isinstance(plugin, Mapping) else ""
    reason = "; ".join(" ".join(text.split()) for text in complaints) or "it answered without token or certificate"
    message = f"{where}: the command {command!r} gave no credentials: {reason}: log in again, or run it by hand"
    return f"{message} ({' '.join(str(hint).split())})" if hint else message


def _persist(user: Entry, renewed: Mapping[str, Any]) -> None:
    """Write a renewed OIDC token into the file it came from: a refresh token may be good for one use only."""
    file = user.file
    if file is None:
        return
    try:
        content = yaml.safe_load(file.read_bytes())
        for item in content["users"]:
            if item["name"] == user.name:
                item["user"]["auth-provider"]["config"] = renewed["users"][0]["user"]["auth-provider"]["config"]
        _replace(file.resolve(), yaml.safe_dump(content, sort_keys=False))
    except (OSError, yaml.YAMLError, LookupError, TypeError) as error:
        _log.warning("a renewed token could not be written to kubeconfig %s: %s", file, error)


def _replace(file: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _overheard() -> Iterator[list[str]]:
    """Collect what the library says through the root logger in this thread, instead of letting it reach stderr.

    It reports failures of exec plugins with `logging.error` and nowhere else.
    """
    complaints: list[str] = []
    thread = threading.get_ident()

    def keep(record: logging.LogRecord) -> bool:
        if record.thread != thread or record.module != "kube_config":
            return True
        complaints.append(record.getMessage())
        return False

    root = logging.getLogger()
    silent = logging.NullHandler()  # with no handler at all, logging.error would install one that writes to stderr
    root.addHandler(silent)
    root.addFilter(keep)
    try:
        yield complaints
    finally:
        root.removeFilter(keep)
        root.removeHandler(silent)
