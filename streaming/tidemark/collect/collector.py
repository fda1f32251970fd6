"""The collector of one cluster: pass after pass, in a thread of its own.

It holds the records of passes without news back for a moment, so that readers get two at once. A
micro-batch of the stream costs the same whatever it reads, and on a small cluster that is nearly
all that the stream costs. Where nothing has happened for some passes, the next one without news
waits for the one after it. One with news takes along what waits and waits for nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

import structlog
from kafka.future import Future

from tidemark.collect.collection_pass import PassRunner
from tidemark.collect.connect.event_loop import complete
from tidemark.collect.metadata.refusals import ASKED, NO_TOPIC
from tidemark.collect.metrics import CollectMetrics
from tidemark.collect.publish.pack import EventRecord
from tidemark.collect.publish.publisher import Publisher
from tidemark.collect.sources.source import Source
from tidemark.core.broker_outcome_texts import NOT_CHECKED, BrokerFinding
from tidemark.settings import Cluster, Settings

# How old the start of a pass may be when its records are published for this reason.
HOLD_SECONDS: Final = 1.5
# In a row, before one waits: what ends after some good passes is not told later.
STEADY_PASSES: Final = 12

log = structlog.get_logger()

# Between a pass and one that follows at once.
IMMEDIATE_SECONDS: Final = 0.1


class HeldPasses:
    """Of one collector. Bounded by HOLD_SECONDS, and by the passes of that time."""

    def __init__(self) -> None:
        self._held: list[EventRecord] = []
        self._since = 0.0
        self._steady = 0

    def release(
        self, records: list[EventRecord], now: float, period_seconds: float, *, is_steady: bool
    ) -> list[EventRecord]:
        """What is to be published now, in the order of the passes. `now`: monotonic.

        `is_steady`: these are of a pass without news, and one follows after a full period.
        """
        self._steady = self._steady + 1 if is_steady else 0
        if not self._held:
            self._since = now
        self._held += records
        is_short = now + period_seconds - self._since <= HOLD_SECONDS
        return [] if is_short and self._steady > STEADY_PASSES else self.take()

    def take(self) -> list[EventRecord]:
        """All that waits."""
        taken, self._held = self._held, []
        return taken


class Collector(threading.Thread):
    """Runs until `stop`, or for `limit` passes. `epoch` is Unix ms at the start of the process.

    `clock`: the wall clock, Unix seconds; it is read once. `after_pass` is called after each.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        publisher: Publisher,
        metrics: CollectMetrics,
        epoch: int,
        limit: int | None = None,
        sources: Sequence[Source] = (),
        clock: Callable[[], float] = time.time,
        after_pass: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name=f"tidemark-collect-{cluster.name}", daemon=True)
        self.cluster = cluster
        self.passes = PassRunner(cluster, settings.collect, publisher.groups, epoch, sources, clock)
        self._publisher = publisher
        self._held = HeldPasses()
        self._metrics = metrics
        self._limit = limit
        self._after_pass = after_pass
        self._stopped = Future()
        # Completed when the rest under way is over.
        self._rested = Future()
        self._stopped.add_callback(lambda _: complete(self._rested, result=True))
        self._refused: dict[str, tuple[str, ...]] = {}
        self._findings: set[BrokerFinding] = set()
        # When a pass last ended, whatever it found (monotonic); the start counts as a pass.
        self.passed_at = time.monotonic()

    def run(self) -> None:
        try:
            self.passes.loop.run(self._run)
        finally:
            self._publish(self._held.take())
            self.passes.close()

    def _publish(self, records: list[EventRecord]) -> None:
        if records:
            self._publisher.put(records)

    def _log_findings(self) -> None:
        """Logs once what is wrong with a broker or its address, and once that it no longer is."""
        found = set(self.passes.findings)
        for finding in sorted(found - self._findings):
            say = log.info if finding.outcome == NOT_CHECKED else log.warning
            say(
                "broker cannot be relied on",
                cluster=self.cluster.name,
                **finding._asdict(),
            )
        for subject in sorted({f.subject for f in self._findings} - {f.subject for f in found}):
            log.info("broker can be relied on", cluster=self.cluster.name, subject=subject)
        self._findings = found

    def _log_refusals(self) -> None:
        """Logs once what brokers refuse to answer, and once that they answer it again."""
        refused = self.passes.refused()
        for what, reasons in refused.items():
            if self._refused.get(what) != reasons:
                log.warning(
                    "no topic is visible" if reasons == (NO_TOPIC,) else "brokers refuse an answer",
                    cluster=self.cluster.name,
                    what=what,
                    reason=", ".join(reasons),
                    meaning=ASKED[what],
                    cure="docs/permissions.md of `tidemark assets` has the rights, and the "
                    "commands that grant them",
                )
        for what in self._refused.keys() - refused.keys():
            log.info("brokers answer again", cluster=self.cluster.name, what=what)
        self._refused = refused

    def stop(self) -> None:
        """Ends after the pass under way. From any thread."""
        if self.is_alive():
            self.passes.loop.wake(self._stopped)

    async def _run(self) -> None:
        passes, was_immediate, was_short = self.passes, False, False
        while not self._stopped.is_done:
            begun = time.monotonic()
            try:
                records = await passes.run(self._publisher.take_missed(self.cluster.name))
                steady, period = passes.is_steady, passes.period_seconds
                due = self._held.release(records, time.monotonic(), period, is_steady=steady)
                self._publish(due)
                seconds = time.monotonic() - begun
                self._log_findings()
                self._log_refusals()
                self._metrics.passed(self.cluster.name, seconds, passes, self._publisher)
            except Exception:
                # A failed pass is a gap. Collection goes on.
                self._publish(self._held.take())
                log.exception(
                    "collection pass failed", cluster=self.cluster.name, number=passes.number
                )
            self._after_pass()
            self.passed_at = time.monotonic()
            if self._limit is not None and passes.number >= self._limit:
                return
            was_immediate = passes.immediate_next_pass and not was_immediate
            rest = passes.period_seconds - (time.monotonic() - begun)
            self._rested = over = Future()
            if not self._stopped.is_done:
                # Only one after a rest of full length may end early.
                may_end_early = not (was_immediate or was_short)
                seconds = IMMEDIATE_SECONDS if was_immediate else rest
                is_early = await passes.rest(over, seconds, may_end_early=may_end_early)
                was_short = was_immediate or is_early
