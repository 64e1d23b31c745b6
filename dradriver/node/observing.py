"""What the plugin counts, and what it shows of itself over HTTP: /livez, /readyz, /metrics.

Counting needs no metrics library: that is loaded at the first scrape, not at start.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from dradriver.node import logs
from dradriver.node.errors import SettingsError

log = logs.Logger("observing")


@dataclass(slots=True)
class Outcome:
    """How one timed call went; set inside the `with`, `seconds` after it."""

    error: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Count:
    """Calls of one kind and outcome so far."""

    calls: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Tally:
    """Calls by kind and outcome; safe for threads."""

    _counts: dict[tuple[str, str], Count] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def timed(self, what: str) -> Iterator[Outcome]:
        """Count one call when it ends."""
        outcome = Outcome()
        started = time.perf_counter()
        yield outcome
        outcome.seconds = time.perf_counter() - started
        key = (what, "error" if outcome.error else "success")
        with self._lock:
            old = self._counts.get(key, Count())
            self._counts[key] = Count(old.calls + 1, old.seconds + outcome.seconds)

    def counts(self) -> Mapping[tuple[str, str], Count]:
        """The counts so far, by (what, outcome)."""
        with self._lock:
            return dict(self._counts)


@dataclass(frozen=True, slots=True)
class DeviceState:
    """One device for the metrics: `claims` is how many prepared claims hold it."""

    pool: str
    name: str
    uuid: str
    claims: int


@dataclass(frozen=True, slots=True)
class Status:
    """The plugin at one moment."""

    driver: str
    registered: bool
    settled: bool
    problems: tuple[str, ...]
    devices: tuple[DeviceState, ...]
    prepared: int

    @property
    def ready(self) -> bool:
        """Registered, and nothing that should be published is not."""
        return self.registered and self.settled


def exposition(status: Status, tally: Tally) -> bytes:
    """The metrics page."""
    from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415 - 80 ms that a start must not pay
    from prometheus_client.core import GaugeMetricFamily, Metric, SummaryMetricFamily  # noqa: PLC0415 - as above

    class Collector:
        def collect(self) -> Iterator[Metric]:
            labels = ["driver", "pool", "device", "uuid"]
            held = GaugeMetricFamily("gpupool_device_claims", "Prepared claims that hold a device.", labels=labels)
            for device in status.devices:
                held.add_metric([status.driver, device.pool, device.name, device.uuid], device.claims)
            yield held
            calls = SummaryMetricFamily(
                "gpupool_kubelet_call_seconds", "Calls of the kubelet by claim.", labels=["driver", "method", "outcome"]
            )
            for (method, outcome), count in sorted(tally.counts().items()):
                calls.add_metric([status.driver, method, outcome], count_value=count.calls, sum_value=count.seconds)
            yield calls
            for name, text, value in (
                ("gpupool_prepared_claims", "Claims prepared on this node.", status.prepared),
                ("gpupool_registered", "Whether the kubelet has registered the plugin.", status.registered),
                ("gpupool_slices_settled", "Whether the published slices are as they should be.", status.settled),
            ):
                gauge = GaugeMetricFamily(name, text, labels=["driver"])
                gauge.add_metric([status.driver], float(value))
                yield gauge

    registry = CollectorRegistry()
    registry.register(Collector())
    return generate_latest(registry)


Page = Callable[[], tuple[int, str, bytes]]
"""Status, content type and body of a page."""


def pages(status: Callable[[], Status], tally: Tally) -> Mapping[str, Page]:
    """The pages by path."""

    def readiness() -> tuple[int, str, bytes]:
        now = status()
        text = "ok\n" if now.ready else "\n".join(["not ready", *now.problems, ""])
        return (200 if now.ready else 503), "text/plain; charset=utf-8", text.encode()

    return {
        "/livez": lambda: (200, "text/plain; charset=utf-8", b"ok\n"),
        "/readyz": readiness,
        "/metrics": lambda: (200, "text/plain; version=0.0.4; charset=utf-8", exposition(status(), tally)),
    }


class HttpServer:
    """Serves pages on one address, in threads of its own."""

    def __init__(self, host: str, port: int, pages: Mapping[str, Page]) -> None:
        """Bind; port 0 takes a free one. Raises SettingsError."""

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                page = pages.get(self.path.partition("?")[0])
                code, kind, body = page() if page is not None else (404, "text/plain", b"not found\n")
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
                log.debug("http", line=format % args)

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, _request: object, client_address: object) -> None:
                log.debug("http request failed", client=client_address, error=repr(sys.exception()))

        try:
            self._server = Server((host, port), Handler)
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "no host's name"
            raise SettingsError(
                f"cannot listen on {host or '*'}:{port}: {reason}; choose another --health-port or --metrics-port"
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="http", daemon=True
        )

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Serve."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and close the socket."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
