"""One GET of a metrics endpoint, bounded in bytes and in time as a whole."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from contextlib import suppress
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
)
from typing import Final
from urllib.parse import urlsplit

from tidemark.collect.sources.jmx.figures import MAX_BODY_BYTES, FigureReader, ScrapeError
from tidemark.settings import JmxEndpoint
from tidemark.settings.files import check_regular, read_line

PIECE_BYTES: Final = 256 * 1024
_HEADERS: Final = {
    "Accept": "text/plain; version=0.0.4",
    # A compressed answer could be much longer than its bytes.
    "Accept-Encoding": "identity",
    "User-Agent": "tidemark",
    "Connection": "close",
}


def scrape(endpoint: JmxEndpoint, timeout_seconds: float) -> FigureReader:
    """Reads the endpoint to its end. Raises ScrapeError, whatever answers there.

    The deadline holds for the whole answer: a byte a second does not prolong it. The system's
    resolver of host names has a time-out of its own.
    """
    deadline = time.monotonic() + timeout_seconds
    connection: HTTPConnection | None = None
    timer: threading.Timer | None = None
    try:
        headers = _headers(endpoint)
        connection = _connection(endpoint, timeout_seconds)
        connection.connect()
        timer = threading.Timer(max(deadline - time.monotonic(), 0.0), _shut, (connection.sock,))
        timer.daemon = True
        timer.start()
        return _read(connection, endpoint.url, headers, deadline)
    except ScrapeError:
        if time.monotonic() >= deadline:
            raise _too_slow(timeout_seconds) from None
        raise
    except (OSError, HTTPException, ValueError, EOFError) as error:
        if time.monotonic() >= deadline:
            raise _too_slow(timeout_seconds) from None
        raise ScrapeError(_reason(error)) from None
    finally:
        if timer is not None:
            timer.cancel()
        if connection is not None:
            connection.close()


def _too_slow(timeout_seconds: float) -> ScrapeError:
    return ScrapeError(
        f"no whole answer within {timeout_seconds:g} s; export fewer MBeans, or raise "
        "collect.jmx_timeout_seconds"
    )


def _connection(endpoint: JmxEndpoint, timeout_seconds: float) -> HTTPConnection:
    address = urlsplit(endpoint.url)
    assert address.hostname is not None
    if address.scheme == "http":
        return HTTPConnection(address.hostname, address.port, timeout=timeout_seconds)
    try:
        context = ssl.create_default_context(cafile=endpoint.ca_file)
    except OSError as error:
        raise ScrapeError(
            f"cannot read ca_file: {error.strerror or 'no certificate in it'}"
        ) from None
    return HTTPSConnection(address.hostname, address.port, timeout=timeout_seconds, context=context)


def check_files(endpoint: JmxEndpoint) -> None:
    """Raises ScrapeError where a file of the endpoint cannot be used."""
    if endpoint.ca_file is not None:
        try:
            check_regular(endpoint.ca_file)
        except OSError as error:
            raise ScrapeError(f"cannot read ca_file: {error.strerror}") from None
        _connection(endpoint, 1.0)
    _headers(endpoint)


def _shut(sock: socket.socket) -> None:
    """Ends a read under way in another thread. Not SSLSocket's own method: it drops its state."""
    with suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _headers(endpoint: JmxEndpoint) -> dict[str, str]:
    path = endpoint.authorization_file
    return _HEADERS if path is None else {**_HEADERS, "Authorization": _authorization(path)}


def _read(
    connection: HTTPConnection, url: str, headers: dict[str, str], deadline: float
) -> FigureReader:
    address = urlsplit(url)
    path = (address.path or "/metrics") + (f"?{address.query}" if address.query else "")
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    _check(answer)
    reader = FigureReader()
    # `read` would take a chunk of the length -1 as the rest of the stream.
    while piece := answer.read1(PIECE_BYTES):
        reader.feed(piece)
        if time.monotonic() >= deadline:
            raise TimeoutError
    # The end may be that of the connection, which was shut.
    if answer.length or time.monotonic() >= deadline:
        raise IncompleteRead(b"", answer.length)
    return reader


def _check(answer: HTTPResponse) -> None:
    if answer.status in (401, 403):
        raise ScrapeError(f"HTTP {answer.status}; give the credentials by authorization_file")
    if answer.status != 200:
        raise ScrapeError(f"HTTP {answer.status}; give the address of the metrics themselves")
    encoding = answer.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise ScrapeError("the answer is compressed, although it must not be")
    if answer.length is not None and answer.length > MAX_BODY_BYTES:
        raise ScrapeError(
            f"the answer is longer than {MAX_BODY_BYTES >> 20} MiB; export fewer MBeans, as "
            "deploy/jmx/tidemark-jmx-exporter.yaml does"
        )


def _authorization(path: str) -> str:
    """Read each time, as tokens are replaced."""
    try:
        return read_line(path, pipe_seconds=1.0)
    except OSError as error:
        raise ScrapeError(f"cannot read authorization_file: {error.strerror}") from None


def _reason(error: Exception) -> str:
    """The kind of failure and its cure."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "the TLS certificate is not trusted; give ca_file"
    if isinstance(error, ssl.SSLError):
        return "no TLS there; is the endpoint http:// ?"
    if isinstance(error, IncompleteRead):
        return "the answer is cut"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused; is the agent on, and is the port right?"
    if isinstance(error, ConnectionResetError | BrokenPipeError | HTTPException):
        # RemoteDisconnected is of both kinds. A Kafka port closes on a request like this.
        return "no HTTP answer; is this the agent's port, not Kafka's?"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot connect: {error.strerror}"
    return f"cannot connect: {type(error).__name__}"
