"""Time that passes only while an event loop has nothing to do, and brokers that take that time."""

from __future__ import annotations

import selectors
import time
from typing import Any

import pytest
from kafka.net.selector import NetworkSelector

from tests.bench.bench_collect import Memory
from tidemark.collect.codecs.wire import RawResponse
from tidemark.collect.connect.connection import NoAnswerError
from tidemark.collect.connect.event_loop import EventLoop
from tidemark.collect.watched.request_plan import BrokerPlan
from tidemark.core.events import OK, TIMED_OUT


class VirtualTime:
    """In place of `time.monotonic`. Loops that are made afterwards wait in it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        passing = self

        class Jumping(selectors.DefaultSelector):
            def select(self, timeout: float | None = None) -> Any:
                ready = super().select(0)
                assert ready or timeout is not None, "nothing would ever happen"
                if not ready:
                    # A step more than nothing: a sum of floats may be just below a deadline.
                    passing.now += max(timeout or 0.0, 1e-6)
                return ready

        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setitem(NetworkSelector.DEFAULT_CONFIG, "selector", Jumping)


class TimedBroker(Memory):
    """Takes `seconds` for each answer, one after another as a broker does for one connection."""

    def __init__(self, loop: EventLoop, broker: int, plan: BrokerPlan) -> None:
        super().__init__(broker, plan)
        self.loop, self.seconds = loop, 0.01
        self.asked = 0
        self._free_at = 0.0

    async def ask(self, request: Any, seconds: float) -> RawResponse:
        self.asked += 1
        begun = max(time.monotonic(), self._free_at)
        self._free_at = begun + self.seconds
        takes = self._free_at - time.monotonic()
        await self.loop.sleep(min(takes, seconds))
        if takes > seconds:
            self.outcome = TIMED_OUT
            raise NoAnswerError(TIMED_OUT)
        self.outcome = OK
        return await super().ask(request, seconds)
