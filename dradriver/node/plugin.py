"""The plugin: how the parts of this room are put together, started and stopped.

Order at start: state is brought together with the disk, then the DRA services are served, then the registration, so
that the kubelet never meets a plugin that cannot answer; the API server and the hardware are met by threads of their
own. On stop the sockets go first, slices stay: a plugin that is back within 30 s finds them untouched.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dradriver import api, cluster, hardware
from dradriver.node import libraries, logs, observing, preparing, sockets
from dradriver.node.apiserver import ApiServer
from dradriver.node.cdi import CdiDirectory, Mount
from dradriver.node.claims import PreparedClaim
from dradriver.node.errors import NodeError, PrepareError, SettingsError
from dradriver.node.journal import Journal
from dradriver.node.locking import NodeLock
from dradriver.node.numbering import Numbers
from dradriver.node.publishing import Publisher
from dradriver.node.registration import Registration
from dradriver.node.scanning import Scan, Scanner
from dradriver.node.serving import Services
from dradriver.node.settings import SYSTEM, Settings
from dradriver.node.state import State

log = logs.Logger("plugin")

SCAN_SECONDS = 15.0
"""How often the hardware is read; a GPU that fell off the bus is noticed within this time."""
CALLS = 64
"""Calls of the kubelet served at once: more than pods start at once, so that Unprepare never queues behind Prepares
that wait for an API server."""
SCAN_WAIT_SECONDS = 5.0
"""How long a call of the kubelet waits for a look at the hardware."""
GRACE_SECONDS = 5.0
"""What calls in progress are given on stop."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Plugin:
    """One node's plugin; `run` serves until `stop`."""

    def __init__(
        self,
        settings: Settings,
        *,
        opening_nvml: Callable[[], hardware.Nvml],
        opening_connection: Callable[[], cluster.Connection],
        roots: hardware.Roots,
        started: float | None = None,
    ) -> None:
        """Put the parts together; touches nothing.

        Args:
            settings: how to run.
            opening_nvml: opens NVML; called again after NVML as a whole failed.
            opening_connection: opens the connection to the API server.
            roots: where this node's device nodes, /proc and /sys are.
            started: when the process began, on the monotonic clock.

        Raises:
            SettingsError: a socket path is too long.
        """
        self._settings = settings
        self._started = time.monotonic() if started is None else started
        self._tally = observing.Tally()
        self._boot = _boot_id()
        self._cdi = CdiDirectory(settings.cdi_dir, settings.driver_name, settings.dev_root)
        self._state = State(
            Journal(settings.state_dir / "journal"),
            self._cdi,
            NodeLock(settings.plugin_dir / "serialize.lock"),
            boot=self._boot,
            mounts=self._mounts,
        )
        self._scanner = Scanner(
            opening_nvml,
            roots,
            Numbers(settings.state_dir / "numbers.json"),
            pool=settings.node_name,
            held=lambda: {device.gpu_uuid: device.name for claim in self._state.held() for device in claim.devices},
        )
        self._api = ApiServer(opening_connection)
        self._publisher = Publisher(
            self._api, driver=settings.driver_name, node=settings.node_name, on_published=self._published
        )
        endpoint = sockets.service_path(settings.plugin_dir, settings.driver_name, settings.pod_uid)
        services = Services(self.prepare, self._state.unprepare, self._cdi.ids, self._tally)
        self._dra = sockets.SocketServer(endpoint, services.handlers(), threads=CALLS)
        self._registration = Registration(
            sockets.registration_path(settings.registrar_dir, settings.driver_name, settings.pod_uid),
            driver=settings.driver_name,
            endpoint=endpoint,
        )
        self._http: list[observing.HttpServer] = []
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._loop = threading.Thread(target=self._look_after, name="looking-after", daemon=True)
        self._told_first = False

    def run(self) -> None:
        """Serve until `stop`. Raises NodeError when serving cannot begin; nothing is left behind then."""
        try:
            self._begin()
            self._stop.wait()
        finally:
            self._end()

    def stop(self) -> None:
        """End `run`; for other threads. Not for signal handlers: they may interrupt whoever holds the lock."""
        self._stop.set()
        self._wake.set()

    def status(self) -> observing.Status:
        """The plugin now, for probes and metrics."""
        scan = self._scanner.latest or Scan()
        held = [device.name for claim in self._state.held() for device in claim.devices]
        problems = {
            "registration": self._registration.problem,
            "slices": self._publisher.problem,
            "hardware": scan.problem or "",
        }
        return observing.Status(
            driver=self._settings.driver_name,
            registered=self._registration.registered,
            settled=self._publisher.settled,
            problems=tuple(f"{part}: {problem}" for part, problem in problems.items() if problem),
            devices=tuple(
                observing.DeviceState(self._settings.node_name, name, offer.uuid, held.count(name))
                for name, offer in scan.offers.items()
            ),
            prepared=len(self._state.held()),
        )

    def prepare(self, uid: api.UID, namespace: str, name: str, wanted: Callable[[], bool]) -> PreparedClaim:
        """Prepare one claim; see `serving.Prepare`."""
        claim = self._claim(uid, namespace, name)
        scan = self._scan_for(claim)

        def plan(holders: Sequence[PreparedClaim]) -> PreparedClaim:
            # Decided under the lock: an Unprepare that follows a call given up would else find nothing to release yet.
            if not wanted():
                raise PrepareError(f"the kubelet gave up the call before claim {claim.metadata.name}'s turn came")
            return preparing.plan(
                claim,
                driver=self._settings.driver_name,
                pool=self._settings.node_name,
                boot=self._boot,
                offers=scan.offers,
                holders=holders,
                problem=scan.problem,
            )

        return self._state.prepare(uid, plan)

    def _claim(self, uid: api.UID, namespace: str, name: str) -> api.ResourceClaim:
        try:
            claim = self._api.claim(namespace, name)
        except (cluster.ClusterError, api.WireError) as error:
            raise PrepareError(f"claim {namespace}/{name} (uid {uid}) cannot be read: {error}") from error
        if claim.metadata.uid != uid:
            raise PrepareError(
                f"claim {namespace}/{name} was replaced: the kubelet asks for uid {uid}, "
                f"the server has {claim.metadata.uid}; delete the pod that was made for the old one"
            )
        return claim

    def _scan_for(self, claim: api.ResourceClaim) -> Scan:
        """What the node has; read anew before a device is called missing."""
        scan = self._scanner.latest
        results = claim.status.allocation.results if claim.status.allocation is not None else ()
        names = {result.device for result in results if result.driver == self._settings.driver_name}
        if scan is None or not names <= scan.offers.keys():
            scan = self._scanner.next(SCAN_WAIT_SECONDS, self._wake.set)
        return scan

    def _mounts(self) -> Sequence[Mount]:
        if self._settings.nvml != SYSTEM:
            return ()
        scan = self._scanner.latest or self._scanner.next(SCAN_WAIT_SECONDS, self._wake.set)
        return libraries.find(self._settings.driver_root, scan.driver_version)

    def _begin(self) -> None:
        self._make_directories()
        self._state.recover()
        self._serve_http()
        self._dra.start()
        self._registration.start()
        self._publisher.start()
        self._loop.start()
        log.info(
            "serving",
            driver=self._settings.driver_name,
            node=self._settings.node_name,
            socket=self._dra.path,
            prepared=len(self._state.held()),
            seconds=time.monotonic() - self._started,
        )

    def _make_directories(self) -> None:
        settings = self._settings
        for flag, directory in (
            ("--plugins-dir", settings.plugin_dir),
            ("--state-dir", settings.state_dir),
            ("--cdi-dir", settings.cdi_dir),
        ):
            try:
                directory.mkdir(mode=0o750, parents=True, exist_ok=True)
            except OSError as error:
                raise SettingsError(
                    f"directory {directory} cannot be made: {error.strerror}; give {flag} one that can be written"
                ) from error

    def _serve_http(self) -> None:
        pages = observing.pages(self.status, self._tally)
        wanted = {self._settings.health: ("/livez", "/readyz"), self._settings.metrics: ("/metrics",)}
        if self._settings.health == self._settings.metrics:
            wanted = {self._settings.health: tuple(pages)}
        for address, paths in wanted.items():
            if address is not None:
                server = observing.HttpServer(address.host, address.port, {path: pages[path] for path in paths})
                self._http.append(server)
                server.start()

    def _end(self) -> None:
        self.stop()
        self._registration.stop()
        self._dra.stop(GRACE_SECONDS)
        self._publisher.stop()
        if self._loop.is_alive():
            self._loop.join(GRACE_SECONDS)  # a driver that hangs must not keep the process
        for server in self._http:
            server.stop()
        self._scanner.close()
        self._api.close()
        log.info("stopped", driver=self._settings.driver_name, node=self._settings.node_name)

    def _published(self) -> None:
        if not self._told_first:
            self._told_first = True
            log.info("slices are published", node=self._settings.node_name, seconds=time.monotonic() - self._started)
            if self._state.doubtful():
                self._wake.set()  # the server answers: they can be looked at

    def _look_after(self) -> None:
        """Until stop: read the hardware, publish it, and catch up on what could not be done before."""
        while not self._stop.is_set():
            for step in (
                self._publish_scan,
                self._make_directories,  # somebody may have wiped them
                self._state.settle,
                self._check_doubtful,
                self._check_socket,
            ):
                try:
                    step()
                except NodeError as error:
                    log.problem("cannot look after the node", error=str(error))
                except Exception as error:  # noqa: BLE001 - the other steps, and the next round, must go on
                    log.bug("looking after the node failed", error)
            self._wake.wait(SCAN_SECONDS)
            self._wake.clear()

    def _publish_scan(self) -> None:
        scan = self._scanner.scan()
        held = {device.name for claim in self._state.held() for device in claim.devices}
        devices = [offer.device for offer in scan.offers.values()]
        self._publisher.publish(devices, sorted(held - scan.offers.keys()))

    def _check_doubtful(self) -> None:
        if not self._told_first:
            return  # no server yet
        for claim in self._state.doubtful():
            try:
                current = self._api.claim_by_uid(claim.namespace, claim.uid)
            except (cluster.ClusterError, api.WireError) as error:
                log.problem("cannot check a claim", claim=claim.title, uid=claim.uid, error=str(error))
                continue
            if current is not None and _is_allocated(current, claim):
                self._state.confirm(claim.uid)
                log.info("claim is still allocated", claim=claim.title, uid=claim.uid)
            else:
                self._state.unprepare(claim.uid)
                log.info("released a claim that is gone", claim=claim.title, uid=claim.uid)

    def _check_socket(self) -> None:
        if not self._dra.present and not self._stop.is_set():
            log.problem("socket is gone, making it anew", socket=self._dra.path)
            self._dra.restart()


def _is_allocated(current: api.ResourceClaim, claim: PreparedClaim) -> bool:
    allocation = current.status.allocation
    given = {(result.pool, result.device) for result in allocation.results} if allocation is not None else set()
    return all((device.pool, device.name) in given for device in claim.devices)


def _boot_id() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""
