"""Asks each broker about itself at intervals, beside the passes and over connections of its own.

DescribeLogDirs adds up the segments of every replica: it must delay no sample.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

from tidemark.collect.connect.connection import BrokerConnection, Network, NoAnswerError
from tidemark.collect.metadata.broker_queries import (
    LogDirectories,
    identify,
    read_broker_configuration,
    read_log_directories,
)
from tidemark.collect.metadata.refusals import (
    CONFIGURATION,
    LOG_DIRECTORIES,
    Refusals,
    RefusedError,
)
from tidemark.core.broker_report import BrokerConfiguration
from tidemark.core.events import BrokerState

READS_AT_ONCE: Final = 4
ANSWER_SECONDS: Final = 10.0
# Views leave out directories that were not read for longer than this and a half.
MAX_INTERVAL_SECONDS: Final = 600.0
# A broker with an offline directory is asked again after this time.
RETRY_SECONDS: Final = 10.0
T = TypeVar("T")


class BrokerReport(NamedTuple):
    """What one read of a broker gave; null: no answer. `at`: when, monotonic."""

    broker: int
    at: float
    log_directories: LogDirectories | None
    configuration: BrokerConfiguration | None

    def event(self, observed_at: float) -> BrokerState:
        """The event for the reducer; sizes of replicas go with observations."""
        event = BrokerState(
            broker=self.broker, observed_at=observed_at, configuration=self.configuration
        )
        if self.log_directories is not None:
            directories = self.log_directories.directories
            event.log_directories = directories
            event.offline_log_dirs = sum(each.error is not None for each in directories)
        return event


class BrokerReports:
    """The reads of one cluster. Only the thread of the loop calls it."""

    def __init__(self, network: Network, seconds: float) -> None:
        self._loop = network.loop
        self._connections = network.pool(identify)
        self._seconds = min(seconds, MAX_INTERVAL_SECONDS)
        self._due_at: dict[int, float] = {}
        self._running: dict[int, Any] = {}
        self._found: list[BrokerReport] = []
        # What a broker did not answer at all when it was asked last.
        self._silent: set[tuple[str, int]] = set()
        self._refusals = Refusals()

    def start(self, live: dict[int, BrokerConnection], now: float) -> None:
        """Starts the reads that are due, of brokers that answer. No pass waits for them."""
        for broker in self._due_at.keys() - live.keys():
            del self._due_at[broker]
            self._connections.drop(broker)
            self._refusals.forget(broker)
            for what in (LOG_DIRECTORIES, CONFIGURATION):
                self._silent.discard((what, broker))
        self._running = {b: done for b, done in self._running.items() if not done.is_done}
        due = [
            broker
            for broker in sorted(live)
            if now >= self._due_at.get(broker, -math.inf) and broker not in self._running
        ]
        for broker in due[: max(READS_AT_ONCE - len(self._running), 0)]:
            self._due_at[broker] = now + self._seconds
            self._running[broker] = self._loop.spawn(self._read, live[broker])

    def take(self) -> list[BrokerReport]:
        """The reports since the last call, at most one per broker and pass."""
        found, self._found = self._found, []
        return found

    async def _read(self, live: BrokerConnection) -> None:
        connection = self._connections.get(live.broker, live.host, live.port)
        if not connection.connected:
            await self._loop.wait([connection.connect(ANSWER_SECONDS)], ANSWER_SECONDS + 0.1)
        broker = live.broker
        directories = await self._ask(
            LOG_DIRECTORIES, broker, lambda: read_log_directories(connection, ANSWER_SECONDS)
        )
        configuration = await self._ask(
            CONFIGURATION,
            broker,
            lambda: read_broker_configuration(connection, broker, ANSWER_SECONDS),
        )
        if directories is not None and any(each.error for each in directories.directories):
            # Its end, or the reason that Kafka gives once it has noticed, is news.
            self._due_at[broker] = time.monotonic() + min(self._seconds, RETRY_SECONDS)
        if directories is not None or configuration is not None:
            at = time.monotonic()
            self._found.append(BrokerReport(broker, at, directories, configuration))

    async def _ask(self, what: str, broker: int, read: Callable[[], Awaitable[T]]) -> T | None:
        """The result of a read; null without one. Silence passes: the samples report it."""
        try:
            found = await read()
        except NoAnswerError as error:
            # Once is a restart. A broker that answers samples and not this, twice, is worth a word.
            if (what, broker) in self._silent:
                self._refusals.note(what, str(error), broker)
            self._silent.add((what, broker))
            return None
        except RefusedError as error:
            self._refusals.note(what, str(error), broker)
            return None
        self._refusals.note(what, None, broker)
        self._silent.discard((what, broker))
        return found

    def refused(self) -> dict[str, tuple[str, ...]]:
        """What brokers refuse to answer -> Kafka's errors."""
        return self._refusals.reasons()

    def close(self) -> None:
        self._connections.close()
