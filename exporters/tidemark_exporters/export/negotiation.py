"""What a client takes: the Accept headers of a request, with their weights (RFC 9110, 12.4.2)."""

from __future__ import annotations

from typing import Final

# Beside OpenMetrics there is one more format to be had, and these name it.
_TEXT: Final = {"text/plain", "text/*", "*/*"}


def qualities(header: str) -> dict[str, float]:
    """What is named, in lower case, with the best weight that it is given; a weight that is none counts as 0."""
    found: dict[str, float] = {}
    for part in header.lower().split(","):
        name, *parameters = (each.strip() for each in part.split(";"))
        weight = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        quality = (
            float(weight) if weight.replace(".", "", 1).isdecimal() and weight.isascii() else 0.0
        )
        if name:
            found[name] = max(quality, found.get(name, 0.0))
    return found


def wants_openmetrics(accept: str) -> bool:
    """Whether an Accept header names OpenMetrics, and prefers the plain text format to it by no weight."""
    given = qualities(accept)
    openmetrics = given.get("application/openmetrics-text", 0.0)
    return openmetrics > 0 and openmetrics >= max(
        (given[name] for name in _TEXT & given.keys()), default=0.0
    )


def takes_gzip(accept_encoding: str) -> bool:
    """Whether gzip is named, or covered by `*`, and not refused by a weight of 0."""
    given = qualities(accept_encoding)
    return given.get("gzip", given.get("x-gzip", given.get("*", 0.0))) > 0
