"""Renders the table at each refresh; a scrape only hands the result out."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tidemark.assess.watermarks import high_watermark_lag
from tidemark.core.metric_table import METRICS
from tidemark.settings import Export
from tidemark_exporters.export.aggregates import PartitionAggregate
from tidemark_exporters.export.cluster_series import Series, cluster_series, count_alerts
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.metric_values import (
    HIGH_WATERMARK_LAG_VALUES,
    PARTITION_VALUES,
    REPLICA_UP,
    REPLICA_VALUES,
    SERIES_PER_REPLICA,
    TOPIC_VALUES,
    Value,
)
from tidemark_exporters.export.partition_row import PartitionRow
from tidemark_exporters.export.series_budget import LINGER_SECONDS, Selection, SeriesBudget
from tidemark_exporters.export.table import Table
from tidemark_exporters.export.text_format import format_header, format_labels, prepare_samples
from tidemark_exporters.failures import Failures

TOPIC_ALERT_OPEN = "tidemark_topic_alert_open"


@dataclass(frozen=True, slots=True)
class Exposition:
    """The result of one refresh. `series`, `dropped`: how many are served and left out, by tier.

    Gauges are equal in both text formats; counters are not.
    """

    # By metric.
    gauges: tuple[bytes, ...] = ()
    # The gauges as members of one gzip file.
    compressed: bytes = b""
    counters: bytes = b""
    counters_openmetrics: bytes = b""
    series: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        """The gauges as text."""
        return b"".join(self.gauges)


@dataclass(frozen=True, slots=True)
class _Metric:
    """One metric as text, with the labels and values of which it is made; `samples`: a count."""

    labels: list[str]
    values: list[Value]
    known_labels: list[str]
    template: bytes
    samples: int
    text: bytes
    compressed: bytes


def _write(name: str, labels: list[str], values: list[Value], last: _Metric | None) -> _Metric:
    """Formats and compresses a metric, unless it is the same as at the last refresh.

    Half of the metrics seldom change (leaders, epochs, in-sync sets). Of the others, usually only
    the values change: the prepared lines are reused.
    """
    if last is not None and last.values == values and last.labels == labels:
        return last
    known, known_labels = [value for value in values if value is not None], labels
    if len(known) < len(values):
        known_labels = [
            each for each, value in zip(labels, values, strict=True) if value is not None
        ]
    if last is not None and last.known_labels == known_labels:
        template = last.template
    else:
        header = format_header(name).replace(b"%", b"%%")
        template = header + prepare_samples(name, known_labels)
    text = template % tuple(known) if known else b""
    compressed = gzip.compress(text, 1, mtime=0) if known else b""
    return _Metric(labels, values, known_labels, template, len(known), text, compressed)


def _as_openmetrics(name: str, text: bytes) -> bytes:
    if not text:
        return b""
    return format_header(name, openmetrics=True) + text.removeprefix(format_header(name))


class Renderer:
    """Renders the table at each refresh, and remembers what it served: series do not flicker."""

    def __init__(self, export: Export, failures: Failures | None = None) -> None:
        """`failures`: of views and parts that are left out; without it, an error is raised."""
        self._failures = failures or Failures()
        self._served = {
            name
            for name, definition in METRICS.items()
            if export.kafka_exporter_names or not definition.is_optional
        }
        self._per_topic = len(TOPIC_VALUES.keys() & self._served)
        self._per_partition = len(PARTITION_VALUES.keys() & self._served)
        self._export = export
        self._budget = SeriesBudget(export.granularity, export.detail_topics)
        self._last: dict[str, _Metric] = {}
        self._rendered: dict[str, _Metric] = {}
        # Label set of a topic's alert -> until when it is served after the alert's end.
        self._topic_alerts: dict[str, float] = {}

    def render(self, table: Table, counters: EventCounters, now: float) -> Exposition:
        """The exposition of a table at `now` (Unix seconds).

        At most `max_series` series. The cluster and broker tiers count, and are always served.
        """
        self._rendered = {}
        always = cluster_series(table, counters, now, self._export.stale_seconds, self._failures)
        for name, series in always.items():
            self._put(name, list(series), series.values())
        dropped, selection = 0, Selection()
        with self._failures.guard("refresh", "topics"):
            dropped = self._put_topics(table, now)
        with self._failures.guard("refresh", "partitions"):
            selection = self._budget.select(
                table, self._left(), self._per_partition, SERIES_PER_REPLICA, now
            )
            self._put_rows(selection)
        return self._assemble({"topic": dropped, **selection.dropped})

    def _put_rows(self, selection: Selection) -> None:
        """The series of partitions and replicas, without the rows that raise."""
        try:
            self._put_partitions(selection.partitions)
            self._put_replicas(selection.replicas)
        except Exception:
            # By metric, which is fast, it is not known which row it was.
            broken = {id(row) for row in selection.partitions if not self._can_render(row)}
            if not broken:
                raise
            self._put_partitions([row for row in selection.partitions if id(row) not in broken])
            self._put_replicas([row for row in selection.replicas if id(row) not in broken])

    def _can_render(self, row: PartitionRow) -> bool:
        name = f"{row.cluster}/{row.topic}"
        try:
            view, _ = row.view, row.label_sets
            name += f"/{view.partition}"
            for of_view in PARTITION_VALUES.values():
                of_view(view)
            for replica in view.replicas:
                lag = high_watermark_lag(view, replica)
                for of_replica in REPLICA_VALUES.values():
                    of_replica(replica)
                for with_lag in HIGH_WATERMARK_LAG_VALUES.values():
                    with_lag(lag, replica)
        except Exception as error:
            self._failures.add("view", name, error)
            return False
        return True

    def _put(self, name: str, labels: list[str], values: Iterable[Value]) -> None:
        if name in self._served:
            metric = _write(name, labels, list(values), self._last.get(name))
            self._last[name] = self._rendered[name] = metric

    def _left(self) -> int:
        """How many series still fit."""
        return max(
            0, self._export.max_series - sum(metric.samples for metric in self._rendered.values())
        )

    def _put_topics(self, table: Table, now: float) -> int:
        """The most urgent topics that fit. Returns the number of series left out."""
        if self._export.granularity == "cluster":
            return 0
        budget = self._left()
        alerts = self._topic_alert_series(table, now)
        served = dict(list(alerts.items())[:budget])
        self._put(TOPIC_ALERT_OPEN, list(served), served.values())
        topics = list(table.topic_aggregates.items())
        fit = (budget - len(served)) // self._per_topic
        if len(topics) > fit:
            topics.sort(key=_urgency)
        labels = [
            format_labels(kafka_cluster=cluster, topic=topic)
            for (cluster, topic), _ in topics[:fit]
        ]
        for name, value_of in TOPIC_VALUES.items():
            self._put(name, labels, (value_of(aggregate) for _, aggregate in topics[:fit]))
        return max(0, len(topics) - fit) * self._per_topic + len(alerts) - len(served)

    def _topic_alert_series(self, table: Table, now: float) -> Series:
        """Open alerts by topic, name and severity; 0 for a while after the last one ends."""
        alerts = (alert for alert in table.open_alerts() if "topic" in alert.labels)
        series = count_alerts(alerts, TOPIC_ALERT_OPEN)
        self._topic_alerts.update(dict.fromkeys(series, now + LINGER_SECONDS))
        self._topic_alerts = {
            labels: until for labels, until in self._topic_alerts.items() if until > now
        }
        return {**series, **{labels: 0 for labels in self._topic_alerts if labels not in series}}

    def _put_partitions(self, rows: list[PartitionRow]) -> None:
        labels = [row.label_sets.partition for row in rows]
        views = [row.view for row in rows]
        for name, value_of in PARTITION_VALUES.items():
            self._put(name, labels, map(value_of, views))

    def _put_replicas(self, rows: list[PartitionRow]) -> None:
        labels = [inside for row in rows for inside in row.label_sets.replicas]
        views = [row.view for row in rows]
        replicas = [replica for view in views for replica in view.replicas]
        missed = [view.missed_passes > 0 for view in views for _ in view.replicas]
        for name, value_of in REPLICA_VALUES.items():
            values: Iterable[Value] = map(value_of, replicas)
            if name == REPLICA_UP:
                values = [None if miss else up for miss, up in zip(missed, values, strict=True)]
            self._put(name, labels, values)
        lags = [high_watermark_lag(view, each) for view in views for each in view.replicas]
        for name, value_with in HIGH_WATERMARK_LAG_VALUES.items():
            self._put(name, labels, map(value_with, lags, replicas))

    def _assemble(self, dropped: dict[str, int]) -> Exposition:
        gauges = [m for name, m in self._rendered.items() if METRICS[name].kind == "gauge"]
        counters = {
            name: metric.text
            for name, metric in self._rendered.items()
            if METRICS[name].kind == "counter"
        }
        series: Counter[str] = Counter()
        for name, metric in self._rendered.items():
            series[METRICS[name].tier] += metric.samples
        return Exposition(
            tuple(metric.text for metric in gauges),
            b"".join(metric.compressed for metric in gauges),
            b"".join(counters.values()),
            b"".join(_as_openmetrics(name, text) for name, text in counters.items()),
            dict(series),
            dropped,
        )


def _urgency(item: tuple[object, PartitionAggregate]) -> tuple[float, ...]:
    _, topic = item
    worst = (-topic.counts[flag] for flag in ("leaderless", "under_min", "under_replicated"))
    return (*worst, -(topic.lag_records or 0))
