"""The newest views of all partitions of a cluster, from the events of a live or recorded pass."""

from __future__ import annotations

from collections import defaultdict

from msgspec.structs import replace

from tidemark.core.cluster import OWNER_SILENT_SECONDS, ClusterState
from tidemark.core.events import UNLISTED, Batch, BrokerAnswer, Observation, Pass
from tidemark.core.fetch_links import LinkCounter
from tidemark.core.identity import partition_key, split_key
from tidemark.core.records import View
from tidemark.detect.default_thresholds import Detection
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState


class CompletingFold(Fold):
    """Folds all groups of a recording in one. One counter for each collector of the recording."""

    def __init__(self, detection: Detection) -> None:
        super().__init__(GroupState(), detection, 0, 1)
        self._counters: defaultdict[tuple[str, str], LinkCounter] = defaultdict(LinkCounter)

    def _observe(self, batch: Batch, cluster: ClusterState, event: Observation) -> None:
        known = self.partition(partition_key(batch.cluster, event.topic, event.partition))
        if known is not None and known.leader == event.leader:
            end = known.leader_log_end_offset
            if end is not None:
                self._counters[batch.cluster, batch.collector].note(event, end)
        super()._observe(batch, cluster, event)

    def _pass(self, batch: Batch, cluster: ClusterState, event: Pass) -> None:
        links = self._counters[batch.cluster, batch.collector].take(event.ended_at)
        if event.links is None:
            brokers = [*event.brokers, *self._unnamed(batch.cluster, cluster, event)]
            event = replace(event, links=links, brokers=brokers)
        super()._pass(batch, cluster, event)

    def _unnamed(self, name: str, cluster: ClusterState, event: Pass) -> list[BrokerAnswer]:
        """Brokers that the pass before named and this one does not, although they have replicas."""
        unnamed = cluster.brokers.keys() - {answer.broker for answer in event.brokers}
        if not unnamed:
            return []
        states = (self.partition(key) for key in self.keys(f"{name}/"))
        assigned = {broker for state in states if state is not None for broker in state.assigned}
        return [
            BrokerAnswer(
                broker=b, outcome=UNLISTED if seen.answers else seen.outcome, rack=seen.rack
            )
            for b, seen in cluster.brokers.items()
            if b in unnamed & assigned
        ]


class NotedFold(CompletingFold):
    """Folds as the stream does, and notes the newest pass of each collector, by cluster."""

    def __init__(self, detection: Detection) -> None:
        super().__init__(detection)
        self.passes: dict[str, dict[str, Pass]] = {}

    def _pass(self, batch: Batch, cluster: ClusterState, event: Pass) -> None:
        newest = self.passes.setdefault(batch.cluster, {})
        before = newest.get(batch.collector)
        if before is None or event.ended_at > before.ended_at:
            newest[batch.collector] = event
            self._note(batch.cluster, before, event)
        super()._pass(batch, cluster, event)

    def _note(self, cluster: str, before: Pass | None, event: Pass) -> None:
        """Of a collector, a newer pass than the one before."""


class ClusterViews:
    """What `fold` knows of one or several clusters. Its memory grows with the partitions only."""

    def __init__(self, detection: Detection, fold: NotedFold | None = None) -> None:
        self.lag_threshold = detection.lag_threshold()
        self.fold = fold or NotedFold(detection)

    def add(self, batch: Batch) -> None:
        """Takes batches in order."""
        self.fold.batch(batch)
        self.fold.rows.clear()

    @property
    def clusters(self) -> list[str]:
        return sorted(self.fold.passes)

    def ended_at(self, cluster: str) -> float:
        """When the newest pass ended, Unix seconds; 0 before the first one."""
        return max((p.ended_at for p in self.fold.passes.get(cluster, {}).values()), default=0.0)

    def passes(self, cluster: str) -> list[Pass]:
        """The newest pass of each collector that is alive."""
        newest = self.ended_at(cluster)
        passes = self.fold.passes.get(cluster, {}).values()
        return [event for event in passes if newest - event.ended_at <= OWNER_SILENT_SECONDS]

    def outcomes(self, cluster: str) -> dict[int, str]:
        """The newest outcome of each broker."""
        return {
            answer.broker: answer.outcome
            for event in self.passes(cluster)
            for answer in event.brokers
        }

    def cluster_views(self, cluster: str) -> list[View]:
        """The views of the cluster itself and of its brokers."""
        return self.fold.cluster_views(cluster)

    def views(self, cluster: str) -> list[View]:
        """The newest view of each partition, by topic and number."""
        now = self.ended_at(cluster)
        keys = sorted(self.fold.keys(f"{cluster}/"), key=split_key)
        views = [self.fold.view(key, now) for key in keys]
        if any(event.missed == "all" for event in self.passes(cluster)):
            for view in views:
                view.missed_passes = max(view.missed_passes, 1)
        return views
