"""One receiver's worker: posts its batches one after the other, so that a slow receiver delays nobody else."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

import stamina
import structlog

from tidemark.core.records import Alert
from tidemark.settings import Receiver
from tidemark_exporters.notify.commits import OffsetStore
from tidemark_exporters.notify.gather import Batch
from tidemark_exporters.notify.heartbeat import Heartbeat
from tidemark_exporters.notify.outbox import Outbox
from tidemark_exporters.notify.payload import render
from tidemark_exporters.notify.positions import Mark, Position
from tidemark_exporters.notify.receiver import NotDeliveredError, Transport
from tidemark_exporters.notify.worker import Report

IDLE_SECONDS: Final = 1.0
FIRST_WAIT_SECONDS: Final = 0.5
LONGEST_WAIT_SECONDS: Final = 5.0

log = structlog.get_logger()


class Courier:
    """Owns an outbox. `offer…` and `tick` are called by readers, `run` by the worker thread."""

    def __init__(
        self,
        receiver: Receiver,
        outbox: Outbox,
        transport: Transport,
        store: OffsetStore,
        external_url: str,
        clock: Callable[[], float],
        heartbeat: Heartbeat | None = None,
    ) -> None:
        self.receiver = receiver
        self._outbox = outbox
        self._transport = transport
        self._store = store
        self._external_url = external_url
        self._clock = clock
        self._heartbeat = heartbeat
        self._wake = threading.Condition()
        self._stopping = False
        self._saved: dict[int, Mark] = {}
        # The first failure of a row and its end are told, not each attempt.
        self._failing = False
        self._attempts: Counter[str] = Counter()
        self._succeeded_at: float | None = None

    @property
    def name(self) -> str:
        return self.receiver.name

    def offer(self, records: Iterable[tuple[Alert, Position]]) -> None:
        """Takes records of one poll together: alerts that are not held back still share a post."""
        with self._wake:
            now = self._clock()
            for alert, position in records:
                self._outbox.offer(alert, position, now)
            self._outbox.flush(now)
            self._wake.notify()

    def offer_own(self, alerts: Iterable[Alert]) -> None:
        with self._wake:
            for alert in alerts:
                self._outbox.offer_own(alert, self._clock())
            self._wake.notify()

    def adopt(self, alerts: Iterable[Alert], horizon: float) -> None:
        with self._wake:
            for alert in alerts:
                self._outbox.adopt(alert, horizon, self._clock())
            self._wake.notify()

    def tick(self, newest: dict[str, float], _stale: dict[str, float]) -> None:
        with self._wake:
            released = self._outbox.tick(newest, self._clock())
            if self._heartbeat is not None:
                self._heartbeat.alive(self._clock())
            self._wake.notify()
        if released:
            log.info(
                "alerts that a maintenance window held back are delivered",
                receiver=self.name,
                alerts=released,
            )

    def reports(self) -> list[Report]:
        with self._wake:
            outcomes, self._outbox.outcomes = self._outbox.outcomes, Counter()
            attempts, self._attempts = self._attempts, Counter()
            outbox = self._outbox
            return [
                Report(
                    self.name,
                    outcomes,
                    attempts,
                    len(outbox),
                    outbox.oldest(),
                    outbox.muted,
                    self._succeeded_at,
                )
            ]

    def runs(self) -> list[Callable[[], None]]:
        return [self.run]

    def run(self) -> None:
        """The worker's whole life, until `stop`; commits once more at the end."""
        while not self._stopping:
            with self._wake:
                self._wake.wait_for(self._due, timeout=self._patience())
            self.step()
        self._save()
        self._store.close()

    def stop(self) -> None:
        """Ends `run` after the post in hand. What is not delivered is not committed, and comes again."""
        with self._wake:
            self._stopping = True
            self._wake.notify()

    def step(self) -> None:
        """Posts everything that is due now, committing after each post."""
        self._beat()
        while not self._stopping and self._post_next():
            self._save()
        self._save()

    def _beat(self) -> None:
        """One attempt: a heartbeat that failed is replaced by the next."""
        if self._heartbeat is None or not self._heartbeat.due(self._clock()):
            return
        message_id, body = render(
            self._heartbeat.batch(self._clock()), self.receiver, self._external_url
        )
        try:
            self._transport.post(message_id, body)
        except NotDeliveredError as error:
            self._attempts["again"] += 1
            self._tell(error)
        else:
            self._succeeded()

    def _due(self) -> bool:
        deadline = self._outbox.next_deadline()
        return self._stopping or (deadline is not None and deadline <= self._clock())

    def _patience(self) -> float:
        deadline = self._outbox.next_deadline()
        return (
            IDLE_SECONDS
            if deadline is None
            else min(IDLE_SECONDS, max(0.0, deadline - self._clock()))
        )

    def _post_next(self) -> bool:
        """Posts the first batch until it succeeds, is refused or the process stops; False when nothing is due.

        Each attempt takes the first batch anew: while a receiver is down the queue may have dropped from it.
        """
        try:
            for attempt in stamina.retry_context(
                on=self._again,
                attempts=None,
                timeout=None,
                wait_initial=FIRST_WAIT_SECONDS,
                wait_max=LONGEST_WAIT_SECONDS,
            ):
                with attempt:
                    if not self._post_once():
                        return False
        except NotDeliveredError:
            return False
        return True

    def _again(self, error: Exception) -> bool | float:
        if self._stopping or not isinstance(error, NotDeliveredError) or not error.again:
            return False
        return True if error.after_seconds is None else error.after_seconds

    def _post_once(self) -> bool:
        with self._wake:
            batch = self._outbox.take(self._clock())
            if batch is None:
                return False
            message_id, body = render(batch, self.receiver, self._external_url)
        try:
            self._transport.post(message_id, body)
        except NotDeliveredError as error:
            self._not_delivered(batch, error)
            if error.again:
                raise
            return True
        with self._wake:
            self._outbox.delivered(batch)
        self._succeeded()
        return True

    def _succeeded(self) -> None:
        with self._wake:
            self._attempts["ok"] += 1
            self._succeeded_at = self._clock()
        if self._failing:
            log.info("receiver takes alerts again", receiver=self.name)
            self._failing = False

    def _not_delivered(self, batch: Batch, error: NotDeliveredError) -> None:
        with self._wake:
            if error.again:
                self._attempts["again"] += 1
                self._outbox.failed()
            else:
                self._attempts["rejected"] += 1
                given_up = self._outbox.rejected(batch, self._clock(), of_content=error.of_content)
        if error.again:
            self._tell(error)
        elif given_up:
            log.error(
                "receiver refused alerts; they are given up",
                receiver=self.name,
                reason=str(error),
                alerts=given_up,
            )
        else:
            log.warning(
                "receiver refused alerts; trying again",
                receiver=self.name,
                reason=str(error),
                alerts=len(batch.entries),
            )

    def _tell(self, error: NotDeliveredError) -> None:
        if not self._failing:
            log.warning(
                "receiver does not take alerts; trying until it does",
                receiver=self.name,
                reason=str(error),
            )
        self._failing = True

    def _save(self) -> None:
        with self._wake:
            marks = self._outbox.marks()
        if marks and marks != self._saved:
            if self._store.save(marks):
                self._saved = marks
            else:
                log.warning(
                    "cannot commit what was delivered; a restart now would post it again",
                    receiver=self.name,
                )
