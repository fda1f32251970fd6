"""Connections to simulated brokers: what `connect.connection` has, without sockets.

A request takes a moment, in which things may happen. Now and then an answer is late, or one request
fails.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from tests.collect import wire_answers
from tests.histories.answers import APIS, FIRST_PORT, Silence, answer
from tidemark.collect.codecs.wire import FETCH, RawRequest, RawResponse
from tidemark.collect.connect.connection import (
    BrokerConnection,
    ConnectionPool,
    Network,
    NoAnswerError,
)
from tidemark.core.events import OK, REFUSED, TIMED_OUT, UNREACHABLE

if TYPE_CHECKING:
    from tests.histories.history import History

# How long an answer takes, in seconds, and a late one.
USUAL: Final = (0.0005, 0.003)
LATE: Final = (0.05, 1.0)
LATE_SHARE, FAILED_SHARE, EMPTY_SHARE = 0.005, 0.002, 0.002
# How often something happens while a request is answered.
STEP_SHARE: Final = 0.35


class SimulatedConnection(BrokerConnection):
    """`broker` < 0 is a bootstrap server; the port says which broker it is."""

    def __init__(self, history: History, broker: int, host: str, port: int) -> None:
        self.broker, self.host, self.port = broker, host, port
        self.outcome, self.failures, self.connected_at = UNREACHABLE, 0, None
        self.identity_checked = None
        self._history, self._loop = history, history.loop
        self._peer = history.world.brokers[port - FIRST_PORT]
        self._versions = history.plan.mode.versions()
        # The start of the peer's process to which it is connected.
        self._start: int | None = None
        self._attempt: Any = None

    @property
    def connected(self) -> bool:
        return self._peer.up and self._start == self._peer.starts

    @property
    def is_held_back(self) -> bool:
        return False

    def version(self, api_key: int, highest: int) -> int | None:
        oldest, newest = self._versions.api_versions.get(api_key, (0, -1))
        found = min(newest, highest)
        return found if self.connected and api_key in APIS and found >= oldest else None

    def connect(self, seconds: float) -> Any:
        if self._attempt is None or self._attempt.is_done:
            self._attempt = self._history.loop.spawn(self._connect, seconds)
        return self._attempt

    async def _connect(self, seconds: float) -> None:
        loop, peer = self._history.loop, self._peer
        await loop.sleep(self._history.rng.uniform(*USUAL))
        if peer.up and peer.is_silent:
            await loop.sleep(seconds)
        if peer.is_silent:
            self._fail(TIMED_OUT if peer.up else REFUSED)
        else:
            self._start, self.connected_at = peer.starts, time.monotonic()

    async def ask(self, request: Any, seconds: float) -> Any:
        if not self.connected:
            raise NoAnswerError(self.failure)
        version = request.API_VERSION
        if version is None:
            version = self._versions.api_version(request)
        raw = isinstance(request, RawRequest)
        body = request.body if raw else bytes(request.encode(version=version))
        found = await self._answer(request.API_KEY, version, body, seconds)
        self.outcome, self.failures = OK, 0
        if raw:
            return RawResponse(found, time.monotonic(), 0)
        _, response, _ = APIS[request.API_KEY]
        return response.decode(found, version=version)

    async def _answer(self, api_key: int, version: int, body: bytes, seconds: float) -> bytes:
        history, start = self._history, self._start
        rng, loop, peer = history.rng, history.loop, self._peer
        deadline = loop.now + seconds
        await loop.sleep(rng.uniform(*USUAL))
        if rng.random() < STEP_SHARE:
            history.world.step(rng)
        try:
            found = b"" if peer.is_silent else answer(history.world, peer, api_key, version, body)
        except Silence:
            found = b""
        dice = rng.random()
        if found and api_key == FETCH and LATE_SHARE < dice < LATE_SHARE + EMPTY_SHARE:
            # A broker under a quota answers a Fetch without any partition.
            found = wire_answers.fetch((), version)
        if not found and peer.up:
            await loop.sleep(deadline - loop.now)
        elif dice < LATE_SHARE:
            await loop.sleep(min(rng.uniform(*LATE), deadline - loop.now))
        if start != self._start:
            # Another request has closed the connection.
            raise NoAnswerError(self.outcome)
        if dice < LATE_SHARE or dice > 1 - FAILED_SHARE:
            peer.failed_at = history.world.now
        if not self.connected or dice > 1 - FAILED_SHARE:
            self._fail(UNREACHABLE)
        elif not found or loop.now >= deadline:
            self._fail(TIMED_OUT)
        else:
            return found
        raise NoAnswerError(self.outcome)

    def _fail(self, outcome: str) -> None:
        self.outcome = outcome
        self.failures += 1
        self.close()

    def close(self) -> None:
        self._start = self.connected_at = None


class SimulatedNetwork(Network):
    def __init__(self, history: History) -> None:
        self.loop = history.loop
        self._history = history

    def pool(self, identify: object = None) -> ConnectionPool:
        return ConnectionPool(
            lambda broker, host, port: SimulatedConnection(self._history, broker, host, port)
        )
