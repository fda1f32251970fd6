"""The Overview: is anything lost, offline or about to be, who is behind, and is Tidemark itself awake."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards import frame
from dashboards.panels import ANSWERS, AnyPanel, grid, lines, link, listing, number, queries, states
from dashboards.promql import chosen, increase, sum_by

UID = frame.OVERVIEW
CLUSTER = "{{kafka_cluster}}"
BY_BROKER = f"{CLUSTER} broker {{{{broker}}}}"
TO_BROKERS = link(
    "Brokers",
    frame.BROKERS,
    kafka_cluster="${__field.labels.kafka_cluster}",
    broker="${__field.labels.broker}",
)


def _numbers() -> list[AnyPanel]:
    """The row of figures: from left to right, the worst first."""
    lost = increase(chosen("tidemark_committed_records_lost_total", kind="proven"), "$__range")
    critical = sum_by(chosen("tidemark_alert_open", severity="critical"), "kafka_cluster")
    at_minimum = "Assigned replicas are out of sync."
    return [
        number(
            1,
            "Committed records lost",
            "Proven, within the time shown: a lower bound.",
            lost,
            CLUSTER,
            bad=0.5,
        ),
        number(
            2,
            "Critical alerts open",
            "Alerts that page.",
            critical,
            CLUSTER,
            bad=1,
            absent="none known since the start",
        ),
        number(
            3,
            "Offline partitions",
            "No leader serves them.",
            chosen("tidemark_partitions_leaderless"),
            CLUSTER,
            bad=1,
        ),
        number(
            4,
            "Under min ISR",
            "Producers with acks=all are refused.",
            chosen("tidemark_partitions_under_min_in_sync"),
            CLUSTER,
            bad=1,
        ),
        number(
            5,
            "Under-replicated",
            at_minimum,
            chosen("tidemark_partitions_under_replicated"),
            CLUSTER,
            bad=1,
            colour="orange",
        ),
        number(
            6,
            "Unseen partitions",
            "The last passes did not see them: neither healthy nor lost.",
            chosen("tidemark_partitions_blind"),
            CLUSTER,
            bad=1,
            colour="purple",
        ),
    ]


def _lists() -> list[AnyPanel]:
    lag = f"topk(10, {chosen('tidemark_topic_replica_lag_seconds_max')} > 0)"
    handed = {"kafka_cluster": "${__data.fields.Cluster}", "topic": "${__data.fields.Topic}"}
    return [
        listing(
            15,
            "Slowest topics",
            "The ten topics with the largest follower lag now; a topic leads to its own dashboard.",
            [("Lag", lag)],
            labels={"kafka_cluster": "Cluster", "topic": "Topic"},
            sort="Lag",
            units={"Lag": "s"},
            bad={"Lag": 2},
            links={"Topic": [link("Topic", frame.TOPIC, **handed)]},
            absent="no lag is known",
        ),
        listing(
            16,
            "Open alerts",
            "Alerts open now, by name and severity; where and why is on Tidemark's status page.",
            [
                (
                    "Open",
                    f"{sum_by(chosen('tidemark_alert_open'), 'kafka_cluster', 'alertname', 'severity')} > 0",
                )
            ],
            labels={"kafka_cluster": "Cluster", "alertname": "Alert", "severity": "Severity"},
            sort="Open",
            absent="no open alert is known",
        ),
    ]


def _graphs() -> list[list[AnyPanel]]:
    shrinks = sum_by(
        increase(chosen("tidemark_isr_shrinks_total"), "$__rate_interval"),
        "kafka_cluster",
        "broker",
    )
    unclean = increase(chosen("tidemark_unclean_elections_total"), "$__rate_interval")
    truncations = increase(chosen("tidemark_truncations_total"), "$__rate_interval")
    events = queries(
        (unclean, f"{CLUSTER} unclean election, {{{{kind}}}}"),
        (truncations, f"{CLUSTER} truncation, {{{{kind}}}}"),
        (
            increase(chosen("tidemark_leader_elections_total"), "$__rate_interval"),
            f"{CLUSTER} elections",
        ),
    )
    waiting = "Records above the high watermarks: they wait for the in-sync followers."
    stands = "Grows while the collector or the stream stands still: then nothing else here is news."
    return [
        [
            lines(
                7,
                "Largest follower lag by broker",
                "Age of the oldest record that a replica on the broker lacks.",
                queries((chosen("tidemark_broker_replica_lag_seconds_max"), BY_BROKER)),
                unit="s",
                links=[TO_BROKERS],
            ),
            lines(
                8,
                "Uncommitted records",
                waiting,
                queries((chosen("tidemark_cluster_uncommitted_records"), CLUSTER)),
                unit="short",
            ),
        ],
        [
            lines(
                9,
                "ISR churn by broker",
                "Times that the broker left an in-sync set.",
                queries((shrinks, BY_BROKER)),
                unit="short",
            ),
            lines(
                10, "Elections and truncations", "Events as they are found.", events, unit="short"
            ),
        ],
        [
            states(
                13,
                "Brokers that answer",
                "Whether the broker answered the last pass.",
                queries((chosen("tidemark_broker_up"), BY_BROKER)),
                words=ANSWERS,
            ),
            lines(
                12,
                "Age of the newest pass",
                stands,
                queries((f"time() - {chosen('tidemark_last_pass_timestamp_seconds')}", CLUSTER)),
                unit="s",
            ),
        ],
    ]


def build() -> dashboard.Dashboard:
    lost, unclean = (
        chosen("tidemark_committed_records_lost_total", kind="proven"),
        chosen("tidemark_unclean_elections_total"),
    )
    events = f"{increase(lost, '1m')} > 0 or {increase(unclean, '1m')} > 0"
    critical = f"{sum_by(chosen('tidemark_alert_open', severity='critical'), 'kafka_cluster', 'alertname')} > 0"
    return frame.board(
        UID,
        "Overview",
        "Replication of the watched Kafka clusters, and whether Tidemark itself is awake.",
        [frame.clusters()],
        [
            frame.annotation("Loss or unclean election", "red", events, f"{CLUSTER} {{{{kind}}}}"),
            frame.annotation("Critical alert", "orange", critical, f"{CLUSTER} {{{{alertname}}}}"),
        ],
        grid((5, _numbers()), (8, _lists()), *((8, row) for row in _graphs())),
    )
