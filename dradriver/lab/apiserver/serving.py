"""The HTTPS server on loopback: one thread per connection, bounded in number, size and time, gone at once on stop."""

from __future__ import annotations

import contextlib
import json
import logging
import select
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from dradriver import api
from dradriver.lab.apiserver import kinds
from dradriver.lab.apiserver.authorizing import Authorizer
from dradriver.lab.apiserver.handling import Endpoints, Logs
from dradriver.lab.apiserver.reading import Reader
from dradriver.lab.apiserver.requesting import Answer
from dradriver.lab.apiserver.statuses import RefusedError
from dradriver.lab.apiserver.storage import Store
from dradriver.lab.certificates import Certificates
from dradriver.lab.identities import Identity

_LOG = logging.getLogger(__name__)
_MOST_CONNECTIONS = 512
_MOST_BYTES = 3 * 1024 * 1024
_IDLE_SECONDS = 120.0
_STOP_SECONDS = 5.0
_SWEEP_SECONDS = 0.5
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system", "gpupool-system")


class ApiServer:
    """An API server of one emulated Kubernetes version, in memory.

    Args:
        kubernetes: The version and its feature gates.
        identities: Who may call it.
        certificates: Its TLS certificate and key.
        port: Where on 127.0.0.1 to listen; 0 picks a free port.
        clock: Seconds since the epoch.
        history: How many changes of one kind a watch can resume over.
        bookmark_seconds: How often watches that ask for bookmarks get one.
        logs: What a container has written, for `kubectl logs`.
    """

    def __init__(
        self,
        kubernetes: api.Kubernetes,
        identities: Iterable[Identity],
        certificates: Certificates,
        *,
        port: int = 0,
        clock: Callable[[], float] = time.time,
        history: int = 2000,
        bookmark_seconds: float = 30.0,
        logs: Logs = lambda _pod, _container: None,
    ) -> None:
        self._store = Store(clock, lambda: str(uuid.uuid4()), history=history)
        for name in _NAMESPACES:
            meta = {"name": name, "labels": {"kubernetes.io/metadata.name": name}}
            state = {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
            self._store.create(kinds.NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta, **state})
        authorizer = Authorizer(identities, kubernetes)
        reader = Reader(self._store, clock, bookmark_seconds=bookmark_seconds)
        endpoints = Endpoints(kubernetes, self._store, authorizer, reader, logs)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.certificate, certificates.key)
        self._server = _Server(("127.0.0.1", port), context, endpoints, self._store.sweep)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_SWEEP_SECONDS,), name="apiserver", daemon=True
        )

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop: watches end, connections are cut, threads are waited for (bounded)."""
        self._store.close()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(_STOP_SECONDS)
        self._server.server_close()
        self._server.cut(_STOP_SECONDS)

    def compact(self) -> None:
        """Forget the history of changes, as etcd's compaction does: watches that resume get 410."""
        self._store.compact()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128

    def __init__(
        self, address: tuple[str, int], context: ssl.SSLContext, endpoints: Endpoints, sweep: Callable[[], None]
    ) -> None:
        self.endpoints = endpoints
        self.service_actions = sweep  # type: ignore[method-assign]  # called by serve_forever in each of its rounds
        self._context = context
        self._open: dict[socket.socket, threading.Thread] = {}
        super().__init__(address, _Connection)

    def get_request(self) -> tuple[ssl.SSLSocket, Any]:
        plain, address = self.socket.accept()
        # The handshake is left to the connection's own thread: a silent client must not hold up the others.
        return self._context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False), address

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002 - as the base class has it
        return len(self._open) < _MOST_CONNECTIONS

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        self._open[request] = thread
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - as the base class has it
        _LOG.debug("connection broken", exc_info=True)

    def cut(self, seconds: float) -> None:
        """End every connection and wait for its thread."""
        left = list(self._open.items())
        for connection, _ in left:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)  # the plain socket: the thread still owns the TLS
        deadline = time.monotonic() + seconds
        for _, thread in left:
            thread.join(max(0.0, deadline - time.monotonic()))


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = _IDLE_SECONDS
    wbufsize = -1  # headers and body leave in one packet
    server: _Server

    def setup(self) -> None:
        self.request.settimeout(_IDLE_SECONDS)
        self.request.do_handshake()
        super().setup()

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - names the base class looks up

    def _answer(self) -> None:
        answer = self._respond()
        try:
            if isinstance(answer.body, Iterator):
                self._stream(answer.body)
            else:
                self._send(answer)
        except OSError:
            self.close_connection = True

    def _respond(self) -> Answer:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > _MOST_BYTES or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            message = f"the body of the request must have a known length of at most {_MOST_BYTES} bytes"
            return Answer(413, RefusedError(413, "RequestEntityTooLarge", message).status())
        body = self.rfile.read(int(length))
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        try:
            headers = {key.title(): value for key, value in self.headers.items()}
            return self.server.endpoints.respond(self.command, unquote(parts.path), query, headers, body)
        except RefusedError as error:
            return Answer(error.code, error.status())
        except Exception as error:  # noqa: BLE001 - a client gets a 500, the log the traceback
            _LOG.exception("request failed method=%s path=%s", self.command, self.path)
            return Answer(500, RefusedError(500, "InternalError", f"Internal error occurred: {error!r}").status())

    def _send(self, answer: Answer) -> None:
        text = isinstance(answer.body, str)
        body = answer.body.encode() if isinstance(answer.body, str) else json.dumps(answer.body).encode()
        self.send_response(answer.code)
        self.send_header("Content-Type", "text/plain" if text else "application/json")
        self.send_header("Content-Length", str(len(body)))
        for warning in answer.warnings:
            self.send_header("Warning", f"299 - {json.dumps(warning)}")
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Iterator[Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        for event in events:
            if event is not None:
                line = json.dumps(event).encode() + b"\n"
                self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
                self.wfile.flush()
            elif select.select([self.connection], [], [], 0)[0]:
                self.close_connection = True  # a watcher sends nothing: it has gone
                return
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the base class has it
        _LOG.debug(format, *args)
