"""Keeps one set of Alertmanagers told of a board: a thread for each instance, so that one that hangs delays no other."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, Protocol

import structlog

from tidemark.core.records import Alert
from tidemark_exporters.notify.alertmanager import post_splitting
from tidemark_exporters.notify.board import RESEND_SECONDS, Board, Instance
from tidemark_exporters.notify.commits import OffsetStore
from tidemark_exporters.notify.payload import postable
from tidemark_exporters.notify.positions import Mark, Position
from tidemark_exporters.notify.receiver import NotDeliveredError
from tidemark_exporters.notify.worker import Report

# An alert that is not posted again ends at Alertmanager after four turns, as Prometheus has it.
ENDS_AFTER_SECONDS: Final = 4 * RESEND_SECONDS
IDLE_SECONDS: Final = 1.0
FIRST_WAIT_SECONDS: Final = 0.5
LONGEST_WAIT_SECONDS: Final = 5.0

log = structlog.get_logger()


class BatchTransport(Protocol):
    """Brings alerts to one instance, or raises NotDeliveredError."""

    @property
    def name(self) -> str: ...

    def post(self, alerts: list[dict[str, Any]]) -> Any: ...


class Line:
    """One instance: what it was told, and how talking to it goes."""

    def __init__(self, transport: BatchTransport) -> None:
        self.transport = transport
        self.instance = Instance()
        self.attempts: Counter[str] = Counter()
        self.succeeded_at: float | None = None
        self.failures = 0
        # After a failure: when to try again (Unix seconds).
        self.not_before = 0.0
        # How much news it has looked at.
        self.seen = 0


class Pusher:
    """Owns a board. `offer…`, `adopt` and `tick` are called by readers, one `run` by each instance's thread."""

    def __init__(
        self,
        name: str,
        board: Board,
        transports: Iterable[BatchTransport],
        store: OffsetStore,
        external_url: str,
        clock: Callable[[], float],
    ) -> None:
        self.name = name
        self.lines = [Line(transport) for transport in transports]
        self._board = board
        self._store = store
        self._external_url = external_url
        self._clock = clock
        self._wake = threading.Condition()
        self._stopping = False
        self._running = 0
        self._news = 0
        self._saved: dict[int, Mark] = {}

    def offer(self, records: Iterable[tuple[Alert, Position]]) -> None:
        with self._wake:
            now = self._clock()
            for alert, position in records:
                self._board.offer(alert, position, now)
            self._news += 1
            self._wake.notify_all()

    def offer_own(self, alerts: Iterable[Alert]) -> None:
        with self._wake:
            for alert in alerts:
                self._board.offer_own(alert, self._clock())

    def adopt(self, alerts: Iterable[Alert], horizon: float) -> None:
        with self._wake:
            for alert in alerts:
                self._board.adopt(alert, horizon, self._clock())

    def tick(self, newest: dict[str, float], stale: dict[str, float]) -> None:
        with self._wake:
            self._board.tick(newest, stale, self._clock())

    def reports(self) -> list[Report]:
        """One of the whole, and one of each instance."""
        with self._wake:
            now = self._clock()
            outcomes, self._board.outcomes = self._board.outcomes, Counter()
            result = [
                Report(self.name, outcomes, Counter(), None, None, self._board.muted(now), None)
            ]
            for line in self.lines:
                attempts, line.attempts = line.attempts, Counter()
                waiting, oldest = self._board.waiting(line.instance, now)
                result.append(
                    Report(
                        line.transport.name,
                        Counter(),
                        attempts,
                        waiting,
                        oldest,
                        None,
                        line.succeeded_at,
                    )
                )
            return result

    def runs(self) -> list[Callable[[], None]]:
        self._running = len(self.lines)
        return [partial(self.run, line) for line in self.lines]

    def run(self, line: Line) -> None:
        """One instance's thread, until `stop`."""
        while not self._stopping:
            self.step(line)
            with self._wake:
                self._wake.wait_for(partial(self._awaited, line), timeout=self._patience(line))
        with self._wake:
            self._running -= 1
            last = self._running == 0
        if last:
            self._save()
            self._store.close()

    def stop(self) -> None:
        with self._wake:
            self._stopping = True
            self._wake.notify_all()

    def _awaited(self, line: Line) -> bool:
        return self._stopping or line.seen != self._news

    def _patience(self, line: Line) -> float:
        wait = line.not_before - self._clock()
        return min(IDLE_SECONDS, wait) if wait > 0 else IDLE_SECONDS

    def step(self, line: Line) -> None:
        """Tells one instance what it should know now, and commits."""
        with self._wake:
            now, line.seen = self._clock(), self._news
            if now < line.not_before:
                return
            items = self._board.due(line.instance, now)
        bodies = [
            postable(
                item.alert,
                item.state,
                item.fired_at,
                now,
                ENDS_AFTER_SECONDS,
                self._external_url,
                item.stale_since,
            )
            for item in items
        ]
        try:
            refused = post_splitting(line.transport.post, bodies)
        except NotDeliveredError as error:
            self._failed(line, error)
            return
        reasons = {items[index].alert.fingerprint: reason for index, reason in refused.items()}
        with self._wake:
            self._board.delivered(line.instance, items, reasons, now)
            self._board.complete(line.instance, now)
            if items:
                line.attempts["ok"] += 1
                line.succeeded_at = self._clock()
        if items:
            self._tell(line, reasons)
        self._save()

    def _failed(self, line: Line, error: NotDeliveredError) -> None:
        """What is due changes while an instance is down, so the next attempt asks anew; a refusal waits for the next turn."""
        wait = (
            min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** min(line.failures, 10))
            if error.again
            else RESEND_SECONDS
        )
        with self._wake:
            line.attempts["again" if error.again else "rejected"] += 1
            line.instance.failed()
            line.not_before = self._clock() + (
                error.after_seconds if error.after_seconds is not None else wait
            )
        if line.failures == 0:
            log.warning(
                "Alertmanager does not take alerts; trying until it does",
                receiver=line.transport.name,
                reason=str(error),
            )
        line.failures += 1

    def _tell(self, line: Line, refused: dict[str, str]) -> None:
        for mark, reason in refused.items():
            log.error(
                "Alertmanager refused an alert",
                receiver=line.transport.name,
                fingerprint=mark,
                reason=reason,
            )
        if line.failures:
            log.info("Alertmanager takes alerts again", receiver=line.transport.name)
        line.failures = 0

    def _save(self) -> None:
        with self._wake:
            marks = self._board.marks()
            if marks and marks != self._saved and self._store.save(marks):
                self._saved = marks
