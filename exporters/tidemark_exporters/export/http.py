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

import structlog

from tidemark.core.errors import TidemarkError
from tidemark.settings import parse_address
from tidemark_exporters.export.exposition import Snapshot
from tidemark_exporters.export.negotiation import takes_gzip, wants_openmetrics
from tidemark_exporters.export.text import CONTENT_TYPE, CONTENT_TYPE_OPENMETRICS
from tidemark_exporters.pages.routes import Pages, Response, failure

# Requests served at a time; others wait in the listen queue.
MAX_REQUESTS: Final = 32
# A client that sends or reads nothing for so long is let go.
CLIENT_SECONDS: Final = 15.0

METHODS: Final = ("GET", "HEAD")
PLAIN: Final = "text/plain; charset=utf-8"

StartResponse = Callable[[str, list[tuple[str, str]]], Any]
log = structlog.get_logger()


class Site:
    """What is served now. `snapshot` is swapped whole by the refreshing thread; a request only reads it."""

    def __init__(
        self, own: Callable[..., bytes], pages: Pages, waiting: Callable[[], list[str]]
    ) -> None:
        """`own`: the exporter's own metrics (`openmetrics_format`: in that form, with its end mark); `waiting`: what it waits for until it is ready, nothing once it is."""
        self.snapshot = Snapshot()
        self._waiting = waiting
        self._own = own
        self.pages = pages

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """The WSGI application."""
        # WSGI hands paths over as Latin-1.
        path = (
            (environ.get("PATH_INFO") or "/")
            .encode("latin-1", "replace")
            .decode("utf-8", "replace")
        )
        try:
            status, headers, body = self._respond(path, environ)
        except Exception:
            # One view that cannot be shown must not take the others with it, nor show its insides to whoever asks.
            log.exception("a request could not be answered", path=path)
            status, headers, body = failure(
                path,
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "the exporter could not answer; its log says why.",
            )
        start_response(
            f"{status.value} {status.phrase}", [*headers, ("Content-Length", str(len(body)))]
        )
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _respond(self, path: str, environ: dict[str, Any]) -> Response:
        if environ["REQUEST_METHOD"] not in METHODS:
            told = failure(
                path, HTTPStatus.METHOD_NOT_ALLOWED, f"only {' and '.join(METHODS)} are answered."
            )
            return told._replace(headers=[*told.headers, ("Allow", ", ".join(METHODS))])
        encoding = environ.get("HTTP_ACCEPT_ENCODING", "")
        if path == "/metrics":
            return self._scrape(environ.get("HTTP_ACCEPT", ""), encoding)
        answer = self._answer(path)
        if answer is None:
            return self.pages.answer(
                path,
                environ.get("QUERY_STRING", ""),
                encoding,
                environ.get("HTTP_IF_NONE_MATCH", ""),
            )
        status, text = answer
        return Response(
            status, [("Content-Type", PLAIN), ("X-Content-Type-Options", "nosniff")], text.encode()
        )

    def _scrape(self, accept: str, accept_encoding: str) -> Response:
        """The metrics in the format and encoding that were asked for."""
        snapshot, openmetrics = self.snapshot, wants_openmetrics(accept)
        headers = [
            ("Content-Type", CONTENT_TYPE_OPENMETRICS if openmetrics else CONTENT_TYPE),
            ("X-Content-Type-Options", "nosniff"),
            ("Vary", "Accept, Accept-Encoding"),
        ]
        rest = (snapshot.counters_openmetrics if openmetrics else snapshot.counters) + self._own(
            openmetrics_format=openmetrics
        )
        if not takes_gzip(accept_encoding):
            return Response(HTTPStatus.OK, headers, snapshot.body + rest)
        # Two gzip members one after the other are one gzip file: the large one is compressed once a refresh.
        return Response(
            HTTPStatus.OK,
            [*headers, ("Content-Encoding", "gzip")],
            snapshot.compressed + gzip.compress(rest, 1),
        )

    def _answer(self, path: str) -> tuple[HTTPStatus, str] | None:
        """What is answered here in plain text; None is the pages' to answer."""
        if path == "/-/healthy":
            return HTTPStatus.OK, "healthy\n"
        if path == "/-/ready":
            waiting = self._waiting()
            if not waiting:
                return HTTPStatus.OK, "ready\n"
            return (
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"not ready: waiting for {' and '.join(waiting)}\n",
            )
        if path.startswith("/-/"):
            return (
                HTTPStatus.NOT_FOUND,
                "not found: there are /, /api/v1/, /metrics, /-/healthy and /-/ready\n",
            )
        return None


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
        self.server_name, self.server_port = (
            str(self.server_address[0]),
            int(self.server_address[1]),
        )
        self.setup_environ()


def serve(site: Site, listen: str) -> _Server:
    """Serves in a thread of its own; `shutdown` and `server_close` end it. Port 0 takes a free one (`server_port`).

    Raises ConfigError when `listen` is no HOST:PORT, TidemarkError when it cannot be had.
    """
    host, port = parse_address(listen)
    try:
        server = _Server((host, port), _Handler)
    except OSError as error:
        raise TidemarkError(
            f"cannot listen on {listen}: {error.strerror or error}. Stop what holds the port, or set export.listen to another HOST:PORT."
        ) from None
    server.set_app(site)
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return server
