"""The `/-/healthy` and `/-/ready` of the collector and of its sidecar.

Healthy: every cluster has ended a pass lately, also one in which no broker answered; a start, and a
reading of log directories, does not take too long. Ready: a broker of each cluster answers, and
events can be published.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, Protocol

from tidemark.collect.collection_pass import PassRunner
from tidemark.collect.publish.publisher import Publisher
from tidemark.core.events import OK
from tidemark.settings import Cluster
from tidemark.web.health import Health

# Without the end of a pass for so long, or for this many periods, a restart helps.
STUCK_SECONDS: Final = 60.0
STUCK_PERIODS: Final = 10
# The start opens a spool, and a sidecar reads every log directory: both may be on a slow disk.
START_SECONDS: Final = 600.0


class ClusterPasses(Protocol):
    """The collector of one cluster; `passed_at`: when a pass last ended (monotonic)."""

    cluster: Cluster
    passes: PassRunner
    passed_at: float


class CollectHealth(Health):
    """Knows no collector until `watch`, which ends the start."""

    def __init__(self) -> None:
        super().__init__(self._waits_for, self._stuck)
        self._collectors: Sequence[ClusterPasses] = ()
        self._publisher: Publisher | None = None
        self._began = time.monotonic()

    def watch(self, collectors: Sequence[ClusterPasses], publisher: Publisher) -> None:
        self._collectors, self._publisher = collectors, publisher

    def _waits_for(self) -> list[str]:
        if self._publisher is None:
            return ["the start"]
        missing = [
            f"cluster {collector.cluster.name}: no broker answers"
            for collector in self._collectors
            if OK not in list(collector.passes.outcomes.values())
        ]
        reason = self._publisher.waits_for()
        return [*missing, *([] if reason is None else [f"Kafka, to publish: {reason}"])]

    def _stuck(self) -> list[str]:
        now, stuck = time.monotonic(), []
        if self._publisher is None and now - self._began > START_SECONDS:
            stuck.append(f"the start has not ended for {now - self._began:.0f} s")
        for collector in self._collectors:
            limit = max(STUCK_SECONDS, STUCK_PERIODS * collector.passes.period_seconds)
            if now - collector.passed_at > limit:
                silent = now - collector.passed_at
                stuck.append(f"cluster {collector.cluster.name}: no pass for {silent:.0f} s")
        if self._publisher is not None and not self._publisher.is_alive():
            stuck.append("the publisher has ended")
        return stuck
