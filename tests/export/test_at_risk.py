"""What the death of each broker would cost, as metrics and as the assessment says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.export.make import key_of, table_of, view
from tests.export.test_exposition import rendered, samples
from tidemark.assess.leader_death import if_leader_died
from tidemark.core.records import ReplicaView, View
from tidemark_exporters.export.at_risk import AtRisk
from tidemark_exporters.export.partition_status import measure_progress
from tidemark_exporters.export.table import Table


def replica(broker: int, log_end: int | None = 100, **changes: Any) -> ReplicaView:
    fields: dict[str, Any] = {
        "broker": broker,
        "log_end_offset": log_end,
        "high_watermark": 100,
        "leader_epoch": 4,
        "log_start_offset": 10,
        "lag_ms": 50.0,
    }
    return ReplicaView(**{**fields, **changes})


def led(*replicas: ReplicaView, **changes: Any) -> View:
    """Leader 1 has written up to 107."""
    return view(replicas=[replica(1, 107, lag_ms=0.0), *replicas], log_end_offset=107, **changes)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (led(replica(2, 104), replica(3)), AtRisk(1, 0, 3, 50.0)),
        (led(replica(2, 107), replica(3)), AtRisk(1, 0, 0, 0.0)),
        # The leader is alone in the in-sync set.
        (led(replica(2, 60), replica(3, 40), in_sync_replicas=[1]), AtRisk(1, 40, 7, 50.0)),
        (led(replica(2), in_sync_replicas=None), None),
        (led(replica(2), missed_passes=1), None),
        # The leader does not answer.
        (view(replicas=[replica(1, error="refused"), replica(2), replica(3)]), None),
    ],
)
def test_the_cost_of_a_death(seen: View, expected: AtRisk | None) -> None:
    assert measure_progress(seen).at_risk == expected


@st.composite
def views(draw: st.DrawFn) -> View:
    def one(broker: int) -> ReplicaView:
        return replica(
            broker,
            draw(st.none() | st.integers(90, 110)),
            error=draw(st.sampled_from([None, None, None, "refused"])),
            leader_epoch=draw(st.sampled_from([None, 3, 4, 4, 4])),
            lag_ms=draw(st.none() | st.floats(0.0, 4_000.0)),
        )

    return view(
        replicas=[one(broker) for broker in (1, 2, 3)],
        leader=draw(st.sampled_from([None, 1, 1, 2])),
        log_end_offset=draw(st.sampled_from([None, 100, 107])),
        high_watermark=draw(st.sampled_from([None, 95, 100])),
        in_sync_replicas=draw(st.none() | st.lists(st.sampled_from([1, 2, 3]), unique=True)),
        missed_passes=draw(st.sampled_from([0, 0, 1])),
    )


@settings(max_examples=100, deadline=None)
@given(views())
def test_the_short_way_counts_as_the_assessment_does(seen: View) -> None:
    """Most partitions are measured without it."""
    death, measured = if_leader_died(seen), measure_progress(seen).at_risk
    if death is None or measured is None:
        assert (death is None) == (measured is None)
        return
    assert measured.committed + measured.uncommitted == death.records


@settings(max_examples=30, deadline=None)
@given(st.lists(views(), max_size=4))
def test_the_totals_depend_only_on_the_newest_view(seen: list[View]) -> None:
    table = Table()
    for each in seen:
        table.apply(key_of(each), each)
    newest = table_of(*seen[-1:])
    for broker in (1, 2, 3):
        risks = table.broker_aggregates["east", broker].risks
        expected = newest.broker_aggregates["east", broker].risks
        assert (risks.records, risks.age_ms) == (expected.records, expected.age_ms)
    for each in seen:
        table.apply(key_of(each), None)
    assert not any(aggregate.used for aggregate in table.broker_aggregates.values())


def test_the_metrics_of_brokers_and_replicas() -> None:
    lagging = replica(3, 90, high_watermark=80, high_watermark_lag_ms=900.0)
    lagging.isr_removal_earliest_ms = 11_000.0
    table = table_of(led(replica(2, 104), lagging))
    found = {
        (s.name, s.labels.get("broker", ""), s.labels.get("kind", "")): s.value
        for s in samples(rendered(table))
    }
    expected = {
        ("tidemark_broker_records_at_risk", "1", "uncommitted"): 3,
        ("tidemark_broker_records_at_risk", "1", "committed"): 0,
        # It leads nothing.
        ("tidemark_broker_records_at_risk", "2", "committed"): None,
        ("tidemark_broker_records_at_risk_age_seconds_max", "1", ""): 0.05,
        ("tidemark_broker_isr_removal_seconds_min", "3", ""): 11.0,
        ("tidemark_replica_high_watermark_lag_records", "3", ""): 20,
        ("tidemark_replica_high_watermark_lag_seconds", "3", ""): 0.9,
        ("tidemark_replica_high_watermark_lag_records", "1", ""): 0,
        ("tidemark_partition_low_watermark", "", ""): 10,
    }
    assert {series: found.get(series) for series in expected} == expected


def test_a_high_watermark_above_the_log_end_is_counted() -> None:
    def count(*views: View) -> object:
        found = {s.name: s.value for s in samples(rendered(table_of(*views)))}
        return found["tidemark_partitions_high_watermark_above_log_end"]

    assert count(view()) == 0
    assert count(view(), view(partition=1, replicas=[replica(1), replica(2, 99)])) == 1
    silent = replica(2, 99, error="refused")
    assert count(view(replicas=[replica(1), silent])) == 0
