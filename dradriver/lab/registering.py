"""The kubelet's side of plugin registration: sockets in a directory, who answers on them, and who went away.

Numbers and order of the kubelet: GetInfo 1 s, NotifyRegistrationStatus 5 s; a plugin's services are taken in its own
order; a socket that fails is tried again with growing pauses; a socket file that is replaced is a new plugin. Whether
anything answers at the plugin's own socket is not asked when it registers: it may come later, and go and come back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc

from dradriver.protocol import pluginregistration_pb2, services

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1
GET_INFO_SECONDS = 1.0
NOTIFY_SECONDS = 5.0
LONGEST_RETRY_SECONDS = 10.0
CHANNEL_OPTIONS = (
    # Without a pool of its own a new channel inherits the pauses of one whose plugin had died on the same path.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
KNOWN_SERVICES = {service.advertised: service for service in (services.DRA_V1, services.DRA_V1BETA1)}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One registered plugin instance: where it answers and in which service."""

    driver: str
    service: services.Service
    channel: grpc.Channel
    ready: threading.Event
    """Set while the connection stands."""


@dataclass(slots=True)
class _Socket:
    """One file in the registration directory. `identity` tells a replaced file from the one that was tried."""

    identity: tuple[int, int]
    endpoint: Endpoint | None = None
    connected: bool = False
    """What was last said of the endpoint's connection."""
    pause: float = POLL_SECONDS
    due: float = 0.0


class PluginRegistry:
    """Watches a registration directory in a thread of its own; `endpoint()` gives the newest plugin of a driver.

    `on_change(driver, connected)` is called from that thread.
    """

    def __init__(
        self, directory: Path, services_known: dict[str, services.Service], on_change: Callable[[str, bool], None]
    ) -> None:
        self._directory = directory
        self._known = services_known
        self._on_change = on_change
        self._sockets: dict[Path, _Socket] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"registry {directory}", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching and close all channels."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(GET_INFO_SECONDS + NOTIFY_SECONDS + 1)
        for socket in self._sockets.values():
            if socket.endpoint:
                socket.endpoint.channel.close()

    def endpoint(self, driver: str) -> Endpoint | None:
        """The most recently registered instance of a driver whose connection stands."""
        with self._lock:
            endpoints = [socket.endpoint for socket in self._sockets.values() if socket.endpoint]
        found = [e for e in endpoints if e.driver == driver and e.ready.is_set()]
        return found[-1] if found else None

    def _run(self) -> None:
        while not self._stopping.wait(POLL_SECONDS):
            try:
                self._look()
            except OSError as error:
                log.warning("cannot read the registration directory path=%s error=%s", self._directory, error)

    def _look(self) -> None:
        present = {path: _identity(path) for path in sorted(self._directory.glob("*.sock")) if path.is_socket()}
        for path in list(self._sockets):
            if present.get(path) != self._sockets[path].identity:
                self._forget(path)
        for path, identity in present.items():
            socket = self._sockets.get(path)
            if socket is None:
                socket = _Socket(identity)
                with self._lock:
                    self._sockets[path] = socket
            if socket.endpoint is None and time.monotonic() >= socket.due:
                self._try(path, socket)
            elif socket.endpoint and socket.connected is not socket.endpoint.ready.is_set():
                socket.connected = not socket.connected
                self._tell(socket.endpoint.driver)

    def _forget(self, path: Path) -> None:
        with self._lock:
            socket = self._sockets.pop(path)
        if socket.endpoint:
            socket.endpoint.channel.close()
            self._tell(socket.endpoint.driver)

    def _tell(self, driver: str) -> None:
        connected = self.endpoint(driver) is not None
        log.info("plugin %s driver=%s", "connected" if connected else "went away", driver)
        self._on_change(driver, connected)

    def _try(self, path: Path, socket: _Socket) -> None:
        try:
            endpoint = self._register(path)
        except (grpc.RpcError, _RefusedError) as error:
            log.debug("plugin does not register yet socket=%s error=%s", path.name, _text(error))
            socket.due = time.monotonic() + socket.pause
            socket.pause = min(socket.pause * 2, LONGEST_RETRY_SECONDS)
            return
        with self._lock:
            socket.endpoint = endpoint
            self._sockets[path] = self._sockets.pop(path)  # newest last
        log.info("plugin registered driver=%s service=%s", endpoint.driver, endpoint.service.advertised)

    def _register(self, path: Path) -> Endpoint:
        with grpc.insecure_channel(f"unix:{path}", CHANNEL_OPTIONS) as channel:
            get_info = services.caller(channel, services.REGISTRATION, "GetInfo")
            notify = services.caller(channel, services.REGISTRATION, "NotifyRegistrationStatus")
            info = get_info(pluginregistration_pb2.InfoRequest(), timeout=GET_INFO_SECONDS)
            try:
                service = self._service(info)
            except _RefusedError as error:
                status = pluginregistration_pb2.RegistrationStatus(plugin_registered=False, error=str(error))
                notify(status, timeout=NOTIFY_SECONDS)
                raise
            notify(pluginregistration_pb2.RegistrationStatus(plugin_registered=True), timeout=NOTIFY_SECONDS)
        return _connect(info, service)

    def _service(self, info: pluginregistration_pb2.PluginInfo) -> services.Service:
        if info.type != services.PLUGIN_TYPE:
            raise _RefusedError(f"no handler registered for plugin type: {info.type}")
        service = next((self._known[word] for word in info.supported_versions if word in self._known), None)
        if service is None:
            offered = ", ".join(info.supported_versions) or "nothing"
            raise _RefusedError(f"the plugin offers {offered}; this kubelet calls {', '.join(self._known)}")
        return service


def _connect(info: pluginregistration_pb2.PluginInfo, service: services.Service) -> Endpoint:
    channel = grpc.insecure_channel(f"unix:{info.endpoint}", CHANNEL_OPTIONS)
    ready = threading.Event()
    channel.subscribe(
        lambda state: ready.set() if state is grpc.ChannelConnectivity.READY else ready.clear(), try_to_connect=True
    )
    return Endpoint(info.name, service, channel, ready)


class _RefusedError(Exception):
    """The plugin answered, but not as this kubelet can use."""


def _identity(path: Path) -> tuple[int, int]:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return stat.st_ino, stat.st_ctime_ns


def _text(error: Exception) -> str:
    details = getattr(error, "details", None)
    return str(details() if callable(details) else error) or type(error).__name__
