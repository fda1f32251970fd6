"""One topic: what its partitions add up to, and which of them to look at."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards import frame
from dashboards.panels import (
    NO_DETAIL,
    AnyPanel,
    grid,
    lines,
    link,
    listing,
    number,
    queries,
    states,
)
from dashboards.promql import series, sum_by

UID = frame.TOPIC
OF_TOPIC = {"kafka_cluster": "$kafka_cluster", "topic": "$topic"}
PARTITION = "partition {{partition}}"


def _of(metric: str, **matchers: str) -> str:
    return series(metric, **OF_TOPIC, **matchers)


def _numbers() -> list[AnyPanel]:
    return [
        number(
            1, "Partitions", "Partitions known.", _of("tidemark_topic_partitions"), "", bad=None
        ),
        number(
            2,
            "Offline",
            "No leader serves them.",
            _of("tidemark_topic_partitions_leaderless"),
            "",
            bad=1,
        ),
        number(
            3,
            "Under min ISR",
            "Producers with acks=all are refused.",
            _of("tidemark_topic_partitions_under_min_in_sync"),
            "",
            bad=1,
        ),
        number(
            4,
            "Under-replicated",
            "Assigned replicas are out of sync.",
            _of("tidemark_topic_partitions_under_replicated"),
            "",
            bad=1,
            colour="orange",
        ),
        number(
            5,
            "Largest lag",
            "Of any follower, in time.",
            _of("tidemark_topic_replica_lag_seconds_max"),
            "",
            bad=2,
            unit="s",
        ),
        number(
            6,
            "Alerts open",
            "Alerts about this topic, of every severity.",
            f"sum({_of('tidemark_topic_alert_open')})",
            "",
            bad=1,
            colour="orange",
            absent="none known for a quarter of an hour",
        ),
    ]


def _partitions() -> AnyPanel:
    handed = {
        "kafka_cluster": "$kafka_cluster",
        "topic": "$topic",
        "partition": "${__data.fields.Partition}",
    }
    return listing(
        11,
        "Partitions with series of their own",
        "Unhealthy ones, the slowest, and those that are always shown; a partition leads to its own dashboard.",
        [
            ("Lag", _of("tidemark_replica_lag_seconds")),
            ("Uncommitted", _of("tidemark_partition_uncommitted_records")),
            ("In sync", _of("tidemark_partition_in_sync_replicas")),
            ("Replicas", _of("tidemark_partition_replicas")),
            ("Leader", _of("tidemark_partition_leader")),
            ("Epoch", _of("tidemark_partition_leader_epoch")),
        ],
        labels={"partition": "Partition"},
        sort="Lag",
        units={"Lag": "s", "Leader": "none", "Epoch": "none"},
        bad={"Lag": 2},
        links={"Partition": [link("Partition", frame.PARTITION, **handed)]},
        absent=NO_DETAIL,
    )


def build() -> dashboard.Dashboard:
    waiting = "Records above the high watermarks: they wait for the in-sync followers."
    panels = grid(
        (4, _numbers()),
        (
            8,
            [
                lines(
                    7,
                    "Largest follower lag",
                    "Age of the oldest record that a follower lacks.",
                    queries((_of("tidemark_topic_replica_lag_seconds_max"), "lag")),
                    unit="s",
                ),
                lines(
                    8,
                    "Largest follower lag in records",
                    "Of any follower of any partition.",
                    queries((_of("tidemark_topic_replica_lag_records_max"), "records")),
                    unit="short",
                ),
            ],
        ),
        (
            8,
            [
                lines(
                    9,
                    "Uncommitted records",
                    waiting,
                    queries((_of("tidemark_topic_uncommitted_records"), "records")),
                    unit="short",
                ),
                lines(
                    10,
                    "Age of the oldest uncommitted record",
                    "How long consumers have been kept from what waits longest.",
                    queries((_of("tidemark_topic_uncommitted_age_seconds_max"), "age")),
                    unit="s",
                ),
            ],
        ),
        (9, [_partitions()]),
        (
            8,
            [
                states(
                    12,
                    "Alerts",
                    "How many are open, by name and severity.",
                    queries(
                        (
                            sum_by(_of("tidemark_topic_alert_open"), "alertname", "severity"),
                            "{{alertname}} {{severity}}",
                        )
                    ),
                    bad=1,
                    absent="none known for a quarter of an hour",
                ),
                states(
                    13,
                    "In-sync replicas",
                    "Size of the in-sync set by partition.",
                    queries((_of("tidemark_partition_in_sync_replicas"), PARTITION)),
                    absent=NO_DETAIL,
                ),
            ],
        ),
    )
    alerts = f"{sum_by(_of('tidemark_topic_alert_open', severity='=~critical|warning'), 'alertname', 'severity')} > 0"
    return frame.board(
        UID,
        "Topic",
        "One topic: state, lag, what is not committed yet, its alerts, and the partitions to look at.",
        [
            frame.clusters(many=False),
            frame.choice(
                "topic",
                "Topic",
                "tidemark_topic_partitions",
                many=False,
                kafka_cluster="$kafka_cluster",
            ),
        ],
        [frame.annotation("Alert about the topic", "orange", alerts, "{{alertname}} {{severity}}")],
        panels,
    )
