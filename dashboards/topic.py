"""The Topic dashboard: totals of a topic's partitions, and the partitions of interest."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards import frame
from dashboards.panels import (
    NO_DETAIL,
    OPEN,
    SECONDS,
    SIZES,
    AnyPanel,
    grid,
    lines,
    link,
    listing,
    number,
    page,
    queries,
    states,
)
from dashboards.promql import FEW, series, smallest, sum_by

UID = frame.TOPIC
OF_TOPIC = {"kafka_cluster": "$kafka_cluster", "topic": "$topic"}
PARTITION = "partition {{partition}}"


def _of(metric: str, **matchers: str) -> str:
    return series(metric, **OF_TOPIC, **matchers)


def _numbers() -> list[AnyPanel]:
    return [
        number(
            1, "Partitions", "Known partitions.", _of("tidemark_topic_partitions"), "", bad=None
        ),
        number(
            2,
            "Offline",
            "Partitions without a leader.",
            _of("tidemark_topic_partitions_leaderless"),
            "",
            bad=1,
        ),
        number(
            3,
            "Under min ISR",
            "Partitions that reject producers with acks=all.",
            _of("tidemark_topic_partitions_under_min_in_sync"),
            "",
            bad=1,
        ),
        number(
            4,
            "Under-replicated",
            "Partitions with assigned replicas that are not in sync.",
            _of("tidemark_topic_partitions_under_replicated"),
            "",
            bad=1,
            colour="orange",
        ),
        number(
            5,
            "Largest lag",
            "Largest lag in time of any follower.",
            _of("tidemark_topic_replica_lag_seconds_max"),
            "",
            bad=2,
            unit="s",
        ),
        number(
            6,
            "Alerts open",
            "Open alerts about the topic, of every severity.",
            f"sum({_of('tidemark_topic_alert_open')})",
            "",
            bad=1,
            colour="orange",
            absent="none for 15 minutes",
        ),
    ]


TO_PAGE = page(
    "Status page",
    "partition",
    cluster="${kafka_cluster:percentencode}",
    topic="${topic:percentencode}",
    partition="${__data.fields.Partition}",
)


def _partitions() -> AnyPanel:
    handed = {
        "kafka_cluster": "$kafka_cluster",
        "topic": "$topic",
        "partition": "${__data.fields.Partition}",
    }
    return listing(
        11,
        "Partitions with series",
        "Unhealthy partitions, the slowest, and those of export.detail_topics. Click a partition "
        "for its dashboard.",
        [
            ("Lag", _of("tidemark_replica_lag_seconds")),
            ("Uncommitted", _of("tidemark_partition_uncommitted_records")),
            ("In sync", _of("tidemark_partition_in_sync_replicas")),
            ("Replicas", _of("tidemark_partition_replicas")),
            ("Leader", _of("tidemark_partition_leader")),
            ("Epoch", _of("tidemark_partition_leader_epoch")),
        ],
        labels={"partition": "Partition"},
        sort=["Lag"],
        units={"Lag": "s", "Leader": "none", "Epoch": "none"},
        bad={"Lag": 2},
        links={"Partition": [link("Partition", frame.PARTITION, **handed), TO_PAGE]},
        absent=NO_DETAIL,
    )


def build() -> dashboard.Dashboard:
    panels = grid(
        (4, _numbers()),
        (
            8,
            [
                lines(
                    7,
                    "Largest follower lag",
                    "Age of the oldest record that is missing on a follower.",
                    queries((_of("tidemark_topic_replica_lag_seconds_max"), "lag")),
                    unit=SECONDS,
                ),
                lines(
                    8,
                    "Largest follower lag in records",
                    "Largest lag in records of any follower.",
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
                    "Records above the high watermarks, not yet on all in-sync followers.",
                    queries((_of("tidemark_topic_uncommitted_records"), "records")),
                    unit="short",
                ),
                lines(
                    10,
                    "Age of the oldest uncommitted record",
                    "Age of the oldest record that consumers cannot read yet.",
                    queries((_of("tidemark_topic_uncommitted_age_seconds_max"), "age")),
                    unit=SECONDS,
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
                    "Open alerts by name and severity.",
                    queries(
                        (
                            sum_by(_of("tidemark_topic_alert_open"), "alertname", "severity"),
                            "{{alertname}} {{severity}}",
                        )
                    ),
                    words=OPEN,
                    absent="none for 15 minutes",
                ),
                states(
                    13,
                    "In-sync replicas",
                    f"Size of the in-sync set, by partition. {FEW}",
                    queries((smallest(_of("tidemark_partition_in_sync_replicas")), PARTITION)),
                    words=SIZES,
                    absent=NO_DETAIL,
                ),
            ],
        ),
        (
            8,
            [
                lines(
                    14,
                    "Reassignment",
                    "Records that the replicas that are being added have not copied.",
                    queries((_of("tidemark_topic_reassignment_remaining_records"), "to copy")),
                    unit="short",
                    absent="unknown of a replica that is being added",
                ),
                lines(
                    15,
                    "Reassignment done in",
                    "Time until they have caught up, at the slowest pace of the last two minutes.",
                    queries((_of("tidemark_topic_reassignment_remaining_seconds"), "at most")),
                    unit=SECONDS,
                    absent="no end in sight yet",
                ),
            ],
        ),
    )
    urgent = _of("tidemark_topic_alert_open", severity="=~critical|warning")
    alerts = f"{sum_by(urgent, 'alertname', 'severity')} > 0"
    return frame.make_dashboard(
        UID,
        "Topic",
        "One topic: state, lag, uncommitted records, alerts, and the partitions of interest.",
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
