"""The series of the cluster and broker tiers, which are always served, with those of JMX."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final

from tidemark.assess.risky_configuration import count_risks
from tidemark.core.events import JmxFigures
from tidemark.core.metric_table import METRICS
from tidemark.core.records import JmxView, OpenAlert, View
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.metric_values import (
    BROKER_VALUES,
    BROKER_VIEW_VALUES,
    CLUSTER_VALUES,
    CLUSTER_VIEW_VALUES,
    LOG_DIRECTORY_VALUES,
    NODE_VALUES,
    Value,
    to_seconds,
)
from tidemark_exporters.export.table import Table, is_listed
from tidemark_exporters.export.text_format import format_labels
from tidemark_exporters.failures import Failures

# label set -> value of one metric; None (unknown) makes no line
Series = dict[str, Value]
ALERT_OPEN = "tidemark_alert_open"
_FIGURES: Final[dict[str, Callable[[JmxFigures], Value]]] = {
    "tidemark_broker_failed_isr_updates_total": attrgetter("failed_isr_updates"),
    "tidemark_broker_fetcher_lag_records_max": attrgetter("fetcher_max_lag_records"),
    "tidemark_broker_fetcher_failed_partitions": attrgetter("failed_fetcher_partitions"),
    "tidemark_broker_fetcher_dead_threads": attrgetter("dead_fetcher_threads"),
    "tidemark_broker_unclean_elections_total": attrgetter("unclean_leader_elections"),
    "tidemark_broker_last_applied_record_lag_seconds": lambda f: to_seconds(
        f.last_applied_record_lag_ms
    ),
}


def cluster_series(
    table: Table,
    counters: EventCounters,
    now: float,
    stale_seconds: float,
    failures: Failures,
) -> dict[str, Series]:
    """By metric. `now`: Unix seconds. A view that raises loses its further series only."""
    found: dict[str, Series] = {}

    def put(name: str, value: Value, **labels: object) -> None:
        found.setdefault(name, {})[format_labels(**labels)] = value

    for cluster, newest in table.newest.items():
        counters.add_cluster(cluster)
        age = round(max(0.0, now - newest), 3)
        put("tidemark_last_pass_timestamp_seconds", newest, kafka_cluster=cluster)
        put("tidemark_view_age_seconds", age, kafka_cluster=cluster)
    for key, view in table.clusters.items():
        with failures.guard("view", key):
            _put_cluster_view(view, counters, put)
    for key, view in table.brokers.items():
        with failures.guard("view", key):
            if is_listed(view, table.clusters.get(view.kafka_cluster)):
                _put_broker_view(view, put)
    for cluster, aggregate in table.cluster_aggregates.items():
        with failures.guard("view", cluster):
            for name, of_cluster in CLUSTER_VALUES.items():
                put(name, of_cluster(aggregate), kafka_cluster=cluster)
            _put_risks(cluster, table, put)
    for key, view in (*table.brokers.items(), *table.clusters.items()):
        with failures.guard("view", key):
            _put_jmx(put, view)
    for (cluster, broker), hosted in table.broker_aggregates.items():
        counters.add_broker(cluster, broker)
        with failures.guard("view", f"{cluster}/{broker}"):
            for name, of_broker in BROKER_VALUES.items():
                put(name, of_broker(hosted), kafka_cluster=cluster, broker=broker)
            if now - table.newest.get(cluster, 0.0) <= stale_seconds:
                # Old views do not show whether a broker is safe to stop now.
                _put_effects(cluster, broker, table, put)
    open_now = count_alerts(table.open_alerts(), ALERT_OPEN)
    # An alert that ends falls to 0 instead of disappearing.
    counters.ever_open.update(open_now)
    found[ALERT_OPEN] = {labels: open_now.get(labels, 0) for labels in sorted(counters.ever_open)}
    counters.set_changes(table.elections, table.expands)
    found.update({name: dict(values) for name, values in counters.values.items()})
    return found


def _put_effects(cluster: str, broker: object, table: Table, put: Callable[..., None]) -> None:
    """What stopping a broker affects, and what its death would cost."""
    hosted = table.broker_aggregates[cluster, broker]
    labels = {"kafka_cluster": cluster, "broker": broker}
    for kind, records in hosted.risks.records.items():
        put("tidemark_broker_records_at_risk", records, **labels, kind=kind)
    for effect, count in hosted.effects.items():
        # A partition of unknown effect counts for every broker.
        unknown = table.cluster_aggregates[cluster].counts["stop_unknown"] * (effect == "unknown")
        put("tidemark_broker_stop_impact_partitions", count + unknown, **labels, effect=effect)


def count_alerts(alerts: Iterable[OpenAlert], name: str) -> Series:
    """Alerts by the labels of the metric `name`, which are labels of alerts too."""
    labels = METRICS[name].labels
    counts = Counter(tuple(alert.labels.get(label, "") for label in labels) for alert in alerts)
    return {
        format_labels(**dict(zip(labels, values, strict=True))): count
        for values, count in counts.items()
    }


def _put_cluster_view(view: View, counters: EventCounters, put: Callable[..., None]) -> None:
    cluster = view.kafka_cluster
    for name, value_of in CLUSTER_VIEW_VALUES.items():
        put(name, value_of(view), kafka_cluster=cluster)
    for name, by_node in NODE_VALUES.items():
        for node, value in by_node(view).items():
            put(name, value, kafka_cluster=cluster, broker=node)
    for broker in view.broker_outcomes:
        counters.add_broker(cluster, broker)


def _put_broker_view(view: View, put: Callable[..., None]) -> None:
    """What a broker reports of itself, and a reader of its log directories found."""
    labels = {"kafka_cluster": view.kafka_cluster, "broker": view.broker}
    for name, value_of in BROKER_VIEW_VALUES.items():
        put(name, value_of(view), **labels)
    for directory in view.log_directories or []:
        for name, of_directory in LOG_DIRECTORY_VALUES.items():
            put(name, of_directory(directory), **labels, log_directory=directory.path)


def _put_risks(cluster: str, table: Table, put: Callable[..., None]) -> None:
    aggregate, whole = table.cluster_aggregates[cluster], table.clusters.get(cluster)
    brokers = [
        view
        for view in table.brokers.values()
        if view.kafka_cluster == cluster and is_listed(view, whole)
    ]
    for count in count_risks(
        aggregate.risks,
        aggregate.risks_unknown,
        brokers,
        None if whole is None else whole.reassigning,
    ):
        labels = {"kafka_cluster": cluster, "kind": count.kind}
        is_known = count.found or count.unknown < aggregate.partitions
        put("tidemark_risky_configurations", count.found if is_known else None, **labels)
        put("tidemark_risky_configurations_unknown", count.unknown, **labels)


def _put_jmx(put: Callable[..., None], view: View) -> None:
    """Puts the series of a broker, or those of a cluster's controllers that are no brokers."""
    if view.scope == "broker" and view.jmx is not None:
        _put_jmx_of_node(put, view.kafka_cluster, view.broker, view.jmx)
    if view.scope == "cluster":
        for node, jmx in view.jmx_of_nodes.items():
            _put_jmx_of_node(put, view.kafka_cluster, node, jmx)


def _put_jmx_of_node(put: Callable[..., None], cluster: str, broker: object, jmx: JmxView) -> None:
    """Puts the series of one node. None (unknown) makes no line."""

    def put_one(name: str, value: Value, **labels: str) -> None:
        put(name, value, kafka_cluster=cluster, broker=broker, **labels)

    figures, shrinks = jmx.figures, jmx.isr_shrinks
    put_one("tidemark_broker_jmx_read_timestamp_seconds", jmx.read_at)
    for name, of_figures in _FIGURES.items():
        put_one(name, of_figures(figures))
    for purgatory, operations, watches in (
        ("produce", jmx.produce_purgatory, figures.produce_purgatory_watches),
        ("fetch", jmx.fetch_purgatory, figures.fetch_purgatory_watches),
        ("elect_leader", jmx.elect_leader_purgatory, None),
    ):
        put_one("tidemark_broker_purgatory_operations", operations, purgatory=purgatory)
        put_one("tidemark_broker_purgatory_watches", watches, purgatory=purgatory)
    for operation, expired in (
        ("produce", figures.expired_produces),
        ("follower_fetch", figures.expired_follower_fetches),
        ("consumer_fetch", figures.expired_consumer_fetches),
    ):
        put_one("tidemark_broker_operations_expired_total", expired, operation=operation)
    if shrinks is not None:
        for source, count in (
            ("jmx", shrinks.by_jmx),
            ("sampled", shrinks.sampled),
            ("sampled_of_absent", shrinks.of_absent),
        ):
            put_one("tidemark_broker_isr_shrinks_compared", count, source=source)
        differs = int(shrinks.differs_since is not None)
        put_one("tidemark_broker_jmx_differs", differs, figure="isr_shrinks")
