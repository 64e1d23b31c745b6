"""Names of the plugin's sockets, within the 107 bytes that a Unix socket's path may have, and the servers on them.

The names and how they are shortened are those of the Go helper (kubernetes#139166), where other tools look for them.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from collections.abc import Sequence
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc

from dradriver.node.errors import SettingsError

PATH_BYTES = 107
"""Longest path of a Unix socket on Linux, without the final NUL."""


def registration_path(directory: Path, driver: str, pod_uid: str) -> Path:
    """The socket in the kubelet's registration directory. Raises SettingsError when no form of it fits."""
    if not pod_uid:
        return _first_fitting(directory, [f"{driver}-reg.sock"], driver)
    whole = hashlib.sha256(f"{driver}\0{pod_uid}".encode()).digest()
    names = [
        f"{driver}-{pod_uid}-reg.sock",
        f"{driver}-{_short(pod_uid)}-reg.sock",
        f"dra-{_base64(whole[:16])}-reg.sock",
    ]
    return _first_fitting(directory, names, driver)


def service_path(directory: Path, driver: str, pod_uid: str) -> Path:
    """The socket of the DRA services in the plugin's own directory. Raises SettingsError when no form of it fits."""
    names = [f"dra-{pod_uid}.sock", f"dra-{_short(pod_uid)}.sock"] if pod_uid else ["dra.sock"]
    return _first_fitting(directory, names, driver)


def _short(pod_uid: str) -> str:
    return _base64(hashlib.sha256(pod_uid.encode()).digest()[:8])


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _first_fitting(directory: Path, names: Sequence[str], driver: str) -> Path:
    for name in names:
        if len(os.fsencode(directory / name)) <= PATH_BYTES:
            return directory / name
    path = directory / names[-1]
    raise SettingsError(
        f"socket path {path} has {len(os.fsencode(path))} bytes, a Unix socket's path may have {PATH_BYTES}: "
        f"choose a driver name shorter than {driver!r} or a shorter --plugins-dir or --registrar-dir"
    )


class SocketServer:
    """A gRPC server on one Unix socket, with threads of its own.

    Whatever socket has the name is replaced, and only the own one is removed: another instance may have taken over.
    """

    def __init__(self, path: Path, handlers: Sequence[Any], *, threads: int) -> None:
        self.path = path
        self._handlers = tuple(handlers)
        self._threads = threads
        self._server: grpc.Server | None = None
        self._made: os.stat_result | None = None

    def start(self) -> None:
        """Serve. Raises SettingsError when the socket cannot be made."""
        server = grpc.server(futures.ThreadPoolExecutor(self._threads, thread_name_prefix=self.path.name))
        server.add_generic_rpc_handlers(self._handlers)
        # gRPC removes the name it was given when it stops, so it is given one that nobody else has. As long as dra.sock
        # at most; the kubelet passes over names with a dot in front.
        hidden = self.path.with_name(f".{secrets.token_hex(2)}")
        try:
            self.path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            server.add_insecure_port(f"unix:{hidden}")
            hidden.chmod(0o600)  # whoever connects may take GPUs from pods
            server.start()
            hidden.replace(self.path)
            self._made = self.path.stat()
        except (OSError, RuntimeError) as error:
            server.stop(0)
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise SettingsError(
                f"cannot listen on {self.path}: {reason}; look at what is there and at its directory's owner and mode"
            ) from error
        self._server = server

    def stop(self, grace: float) -> None:
        """Stop, giving calls in progress `grace` seconds, and remove the socket."""
        if self._server is not None:
            if self._is_ours():
                self.path.unlink(missing_ok=True)
            self._server.stop(grace).wait(grace + 5)
            self._server = None

    def restart(self) -> None:
        """Serve on a new socket: the kubelet takes it for a new plugin and registers it again."""
        self.stop(0)
        self.start()

    def _is_ours(self) -> bool:
        try:
            return self._made is not None and os.path.samestat(self._made, self.path.stat())
        except OSError:
            return False

    @property
    def present(self) -> bool:
        """Whether the socket is in its directory."""
        return self.path.is_socket()
