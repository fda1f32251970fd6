"""Content negotiation: the weights of a request's Accept headers (RFC 9110, 12.4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

# The names of the plain text format.
_TEXT: Final = {"text/plain", "text/*", "*/*"}


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
