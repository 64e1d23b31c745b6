"""A scripted API server on loopback that misbehaves as it is told, and connections to it."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from dradriver import cluster


class Asked:
    """One request as the server saw it, with the means to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler, number: int, body: bytes) -> None:
        self._handler = handler
        self.number = number
        self.method = handler.command
        parts = urlsplit(handler.path)
        self.path = parts.path
        self.query = dict(parse_qsl(parts.query))
        self.headers = handler.headers
        self.body = json.loads(body) if body else None
        self.at = time.monotonic()

    def reply(self, content: Any, status: int = 200, **headers: str) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self._handler.send_response(status)
        self._handler.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self._handler.send_header(name.replace("_", "-"), value)
        self._handler.end_headers()
        self._handler.wfile.write(data)

    def refuse(self, status: int, reason: str = "", message: str = "no", **headers: str) -> None:
        content = {"kind": "Status", "code": status, "reason": reason, "message": message}
        self.reply(content, status, **headers)

    def begin(self) -> None:
        """Start a chunked answer."""
        self._handler.send_response(200)
        self._handler.send_header("Transfer-Encoding", "chunked")
        self._handler.end_headers()
        self._handler.wfile.flush()

    def send(self, kind: str, item: dict[str, Any]) -> None:
        """Send one watch event as a chunk."""
        data = json.dumps({"type": kind, "object": item}).encode() + b"\n"
        self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    def raw(self, data: bytes) -> None:
        self._handler.wfile.write(data)
        self._handler.wfile.flush()

    def end(self) -> None:
        """End a chunked answer well."""
        self.raw(b"0\r\n\r\n")

    def hang_up(self) -> None:
        self._handler.close_connection = True


class Server:
    """Runs `script(asked)` for each request, each in a thread of its own, and keeps what was asked."""

    def __init__(self, identity: Path | None = None) -> None:
        self.script: Callable[[Asked], None] = lambda asked: asked.reply({})
        self.asked: list[Asked] = []
        self.over = threading.Event()
        lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 20
            disable_nagle_algorithm = True

            def answer(handler) -> None:  # noqa: N805 - `self` is the server
                body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
                with lock:
                    asked = Asked(handler, len(self.asked), body)
                    self.asked.append(asked)
                with contextlib.suppress(OSError):
                    self.script(asked)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - names of http.server

            def log_message(self, *_: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                pass  # resets are what these tests are about

        self._http = Quiet(("127.0.0.1", 0), Handler)
        if identity:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(identity)
            # Handshakes in the handlers' threads: one that fails must not stop the rest.
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"{'https' if identity else 'http'}://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def count(self, *, watch: bool) -> int:
        return sum(("watch" in asked.query) == watch for asked in list(self.asked))

    def close(self) -> None:
        self.over.set()
        self._http.shutdown()
        self._thread.join(5)
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate of 127.0.0.1 and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "scripted")])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "identity.pem"
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(certificate.public_bytes(pem) + secret)
    return path


@pytest.fixture
def tls_server(identity: Path) -> Iterator[Server]:
    server = Server(identity)
    yield server
    server.close()


@pytest.fixture
def write_kubeconfig(tmp_path: Path) -> Callable[..., Path]:
    """Writes a kubeconfig of one context `here`; keyword `user` is the user's content, others the cluster's."""

    def write(server: str, user: dict[str, Any] | None = None, name: str = "config", **place: Any) -> Path:
        path = tmp_path / name
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "lab", "user": "me", "namespace": "team"}}],
            "clusters": [{"name": "lab", "cluster": {"server": server, **place}}],
            "users": [{"name": "me", "user": user or {}}],
        }
        path.write_text(yaml.safe_dump(content))
        return path

    return write


@pytest.fixture
def connect() -> Iterator[Callable[..., cluster.Connection]]:
    """`cluster.connect` with the fields of a Location; closed at the end."""
    with contextlib.ExitStack() as opened:

        def connect(**location: Any) -> cluster.Connection:
            connection = cluster.connect(cluster.Location(**{"request_timeout": 2.0, **location}))
            opened.callback(connection.close)
            return connection

        yield connect


@pytest.fixture
def connection(
    server: Server, write_kubeconfig: Callable[..., Path], connect: Callable[..., cluster.Connection]
) -> cluster.Connection:
    return connect(kubeconfig=str(write_kubeconfig(server.url)))


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], None]:
    """Waits until a condition holds, at most five seconds."""

    def wait(condition: Callable[[], object]) -> None:
        limit = time.monotonic() + 5
        while not condition():
            assert time.monotonic() < limit, "did not come to pass within 5 s"
            time.sleep(0.005)

    return wait
