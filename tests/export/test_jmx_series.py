"""The series of JMX: known figures only, of brokers and of controllers."""

from __future__ import annotations

from tests.export.make import NOW, broker_view, cluster_view, render, samples_of, table_of, view
from tidemark.core.events import JmxFigures
from tidemark.core.metric_table import METRICS
from tidemark.core.records import JmxView, ShrinkCounts
from tidemark_exporters.export.counters import EventCounters

BROKER = JmxView(
    read_at=NOW - 4,
    produce_purgatory=5,
    fetch_purgatory=7,
    elect_leader_purgatory=1,
    figures=JmxFigures(
        isr_shrinks=3,
        isr_expands=2,
        failed_isr_updates=1,
        under_replicated_partitions=0,
        offline_replicas=0,
        fetcher_max_lag_records=17,
        fetcher_min_rate=1.5,
        failed_fetcher_partitions=0,
        dead_fetcher_threads=0,
        produce_purgatory_watches=8,
        fetch_purgatory_watches=12,
        expired_produces=6,
        expired_follower_fetches=40,
        expired_consumer_fetches=30,
    ),
    isr_shrinks=ShrinkCounts(
        since=NOW - 60, by_jmx=1, sampled=2, of_absent=0, differs_since=NOW - 40
    ),
)
CONTROLLER = JmxView(
    read_at=NOW,
    figures=JmxFigures(unclean_leader_elections=2, last_applied_record_lag_ms=421),
)


def test_each_figure_has_its_series_and_an_unknown_one_has_none() -> None:
    table = table_of(
        view(),
        cluster_view(broker_outcomes={"1": "ok"}, jmx_of_nodes={"100": CONTROLLER}),
        broker_view(1, jmx=BROKER),
        broker_view(2),
    )
    rendered = render(table, EventCounters(), NOW, 1000)
    samples = {
        (each.name, *(each.labels[label] for label in METRICS[each.name].labels[1:])): each.value
        for each in samples_of((rendered.body + rendered.counters).decode())
        if "jmx" in METRICS[each.name].help.lower()
    }
    name = "tidemark_broker"
    assert samples == {
        (f"{name}_purgatory_operations", "1", "produce"): 5,
        (f"{name}_purgatory_operations", "1", "fetch"): 7,
        (f"{name}_purgatory_operations", "1", "elect_leader"): 1,
        (f"{name}_purgatory_watches", "1", "produce"): 8,
        (f"{name}_purgatory_watches", "1", "fetch"): 12,
        (f"{name}_operations_expired_total", "1", "produce"): 6,
        (f"{name}_operations_expired_total", "1", "follower_fetch"): 40,
        (f"{name}_operations_expired_total", "1", "consumer_fetch"): 30,
        (f"{name}_isr_shrinks_compared", "1", "jmx"): 1,
        (f"{name}_isr_shrinks_compared", "1", "sampled"): 2,
        (f"{name}_isr_shrinks_compared", "1", "sampled_of_absent"): 0,
        (f"{name}_jmx_differs", "1", "isr_shrinks"): 1,
        (f"{name}_failed_isr_updates_total", "1"): 1,
        (f"{name}_fetcher_lag_records_max", "1"): 17,
        (f"{name}_fetcher_failed_partitions", "1"): 0,
        (f"{name}_fetcher_dead_threads", "1"): 0,
        (f"{name}_jmx_read_timestamp_seconds", "1"): NOW - 4,
        (f"{name}_jmx_read_timestamp_seconds", "100"): NOW,
        (f"{name}_unclean_elections_total", "100"): 2,
        (f"{name}_last_applied_record_lag_seconds", "100"): 0.421,
    }
