"""A request and its response, the headers that every response has, and content negotiation.

Negotiation is by the weights of a request's Accept headers (RFC 9110, 12.4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

# The names of the plain text format.
_TEXT: Final = {"text/plain", "text/*", "*/*"}

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


class Format(NamedTuple):
    """Of an answer with metrics."""

    openmetrics: bool
    gzip: bool


def requested_format(headers: Mapping[str, str]) -> Format:
    return Format(
        prefers_openmetrics(headers.get("Accept", "")),
        accepts_gzip(headers.get("Accept-Encoding", "")),
    )


def prefers_openmetrics(accept: str) -> bool:
    """Whether an Accept header names OpenMetrics with at least the weight of plain text."""
    weights = _parse_weights(accept)
    openmetrics = weights.get("application/openmetrics-text", 0.0)
    return openmetrics > 0 and openmetrics >= max(
        (weights[name] for name in _TEXT & weights.keys()), default=0.0
    )


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether gzip is named or covered by `*`, with a weight above 0."""
    weights = _parse_weights(accept_encoding)
    return weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0))) > 0


def _parse_weights(header: str) -> dict[str, float]:
    """Names in lower case with their best weight; a malformed weight counts as 0."""
    weights: dict[str, float] = {}
    for part in header.lower().split(","):
        name, *parameters = (each.strip() for each in part.split(";"))
        text = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        weight = float(text) if text.replace(".", "", 1).isdecimal() and text.isascii() else 0.0
        if name:
            weights[name] = max(weight, weights.get(name, 0.0))
    return weights


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
