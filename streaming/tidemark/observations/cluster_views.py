"""The newest views of all partitions of a cluster, from the events of a live or recorded pass."""

from __future__ import annotations

from tidemark.core.cluster import OWNER_SILENT_SECONDS
from tidemark.core.events import Batch, Pass
from tidemark.core.identity import split_key
from tidemark.core.records import View
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState


class ClusterViews:
    """Takes batches in order, of one or several clusters."""

    def __init__(self, detection: Detection) -> None:
        self.lag_threshold = detection.lag_threshold()
        self._fold = Fold(GroupState(), detection, 0, 1)
        # cluster -> collector -> its newest pass
        self._passes: dict[str, dict[str, Pass]] = {}

    def add(self, batch: Batch) -> None:
        self._fold.batch(batch)
        self._fold.rows.clear()
        newest = self._passes.setdefault(batch.cluster, {})
        for event in batch.events:
            if isinstance(event, Pass):
                newest[batch.collector] = event

    @property
    def clusters(self) -> list[str]:
        return sorted(self._passes)

    def passes(self, cluster: str) -> list[Pass]:
        """The newest pass of each collector that is alive."""
        passes = self._passes.get(cluster, {}).values()
        newest = max((event.ended_at for event in passes), default=0.0)
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
        return self._fold.cluster_views(cluster)

    def views(self, cluster: str) -> list[View]:
        """The newest view of each partition, by topic and number."""
        passes = self.passes(cluster)
        now = max((event.ended_at for event in passes), default=0.0)
        all_missed = any(event.missed == "all" for event in passes)
        keys = sorted(self._fold.keys(f"{cluster}/"), key=split_key)
        views = [self._fold.view(key, now) for key in keys]
        for view in views:
            view.missed_passes = max(view.missed_passes, int(all_missed))
        return views
