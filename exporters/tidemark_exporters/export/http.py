"""The exporter's HTTP side: `/metrics`, `/-/healthy`, `/-/ready`; everything else is the pages' and the API's."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from tidemark.core.errors import TidemarkError
from tidemark.settings import address
from tidemark_exporters.export.exposition import Snapshot
from tidemark_exporters.export.text import CONTENT_TYPE, CONTENT_TYPE_OPENMETRICS
from tidemark_exporters.pages.routes import Pages

# Requests served at a time; others wait in the listen queue.
MAX_REQUESTS: Final = 32
# A client that sends or reads nothing for so long is let go.
CLIENT_SECONDS: Final = 15.0

StartResponse = Callable[[str, list[tuple[str, str]]], Any]
Answer = tuple[HTTPStatus, str, bytes]


class Site:
    """What is served now. `snapshot` is swapped whole by the refreshing thread; a request only reads it."""

    def __init__(self, own: Callable[..., bytes], pages: Pages, waiting: Callable[[], list[str]]) -> None:
        """`own`: the exporter's own metrics (`openmetrics_format`: in that form, with its end mark); `waiting`: what it waits for until it is ready, nothing once it is."""
        self.snapshot = Snapshot()
        self._waiting = waiting
        self._own = own
        self.pages = pages

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """The WSGI application."""
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            status, kind, body = HTTPStatus.METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", b"only GET and HEAD\n"
        else:
            answer = self._answer(environ.get("PATH_INFO", "/"))
            if answer is None:
                return self._page(environ, start_response)
            status, kind, body = answer
        headers = [("Content-Type", kind), ("X-Content-Type-Options", "nosniff")]
        if kind == CONTENT_TYPE:
            body = self._scrape(environ, headers)
        headers.append(("Content-Length", str(len(body))))
        start_response(f"{status.value} {status.phrase}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _scrape(self, environ: dict[str, Any], headers: list[tuple[str, str]]) -> bytes:
        """The metrics in the format and encoding that were asked for; adds to `headers`."""
        snapshot, openmetrics = self.snapshot, wants_openmetrics(environ.get("HTTP_ACCEPT", ""))
        headers.append(("Vary", "Accept, Accept-Encoding"))
        if openmetrics:
            headers[0] = ("Content-Type", CONTENT_TYPE_OPENMETRICS)
        rest = (snapshot.counters_openmetrics if openmetrics else snapshot.counters) + self._own(openmetrics_format=openmetrics)
        if "gzip" not in environ.get("HTTP_ACCEPT_ENCODING", ""):
            return snapshot.body + rest
        # Two gzip members one after the other are one gzip file: the large one is compressed once a refresh.
        headers.append(("Content-Encoding", "gzip"))
        return snapshot.compressed + gzip.compress(rest, 1)

    def _page(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        # WSGI hands paths over as Latin-1.
        path = (environ.get("PATH_INFO") or "/").encode("latin-1", "replace").decode("utf-8", "replace")
        encoding, known = environ.get("HTTP_ACCEPT_ENCODING", ""), environ.get("HTTP_IF_NONE_MATCH", "")
        status, headers, body = self.pages.answer(path, environ.get("QUERY_STRING", ""), encoding, known)
        start_response(f"{status.value} {status.phrase}", [*headers, ("Content-Length", str(len(body)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _answer(self, path: str) -> Answer | None:
        """What is answered here; None is the pages' to answer."""
        plain = "text/plain; charset=utf-8"
        if path == "/metrics":
            return HTTPStatus.OK, CONTENT_TYPE, b""
        if path == "/-/healthy":
            return HTTPStatus.OK, plain, b"healthy\n"
        if path == "/-/ready":
            waiting = self._waiting()
            if not waiting:
                return HTTPStatus.OK, plain, b"ready\n"
            return HTTPStatus.SERVICE_UNAVAILABLE, plain, f"not ready: waiting for {' and '.join(waiting)}\n".encode()
        if path.startswith("/-/"):
            return HTTPStatus.NOT_FOUND, plain, b"not found: there are /, /api/v1/, /metrics, /-/healthy and /-/ready\n"
        return None


def wants_openmetrics(accept: str) -> bool:
    """Whether an Accept header names OpenMetrics, and prefers nothing else to it (no q: 1)."""
    best, openmetrics = 0.0, 0.0
    for part in accept.split(","):
        kind, *parameters = (each.strip() for each in part.split(";"))
        weight = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        quality = float(weight) if weight.replace(".", "", 1).isdecimal() and weight.isascii() else 0.0
        if kind == "application/openmetrics-text":
            openmetrics = max(openmetrics, quality)
        else:
            best = max(best, quality)
    return openmetrics > 0 and openmetrics >= best


class _Handler(WSGIRequestHandler):
    timeout = CLIENT_SECONDS

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name is the base class's)
        """Scrapes are not news."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def __init__(self, where: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        self._slots = threading.BoundedSemaphore(MAX_REQUESTS)
        self.address_family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        super().__init__(where, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._slots.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up in the middle is its own affair."""

    def server_bind(self) -> None:
        # HTTPServer's own looks the host's full name up, which can take long.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()


def serve(site: Site, listen: str) -> _Server:
    """Serves in a thread of its own; `shutdown` and `server_close` end it. Port 0 takes a free one (`server_port`).

    Raises ConfigError when `listen` is no HOST:PORT, TidemarkError when it cannot be had.
    """
    host, port = address(listen)
    try:
        server = _Server((host, port), _Handler)
    except OSError as error:
        raise TidemarkError(
            f"cannot listen on {listen}: {error.strerror or error}. Stop what holds the port, or set export.listen to another HOST:PORT."
        ) from None
    server.set_app(site)
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return server
