"""The source of `metadata_change`: follows `__cluster_metadata` in a thread of its own.

One controller is asked at a time; when it is not the active one, or gives no answer, the next one
is. Without any, the collector works from samples alone.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

import structlog
from kafka.future import Future

from tidemark.collect.codecs.wire import FETCH
from tidemark.collect.connect.connection import BrokerConnection, NoAnswerError
from tidemark.collect.connect.event_loop import EventLoop
from tidemark.collect.metadata.inventory import Inventory
from tidemark.collect.sources.metadata_log.changes import Change
from tidemark.collect.sources.metadata_log.reader import MetadataLogReader, Outcome
from tidemark.collect.sources.metadata_log.records import UnlistedRecord
from tidemark.collect.sources.metadata_log.requests import FETCH_VERSION, MAX_WAIT_MS
from tidemark.collect.sources.source import SourceEvent
from tidemark.core.broker_outcome_texts import meaning_of
from tidemark.core.errors import WireError
from tidemark.kafka.client import checked_options
from tidemark.settings import Cluster, parse_address

log = structlog.get_logger()

# Events that no pass has taken yet: a few MB. The thread waits while there are more.
MAX_QUEUED: Final = 20_000
ANSWER_SECONDS: Final = MAX_WAIT_MS / 1000 + 4.0
CONNECT_SECONDS: Final = 4.0
# Until a record is committed: one round trip of a controller.
COMMIT_SECONDS: Final = 0.05
FIRST_PAUSE_SECONDS: Final = 0.25
LAST_PAUSE_SECONDS: Final = 60.0
# A failover of the controllers takes a few seconds and needs no word.
FAILOVER_SECONDS: Final = 10.0
CLOSE_SECONDS: Final = 1.5
# Epochs learnt in a row from one controller.
MAX_EPOCHS: Final = 3

# cluster, whether it is read, the last applied offset
Report = Callable[[str, bool, int | None], None]


class EventQueue:
    """Events on their way from a reader's thread to the pass, at most about MAX_QUEUED."""

    def __init__(self, limit: int = MAX_QUEUED) -> None:
        self._events: deque[Change] = deque()
        self._limit = limit
        self._is_closed = False
        self._changed = threading.Condition()

    def put(self, events: list[Change]) -> None:
        """Waits while the queue is full. Raises QueueClosedError once it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(self._events) < self._limit)
            if self._is_closed:
                raise QueueClosedError
            self._events.extend(events)

    def take(self) -> list[SourceEvent]:
        """All events so far, in order. Does not block."""
        with self._changed:
            taken = list(self._events)
            self._events.clear()
            self._changed.notify_all()
        return list(taken)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


class QueueClosedError(Exception):
    """The collector stops."""


class MetadataLogTail(threading.Thread):
    """A `Source`. Needs `cluster.controllers`; raises ConfigError for options that cannot be."""

    def __init__(self, cluster: Cluster, report: Report) -> None:
        super().__init__(name=f"tidemark-metadata-log-{cluster.name}", daemon=True)
        options = checked_options(cluster)
        self._cluster = cluster.name
        self._report = report
        self._queue = EventQueue()
        self._loop = EventLoop(**options)
        self._stopped = Future()
        self._controllers = [
            BrokerConnection(self._loop, options, index, *parse_address(address))
            for index, address in enumerate(cluster.controllers)
        ]
        wall_offset = time.time() - time.monotonic()
        self._reader = MetadataLogReader(
            Inventory(cluster, groups=1), self._queue.put, lambda: time.monotonic() + wall_offset
        )
        # When it was last read (monotonic), and what the log says since.
        self._read_at: float | None = None
        self._said: str | None = None
        # At most one for each type and version that a controller writes.
        self._unlisted: set[UnlistedRecord] = set()

    def take(self) -> list[SourceEvent]:
        return self._queue.take()

    def close(self) -> None:
        self._queue.close()
        if self.is_alive():
            self._loop.wake(self._stopped)
            self.join(CLOSE_SECONDS)

    def run(self) -> None:
        try:
            self._loop.run(self._run)
        except QueueClosedError:
            pass
        finally:
            for controller in self._controllers:
                controller.close()
            self._loop.close()

    async def _run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._stopped.is_done:
            began_at, reasons = time.monotonic(), []
            for controller in self._controllers:
                reason = await self._follow(controller)
                if self._stopped.is_done:
                    return
                reasons.append(f"{controller.host}:{controller.port} {reason}")
            if self._read_at is not None and self._read_at >= began_at:
                pause = FIRST_PAUSE_SECONDS
            self._note_failure("; ".join(reasons))
            await self._loop.wait([self._stopped], pause)
            pause = min(2 * pause, LAST_PAUSE_SECONDS)

    async def _follow(self, controller: BrokerConnection) -> str:
        """Reads through one controller until another must follow. Why."""
        try:
            return await self._follow_active(controller)
        except NoAnswerError as error:
            return f"({error.outcome}): {meaning_of(error.outcome)}"
        except WireError as error:
            controller.close()
            return f"gave what cannot be read: {error}"
        except QueueClosedError:
            raise
        except Exception as error:
            log.exception("metadata log failed", cluster=self._cluster)
            controller.close()
            return f"failed ({type(error).__name__})"

    async def _follow_active(self, controller: BrokerConnection) -> str:
        await controller.ready(CONNECT_SECONDS)
        if controller.version(FETCH, FETCH_VERSION) != FETCH_VERSION:
            return f"has no Fetch version {FETCH_VERSION}; the log can be read since Kafka 3.3"

        async def ask(request: object) -> bytes:
            return bytes((await controller.ask(request, ANSWER_SECONDS)).body)

        while not self._stopped.is_done:
            result = await self._reader.read(ask)
            if result.outcome is Outcome.NEXT_CONTROLLER:
                return result.reason or ""
            if self._reader.is_live:
                self._note_read(controller)
            if result.outcome is Outcome.WAIT:
                await self._loop.wait([self._stopped], COMMIT_SECONDS)
        return "stopped"

    def _note_read(self, controller: BrokerConnection) -> None:
        offset = self._reader.applied_offset
        if self._said is not None or self._read_at is None:
            address = f"{controller.host}:{controller.port}"
            log.info("reading the metadata log", cluster=self._cluster, controller=address)
        self._read_at, self._said = time.monotonic(), None
        unlisted = self._reader.unlisted
        for record in unlisted:
            if record not in self._unlisted:
                log.warning(
                    "a part of the metadata log is not read",
                    cluster=self._cluster,
                    reason=str(record),
                )
        self._unlisted.update(unlisted)
        self._report(self._cluster, not unlisted, offset)

    def _note_failure(self, reason: str) -> None:
        """Says once what is wrong, after the time that a failover takes."""
        if self._read_at is not None and time.monotonic() - self._read_at < FAILOVER_SECONDS:
            return
        self._report(self._cluster, False, self._reader.applied_offset)
        if self._said != reason:
            self._said = reason
            log.warning(
                "the metadata log is not read; the collector works from samples",
                cluster=self._cluster,
                reason=reason,
                cure="check clusters[].controllers and the right ClusterAction",
            )
