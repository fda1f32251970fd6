"""The rendered text: exact, parseable, bounded, and silent about what is unknown."""

from __future__ import annotations

import gzip

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.export.make import NOW, alert, cluster_view, open_alert, view
from tidemark.core.records import ReplicaView
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.exposition import PARTITION_VALUES, REPLICA_VALUES, TOPIC_VALUES, Snapshot, render
from tidemark_exporters.export.table import Table


def rendered(table: Table, counters: EventCounters | None = None, max_series: int = 50_000, granularity: str = "auto") -> Snapshot:
    return render(table, counters or EventCounters(), NOW + 2.5, max_series, granularity)


def samples(snapshot: Snapshot) -> list[Sample]:
    return [sample for metric in text_string_to_metric_families(snapshot.body.decode()) for sample in metric.samples]


def lines(snapshot: Snapshot, name: str) -> list[str]:
    return [line for line in snapshot.body.decode().splitlines() if line.startswith((f"{name}{{", f"# HELP {name} ", f"# TYPE {name} "))]


def test_exact_text() -> None:
    table = Table()
    replicas = [ReplicaView(broker=1, log_end_offset=120), ReplicaView(broker=2, log_end_offset=100, lag_records=20, lag_ms=2500.0)]
    table.apply("east/orders/0", view(replicas=replicas, uncommitted_records=20, uncommitted_ms=1250.0))
    snapshot = rendered(table)
    assert lines(snapshot, "tidemark_replica_lag_seconds") == [
        "# HELP tidemark_replica_lag_seconds Age, at the leader, of the first record that the replica lacks.",
        "# TYPE tidemark_replica_lag_seconds gauge",
        'tidemark_replica_lag_seconds{kafka_cluster="east",topic="orders",partition="0",broker="2"} 2.5',
    ]
    assert lines(snapshot, "tidemark_replica_log_end_offset")[2:] == [
        'tidemark_replica_log_end_offset{kafka_cluster="east",topic="orders",partition="0",broker="1"} 120',
        'tidemark_replica_log_end_offset{kafka_cluster="east",topic="orders",partition="0",broker="2"} 100',
    ]
    assert lines(snapshot, "tidemark_partition_uncommitted_age_seconds")[2:] == [
        'tidemark_partition_uncommitted_age_seconds{kafka_cluster="east",topic="orders",partition="0"} 1.25'
    ]
    assert lines(snapshot, "tidemark_view_age_seconds")[2:] == ['tidemark_view_age_seconds{kafka_cluster="east"} 2.5']
    assert snapshot.body.endswith(b"\n")
    assert gzip.decompress(snapshot.compressed) == snapshot.body


def test_nothing_known_is_nothing_said() -> None:
    assert rendered(Table()).body == b""


def test_unknown_is_absent_and_never_0() -> None:
    table = Table()
    unknown = view(
        leader=None,
        leader_epoch=None,
        in_sync_replicas=None,
        effective_min_in_sync_replicas=None,
        high_watermark=None,
        log_end_offset=None,
        uncommitted_records=None,
        replicas=[ReplicaView(broker=2, error="refused")],
        missed_passes=3,
    )
    table.apply("east/orders/0", unknown)
    named = {sample.name for sample in samples(rendered(table))}
    assert not {name for name in named if name.startswith("tidemark_replica_")}
    assert {name for name in named if name.startswith("tidemark_partition_")} == {
        "tidemark_partition_replicas",
        "tidemark_partition_leaderless",
        "tidemark_partition_missed_passes",
    }
    assert "tidemark_topic_uncommitted_records" not in named
    assert "tidemark_cluster_replica_lag_seconds_max" not in named
    assert "tidemark_quorum_leader" not in named


def test_a_vanished_partition_vanishes() -> None:
    table = Table()
    table.apply("east/orders/0", view())
    table.apply("east/orders/0", None)
    assert not [sample for sample in samples(rendered(table)) if "topic" in sample.labels]


def test_clusters_brokers_and_topics_add_up() -> None:
    table = Table()
    table.apply("east", cluster_view(broker_outcomes={"1": "ok", "2": "timed_out"}))
    table.apply("east/orders/0", view(in_sync_replicas=[1], uncommitted_records=5))
    table.apply("east/orders/1", view(partition=1, leader=None, leaderless=True, in_sync_replicas=[], uncommitted_records=None))
    table.apply("east/logs/0", view("logs", leader=2, uncommitted_records=7))
    found = {
        (s.name, s.labels.get("topic"), s.labels.get("broker")): s.value for s in samples(rendered(table)) if "partition" not in s.labels
    }
    assert found[("tidemark_partitions", None, None)] == 3
    assert found[("tidemark_partitions_leaderless", None, None)] == 1
    assert found[("tidemark_partitions_under_replicated", None, None)] == 2
    assert found[("tidemark_partitions_under_min_in_sync", None, None)] == 2
    assert found[("tidemark_topic_partitions", "orders", None)] == 2
    assert found[("tidemark_topic_uncommitted_records", "orders", None)] == 5
    assert found[("tidemark_broker_up", None, "1")] == 1
    assert found[("tidemark_broker_up", None, "2")] == 0
    assert found[("tidemark_broker_leaders", None, "1")] == 1
    assert found[("tidemark_broker_leaders", None, "2")] == 1
    assert found[("tidemark_broker_replicas", None, "3")] == 3
    assert found[("tidemark_broker_out_of_sync_replicas", None, "3")] == 2


def test_open_alerts_are_counted_and_fall_back_to_0() -> None:
    table, counters = Table(), EventCounters()
    table.apply("east/orders/0", view(alerts=[open_alert(alert()), open_alert(alert(broker="3"))]))

    def open_now() -> dict[str, float]:
        return {s.labels["alertname"]: s.value for s in samples(rendered(table, counters)) if s.name == "tidemark_alert_open"}

    assert open_now() == {"KafkaFollowerLag": 2}
    table.apply("east/orders/0", view())
    assert open_now() == {"KafkaFollowerLag": 0}


def test_counters_are_born_at_0_for_every_cluster_seen() -> None:
    table = Table()
    table.apply("east/orders/0", view())
    born = {s.name: s.value for s in samples(rendered(table)) if s.name.endswith("_total")}
    assert born == dict.fromkeys(
        (
            "tidemark_alerts_fired_total",
            "tidemark_committed_records_lost_total",
            "tidemark_isr_shrinks_total",
            "tidemark_truncations_total",
            "tidemark_unclean_elections_total",
        ),
        0,
    )


HOSTILE = st.text(alphabet=st.sampled_from('\\"\n\r{},= #\t\u2028é名\x00<>'), min_size=1, max_size=12) | st.text(min_size=1, max_size=12)


@given(cluster=HOSTILE, topic=HOSTILE, name=HOSTILE)
def test_hostile_names_stay_values(cluster: str, topic: str, name: str) -> None:
    table, counters = Table(), EventCounters()
    opened = alert(name, cluster=cluster)
    table.apply("key", view(topic, kafka_cluster=cluster, alerts=[open_alert(opened)]))
    counters.count(opened)
    found = samples(rendered(table, counters))
    assert {s.labels["topic"] for s in found if "topic" in s.labels} == {topic}
    assert {s.labels["kafka_cluster"] for s in found} == {cluster}
    assert name in {s.labels.get("alertname") for s in found}


@given(
    partitions=st.integers(0, 40),
    max_series=st.integers(0, 900),
    granularity=st.sampled_from(["auto", "cluster", "topic", "partition", "replica"]),
)
def test_the_budget_holds_and_what_is_left_out_is_counted(partitions: int, max_series: int, granularity: str) -> None:
    table = Table()
    replicas = [
        ReplicaView(broker=b, log_end_offset=9, high_watermark=9, log_start_offset=0, in_sync=True, lag_records=0, lag_ms=0.0)
        for b in (1, 2, 3)
    ]
    for number in range(partitions):
        in_sync = [1] if number % 7 == 0 else [1, 2, 3]
        table.apply(
            f"east/t{number % 3}/{number}", view(f"t{number % 3}", number, in_sync_replicas=in_sync, replicas=replicas, uncommitted_ms=0.0)
        )
    snapshot = rendered(table, max_series=max_series, granularity=granularity)
    detail = [s for s in samples(snapshot) if "topic" in s.labels]
    always = len(samples(snapshot)) - len(detail)
    assert len(detail) <= max(0, max_series - always)
    assert sum(snapshot.series.values()) == len(samples(snapshot))
    wanted = {"topic": 0, "partition": 0, "replica": 0}
    if granularity != "cluster":
        wanted["topic"] = min(partitions, 3) * len(TOPIC_VALUES)
    if granularity not in {"cluster", "topic"}:
        wanted["partition"] = partitions * len(PARTITION_VALUES)
    if granularity in {"auto", "replica"}:
        wanted["replica"] = partitions * 3 * len(REPLICA_VALUES)
    for tier, count in wanted.items():
        assert snapshot.series.get(tier, 0) + snapshot.dropped.get(tier, 0) == count


def test_the_sick_stay_when_the_budget_is_short() -> None:
    table = Table()
    for number in range(10):
        table.apply(f"east/orders/{number}", view(partition=number, in_sync_replicas=[1] if number == 8 else [1, 2, 3]))
    full = rendered(table)
    always = full.series["cluster"] + full.series["broker"] + full.series["topic"]
    per_partition = len(PARTITION_VALUES) + 3 * len(REPLICA_VALUES)
    short = rendered(table, max_series=always + per_partition)
    assert {s.labels["partition"] for s in samples(short) if s.name == "tidemark_partition_leader"} == {"0", "8"}
    assert short.dropped["replica"] > 0


def test_above_10000_replicas_only_the_sick_and_the_slowest_have_detail() -> None:
    table = Table()
    for number in range(3400):
        lag = number if number < 300 else 0
        replicas = [ReplicaView(broker=b, lag_records=lag) for b in (1, 2, 3)]
        table.apply(
            f"east/orders/{number}", view(partition=number, replicas=replicas, in_sync_replicas=[1, 2] if number == 3000 else [1, 2, 3])
        )
    detail = {int(s.labels["partition"]) for s in samples(rendered(table)) if s.name == "tidemark_replica_lag_records"}
    assert detail == {3000, *range(100, 300)}
