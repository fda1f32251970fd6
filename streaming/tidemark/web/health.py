"""`/-/healthy` and `/-/ready`: whether the process works, and whether it has all that it needs.

A process that only waits for Kafka is healthy and not ready: a restart would not help it.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from tidemark.web.exchange import HEALTHY, READY, Response, text_response


def _none() -> list[str]:
    return []


class Health:
    """`stuck`: what no longer moves, so that a restart helps. `waiting`: what it waits for.

    Both are asked for each probe on the server's own thread, and must not block.
    """

    def __init__(
        self, waiting: Callable[[], list[str]] = _none, stuck: Callable[[], list[str]] = _none
    ) -> None:
        self.waiting = waiting
        self.stuck = stuck

    def answer(self, path: str) -> Response | None:
        """The answer to a probe; None for another path."""
        if path == HEALTHY:
            return _probe("healthy", "not healthy", self.stuck())
        if path == READY:
            waiting = self.waiting()
            return _probe("ready", "not ready: waiting for", waiting)
        return None


def _probe(good: str, bad: str, reasons: list[str]) -> Response:
    if not reasons:
        return text_response(HTTPStatus.OK, good)
    separator = " " if bad.endswith("for") else ": "
    text = f"{bad}{separator}{' and '.join(reasons)}"
    return text_response(HTTPStatus.SERVICE_UNAVAILABLE, text)
