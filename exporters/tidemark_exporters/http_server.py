"""The exporter's HTTP server: `/metrics`, `/-/healthy`, `/-/ready`; the rest is for the pages."""

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
from tidemark_exporters.export.exposition import Exposition
from tidemark_exporters.export.negotiation import accepts_gzip, prefers_openmetrics
from tidemark_exporters.export.text_format import CONTENT_TYPE, CONTENT_TYPE_OPENMETRICS
from tidemark_exporters.pages.responses import Pages, Response, failure

# Requests served at a time; others wait in the listen queue.
MAX_REQUESTS: Final = 32
# A client that sends or reads nothing for so long is disconnected.
CLIENT_SECONDS: Final = 15.0

METHODS: Final = ("GET", "HEAD")
PLAIN: Final = "text/plain; charset=utf-8"

StartResponse = Callable[[str, list[tuple[str, str]]], Any]
log = structlog.get_logger()


class Site:
    """The WSGI application. The refreshing thread replaces `exposition`; a request only reads it.

    `own`: renders the exporter's own metrics (`openmetrics_format`: with the end mark).
    `waiting`: the topics that are not yet read; none once the exporter is ready.
    """

    def __init__(
        self, own: Callable[..., bytes], pages: Pages, waiting: Callable[[], list[str]]
    ) -> None:
        self.exposition = Exposition()
        self._waiting = waiting
        self._own = own
        self.pages = pages

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        # WSGI passes paths as Latin-1.
        path = (
            (environ.get("PATH_INFO") or "/")
            .encode("latin-1", "replace")
            .decode("utf-8", "replace")
        )
        try:
            status, headers, body = self._respond(path, environ)
        except Exception:
            # One page that fails must not affect the others. The client sees no internals.
            log.exception("a request failed", path=path)
            status, headers, body = failure(
                path,
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "the exporter could not answer; its log has the reason.",
            )
        start_response(
            f"{status.value} {status.phrase}", [*headers, ("Content-Length", str(len(body)))]
        )
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _respond(self, path: str, environ: dict[str, Any]) -> Response:
        if environ["REQUEST_METHOD"] not in METHODS:
            refusal = failure(
                path, HTTPStatus.METHOD_NOT_ALLOWED, f"only {' and '.join(METHODS)} are answered."
            )
            return refusal._replace(headers=[*refusal.headers, ("Allow", ", ".join(METHODS))])
        encoding = environ.get("HTTP_ACCEPT_ENCODING", "")
        if path == "/metrics":
            return self._scrape(environ.get("HTTP_ACCEPT", ""), encoding)
        if path.startswith("/-/"):
            return self._probe(path)
        return self.pages.answer(
            path,
            environ.get("QUERY_STRING", ""),
            encoding,
            environ.get("HTTP_IF_NONE_MATCH", ""),
        )

    def _scrape(self, accept: str, accept_encoding: str) -> Response:
        exposition, openmetrics = self.exposition, prefers_openmetrics(accept)
        headers = [
            ("Content-Type", CONTENT_TYPE_OPENMETRICS if openmetrics else CONTENT_TYPE),
            ("X-Content-Type-Options", "nosniff"),
            ("Vary", "Accept, Accept-Encoding"),
        ]
        counters = exposition.counters_openmetrics if openmetrics else exposition.counters
        rest = counters + self._own(openmetrics_format=openmetrics)
        if not accepts_gzip(accept_encoding):
            return Response(HTTPStatus.OK, headers, exposition.body + rest)
        # A gzip file is a sequence of members: the large ones are compressed once a refresh.
        return Response(
            HTTPStatus.OK,
            [*headers, ("Content-Encoding", "gzip")],
            exposition.compressed + gzip.compress(rest, 1),
        )

    def _probe(self, path: str) -> Response:
        waiting = " and ".join(self._waiting())
        not_found = "not found: there are /, /api/v1/, /metrics, /-/healthy and /-/ready"
        status, text = {
            "/-/healthy": (HTTPStatus.OK, "healthy"),
            "/-/ready": (HTTPStatus.SERVICE_UNAVAILABLE, f"not ready: waiting for {waiting}")
            if waiting
            else (HTTPStatus.OK, "ready"),
        }.get(path, (HTTPStatus.NOT_FOUND, not_found))
        headers = [("Content-Type", PLAIN), ("X-Content-Type-Options", "nosniff")]
        return Response(status, headers, f"{text}\n".encode())


class _Handler(WSGIRequestHandler):
    timeout = CLIENT_SECONDS

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name is the base class's)
        """Logs no requests."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def __init__(self, where: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        self._slots = threading.BoundedSemaphore(MAX_REQUESTS)
        host, _ = where
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
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
        """Ignores clients that disconnect in the middle."""

    def server_bind(self) -> None:
        # HTTPServer's version resolves the host's full name, which can take long.
        TCPServer.server_bind(self)
        host, port, *_ = self.server_address
        self.server_name, self.server_port = str(host), int(port)
        self.setup_environ()


def serve(site: Site, listen: str) -> _Server:
    """Serves in a thread; `shutdown` and `server_close` end it. Port 0 takes a free `server_port`.

    Raises ConfigError when `listen` is no HOST:PORT, TidemarkError when it is not available.
    """
    host, port = parse_address(listen)
    try:
        server = _Server((host, port), _Handler)
    except OSError as error:
        raise TidemarkError(
            f"cannot listen on {listen}: {error.strerror or error}. Stop the process that uses the "
            "port, or set export.listen to another HOST:PORT."
        ) from None
    server.set_app(site)
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return server
