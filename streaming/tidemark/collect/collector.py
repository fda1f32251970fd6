"""The collector of one cluster: pass after pass, in a thread of its own."""

from __future__ import annotations

import threading
import time
from typing import Final

import structlog
from kafka.future import Future

from tidemark.collect.loop import Loop
from tidemark.collect.metrics import CollectMetrics
from tidemark.collect.passes import Passes
from tidemark.collect.publish import Publisher
from tidemark.kafka.client import checked_options
from tidemark.settings import Cluster, Settings

log = structlog.get_logger()

# A pass that follows another at once leaves the brokers this much air.
HURRY_SECONDS: Final = 0.1


class Collector(threading.Thread):
    """Runs until `stop`, or for `limit` passes. `epoch` is Unix ms at the start of the process."""

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        publisher: Publisher,
        metrics: CollectMetrics,
        epoch: int,
        limit: int | None = None,
    ) -> None:
        super().__init__(name=f"tidemark-collect-{cluster.name}", daemon=True)
        options = checked_options(cluster)
        self.cluster = cluster
        # When a broker last answered (monotonic); the start counts as an answer.
        self.answered_at = time.monotonic()
        self._loop = Loop(**options)
        self._passes = Passes(
            self._loop, options, cluster, settings.collect, publisher.groups, epoch
        )
        self._publisher = publisher
        self._metrics = metrics
        self._limit = limit
        self._stopped = Future()

    def run(self) -> None:
        try:
            self._loop.run(self._run)
        finally:
            self._passes.close()
            self._loop.close()

    def stop(self) -> None:
        """Ends after the pass under way. From any thread."""
        if self.is_alive():
            self._loop.wake(self._stopped)

    async def _run(self) -> None:
        hurried = False
        while not self._stopped.is_done and (
            self._limit is None or self._passes.number < self._limit
        ):
            begun = time.monotonic()
            try:
                await self._pass()
            except Exception:
                # One bad pass is a gap, not the end of watching.
                log.exception(
                    "a pass failed", cluster=self.cluster.name, number=self._passes.number
                )
            hurried = self._passes.hurry and not hurried
            rest = (
                HURRY_SECONDS
                if hurried
                else self._passes.period_seconds - (time.monotonic() - begun)
            )
            last = self._limit is not None and self._passes.number >= self._limit
            if not last:
                await self._loop.wait([self._stopped], rest)

    async def _pass(self) -> None:
        passes = self._passes
        begun = time.monotonic()
        records = await passes.run(self._publisher.take_missed(self.cluster.name))
        self._publisher.put(records)
        self.answered_at = passes.answered_at or self.answered_at
        self._metrics.passed(self.cluster.name, time.monotonic() - begun, passes, self._publisher)
