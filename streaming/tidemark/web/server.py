"""The HTTP server of the long-running verbs: Tornado with a bound on everything a client can hold.

One thread owns all connections; applications answer in threads of their own, so that neither slow
clients nor slow pages delay a probe. A request has a deadline for its TLS handshake with all of its
headers, for its body, and a response for being taken. Beyond MAX_CONNECTIONS the connection that
has waited longest for its client is closed.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import structlog
from tornado.httpserver import HTTPServer
from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPMessageDelegate,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import StreamClosedError
from tornado.netutil import bind_sockets

from tidemark.core.errors import TidemarkError
from tidemark.settings import parse_address
from tidemark.web.exchange import METRICS, App, ErrorPage, Request, Response, plain_error
from tidemark.web.gate import Gate
from tidemark.web.health import Health

HEADER_SECONDS: Final = 10.0
BODY_SECONDS: Final = 5.0
WRITE_SECONDS: Final = 30.0
MAX_HEADER_BYTES: Final = 32 * 1024
# Only GET and HEAD are answered: a body is read to be dropped.
MAX_BODY_BYTES: Final = 64 * 1024
MAX_CONNECTIONS: Final = 256
BACKLOG: Final = 512
# Requests that wait for an application or are in it; further ones are answered 503.
MAX_REQUESTS: Final = 64
# Pages are computed two at a time, since they share one core with the delivery of alerts.
WORKERS: Final = 2
START_SECONDS: Final = 10.0

log = structlog.get_logger()


class _Connections(HTTPServer):
    """Tornado's server, which also knows which connections wait for their client."""

    @functools.cached_property
    def waiting(self) -> dict[object, Any]:
        """In the order in which they began to wait."""
        return {}

    def start_request(
        self, server_conn: object, request_conn: HTTPConnection
    ) -> HTTPMessageDelegate:
        """Called when a connection begins to wait for a request."""
        self.waiting[server_conn] = request_conn
        if len(self._connections) > MAX_CONNECTIONS:
            _close(self.waiting.pop(next(iter(self.waiting))))
        return _Exchange(functools.partial(self._begin, server_conn, request_conn))

    def _begin(self, server_conn: object, request_conn: HTTPConnection, asked: Request) -> None:
        self.waiting.pop(server_conn, None)
        respond: Callable[..., None] = self.request_callback  # type: ignore[assignment]
        respond(request_conn, asked)

    def on_close(self, server_conn: object) -> None:
        self.waiting.pop(server_conn, None)
        super().on_close(server_conn)


class _Exchange(HTTPMessageDelegate):
    """Reads one request; its body is dropped."""

    def __init__(self, begin: Callable[[Request], None]) -> None:
        self._begin = begin
        self._asked = Request("", "", "", {})

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> None:
        assert isinstance(start_line, RequestStartLine)
        target, _, query = start_line.path.partition("?")
        # Bytes beyond ASCII arrive as Latin-1.
        path = unquote(target.encode("latin-1", "replace").decode("utf-8", "replace"))
        self._asked = Request(start_line.method, path, query, headers)

    def finish(self) -> None:
        self._begin(self._asked)


class WebServer:
    """Serves from its creation until `close`. `port` is the one that it listens on."""

    def __init__(self, app: App, health: Health, sockets: list[socket.socket], gate: Gate) -> None:
        self.port: int = sockets[0].getsockname()[1]
        self._app, self._health, self._gate = app, health, gate
        self._pages = ThreadPoolExecutor(WORKERS, "http-page")
        # A scrape waits for no page.
        self._scrapes = ThreadPoolExecutor(1, "http-scrape")
        self._logins = ThreadPoolExecutor(1, "http-login")
        # Requests in hand. Only the server's thread changes it.
        self._requests = 0
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(sockets, started), name="http", daemon=True
        )
        self._thread.start()
        started.wait(START_SECONDS)

    def close(self) -> None:
        """Ends within two seconds, also in the middle of slow requests."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(2.0)
        for executor in (self._pages, self._scrapes, self._logins):
            executor.shutdown(wait=False, cancel_futures=True)

    def _run(self, sockets: list[socket.socket], started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = _Connections(
            self._respond,
            ssl_options=self._gate.context,
            idle_connection_timeout=HEADER_SECONDS,
            body_timeout=BODY_SECONDS,
            max_header_size=MAX_HEADER_BYTES,
            max_body_size=MAX_BODY_BYTES,
            max_buffer_size=2 * MAX_BODY_BYTES,
        )
        server.add_sockets(sockets)
        self._loop.call_soon(started.set)
        try:
            self._loop.run_forever()
        finally:
            server.stop()
            self._loop.run_until_complete(_end(server))
            self._loop.close()

    def _respond(self, connection: Any, asked: Request) -> None:
        task = self._loop.create_task(self._exchange(connection, asked))
        task.add_done_callback(_note_failure)

    async def _exchange(self, connection: Any, asked: Request) -> None:
        response = self._gate.refuse_method(asked) or self._health.answer(asked.path)
        if response is None:
            response = await self._answer(asked)
        await self._write(connection, asked, response)

    async def _answer(self, asked: Request) -> Response:
        if self._requests >= MAX_REQUESTS:
            return self._gate.busy(asked)
        self._requests += 1
        try:
            refusal = await self._authenticate(asked)
            if refusal is not None:
                return refusal
            executor = self._scrapes if asked.path == METRICS else self._pages
            return await self._loop.run_in_executor(executor, self._gate.call, self._app, asked)
        finally:
            self._requests -= 1

    async def _authenticate(self, asked: Request) -> Response | None:
        known = self._gate.admits(asked)
        if known is None:
            known = await self._loop.run_in_executor(self._logins, self._gate.check, asked)
        return None if known else self._gate.unauthorized(asked)

    async def _write(self, connection: Any, asked: Request, response: Response) -> None:
        headers = HTTPHeaders()
        for name, value in self._gate.complete(response):
            headers.add(name, value)
        headers["Content-Length"] = str(len(response.body))
        line = ResponseStartLine("HTTP/1.1", response.status.value, response.status.phrase)
        sends_body = asked.method != "HEAD" and response.status != HTTPStatus.NOT_MODIFIED
        with suppress(StreamClosedError):
            written = connection.write_headers(line, headers, response.body if sends_body else None)
            connection.finish()
            try:
                await asyncio.wait_for(asyncio.shield(written), WRITE_SECONDS)
            except TimeoutError:
                _close(connection)


def serve(
    app: App,
    health: Health,
    listen: str,
    option: str,
    web_config_file: str | None = None,
    error_page: ErrorPage = plain_error,
    failure: type[TidemarkError] = TidemarkError,
) -> WebServer:
    """Serves on `listen` (host:port), the value of the configuration key `option`. Port 0: any.

    `error_page` writes what is answered in place of the application. Raises ConfigError for an
    address or a web configuration file that is wrong, `failure` when the port is taken.
    """
    # Clients that disconnect or speak no HTTP are no event of ours.
    logging.getLogger("tornado").setLevel(logging.CRITICAL + 1)
    host, port = parse_address(listen, option)
    gate = Gate(None if web_config_file is None else Path(web_config_file), error_page)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_UNSPEC
        sockets = bind_sockets(port, host, family, BACKLOG)
    except OSError as error:
        raise failure(
            f"cannot listen on {listen}: {error.strerror or error}. Stop the process that uses the "
            f"port, or set {option} to another host:port."
        ) from None
    return WebServer(app, health, sockets, gate)


def _close(connection: Any) -> None:
    with suppress(OSError, ssl.SSLError, AttributeError):
        connection.stream.close()


async def _end(server: _Connections) -> None:
    for connection in list(server.waiting.values()):
        _close(connection)
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _note_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a response failed", error=f"{type(error).__name__}: {error}"[:200])
