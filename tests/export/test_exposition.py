"""The rendered text: exact, parseable, bounded, and without unknown values."""

from __future__ import annotations

import gzip
import re
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.samples import Sample

from tests.export.make import (
    NOW,
    alert,
    broker_view,
    cluster_view,
    counted,
    open_alert,
    render,
    samples_of,
    table_of,
    view,
)
from tidemark.core.broker_report import BrokerConfiguration, LogDirectory
from tidemark.core.cluster import ClusterState, NodeState
from tidemark.core.metric_table import METRICS
from tidemark.core.records import ReplicaView
from tidemark.reduce.life_cycle import Rules
from tidemark.reduce.views import cluster_views
from tidemark.settings import Export
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.exposition import Exposition, Renderer
from tidemark_exporters.export.metric_values import (
    PARTITION_VALUES,
    SERIES_PER_REPLICA,
    TOPIC_VALUES,
)
from tidemark_exporters.export.series_budget import LINGER_SECONDS
from tidemark_exporters.export.table import Table

# Without the names of kafka_exporter.
PER_TOPIC = sum(not METRICS[name].is_optional for name in TOPIC_VALUES)
PER_PARTITION = sum(not METRICS[name].is_optional for name in PARTITION_VALUES)

EAST_0 = 'kafka_cluster="east",topic="orders",partition="0"'


def rendered(
    table: Table,
    counters: EventCounters | None = None,
    max_series: int = 50_000,
    granularity: str = "auto",
) -> Exposition:
    return render(table, counters or EventCounters(), NOW + 2.5, max_series, granularity)


def samples(exposition: Exposition) -> list[Sample]:
    return samples_of((exposition.body + exposition.counters).decode())


def lines(exposition: Exposition, name: str) -> list[str]:
    return [
        line
        for line in exposition.body.decode().splitlines()
        if line.startswith((f"{name}{{", f"# HELP {name} ", f"# TYPE {name} "))
    ]


def test_exact_text() -> None:
    replicas = [
        ReplicaView(broker=1, log_end_offset=120),
        ReplicaView(broker=2, log_end_offset=100, lag_records=20, lag_ms=2500.0),
    ]
    exposition = rendered(
        table_of(view(replicas=replicas, uncommitted_records=20, uncommitted_ms=1250.0))
    )
    assert lines(exposition, "tidemark_replica_lag_seconds") == [
        (
            "# HELP tidemark_replica_lag_seconds "
            "Age, at the leader, of the first record that the replica lacks."
        ),
        "# TYPE tidemark_replica_lag_seconds gauge",
        f'tidemark_replica_lag_seconds{{{EAST_0},broker="2"}} 2.5',
    ]
    assert lines(exposition, "tidemark_replica_log_end_offset")[2:] == [
        f'tidemark_replica_log_end_offset{{{EAST_0},broker="1"}} 120',
        f'tidemark_replica_log_end_offset{{{EAST_0},broker="2"}} 100',
    ]
    assert lines(exposition, "tidemark_partition_uncommitted_age_seconds")[2:] == [
        f"tidemark_partition_uncommitted_age_seconds{{{EAST_0}}} 1.25"
    ]
    assert lines(exposition, "tidemark_view_age_seconds")[2:] == [
        'tidemark_view_age_seconds{kafka_cluster="east"} 2.5'
    ]
    assert exposition.body.endswith(b"\n") and exposition.counters.endswith(b"\n")
    assert gzip.decompress(exposition.compressed) == exposition.body


def test_an_empty_table_has_no_series() -> None:
    exposition = rendered(Table())
    assert (exposition.body, exposition.counters, sum(exposition.series.values())) == (b"", b"", 0)


def test_unknown_is_absent_and_never_0() -> None:
    unknown = view(
        leader=None,
        leader_epoch=None,
        in_sync_replicas=None,
        effective_min_in_sync_replicas=None,
        high_watermark=None,
        log_end_offset=None,
        uncommitted_records=None,
        replicas=[ReplicaView(broker=2, error="refused")],
    )
    named = {sample.name for sample in samples(rendered(table_of(unknown)))}
    assert {name for name in named if name.startswith("tidemark_replica_")} == {
        "tidemark_replica_up"
    }
    assert {name for name in named if name.startswith("tidemark_partition_")} == {
        "tidemark_partition_replicas",
        "tidemark_partition_missed_passes",
    }
    assert "tidemark_topic_uncommitted_records" not in named
    assert "tidemark_cluster_replica_lag_seconds_max" not in named
    assert "tidemark_quorum_leader" not in named


def test_a_pass_that_misses_the_partition_has_no_replica_up() -> None:
    table = table_of(view(missed_passes=1), view(partition=1, leader=None, leaderless=True))
    found = [
        (s.name, s.labels["partition"], s.value)
        for s in samples(rendered(table))
        if s.name in {"tidemark_replica_up", "tidemark_partition_leaderless"}
    ]
    assert found == [
        ("tidemark_partition_leaderless", "0", 0),
        ("tidemark_partition_leaderless", "1", 1),
        *[("tidemark_replica_up", "1", 1)] * 3,
    ]


def test_old_views_have_no_stop_impact() -> None:
    table = table_of(view(), view(kafka_cluster="west", at=NOW - 40))
    found = [
        s for s in samples(rendered(table)) if s.name == "tidemark_broker_stop_impact_partitions"
    ]
    assert {s.labels["kafka_cluster"] for s in found} == {"east"}
    # Their replicas are still counted.
    assert {
        s.labels["kafka_cluster"]
        for s in samples(rendered(table))
        if s.name == "tidemark_broker_replicas"
    } == {"east", "west"}


def test_a_deleted_partition_has_no_series() -> None:
    table = table_of(view())
    table.apply("east/orders/0", None)
    assert not [sample for sample in samples(rendered(table)) if "topic" in sample.labels]


def test_clusters_brokers_and_topics_add_up() -> None:
    table = table_of(
        cluster_view(broker_outcomes={"1": "ok", "2": "timed_out"}),
        view(in_sync_replicas=[1], uncommitted_records=5),
        view(
            partition=1, leader=None, leaderless=True, in_sync_replicas=[], uncommitted_records=None
        ),
        view("logs", leader=2, uncommitted_records=7),
    )
    found = {
        (s.name, s.labels.get("topic"), s.labels.get("broker")): s.value
        for s in samples(rendered(table))
        if "partition" not in s.labels
    }
    expected = {
        ("tidemark_partitions", None, None): 3,
        ("tidemark_partitions_leaderless", None, None): 1,
        ("tidemark_partitions_under_replicated", None, None): 2,
        ("tidemark_partitions_under_min_in_sync", None, None): 2,
        ("tidemark_topic_partitions", "orders", None): 2,
        ("tidemark_topic_uncommitted_records", "orders", None): 5,
        ("tidemark_broker_up", None, "1"): 1,
        ("tidemark_broker_up", None, "2"): 0,
        ("tidemark_broker_leaders", None, "1"): 1,
        ("tidemark_broker_leaders", None, "2"): 1,
        ("tidemark_broker_replicas", None, "3"): 3,
        ("tidemark_broker_out_of_sync_replicas", None, "3"): 2,
    }
    assert {series: found.get(series) for series in expected} == expected


def test_open_alerts_are_counted_and_fall_to_0() -> None:
    table = table_of(view(alerts=[open_alert(alert()), open_alert(alert(broker="3"))]))
    counters = EventCounters()

    def open_now() -> dict[str, float]:
        return {
            s.labels["alertname"]: s.value
            for s in samples(rendered(table, counters))
            if s.name == "tidemark_alert_open"
        }

    assert open_now() == {"KafkaFollowerLag": 2}
    table.apply("east/orders/0", view())
    assert open_now() == {"KafkaFollowerLag": 0}


def test_counters_start_at_0_for_every_cluster() -> None:
    exposition = rendered(table_of(view()))
    started = {s.name: s.value for s in samples(exposition) if s.name.endswith("_total")}
    assert started == dict.fromkeys(
        (
            "tidemark_alerts_fired_total",
            "tidemark_committed_records_lost_total",
            "tidemark_isr_expands_total",
            "tidemark_isr_shrinks_by_cause_total",
            "tidemark_isr_shrinks_led_total",
            "tidemark_isr_shrinks_total",
            "tidemark_leader_elections_total",
            "tidemark_truncations_total",
            "tidemark_unclean_elections_total",
        ),
        0,
    )


HOSTILE = st.text(
    alphabet=st.sampled_from('\\"\n\r{},= #\t\u2028é名\x00<>'), min_size=1, max_size=12
) | st.text(min_size=1, max_size=12)


@example("%a", "100%", "%%s")
@given(cluster=HOSTILE, topic=HOSTILE, name=HOSTILE)
def test_hostile_names_stay_values(cluster: str, topic: str, name: str) -> None:
    opened = alert(name, cluster=cluster, topic=topic)
    table = table_of(view(topic, kafka_cluster=cluster, alerts=[open_alert(opened)]))
    found = samples(rendered(table, counted(opened)))
    assert {s.labels["topic"] for s in found if "topic" in s.labels} == {topic}
    assert {s.labels["kafka_cluster"] for s in found} == {cluster}
    assert name in {s.labels.get("alertname") for s in found}


@given(
    partitions=st.integers(0, 40),
    max_series=st.integers(0, 900),
    granularity=st.sampled_from(["auto", "cluster", "topic", "partition", "replica"]),
)
def test_the_budget_holds_and_dropped_series_are_counted(
    partitions: int, max_series: int, granularity: str
) -> None:
    replicas = [
        ReplicaView(
            broker=b,
            log_end_offset=9,
            high_watermark=9,
            log_start_offset=0,
            leader_epoch=4,
            in_sync=True,
            lag_records=0,
            lag_ms=0.0,
            last_stable_offset=90,
            size_bytes=4096,
            high_watermark_lag_ms=5.0,
        )
        for b in (1, 2, 3)
    ]
    table = table_of(
        *(
            view(
                f"t{number % 3}",
                number,
                in_sync_replicas=[1] if number % 7 == 0 else [1, 2, 3],
                replicas=replicas,
                uncommitted_ms=0.0,
            )
            for number in range(partitions)
        )
    )
    exposition = rendered(table, max_series=max_series, granularity=granularity)
    detail = [s for s in samples(exposition) if "topic" in s.labels]
    always = len(samples(exposition)) - len(detail)
    assert len(detail) <= max(0, max_series - always)
    assert sum(exposition.series.values()) == len(samples(exposition))
    wanted = {"topic": 0, "partition": 0, "replica": 0}
    if granularity != "cluster":
        wanted["topic"] = min(partitions, 3) * PER_TOPIC
    if granularity not in {"cluster", "topic"}:
        wanted["partition"] = partitions * PER_PARTITION
    if granularity in {"auto", "replica"}:
        wanted["replica"] = partitions * 3 * SERIES_PER_REPLICA
    for tier, count in wanted.items():
        assert exposition.series.get(tier, 0) + exposition.dropped.get(tier, 0) == count


def test_unhealthy_partitions_stay_when_the_budget_is_short() -> None:
    table = table_of(
        *(
            view(partition=number, in_sync_replicas=[1] if number == 8 else [1, 2, 3])
            for number in range(10)
        )
    )
    full = rendered(table)
    always = full.series["cluster"] + full.series["broker"] + full.series["topic"]
    short = rendered(table, max_series=always + 10 * PER_PARTITION + 3 * SERIES_PER_REPLICA)
    assert {s.labels["partition"] for s in samples(short) if s.name == "tidemark_replica_up"} == {
        "8"
    }
    assert short.dropped == {"topic": 0, "partition": 0, "replica": 27 * SERIES_PER_REPLICA}
    shorter = rendered(table, max_series=always + 2 * PER_PARTITION)
    assert {
        s.labels["partition"] for s in samples(shorter) if s.name == "tidemark_partition_leader"
    } == {"0", "8"}
    assert not [s for s in samples(shorter) if s.name == "tidemark_replica_up"]


def test_above_10000_replicas_only_the_unhealthy_and_the_slowest_have_series() -> None:
    table = table_of(
        *(
            view(
                partition=number,
                replicas=lagging(number if number < 300 else 0),
                in_sync_replicas=[1, 2] if number == 3000 else [1, 2, 3],
            )
            for number in range(3400)
        )
    )
    detail = {
        int(s.labels["partition"])
        for s in samples(rendered(table))
        if s.name == "tidemark_replica_lag_records"
    }
    assert detail == {3000, *range(100, 300)}


def lagging(records: int) -> list[ReplicaView]:
    """Three replicas with this lag."""
    return [ReplicaView(broker=b, lag_records=records) for b in (1, 2, 3)]


def shown(exposition: Exposition) -> set[int]:
    return {
        int(s.labels["partition"])
        for s in samples(exposition)
        if s.name == "tidemark_partition_leader"
    }


def large(table: Table, unhealthy: set[int], lag: int = 0) -> None:
    """3,400 partitions of three replicas: too many for series of all."""
    for number in range(3400):
        topic = "orders" if number < 3000 else "payments"
        table.apply(
            f"east/{topic}/{number}",
            view(
                topic,
                number,
                replicas=lagging(lag if number == 77 else 0),
                in_sync_replicas=[1, 2] if number in unhealthy else [1, 2, 3],
            ),
        )


def test_a_served_partition_lingers_and_then_disappears() -> None:
    table, renderer, counters = Table(), Renderer(Export()), EventCounters()
    large(table, {5}, lag=9)
    assert shown(renderer.render(table, counters, NOW)) == {5, 77}
    large(table, set())
    assert shown(renderer.render(table, counters, NOW + 1)) == {5, 77}
    assert shown(renderer.render(table, counters, NOW + LINGER_SECONDS - 1)) == {5, 77}
    assert shown(renderer.render(table, counters, NOW + LINGER_SECONDS + 2)) == set()
    assert not any(row.retained for row in table.partitions.values())


def test_a_deleted_partition_does_not_linger() -> None:
    table, renderer, counters = Table(), Renderer(Export()), EventCounters()
    large(table, {5})
    renderer.render(table, counters, NOW)
    table.apply("east/orders/5", None)
    assert shown(renderer.render(table, counters, NOW + 1)) == set()


def test_the_allow_list_is_matched_whole_and_always_served() -> None:
    table, counters = Table(), EventCounters()
    large(table, {5})
    renderer = Renderer(Export(detail_topics=["pay", "payments|x"]))
    assert shown(renderer.render(table, counters, NOW)) == {5, *range(3000, 3400)}


def test_small_lags_of_a_busy_cluster_do_not_accumulate() -> None:
    """Each refresh has other slowest partitions; the lingering ones are bounded."""
    table, renderer, counters = Table(), Renderer(Export()), EventCounters()
    large(table, set())
    for turn in range(10):
        for number in range(turn * 300, turn * 300 + 300):
            slow = view(partition=number, replicas=lagging(1000 * (turn + 1)))
            table.apply(f"east/orders/{number}", slow)
        exposition = renderer.render(table, counters, NOW + turn)
    assert 200 <= len(shown(exposition)) <= 600


def test_an_alert_about_a_topic_falls_to_0_before_its_series_disappears() -> None:
    table, renderer, counters = Table(), Renderer(Export()), EventCounters()
    key = ("orders", "KafkaFollowerLag", "warning")

    def of_topics(now: float) -> dict[tuple[str, ...], float]:
        found = [
            s
            for s in samples(renderer.render(table, counters, now))
            if s.name == "tidemark_topic_alert_open"
        ]
        return {
            (s.labels["topic"], s.labels["alertname"], s.labels["severity"]): s.value for s in found
        }

    table.apply("east/orders/0", view(alerts=[open_alert(alert())]))
    assert of_topics(NOW) == {key: 1}
    table.apply("east/orders/0", view())
    assert of_topics(NOW + 10) == {key: 0}
    assert of_topics(NOW + LINGER_SECONDS) == {}


def with_kafka_exporter_names(table: Table) -> Exposition:
    return Renderer(Export(kafka_exporter_names=True)).render(table, EventCounters(), NOW)


def test_the_names_of_kafka_exporter_are_optional() -> None:
    table = table_of(
        cluster_view(broker_outcomes={"1": "ok", "2": "refused"}),
        view(leader=2, in_sync_replicas=[1, 2], log_start_offset=7),
    )
    assert not [s for s in samples(rendered(table)) if s.name.startswith("kafka_")]
    found = {
        s.name: s.value for s in samples(with_kafka_exporter_names(table)) if "kafka_" in s.name[:6]
    }
    assert found == {
        "kafka_brokers": 2,
        "kafka_topic_partitions": 1,
        "kafka_topic_partition_current_offset": 100,
        "kafka_topic_partition_oldest_offset": 7,
        "kafka_topic_partition_leader": 2,
        "kafka_topic_partition_leader_is_preferred": 0,
        "kafka_topic_partition_replicas": 3,
        "kafka_topic_partition_in_sync_replica": 2,
        "kafka_topic_partition_under_replicated_partition": 1,
    }


def test_the_names_of_kafka_exporter_are_absent_when_unknown() -> None:
    table = table_of(view(leader=None, in_sync_replicas=None))
    named = {s.name for s in samples(with_kafka_exporter_names(table))}
    assert not named & {
        "kafka_topic_partition_under_replicated_partition",
        "kafka_topic_partition_leader_is_preferred",
        "kafka_brokers",
    }


def test_openmetrics_has_the_same_samples() -> None:
    table = table_of(
        cluster_view(broker_outcomes={"1": "ok"}), view('or\\d"ers\n', uncommitted_ms=4.0)
    )
    exposition = with_kafka_exporter_names(table)
    text = (exposition.body + exposition.counters_openmetrics).decode() + "# EOF\n"
    found = [sample for metric in openmetrics_families(text) for sample in metric.samples]  # type: ignore[no-untyped-call]
    assert {(s.name, *sorted(s.labels.items()), s.value) for s in found} == {
        (s.name, *sorted(s.labels.items()), s.value) for s in samples(exposition)
    }


def test_the_impact_of_stopping_a_broker() -> None:
    table = table_of(
        view(),
        view(partition=1, in_sync_replicas=[1, 2]),
        view(partition=2, in_sync_replicas=[1], effective_min_in_sync_replicas=1),
        # Not observed: no broker is safe to stop.
        view(partition=3, missed_passes=4),
    )

    def impact(broker: int) -> dict[str, float]:
        return {
            s.labels["effect"]: s.value
            for s in samples(rendered(table))
            if s.name == "tidemark_broker_stop_impact_partitions"
            and s.labels["broker"] == str(broker)
        }

    assert impact(1) == {"offline": 1, "under_min_isr": 1, "last_copy": 0, "unknown": 1}
    assert impact(2) == {"offline": 0, "under_min_isr": 1, "last_copy": 0, "unknown": 1}
    assert impact(3) == {"offline": 0, "under_min_isr": 0, "last_copy": 0, "unknown": 1}


def test_the_progress_of_the_metadata_quorum() -> None:
    state = ClusterState(
        nodes={
            1: NodeState(NOW, metadata_lag_ms=1500.0),
            100: NodeState(NOW, metadata_log_end_offset=77),
            2: NodeState(NOW),
        }
    )
    rules = Rules(3, 2, 1.0, {})
    quorum, *_ = cluster_views(
        state, "east", rules, collector="c", pass_number=1, period_ms=1000.0, now=NOW
    )
    found = {
        (s.name.removeprefix("tidemark_broker_metadata_"), s.labels["broker"]): s.value
        for s in samples(rendered(table_of(quorum)))
        if "metadata" in s.name
    }
    assert found == {("lag_seconds", "1"): 1.5, ("log_end_offset", "100"): 77}


def test_what_brokers_report_of_themselves() -> None:
    table = table_of(
        broker_view(
            1,
            log_directories=[
                LogDirectory(path="/a", total_bytes=9, usable_bytes=4, cordoned=True),
                LogDirectory(path="/b", error="KAFKA_STORAGE_ERROR", cordoned=False),
            ],
            configuration=BrokerConfiguration(replica_selector_class="RackAware"),
        ),
        broker_view(2, configuration=BrokerConfiguration(replica_selector_class="")),
        broker_view(3, configuration=BrokerConfiguration()),
    )
    found = {
        (s.name, s.labels["broker"], s.labels.get("log_directory")): s.value
        for s in samples(rendered(table))
        if "log_directory" in s.name or "reads_from" in s.name
    }
    assert found == {
        ("tidemark_broker_reads_from_followers", "1", None): 1,
        ("tidemark_broker_reads_from_followers", "2", None): 0,
        ("tidemark_log_directory_online", "1", "/a"): 1,
        ("tidemark_log_directory_online", "1", "/b"): 0,
        ("tidemark_log_directory_cordoned", "1", "/a"): 1,
        ("tidemark_log_directory_cordoned", "1", "/b"): 0,
        ("tidemark_log_directory_total_bytes", "1", "/a"): 9,
        ("tidemark_log_directory_usable_bytes", "1", "/a"): 4,
    }


def test_a_broker_that_was_removed_reports_nothing() -> None:
    """Its view stays in the topic."""
    gone = broker_view(
        4,
        log_directories=[LogDirectory(path="/a", usable_bytes=4)],
        configuration=BrokerConfiguration(unclean_leader_election=True, replica_selector_class=""),
    )
    text = rendered(table_of(cluster_view(broker_outcomes={"1": "ok"}), gone, view())).body.decode()
    assert 'broker="4"' not in text
    assert 'tidemark_risky_configurations_unknown{kafka_cluster="east",kind="one_rack"} 1' in text
    assert "tidemark_risky_configurations{" in text
    assert not re.search(r'risky_configurations\{.*kind="unclean.*\} [1-9]', text)


def test_risky_configurations_are_counted_and_unknown_is_not_0() -> None:
    known: dict[str, Any] = {"throttled_replicas": [1], "in_sync_on_one_rack": False}
    table = table_of(
        cluster_view(reassigning=0),
        view(unclean_leader_election=True, **known),
        view(partition=1, unclean_leader_election=False, **known),
        view(partition=2, effective_min_in_sync_replicas=3, **known),
        broker_view(1, configuration=BrokerConfiguration(unclean_leader_election=True)),
    )

    def found() -> dict[str, tuple[float | None, float]]:
        values = {
            (s.name, s.labels["kind"]): s.value
            for s in samples(rendered(table))
            if s.name.startswith("tidemark_risky")
        }
        kinds = {kind for _, kind in values}
        name = "tidemark_risky_configurations"
        return {k: (values.get((name, k)), values[f"{name}_unknown", k]) for k in kinds}

    assert found() == {
        "single_replica": (0, 0),
        "min_isr_equals_replicas": (1, 0),
        "min_isr_1": (0, 0),
        "unclean_leader_election": (2, 1),
        "one_rack": (0, 0),
        "elr_off": (0, 0),
        "leftover_throttle": (3, 0),
    }
    # Nothing is left behind while a reassignment runs.
    table.apply("east", cluster_view(reassigning=2))
    assert found()["leftover_throttle"] == (0, 0)
    # It is unknown where reassignments cannot be listed.
    table.apply("east", cluster_view())
    assert found()["leftover_throttle"] == (None, 3)
    for number in range(3):
        table.apply(f"east/orders/{number}", None)
    assert found()["unclean_leader_election"] == (1, 0)


OFFSETS = st.none() | st.integers(0, 3)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 3), OFFSETS, OFFSETS, st.booleans()), max_size=5),
        min_size=2,
        max_size=5,
    )
)
def test_a_refresh_equals_the_rendering_of_a_new_exporter(
    refreshes: list[list[tuple[int, int | None, int | None, bool]]],
) -> None:
    """After any change of any partition, with what it counts and drops."""
    table, lasting = Table(), Renderer(Export(granularity="replica"))
    for changes in refreshes:
        for number, end, lag, gone in changes:
            replicas = [
                ReplicaView(broker=1, log_end_offset=end),
                ReplicaView(broker=2, log_end_offset=end, lag_records=lag),
            ]
            table.apply(
                f"east/orders/{number}",
                None if gone else view("orders", number, high_watermark=end, replicas=replicas),
            )
        fresh = render(table, EventCounters(), NOW, 50_000, "replica")
        assert lasting.render(table, EventCounters(), NOW) == fresh
