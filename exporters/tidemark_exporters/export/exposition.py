"""Renders the table into one immutable snapshot per refresh; a scrape only hands it out."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tidemark.core.records import View
from tidemark.core.signals import SIGNALS
from tidemark.settings import Export
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.select import LINGER_SECONDS, Selector
from tidemark_exporters.export.table import Table
from tidemark_exporters.export.tally import Tally
from tidemark_exporters.export.text import header, label_set, samples
from tidemark_exporters.export.values import (
    BROKER_VALUES,
    CLUSTER_VALUES,
    PARTITION_VALUES,
    REPLICA_UP,
    REPLICA_VALUES,
    TOPIC_VALUES,
    Value,
    seconds,
)

# label set -> value of one metric; None (unknown) makes no line
Series = dict[str, Value]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One rendered state, and how many series it holds and leaves out by tier.

    Gauges are written alike in both formats; the few counters are not, and stand apart. `compressed` is the gauges
    by gzip.
    """

    body: bytes = b""
    compressed: bytes = b""
    counters: bytes = b""
    counters_openmetrics: bytes = b""
    series: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)


def render(
    table: Table, counters: EventCounters, now: float, max_series: int, granularity: str = "auto"
) -> Snapshot:
    """A single snapshot of a table, as a new exporter would render it first."""
    return Renderer(Export(max_series=max_series, granularity=granularity)).render(  # type: ignore[arg-type]
        table, counters, now
    )


@dataclass(frozen=True, slots=True)
class _Written:
    """A metric as it was written last, and from what: the label sets that have a value, and their values."""

    labels: list[str]
    values: list[int | float]
    samples: bytes
    body: bytes
    openmetrics: bytes


def _write(name: str, labels: list[str], values: list[Value], before: _Written | None) -> _Written:
    """All lines of one metric. Half of the metrics (leaders, epochs, who is in sync) seldom change: those are not written anew.

    Of the others the label sets seldom do: their lines are there already but for the values.
    """
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        labels = [inside for inside, value in zip(labels, values, strict=True) if value is not None]
    alike = before if before is not None and before.labels == labels else None
    if alike is not None and alike.values == known:
        return alike
    prepared = samples(name, labels) if alike is None else alike.samples
    if not known:
        return _Written(labels, known, prepared, b"", b"")
    lines = prepared % tuple(known)
    openmetrics = header(name, openmetrics=True) + lines if SIGNALS[name].kind == "counter" else b""
    return _Written(labels, known, prepared, header(name) + lines, openmetrics)


class Renderer:
    """Makes a snapshot per refresh; remembers what it served, so that series do not flicker."""

    def __init__(self, export: Export) -> None:
        names = {
            name
            for name, signal in SIGNALS.items()
            if export.kafka_exporter_names or not signal.is_optional
        }
        self._topic_values = {name: value for name, value in TOPIC_VALUES.items() if name in names}
        self._partition_values = {
            name: value for name, value in PARTITION_VALUES.items() if name in names
        }
        self._names = names
        self._max_series = export.max_series
        self._granularity = export.granularity
        self._stale_seconds = export.stale_seconds
        self._selector = Selector(export.granularity, export.detail_topics)
        self._written: dict[str, _Written] = {}
        # label set of a topic's alert -> until when it is served although none is open
        self._topic_alerts: dict[str, float] = {}

    def render(self, table: Table, counters: EventCounters, now: float) -> Snapshot:
        """The exposition of a table at `now` (Unix seconds).

        At most `max_series` series of topics, partitions and replicas together with the cluster and broker tiers,
        which are never cut.
        """
        text, openmetrics, gauges = [], [], []
        series: Counter[str] = Counter()

        def emit(name: str, labels: Iterable[str], values: Iterable[Value]) -> None:
            written = self._written[name] = _write(
                name, list(labels), list(values), self._written.get(name)
            )
            series[SIGNALS[name].tier] += len(written.values)
            if SIGNALS[name].kind == "counter":
                text.append(written.body)
                openmetrics.append(written.openmetrics)
            else:
                gauges.append(written.body)

        for name, values in _always(table, counters, now, self._stale_seconds).items():
            if name in self._names:
                emit(name, values.keys(), values.values())
        budget = max(0, self._max_series - sum(series.values()))
        dropped = self._topics(table, budget, now, emit)
        left = max(0, self._max_series - sum(series.values()))
        selection = self._selector.select(
            table, left, len(self._partition_values), len(REPLICA_VALUES), now
        )
        labels = [row.labels for row in selection.partitions]
        views = [row.view for row in selection.partitions]
        for name, of_view in self._partition_values.items():
            emit(name, labels, map(of_view, views))
        labels = [inside for row in selection.replicas for inside in row.replica_labels]
        replicas = [replica for row in selection.replicas for replica in row.view.replicas]
        missed = [
            row.view.missed_passes > 0 for row in selection.replicas for _ in row.view.replicas
        ]
        for name, of_replica in REPLICA_VALUES.items():
            told = map(of_replica, replicas)
            emit(
                name,
                labels,
                (None if m else v for m, v in zip(missed, told, strict=True))
                if name == REPLICA_UP
                else told,
            )
        body = b"".join(gauges)
        return Snapshot(
            body,
            gzip.compress(body, 1),
            b"".join(text),
            b"".join(openmetrics),
            dict(series),
            {"topic": dropped, **selection.dropped},
        )

    def _topics(
        self,
        table: Table,
        budget: int,
        now: float,
        emit: Callable[[str, Iterable[str], Iterable[Value]], None],
    ) -> int:
        """The topic tier: the sickest first where the budget is short. Returns the number of series left out."""
        if self._granularity == "cluster":
            return 0
        alerts = self._alerts_of_topics(table, now)
        served = dict(list(alerts.items())[:budget])
        emit("tidemark_topic_alert_open", served.keys(), served.values())
        topics = list(table.topic_tallies.items())
        each = len(self._topic_values)
        fit = (budget - len(served)) // each
        if len(topics) > fit:
            topics.sort(key=_urgency)
        labels = [
            label_set(kafka_cluster=cluster, topic=topic) for (cluster, topic), _ in topics[:fit]
        ]
        for name, of_topic in self._topic_values.items():
            emit(name, labels, (of_topic(tally) for _, tally in topics[:fit]))
        return max(0, len(topics) - fit) * each + len(alerts) - len(served)

    def _alerts_of_topics(self, table: Table, now: float) -> Series:
        """Open alerts by topic, name and severity; 0 for a while after the last has ended, and then nothing."""
        now_open: Counter[tuple[str, ...]] = Counter()
        for alert in table.open_alerts():
            of = alert.labels
            if "topic" in of:
                now_open[
                    of.get("kafka_cluster", ""),
                    of["topic"],
                    of.get("alertname", ""),
                    of.get("severity", ""),
                ] += 1
        series: Series = {
            label_set(kafka_cluster=cluster, topic=topic, alertname=name, severity=severity): count
            for (cluster, topic, name, severity), count in now_open.items()
        }
        self._topic_alerts.update(dict.fromkeys(series, now + LINGER_SECONDS))
        self._topic_alerts = {
            labels: until for labels, until in self._topic_alerts.items() if until > now
        }
        return {**series, **{labels: 0 for labels in self._topic_alerts if labels not in series}}


def _urgency(item: tuple[object, Tally]) -> tuple[float, ...]:
    tally = item[1]
    return (-tally.leaderless, -tally.under_min, -tally.under_replicated, -(tally.lag_records or 0))


def _always(
    table: Table, counters: EventCounters, now: float, stale_seconds: float
) -> dict[str, Series]:
    """The cluster and broker tiers."""
    result: dict[str, Series] = {}

    def put(name: str, value: Value, **labels: Any) -> None:
        result.setdefault(name, {})[label_set(**labels)] = value

    for cluster, newest in table.newest.items():
        counters.known(cluster)
        put("tidemark_last_pass_timestamp_seconds", newest, kafka_cluster=cluster)
        put("tidemark_view_age_seconds", round(max(0.0, now - newest), 3), kafka_cluster=cluster)
    for view in table.clusters.values():
        _of_cluster_view(view, counters, put)
    for cluster, tally in table.cluster_tallies.items():
        for name, of_tally in CLUSTER_VALUES.items():
            put(name, of_tally(tally), kafka_cluster=cluster)
    for (cluster, broker), hosted in table.broker_tallies.items():
        counters.known_broker(cluster, broker)
        for name, of_broker in BROKER_VALUES.items():
            put(name, of_broker(hosted), kafka_cluster=cluster, broker=broker)
        if now - table.newest.get(cluster, 0.0) > stale_seconds:
            # Whether a broker may be stopped now cannot be told from what was.
            continue
        for effect, count in hosted.effects.items():
            # A partition of which nothing can be said is safe with no broker.
            unplaced = table.cluster_tallies[cluster].unplaced if effect == "unknown" else 0
            put(
                "tidemark_broker_stop_impact_partitions",
                count + unplaced,
                kafka_cluster=cluster,
                broker=broker,
                effect=effect,
            )
    result["tidemark_alert_open"] = _open_alerts(table, counters)
    counters.changes(table.elections, table.expands)
    result.update({name: dict(values) for name, values in counters.values.items()})
    return result


def _of_cluster_view(view: View, counters: EventCounters, put: Callable[..., None]) -> None:
    put("tidemark_pass_period_seconds", seconds(view.period_ms), kafka_cluster=view.kafka_cluster)
    put("tidemark_quorum_leader", view.quorum_leader, kafka_cluster=view.kafka_cluster)
    put("tidemark_quorum_epoch", view.quorum_epoch, kafka_cluster=view.kafka_cluster)
    for node, lag_ms in view.metadata_lag_ms.items():
        put(
            "tidemark_broker_metadata_lag_seconds",
            seconds(lag_ms),
            kafka_cluster=view.kafka_cluster,
            broker=node,
        )
    for node, offset in view.metadata_log_end_offsets.items():
        put(
            "tidemark_broker_metadata_log_end_offset",
            offset,
            kafka_cluster=view.kafka_cluster,
            broker=node,
        )
    put("kafka_brokers", len(view.broker_outcomes) or None, kafka_cluster=view.kafka_cluster)
    for broker, outcome in view.broker_outcomes.items():
        counters.known_broker(view.kafka_cluster, broker)
        put(
            "tidemark_broker_up",
            int(outcome == "ok"),
            kafka_cluster=view.kafka_cluster,
            broker=broker,
        )


def _open_alerts(table: Table, counters: EventCounters) -> Series:
    """Alerts open by (cluster, name, severity); 0 for what was open before, so that an end is seen as an end."""
    now_open: Counter[tuple[str, ...]] = Counter()
    for alert in table.open_alerts():
        of = alert.labels
        now_open[of.get("kafka_cluster", ""), of.get("alertname", ""), of.get("severity", "")] += 1
    by_labels = {
        label_set(kafka_cluster=key[0], alertname=key[1], severity=key[2]): count
        for key, count in now_open.items()
    }
    counters.ever_open.update(by_labels)
    return {labels: by_labels.get(labels, 0) for labels in sorted(counters.ever_open)}
