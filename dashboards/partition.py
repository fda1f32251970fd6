"""The Partition dashboard: logs of the replicas, high watermark, leaders and in-sync set."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards import frame
from dashboards.panels import (
    ANSWERS,
    IN_SYNC,
    NO_DETAIL,
    OPEN,
    SECONDS,
    YES_NO,
    AnyPanel,
    grid,
    lines,
    link,
    number,
    page,
    queries,
    states,
)
from dashboards.promql import RECENT, series, sum_by

UID = frame.PARTITION
OF_TOPIC = {"kafka_cluster": "$kafka_cluster", "topic": "$topic"}
BROKER = "broker {{broker}}"
TO_BROKERS = link(
    "Brokers", frame.BROKERS, kafka_cluster="$kafka_cluster", broker="${__field.labels.broker}"
)
TO_PAGE = page(
    "Status page",
    "partition",
    cluster="${kafka_cluster:percentencode}",
    topic="${topic:percentencode}",
    partition="${partition}",
)


def _of(metric: str, **matchers: str) -> str:
    return series(metric, **OF_TOPIC, partition="$partition", **matchers)


def _numbers() -> list[AnyPanel]:
    def plain(
        panel_id: int, title: str, why: str, metric: str, bad: float | None = None
    ) -> AnyPanel:
        return number(panel_id, title, why, _of(metric), "", bad=bad, unit="none", absent="no data")

    in_sync = _of("tidemark_partition_in_sync_replicas")
    below = f"{in_sync} < bool {_of('tidemark_partition_min_in_sync_replicas')}"
    return [
        plain(1, "Leader", "Broker id of the leader.", "tidemark_partition_leader"),
        plain(
            2, "Leader epoch", "Increases with each election.", "tidemark_partition_leader_epoch"
        ),
        plain(
            3, "In-sync replicas", "Size of the in-sync set.", "tidemark_partition_in_sync_replicas"
        ),
        number(
            4,
            "Under min ISR",
            "Whether fewer replicas are in sync than the effective minimum: producers with "
            "acks=all are rejected.",
            below,
            "",
            bad=1,
            unit="none",
            words=YES_NO,
            absent="no data",
        ),
        number(
            5,
            "Offline",
            "Whether the partition has no leader.",
            _of("tidemark_partition_leaderless"),
            "",
            bad=1,
            unit="none",
            words=YES_NO,
            absent="no data",
        ),
        plain(
            6,
            "Missed passes",
            "Consecutive passes without an observation; the state is unknown.",
            "tidemark_partition_missed_passes",
            3,
        ),
    ]


def _logs() -> list[AnyPanel]:
    ends = queries(
        (_of("tidemark_replica_log_end_offset"), f"{BROKER} log end"),
        (_of("tidemark_replica_high_watermark"), f"{BROKER} high watermark"),
    )
    return [
        lines(
            7,
            "Log end offset and high watermark by replica",
            "Log end offset and known high watermark of each replica. A drop of the log end offset "
            "is a truncation.",
            ends,
            unit="locale",
            from_zero=False,
            dashed="high watermark",
            absent=NO_DETAIL,
            links=[TO_BROKERS, TO_PAGE],
        ),
        lines(
            8,
            "Lag in records by replica",
            "The in-sync replica with the largest lag holds the high watermark back.",
            queries((_of("tidemark_replica_lag_records"), BROKER)),
            unit="short",
            absent=NO_DETAIL,
            links=[TO_BROKERS, TO_PAGE],
        ),
    ]


def _times() -> list[AnyPanel]:
    window = queries(
        (_of("tidemark_partition_uncommitted_records"), "records above the high watermark"),
    )
    return [
        lines(
            9,
            "Lag in seconds by replica",
            "Age, at the leader, of the first record that is missing on the replica.",
            queries((_of("tidemark_replica_lag_seconds"), BROKER)),
            unit=SECONDS,
            absent=NO_DETAIL,
        ),
        lines(
            10,
            "Uncommitted window",
            "Log end offset minus high watermark, at the leader.",
            window,
            unit="short",
            absent=NO_DETAIL,
        ),
        lines(
            11,
            "Age of the uncommitted window",
            "Age of the oldest record above the high watermark.",
            queries((_of("tidemark_partition_uncommitted_age_seconds"), "age")),
            unit=SECONDS,
            absent=NO_DETAIL,
        ),
    ]


def _watermarks() -> list[AnyPanel]:
    starts = queries(
        (_of("tidemark_partition_low_watermark"), "low watermark"),
        (_of("tidemark_replica_log_start_offset"), f"{BROKER} log start"),
    )
    return [
        lines(
            17,
            "Low watermark",
            "Lowest log start offset of the replicas that answer, and the log start offset of each "
            "replica. A deletion of records is complete once the low watermark reaches its offset.",
            starts,
            unit="locale",
            from_zero=False,
            dashed="low watermark",
            absent=NO_DETAIL,
        ),
        lines(
            18,
            "Lag of high watermarks by replica",
            "High watermark of the leader minus that of the follower. Before Kafka 0.11, a "
            "follower truncated to its own.",
            queries((_of("tidemark_replica_high_watermark_lag_records"), BROKER)),
            unit="short",
            absent=NO_DETAIL,
        ),
        lines(
            19,
            "Lag of high watermarks in seconds",
            "Age, at the leader, of the first record that the follower does not know to be "
            "committed.",
            queries((_of("tidemark_replica_high_watermark_lag_seconds"), BROKER)),
            unit=SECONDS,
            absent=NO_DETAIL,
        ),
    ]


def _timelines() -> list[list[AnyPanel]]:
    leadership = queries(
        (_of("tidemark_partition_leader_epoch"), "leader epoch"),
        (_of("tidemark_partition_leader"), "leader"),
    )
    topic_alerts = series("tidemark_topic_alert_open", **OF_TOPIC)
    return [
        [
            states(
                12,
                "Leader epoch and leader",
                "Each change of the epoch is an election.",
                leadership,
                own_scales=True,
                absent=NO_DETAIL,
            ),
            states(
                13,
                "In-sync set",
                "In-sync replicas over time.",
                queries((_of("tidemark_replica_in_sync"), BROKER)),
                words=IN_SYNC,
                absent=NO_DETAIL,
            ),
        ],
        [
            states(
                14,
                "Known leader epoch by replica",
                "A broker with a lower epoch has outdated metadata, or considers itself leader.",
                queries((_of("tidemark_replica_leader_epoch"), BROKER)),
                absent=NO_DETAIL,
            ),
            states(
                15,
                "Replica answers",
                "Whether the broker answered for the replica in the last pass. If not, the other "
                "values of the replica are outdated.",
                queries((_of("tidemark_replica_up"), BROKER)),
                words=ANSWERS,
                absent=NO_DETAIL,
            ),
        ],
        [
            states(
                16,
                "Alerts about the topic",
                "Open alerts by name and severity. The status page has those of the partition.",
                queries(
                    (sum_by(topic_alerts, "alertname", "severity"), "{{alertname}} {{severity}}")
                ),
                words=OPEN,
                absent="none for 15 minutes",
            )
        ],
    ]


def build() -> dashboard.Dashboard:
    metric = "tidemark_partition_replicas"
    critical = series("tidemark_topic_alert_open", **OF_TOPIC, severity="=~critical|warning")
    return frame.make_dashboard(
        UID,
        "Partition",
        "The replicas of one partition: logs, lag, uncommitted window, leaders and in-sync set.",
        [
            frame.clusters(many=False),
            frame.choice("topic", "Topic", metric, many=False, kafka_cluster="$kafka_cluster"),
            frame.choice("partition", "Partition", metric, many=False, numeric=True, **OF_TOPIC),
        ],
        [
            frame.annotation(
                "Alert about the topic",
                "orange",
                f"{sum_by(critical, 'alertname', 'severity')} > 0",
                "{{alertname}} {{severity}}",
            ),
            frame.annotation(
                "Election",
                "blue",
                f"changes({_of('tidemark_partition_leader_epoch')}[{RECENT}]) > 0",
                "leader epoch increased",
            ),
        ],
        grid(
            (4, _numbers()),
            (11, _logs()[:1]),
            (8, _logs()[1:] + _times()[:1]),
            (8, _times()[1:]),
            (8, _watermarks()),
            *((7, row) for row in _timelines()),
        ),
    )
