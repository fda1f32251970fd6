"""The series of what brokers and controllers report by JMX."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Final

from tidemark.core.events import JmxFigures
from tidemark.core.records import JmxView, View
from tidemark_exporters.export.metric_values import Value, to_seconds

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


def put_jmx(put: Callable[..., None], view: View) -> None:
    """Puts the series of a broker, or those of a cluster's controllers that are no brokers."""
    if view.scope == "broker" and view.jmx is not None:
        _put_node(put, view.kafka_cluster, view.broker, view.jmx)
    if view.scope == "cluster":
        for node, jmx in view.jmx_of_nodes.items():
            _put_node(put, view.kafka_cluster, node, jmx)


def _put_node(put: Callable[..., None], cluster: str, broker: object, jmx: JmxView) -> None:
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
