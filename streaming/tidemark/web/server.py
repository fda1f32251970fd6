"""The HTTP server of the long-running verbs: Tornado with a bound on everything a client can hold.

One thread owns all connections; applications answer in threads of their own, so that neither slow
clients nor slow pages delay a probe. A request has a deadline for its TLS handshake with all of its
headers, for its body, and a response for being taken. Scrapes that come while one is computed get
the same answer, so that there are never too many of them; pages and passwords have bounds.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import structlog
from tornado.httputil import HTTPHeaders, ResponseStartLine
from tornado.iostream import StreamClosedError
from tornado.netutil import bind_sockets

from tidemark.core.errors import TidemarkError
from tidemark.settings import parse_address
from tidemark.web.authentication import Logins
from tidemark.web.connections import SLOW_SECONDS, Connections
from tidemark.web.exchange import (
    METRICS,
    App,
    ErrorPage,
    Format,
    Request,
    Response,
    plain_error,
    requested_format,
)
from tidemark.web.gate import Gate, own_names
from tidemark.web.health import Health

HEADER_SECONDS: Final = 10.0
BODY_SECONDS: Final = 5.0
WRITE_SECONDS: Final = 30.0
MAX_HEADER_BYTES: Final = 32 * 1024
# Only GET and HEAD are answered: a body is read to be dropped.
MAX_BODY_BYTES: Final = 64 * 1024
BACKLOG: Final = 512
# What the kernel keeps of an answer (it takes twice that), which is no memory of the process.
SEND_BUFFER_BYTES: Final = 256 * 1024
# A part of an answer. With each that is taken, a client shows that it reads.
PART_BYTES: Final = 256 * 1024
# Pages that wait for their computation or are in it; further ones are answered 503.
MAX_REQUESTS: Final = 64
# Pages are computed two at a time, since they share one core with the delivery of alerts.
WORKERS: Final = 2
START_SECONDS: Final = 10.0

log = structlog.get_logger()


class WebServer:
    """Serves from its creation until `close`. `port` is the one that it listens on."""

    def __init__(self, app: App, health: Health, sockets: list[socket.socket], gate: Gate) -> None:
        self.port: int = sockets[0].getsockname()[1]
        self._app, self._health, self._gate = app, health, gate
        self._pages = ThreadPoolExecutor(WORKERS, "http-page")
        # A scrape waits for no page.
        self._scrapes = ThreadPoolExecutor(1, "http-scrape")
        # Those that are computed: one of each format and encoding.
        self._under_way: dict[Format, asyncio.Future[Response]] = {}
        self._logins = Logins()
        # Pages in hand. Only the server's thread changes it.
        self._requests = 0
        self._connections: Connections
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
        for executor in (self._pages, self._scrapes, self._logins.executor):
            executor.shutdown(wait=False, cancel_futures=True)

    def _run(self, sockets: list[socket.socket], started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._connections = Connections(
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
            response = await self._answer(connection, asked)
        await self._write(connection, asked, response)

    async def _answer(self, connection: Any, asked: Request) -> Response:
        refusal = self._gate.refuse_host(asked) or await self._authenticate(connection, asked)
        if refusal is not None:
            return refusal
        if asked.path == METRICS:
            return await self._scrape(asked)
        if self._requests >= MAX_REQUESTS:
            return self._gate.busy(asked)
        self._requests += 1
        try:
            return await self._call(self._pages, asked)
        finally:
            self._requests -= 1

    async def _authenticate(self, connection: Any, asked: Request) -> Response | None:
        known = self._gate.admits(asked)
        if known is None:
            # A scrape waits for no password of another client, nor of a page.
            who = (connection.context.remote_ip, asked.path == METRICS)
            known = await self._logins.check(who, functools.partial(self._gate.check, asked))
            if known is None:
                return self._gate.busy(asked)
        return None if known else self._gate.unauthorized(asked)

    async def _scrape(self, asked: Request) -> Response:
        kind = requested_format(asked.headers)
        under_way = self._under_way.get(kind)
        if under_way is None:
            under_way = self._under_way[kind] = self._call(self._scrapes, asked)
            under_way.add_done_callback(lambda _: self._under_way.pop(kind))
        return await asyncio.shield(under_way)

    def _call(self, executor: ThreadPoolExecutor, asked: Request) -> asyncio.Future[Response]:
        return self._loop.run_in_executor(executor, self._gate.call, self._app, asked)

    async def _write(self, connection: Any, asked: Request, response: Response) -> None:
        headers, parts = HTTPHeaders(), [*response.shared, response.body]
        for name, value in self._gate.complete(response):
            headers.add(name, value)
        headers["Content-Length"] = str(sum(map(len, parts)))
        line = ResponseStartLine("HTTP/1.1", response.status.value, response.status.phrase)
        if asked.method == "HEAD" or response.status == HTTPStatus.NOT_MODIFIED:
            parts = []
        with suppress(StreamClosedError):
            try:
                await asyncio.wait_for(self._send(connection, line, headers, parts), WRITE_SECONDS)
            except TimeoutError:
                _close(connection)

    async def _send(
        self, connection: Any, line: ResponseStartLine, headers: HTTPHeaders, parts: list[bytes]
    ) -> None:
        """Without a copy of the parts: many connections may have the same."""
        stream, taken, total = connection.stream, 0, sum(map(len, parts))
        # Else the second part would wait until the client acknowledges the first.
        stream.set_nodelay(True)
        self._connections.note(stream, total)
        written = connection.write_headers(line, headers)
        for part in parts:
            for start in range(0, len(part), PART_BYTES):
                await written
                kept_seconds = SLOW_SECONDS if taken > 2 * SEND_BUFFER_BYTES else 0.0
                self._connections.note(stream, total - taken, kept_seconds)
                piece = memoryview(part)[start : start + PART_BYTES]
                written = connection.write(piece)
                taken += len(piece)
        connection.finish()
        await written
        self._connections.note(stream)


def serve(
    app: App,
    health: Health,
    listen: str,
    option: str,
    web_config_file: str | None = None,
    error_page: ErrorPage = plain_error,
    failure: type[TidemarkError] = TidemarkError,
    external_url: str = "",
) -> WebServer:
    """Serves on `listen` (host:port), the value of the configuration key `option`. Port 0: any.

    `error_page` writes what is answered in place of the application; the host of `external_url` is
    a name of the server (`tidemark.web.gate`). `app` answers /metrics by path and Format alone.
    Raises ConfigError for an address or a web configuration file that is wrong, `failure` when the
    port is taken.
    """
    # Clients that disconnect or speak no HTTP are no event of ours.
    logging.getLogger("tornado").setLevel(logging.CRITICAL + 1)
    host, port = parse_address(listen, option)
    file = None if web_config_file is None else Path(web_config_file)
    gate = Gate(file, error_page, own_names(host, external_url))
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_UNSPEC
        sockets = bind_sockets(port, host, family, BACKLOG)
    except OSError as error:
        raise failure(
            f"cannot listen on {listen}: {error.strerror or error}. Stop the process that uses the "
            f"port, or set {option} to another host:port."
        ) from None
    for each in sockets:
        # Connections inherit it.
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    return WebServer(app, health, sockets, gate)


def _close(connection: Any) -> None:
    with suppress(OSError, ssl.SSLError, AttributeError):
        connection.stream.close()


async def _end(server: Connections) -> None:
    for stream in list(server.signs):
        server.end(stream)
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _note_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a response failed", error=f"{type(error).__name__}: {error}"[:200])
