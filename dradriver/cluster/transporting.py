"""HTTP to one API server: time-outs on everything, credentials on every request, foreign errors made ours.

The pool of connections is the one the `kubernetes` package sets up (proxies included); what goes over it is bytes.
Imported only when a connection is opened, because `kubernetes` takes 0.3 s to import.
"""

from __future__ import annotations

import contextlib
import ipaddress
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import urllib3
from kubernetes.client.rest import RESTClientObject
from urllib3 import exceptions

from dradriver.cluster.authenticating import Credentials
from dradriver.cluster.errors import ClusterError, UnreachableError
from dradriver.cluster.kubeconfigs import Choice
from dradriver.cluster.refusing import refusal
from dradriver.cluster.requesting import Request
from dradriver.cluster.securing import tls_context

_CONNECT_SECONDS = 10.0
_CHUNK = 1 << 16
_POOL_SIZE = 32  # every watch holds a connection; beyond this they are closed after use instead of kept
_USER_AGENT = "gpupool"  # also the field manager of what we write, when none is named
_FAILURES = (exceptions.HTTPError, OSError, ValueError)


class Transport:
    """One server under one identity; safe to share between threads."""

    def __init__(self, choice: Choice, impersonation: tuple[tuple[str, str], ...]) -> None:
        self.server = _checked_server(choice)
        self._impersonation = impersonation
        self._credentials = Credentials(choice)
        self._pool = _pool(choice, self._credentials.configuration)

    def send(self, request: Request, seconds: float) -> bytes:
        """Send a request and read the whole answer within `seconds` (plus at most one silent read of as many)."""
        deadline = time.monotonic() + seconds
        with self._translated(request, seconds):
            response = self._open(request, urllib3.Timeout(connect=min(_CONNECT_SECONDS, seconds), read=seconds))
            try:
                body = _read(response, deadline)
            except BaseException:
                response.close()
                raise
            response.release_conn()
        if response.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise refusal(self.server, str(request), response.status, body, response.headers)
        return body

    def stream(self, request: Request, idle_seconds: float) -> Stream:
        """Send a GET whose answer is lines without end. Each silence of `idle_seconds` ends it quietly."""
        with self._translated(request, idle_seconds):
            timeout = urllib3.Timeout(connect=min(_CONNECT_SECONDS, idle_seconds), read=idle_seconds)
            response = self._open(request, timeout)
            if response.status >= HTTPStatus.MULTIPLE_CHOICES:
                try:
                    body = _read(response, time.monotonic() + idle_seconds)
                finally:
                    response.close()
                raise refusal(self.server, str(request), response.status, body, response.headers)
        return Stream(self, request, response)

    def close(self) -> None:
        """Close all idle connections."""
        self._pool.clear()

    def _open(self, request: Request, timeout: urllib3.Timeout) -> urllib3.BaseHTTPResponse:
        credentials = self._credentials.header()
        response = self._try(request, timeout, credentials)
        if response.status == HTTPStatus.UNAUTHORIZED and self._credentials.renew(credentials):
            response.close()
            response = self._try(request, timeout, self._credentials.header())
        return response

    def _try(self, request: Request, timeout: urllib3.Timeout, credentials: str | None) -> urllib3.BaseHTTPResponse:
        headers = urllib3.HTTPHeaderDict({"Accept": "application/json", "User-Agent": _USER_AGENT})
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if credentials:
            headers["Authorization"] = credentials
        for name, value in self._impersonation:
            headers.add(name, value)

        def send() -> urllib3.BaseHTTPResponse:
            answer: urllib3.BaseHTTPResponse = self._pool.request(
                request.method,
                self.server + request.target,
                body=request.body,
                headers=headers,
                timeout=timeout,
                retries=False,
                redirect=False,
                preload_content=False,
            )
            return answer

        try:
            return send()
        except exceptions.ProtocolError:
            # Most likely a kept connection that the server or a balancer closed meanwhile. What only reads may repeat.
            if request.method != "GET":
                raise
            return send()

    @contextlib.contextmanager
    def _translated(self, request: Request, seconds: float) -> Iterator[None]:
        try:
            yield
        except _FAILURES as error:
            raise self.unreachable(request, error, seconds) from error

    def unreachable(self, request: Request, error: Exception, seconds: float) -> ClusterError:
        """The error for a request that got no answer."""
        check = "check --kubeconfig, --context and --server"
        cause = error.__cause__ or error.__context__ or error
        words = " ".join(str(cause).split()) or type(cause).__name__
        match error:
            case exceptions.NameResolutionError():
                reason = f"its host name is not known ({words}): {check}"
            case exceptions.NewConnectionError():
                reason = f"{words}: is the cluster running? {check}"
            case exceptions.ConnectTimeoutError():
                reason = f"no connection within {min(_CONNECT_SECONDS, seconds):g} s: is the cluster running? {check}"
            case exceptions.TimeoutError() | TimeoutError():
                reason = f"{request} got no answer within {seconds:g} s: try again, or give --request-timeout"
            case exceptions.SSLError():
                reason = f"{error}: check the cluster's certificate-authority in the kubeconfig, and the address"
            case exceptions.ProxyError():
                reason = f"the proxy does not connect ({words}): check HTTPS_PROXY, NO_PROXY and proxy-url"
            case exceptions.ProtocolError():
                reason = f"{request}: the connection broke off ({words}): try again"
            case _:
                reason = f"{request} cannot be sent ({type(error).__name__}: {error}): {check}"
        return UnreachableError(f"cannot reach {self.server}: {reason}")


class Stream:
    """Lines of an answer that goes on; one thread reads, any thread may close.

    Ends quietly when the server ends it, when it is closed and after a silence; a last line without its end is dropped.
    """

    def __init__(self, transport: Transport, request: Request, response: urllib3.BaseHTTPResponse) -> None:
        self._transport = transport
        self._request = request
        self._response = response
        self._closed = threading.Event()
        self._reading = threading.Lock()  # held while a read may block

    def __iter__(self) -> Iterator[bytes]:
        rest = b""
        try:
            while chunk := self._chunk():
                *lines, rest = (rest + chunk).split(b"\n")
                yield from lines
        finally:
            self.close()

    def close(self) -> None:
        """End the stream now; a read that waits in another thread returns at once."""
        if self._closed.is_set():
            return
        self._closed.set()
        # Shutting the socket down wakes the reader; closing it under the reader would wait for the reader's own lock.
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            self._response.shutdown()
        if self._reading.acquire(timeout=1.0):
            try:
                self._response.close()
            finally:
                self._reading.release()

    def _chunk(self) -> bytes:
        with self._reading:
            if self._closed.is_set():
                return b""
            try:
                return self._response.read1(_CHUNK)
            except (exceptions.TimeoutError, TimeoutError):
                return b""
            except (*_FAILURES, AttributeError) as error:  # AttributeError: the parser lost its socket to shutdown
                if self._closed.is_set():
                    return b""
                raise self._transport.unreachable(self._request, error, 0.0) from error


def _read(response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    chunks = []
    while chunk := response.read1(_CHUNK):
        chunks.append(chunk)
        if time.monotonic() > deadline:
            raise TimeoutError
    return b"".join(chunks)


def _checked_server(choice: Choice) -> str:
    server = str(choice.cluster.content.get("server") or "").rstrip("/")
    try:
        parts = urlsplit(server)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise UnreachableError(
            f"{choice.cluster.where}: the server of cluster {choice.cluster.name!r} is {server!r}, "
            "expected https://HOST:PORT: correct it, or give --server"
        )
    return server


def _pool(choice: Choice, configuration: Any) -> Any:
    """The pool of urllib3 that the library sets up, with a TLS context of our own."""
    cluster = choice.cluster.content
    user = dict(choice.user.content) if choice.user else {}
    if configuration.cert_file:  # from an exec plugin
        user |= {"client-certificate": configuration.cert_file, "client-key": configuration.key_file}
    verify = not cluster.get("insecure-skip-tls-verify")
    configuration.verify_ssl = verify
    configuration.ssl_ca_cert = configuration.cert_file = configuration.key_file = None
    configuration.connection_pool_maxsize = _POOL_SIZE
    if not cluster.get("proxy-url") and _is_loopback(urlsplit(configuration.host).hostname or ""):
        configuration.proxy = None  # as Go: HTTPS_PROXY does not apply to this machine
    pool = RESTClientObject(configuration).pool_manager
    if configuration.host.startswith("https:"):
        where = choice.user.where if choice.user else choice.cluster.where
        pool.connection_pool_kw["ssl_context"] = tls_context(cluster, user, where, verify=verify)
        if not verify:
            urllib3.disable_warnings(exceptions.InsecureRequestWarning)  # asked for, and kubectl is silent too
    return pool


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
