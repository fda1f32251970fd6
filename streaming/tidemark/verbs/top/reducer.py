"""Folds events as the stream does, and makes a snapshot for the screens after each pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import reduce
from typing import Final

from tidemark.assess.health import severity_rank, states_of
from tidemark.core.events import Pass
from tidemark.core.partition import Shrink
from tidemark.core.records import OpenAlert, View
from tidemark.detect.thresholds import Detection
from tidemark.observations.cluster_views import ClusterViews, NotedFold
from tidemark.observations.recorded_lines import Line, LineReducer
from tidemark.reduce.rows import Row
from tidemark.verbs.top.broker_rows import broker_rows, larger
from tidemark.verbs.top.changes import ElectionLog, in_sync_changes
from tidemark.verbs.top.snapshot import LatePass, PartitionRow, Snapshot

# A pass is late when it begins more than this many periods after the one before.
LATE_PERIODS: Final = 1.2


class _PassLog(NotedFold):
    """Counts the passes, and those that are late, by cluster."""

    def __init__(self, detection: Detection) -> None:
        super().__init__(detection)
        self.counts: Counter[str] = Counter()
        self.late: Counter[str] = Counter()
        self.last_late: dict[str, LatePass] = {}

    def _note(self, cluster: str, before: Pass | None, event: Pass) -> None:
        self.counts[cluster] += 1
        if before is None:
            return
        seconds, period = event.started_at - before.started_at, before.period_ms / 1000
        if seconds > LATE_PERIODS * period:
            self.late[cluster] += 1
            self.last_late[cluster] = LatePass(event.started_at, seconds - period)


class TopReducer(ClusterViews):
    """Takes records of events in order."""

    def __init__(self, detection: Detection, pages: str = "") -> None:
        """`pages`: where this process serves them; empty: nowhere."""
        self._pages = pages
        self._log = _PassLog(detection)
        super().__init__(detection, self._log)
        self.lines = LineReducer(detection, self._log)
        self._elections: dict[str, ElectionLog] = {}
        self._unreadable = 0

    def record(self, value: bytes, offset: int = 0) -> list[Row]:
        """Folds one record of events. Returns what the stream would publish; raises nothing."""
        return self.line(Line(0, offset + 1, value))

    def line(self, line: Line) -> list[Row]:
        """As `record`, for a line of a recording."""
        rows = self.lines.reduce(line)
        self._unreadable += sum(row.destination == "dead_letters" for row in rows)
        return rows

    def note_elections(self, cluster: str) -> None:
        """Looks for elections since the last call: after a pass of which no snapshot is made."""
        log = self._elections.setdefault(cluster, ElectionLog())
        log.note(self.views(cluster))

    def snapshot(self, cluster: str) -> Snapshot | None:
        """The cluster after its newest pass; None before the first one. Call it after each pass."""
        passes = self.passes(cluster)
        if not passes:
            return None
        newest = max(passes, key=lambda event: event.ended_at)
        views = self.views(cluster)
        about = self.cluster_views(cluster)
        log = self._elections.setdefault(cluster, ElectionLog())
        log.note(views)
        partitions = [_partition_row(view, self.lag_threshold(view.topic)) for view in views]
        not_shown = max(0, sum(event.partitions or 0 for event in passes) - len(views))
        seen = self._log
        return Snapshot(
            cluster=cluster,
            pages=self._pages,
            at=newest.ended_at,
            number=newest.number,
            took_ms=(newest.ended_at - newest.started_at) * 1000,
            period_ms=newest.period_ms,
            passes=seen.counts[cluster],
            late=seen.late[cluster],
            last_late=seen.last_late.get(cluster),
            brokers=broker_rows(
                (answer for event in passes for answer in event.brokers),
                (view for view in about if view.scope == "broker"),
                views,
                not_shown,
                self.lag_threshold,
            ),
            partitions=partitions,
            alerts=_sorted_alerts([*about, *views]),
            changes=in_sync_changes(views, self._shrinks),
            elections=log.newest_first(views),
            not_shown=not_shown,
            unreadable=self._unreadable,
            counts=dict(Counter(row.state.name for row in partitions)),
        )

    def _shrinks(self, view: View) -> list[Shrink]:
        state = self.fold.partition(f"{view.kafka_cluster}/{view.topic}/{view.partition}")
        return [] if state is None else state.shrinks


def _partition_row(view: View, lag_threshold_ms: float) -> PartitionRow:
    followers = [replica for replica in view.replicas if replica.broker != view.leader]
    records = reduce(larger, (replica.lag_records for replica in followers), None)
    lag_ms = reduce(larger, (replica.lag_ms for replica in followers), None)
    return PartitionRow(view, states_of(view)[0], records, lag_ms, lag_threshold_ms)


def _sorted_alerts(views: Iterable[View]) -> list[OpenAlert]:
    """Worst severity first, then newest first."""
    alerts = {alert.fingerprint: alert for view in views for alert in view.alerts}
    return sorted(alerts.values(), key=lambda alert: (severity_rank(alert), -alert.starts_at))
