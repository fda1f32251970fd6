"""The connections of the server, with bounds on their number and on what clients have yet to take.

Which one is closed beyond a bound: of those that wait for their client, the one without a sign of
life for longest, so that neither idle clients nor those that do not read displace a probe or a
scrape. Signs of life are a connection made, an answer begun and a part of it taken. A client that
has read more than the kernel holds is kept while it reads.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from tornado.httpserver import HTTPServer
from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPMessageDelegate,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import IOStream

from tidemark.web.exchange import Request

MAX_CONNECTIONS: Final = 512
# Of all answers together, also where answers share their bytes.
MAX_UNTAKEN_BYTES: Final = 32 * 1024 * 1024
# A client that took a part of its answer within this time is not slow.
SLOW_SECONDS: Final = 2.0


class _Sign(NamedTuple):
    """Of life, by the monotonic clock.

    `untaken`: the bytes of the answer that are not taken. `kept_until`: until then it is closed
    only where there is no other.
    """

    at: float
    untaken: int
    kept_until: float


class Connections(HTTPServer):
    """Tornado's server, for requests whose bodies are dropped."""

    # Of all answers.
    _untaken_bytes = 0

    @functools.cached_property
    def signs(self) -> dict[IOStream, _Sign]:
        """The last one of each open connection, in the order of time."""
        return {}

    def note(self, stream: IOStream, untaken: int = 0, kept_seconds: float = 0.0) -> None:
        """A sign of life. Closes other connections where there are too many, or too slow ones."""
        self._forget(stream)
        if stream.closed():
            return
        now = time.monotonic()
        self.signs[stream] = _Sign(now, untaken, now + kept_seconds)
        self._untaken_bytes += untaken
        if len(self.signs) > MAX_CONNECTIONS:
            not_kept = (each for each, sign in self.signs.items() if sign.kept_until <= now)
            self.end(next(not_kept, next(iter(self.signs))))
        slow = now - SLOW_SECONDS
        while self._untaken_bytes > MAX_UNTAKEN_BYTES:
            first = next(e for e, sign in self.signs.items() if sign.untaken or sign.at >= slow)
            if self.signs[first].at >= slow:
                return
            self.end(first)

    def end(self, stream: IOStream) -> None:
        """Closes a connection; what its client has not taken is dropped."""
        self._forget(stream)
        stream.close()

    def _forget(self, stream: IOStream) -> None:
        if (sign := self.signs.pop(stream, None)) is not None:
            self._untaken_bytes -= sign.untaken

    def start_request(
        self, _server_conn: object, request_conn: HTTPConnection
    ) -> HTTPMessageDelegate:
        """Called when a connection begins to wait for a request."""
        self.note(_stream(request_conn))
        return _Exchange(functools.partial(self._begin, request_conn))

    def _begin(self, request_conn: HTTPConnection, asked: Request) -> None:
        self.note(_stream(request_conn), kept_seconds=math.inf)
        respond: Callable[..., None] = self.request_callback  # type: ignore[assignment]
        respond(request_conn, asked)

    def on_close(self, server_conn: object) -> None:
        self._forget(_stream(server_conn))
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


def _stream(connection: Any) -> IOStream:
    """Of a request's connection or of the connection below it."""
    return connection.stream  # type: ignore[no-any-return]
