"""Folds events as the stream does, and makes a snapshot for the screens after each pass.

A row per broker says how it answers, what it leads, how far it lags, and what its stop would do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import reduce
from typing import Final, TypeVar

from tidemark.assess.health import severity_rank, states_of
from tidemark.assess.losses import held_losses, open_losses
from tidemark.assess.safe_to_stop import (
    EFFECTS,
    Candidates,
    LagThreshold,
    StopEffect,
    StopImpact,
    candidates_of,
    stop_effect,
)
from tidemark.core.events import BrokerAnswer, Pass
from tidemark.core.partition import Shrink
from tidemark.core.records import OpenAlert, View
from tidemark.detect.default_thresholds import Detection
from tidemark.observations.cluster_views import ClusterViews, NotedFold
from tidemark.observations.recorded_lines import Line, LineReducer
from tidemark.reduce.rows import Row
from tidemark.verbs.top.changes import ElectionLog, in_sync_changes
from tidemark.verbs.top.snapshot import BrokerRow, LatePass, PartitionRow, Snapshot

N = TypeVar("N", int, float)

# A pass is late when it begins more than this many periods after the one before.
LATE_PERIODS: Final = 1.2


def broker_rows(
    answers: Iterable[BrokerAnswer],
    brokers: Iterable[View],
    partitions: Sequence[View],
    not_shown: int,
    lag_threshold: LagThreshold,
) -> list[BrokerRow]:
    """By number: every broker that a pass asked or that has a replica.

    `answers` of the newest passes, `brokers` and `partitions`: the views. `not_shown`: partitions
    of the cluster without a view.
    """
    rows = {answer.broker: BrokerRow(answer.broker, answer) for answer in answers}
    _count(rows, partitions)
    _add_impacts(rows, partitions, lag_threshold)
    for view in brokers:
        if view.broker in rows:
            rows[view.broker].fenced = view.fenced
    lost = [view for view in partitions if open_losses(view)]
    for row in rows.values():
        row.impacts.sort(key=lambda impact: EFFECTS.index(impact.effect))
        row.not_shown = not_shown
        row.held = held_losses(lost, row.broker)
        row.is_safe = not (row.impacts or row.held or not_shown) and bool(partitions)
    return [rows[broker] for broker in sorted(rows)]


def _count(rows: dict[int, BrokerRow], partitions: Sequence[View]) -> None:
    for view in partitions:
        for broker in {*view.assigned, *(view.in_sync_replicas or ())}:
            _row(rows, broker).replicas += 1
        for broker in view.in_sync_replicas or ():
            rows[broker].in_sync += 1
        if view.leader is not None:
            _row(rows, view.leader).leads += 1
        for replica in () if view.missed_passes else view.replicas:
            row = _row(rows, replica.broker)
            if replica.broker != view.leader:
                row.lag_records = larger(row.lag_records, replica.lag_records)
                row.lag_ms = larger(row.lag_ms, replica.lag_ms)


def _row(rows: dict[int, BrokerRow], broker: int) -> BrokerRow:
    return rows.get(broker) or rows.setdefault(broker, BrokerRow(broker))


def larger(known: N | None, other: N | None) -> N | None:
    """The larger one of those that are known."""
    if known is None or other is None:
        return other if known is None else known
    return max(known, other)


def _add_impacts(
    rows: dict[int, BrokerRow], partitions: Sequence[View], lag_threshold: LagThreshold
) -> None:
    """The partitions that a stop affects, by broker; of one that is unknown, for its replicas.

    Most partitions are placed like some other one, and are judged once.
    """
    judged: dict[Hashable, list[tuple[int, StopEffect]]] = {}
    for view in partitions:
        candidates = candidates_of(view, lag_threshold(view.topic))
        key = (*view.assigned, _key(candidates))
        effects = judged.get(key)
        if effects is None:
            effects = judged[key] = _effects(view, candidates)
        for broker, effect in effects:
            impact = StopImpact(view.kafka_cluster, view.topic or "", view.partition or 0, *effect)
            _row(rows, broker).impacts.append(impact)


def _effects(view: View, candidates: Candidates) -> list[tuple[int, StopEffect]]:
    brokers = sorted({*view.assigned, *candidates.brokers})
    effects = ((broker, stop_effect(candidates, (broker,))) for broker in brokers)
    return [(broker, effect) for broker, effect in effects if effect is not None]


def _key(candidates: Candidates) -> Hashable:
    """Candidates with equal keys have equal effects."""
    return (
        candidates.has_leader,
        candidates.in_sync,
        candidates.eligible,
        candidates.replication_factor,
        candidates.min_in_sync_replicas,
        *candidates.disqualified.items(),
        # Otherwise an item of the one would be taken for one of the other.
        len(candidates.disqualified),
        *candidates.lagging.items(),
        candidates.unknown,
    )


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
