"""`/-/healthy` and `/-/ready`: whether the process works, and whether it has all that it needs.

A process that only waits for Kafka is healthy and not ready: a restart would not help it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TypeVar

from tidemark.web.exchange import HEALTHY, READY, Response, text_response

T = TypeVar("T")


class Health:
    """`stuck`: what no longer moves, so that a restart helps. `waiting`: what it waits for.

    Both are asked for each probe on the server's own thread, and must not block.
    """

    def __init__(
        self, waiting: Callable[[], list[str]] = list, stuck: Callable[[], list[str]] = list
    ) -> None:
        self.waiting = waiting
        self._what_hangs = stuck
        # The step under way: its name, when it began (monotonic) and how long it may take.
        self._step: tuple[str, float, float] | None = None

    @contextmanager
    def step(self, name: str, seconds: float) -> Iterator[None]:
        """Something that ends by itself: one that takes longer hangs. One at a time."""
        self._step = (name, time.monotonic(), seconds)
        try:
            yield
        finally:
            self._step = None

    def timed(self, name: str, seconds: float, action: Callable[[], T]) -> Callable[[], T]:
        """The action as a step: each attempt has its own time, and a pause between them none."""

        def attempt() -> T:
            with self.step(name, seconds):
                return action()

        return attempt

    def stuck(self) -> list[str]:
        """What no longer moves."""
        name, began, seconds = self._step or ("", 0.0, math.inf)
        taken = time.monotonic() - began
        hangs = [f"{name} has not ended for {taken:.0f} s"] if taken > seconds else []
        return [*hangs, *self._what_hangs()]

    def answer(self, path: str) -> Response | None:
        """The answer to a probe; None for another path."""
        if path == HEALTHY:
            return _probe("healthy", "not healthy: ", self.stuck())
        if path == READY:
            return _probe("ready", "not ready: waiting for ", self.waiting())
        return None


def _probe(good: str, bad: str, reasons: list[str]) -> Response:
    if not reasons:
        return text_response(HTTPStatus.OK, good)
    return text_response(HTTPStatus.SERVICE_UNAVAILABLE, f"{bad}{' and '.join(reasons)}")
