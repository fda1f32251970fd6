"""A request and its response, and the headers that every response has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

Headers = list[tuple[str, str]]

METHODS: Final = ("GET", "HEAD")
PLAIN: Final = "text/plain; charset=utf-8"
HEALTHY: Final = "/-/healthy"
READY: Final = "/-/ready"
METRICS: Final = "/metrics"
# The browser loads, runs and contacts nothing but our own files, and no other site can frame us.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
SECURITY: Final[Headers] = [
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
]


class Request(NamedTuple):
    """A GET or HEAD without its body. `query` is raw; names of headers are matched in any case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]


class Response(NamedTuple):
    """`shared`: what comes before the body and is held by others too, and so is not copied."""

    status: HTTPStatus
    headers: Headers
    body: bytes
    shared: tuple[bytes, ...] = ()


App = Callable[[Request], Response]
# Writes the error page for a path: its status, and one sentence.
ErrorPage = Callable[[str, HTTPStatus, str], Response]


def text_response(status: HTTPStatus, text: str, headers: Headers | None = None) -> Response:
    """One line of text."""
    kind = [("Content-Type", PLAIN), ("Cache-Control", "no-store")]
    return Response(status, [*kind, *SECURITY, *(headers or [])], f"{text}\n".encode())


def plain_error(_path: str, status: HTTPStatus, detail: str) -> Response:
    return text_response(status, detail)
