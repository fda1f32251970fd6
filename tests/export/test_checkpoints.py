"""What a broker would start from, as metrics: summed over its replicas, absent where unknown."""

from __future__ import annotations

from tests.export.make import NOW, broker_view, cluster_view, render, samples_of, table_of, view
from tidemark.core.records import CheckpointView, ReplicaView, View
from tidemark_exporters.export.counters import EventCounters

BEHIND = "tidemark_broker_checkpoint_behind_"
UNFLUSHED = "tidemark_broker_unflushed_"


def values(*views: View) -> dict[tuple[str, str], float]:
    """(metric, broker) -> value."""
    body = render(table_of(*views), EventCounters(), NOW, 50_000, "auto").body.decode()
    return {
        (sample.name, sample.labels["broker"]): sample.value
        for sample in samples_of(body)
        if "checkpoint" in sample.name or "unflushed" in sample.name or "stop_clean" in sample.name
    }


def replica(broker: int, behind: int | None, unflushed: int | None) -> ReplicaView:
    files = CheckpointView(read_at=NOW, behind_records=behind, unflushed_records=unflushed)
    return ReplicaView(broker=broker, log_end_offset=100, high_watermark=100, checkpoint=files)


def test_the_replicas_of_a_broker_are_summed_once() -> None:
    views = [
        cluster_view(),
        view("a", 0, replicas=[replica(1, 7, 50), replica(2, 0, None)]),
        view("a", 1, replicas=[replica(1, 0, 100), replica(2, None, 0)]),
        view("b", 0, replicas=[replica(1, 5, 0), ReplicaView(broker=3, log_end_offset=100)]),
    ]
    assert values(*views) == {
        (BEHIND + "records", "1"): 12,
        (UNFLUSHED + "records", "1"): 150,
        # Broker 2: known, and nothing is above its files. Broker 3 is not read.
        (BEHIND + "records", "2"): 0,
        (UNFLUSHED + "records", "2"): 0,
    }


def test_a_sum_stays_within_64_bits() -> None:
    most = 2**63 - 1
    views = [view("a", number, replicas=[replica(1, most, most)]) for number in range(5)]
    table = table_of(*views)
    broker = table.broker_aggregates["east", 1]
    assert (broker.checkpoint_behind.records, broker.unflushed.records) == (most, most)


def test_the_age_of_the_files_and_the_last_stop_are_those_of_the_last_reading() -> None:
    read = broker_view(
        1, outcome="ok", checkpoint_modified_at=NOW - 9, checkpoint_read_at=NOW - 2.5
    )
    stopped = broker_view(2, outcome="ok", stopped_clean=False, stopped_at=NOW - 100)
    assert values(cluster_view(), read, stopped, broker_view(3, outcome="ok")) == {
        ("tidemark_broker_checkpoint_age_seconds", "1"): 6.5,
        ("tidemark_broker_checkpoint_read_timestamp_seconds", "1"): NOW - 2.5,
        ("tidemark_broker_last_stop_clean", "2"): 0,
    }
