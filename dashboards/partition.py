"""One partition: its replicas' logs beside one another, who holds the high watermark back, who led and who was in sync."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards import frame
from dashboards.panels import (
    ANSWERS,
    IN_SYNC,
    NO_DETAIL,
    AnyPanel,
    grid,
    lines,
    link,
    number,
    queries,
    states,
)
from dashboards.promql import series, sum_by

UID = frame.PARTITION
OF_TOPIC = {"kafka_cluster": "$kafka_cluster", "topic": "$topic"}
BROKER = "broker {{broker}}"
TO_BROKERS = link(
    "Brokers", frame.BROKERS, kafka_cluster="$kafka_cluster", broker="${__field.labels.broker}"
)


def _of(metric: str, **matchers: str) -> str:
    return series(metric, **OF_TOPIC, partition="$partition", **matchers)


def _numbers() -> list[AnyPanel]:
    def plain(
        panel_id: int, title: str, why: str, metric: str, bad: float | None = None
    ) -> AnyPanel:
        return number(
            panel_id, title, why, _of(metric), "", bad=bad, unit="none", absent="not shown"
        )

    below = f"{_of('tidemark_partition_in_sync_replicas')} < bool {_of('tidemark_partition_min_in_sync_replicas')}"
    return [
        plain(1, "Leader", "Broker id; none while nobody leads.", "tidemark_partition_leader"),
        plain(2, "Leader epoch", "Rises with each election.", "tidemark_partition_leader_epoch"),
        plain(
            3, "In-sync replicas", "Size of the in-sync set.", "tidemark_partition_in_sync_replicas"
        ),
        number(
            4,
            "Under min ISR",
            "1: fewer replicas are in sync than the effective minimum; producers with acks=all are refused.",
            below,
            "",
            bad=1,
            unit="none",
            absent="not shown",
        ),
        plain(
            5, "Offline", "1: no leader serves the partition.", "tidemark_partition_leaderless", 1
        ),
        plain(
            6,
            "Missed passes",
            "Passes in a row that did not see it: neither healthy nor lost.",
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
            "Two lines a replica: how far its log goes, and how far it knows it to be committed. A drop of a log end is a truncation.",
            ends,
            unit="locale",
            from_zero=False,
            absent=NO_DETAIL,
            links=[TO_BROKERS],
        ),
        lines(
            8,
            "Behind the leader's log end",
            "By replica: whose line is highest among those in sync holds the high watermark back.",
            queries((_of("tidemark_replica_lag_records"), BROKER)),
            unit="short",
            absent=NO_DETAIL,
            links=[TO_BROKERS],
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
            "Age, at the leader, of the first record that the replica lacks.",
            queries((_of("tidemark_replica_lag_seconds"), BROKER)),
            unit="s",
            absent=NO_DETAIL,
        ),
        lines(
            10,
            "Uncommitted window",
            "Log end offset - high watermark at the leader.",
            window,
            unit="short",
            absent=NO_DETAIL,
        ),
        lines(
            11,
            "Age of the uncommitted window",
            "How long its oldest record has waited.",
            queries((_of("tidemark_partition_uncommitted_age_seconds"), "age")),
            unit="s",
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
                absent=NO_DETAIL,
            ),
            states(
                13,
                "In-sync set",
                "Who was in it, when.",
                queries((_of("tidemark_replica_in_sync"), BROKER)),
                words=IN_SYNC,
                absent=NO_DETAIL,
            ),
        ],
        [
            states(
                14,
                "Leader epoch that each replica's broker knows",
                "One that stays behind works with old metadata, or believes that it still leads.",
                queries((_of("tidemark_replica_leader_epoch"), BROKER)),
                absent=NO_DETAIL,
            ),
            states(
                15,
                "Replicas that answer",
                "Whether the replica's broker answered for it in the last pass; its other figures are old while it does not.",
                queries((_of("tidemark_replica_up"), BROKER)),
                words=ANSWERS,
                absent=NO_DETAIL,
            ),
        ],
        [
            states(
                16,
                "Alerts about the topic",
                "How many are open, by name and severity; those of this partition are on Tidemark's status page.",
                queries(
                    (sum_by(topic_alerts, "alertname", "severity"), "{{alertname}} {{severity}}")
                ),
                bad=1,
                absent="none known for a quarter of an hour",
            )
        ],
    ]


def build() -> dashboard.Dashboard:
    metric = "tidemark_partition_replicas"
    critical = series("tidemark_topic_alert_open", **OF_TOPIC, severity="=~critical|warning")
    return frame.board(
        UID,
        "Partition",
        "One partition's replicas: logs, lag, the uncommitted window, leadership and the in-sync set over time.",
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
                f"changes({_of('tidemark_partition_leader_epoch')}[1m]) > 0",
                "leader epoch rose",
            ),
        ],
        grid(
            (4, _numbers()),
            (11, _logs()[:1]),
            (8, _logs()[1:] + _times()[:1]),
            (8, _times()[1:]),
            *((7, row) for row in _timelines()),
        ),
    )
