"""The Overview dashboard: losses, offline partitions, lag, and whether Tidemark is alive."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards import frame
from dashboards.panels import (
    ANSWERS,
    SECONDS,
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
from dashboards.promql import (
    ESTIMATED,
    EXACT,
    FEW,
    LINES,
    RECENT,
    chosen,
    counted,
    increase,
    largest,
    most_grown,
    pass_age,
    smallest,
    sum_by,
    worst,
)

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
    """The row of numbers, the worst first."""
    lost = counted(chosen("tidemark_committed_records_lost_total", kind="proven"), "$__range")
    critical = sum_by(chosen("tidemark_alert_open", severity="critical"), "kafka_cluster")
    return [
        number(
            1,
            "Records lost",
            f"Proven losses of committed records in the time range; a lower bound. {EXACT}",
            lost,
            CLUSTER,
            bad=0.5,
        ),
        number(
            2,
            "Critical alerts open",
            "Open alerts of severity critical.",
            critical,
            CLUSTER,
            bad=1,
            absent="none since the exporter started",
        ),
        number(
            3,
            "Offline partitions",
            "Partitions without a leader.",
            chosen("tidemark_partitions_leaderless"),
            CLUSTER,
            bad=1,
        ),
        number(
            4,
            "Under min ISR",
            "Partitions that reject producers with acks=all.",
            chosen("tidemark_partitions_under_min_in_sync"),
            CLUSTER,
            bad=1,
        ),
        number(
            5,
            "Under-replicated",
            "Partitions with assigned replicas that are not in sync.",
            chosen("tidemark_partitions_under_replicated"),
            CLUSTER,
            bad=1,
            colour="orange",
        ),
        number(
            6,
            "Unobserved",
            "Partitions that the last passes did not observe; their state is unknown.",
            chosen("tidemark_partitions_blind"),
            CLUSTER,
            bad=1,
            colour="purple",
        ),
    ]


def _lists() -> list[AnyPanel]:
    by = ("kafka_cluster", "alertname", "severity")
    lag = f"topk(10, {chosen('tidemark_topic_replica_lag_seconds_max')} > 0)"
    handed = {"kafka_cluster": "${__data.fields.Cluster}", "topic": "${__data.fields.Topic}"}
    cluster = "${__data.fields.Cluster:percentencode}"
    to_topic = page("Status page", "topic", cluster=cluster, topic="${__data.fields.Topic}")
    return [
        listing(
            15,
            "Slowest topics",
            "The ten topics with the largest follower lag. Click a topic for its dashboard.",
            [("Lag", lag)],
            labels={"kafka_cluster": "Cluster", "topic": "Topic"},
            sort=["Lag"],
            units={"Lag": "s"},
            bad={"Lag": 2},
            links={"Topic": [link("Topic", frame.TOPIC, **handed), to_topic]},
            absent="no known lag",
        ),
        listing(
            16,
            "Open alerts",
            "Open alerts by name and severity. Tidemark's status page has the details.",
            [
                ("Open", f"{sum_by(chosen('tidemark_alert_open'), *by)} > 0"),
            ],
            labels={"kafka_cluster": "Cluster", "alertname": "Alert", "severity": "Severity"},
            sort=["Open"],
            absent="no known open alert",
        ),
    ]


def _graphs() -> list[list[AnyPanel]]:
    by, shrunk = ("kafka_cluster", "broker"), chosen("tidemark_isr_shrinks_total")
    shrinks = worst(
        sum_by(increase(shrunk, "$__rate_interval"), *by),
        sum_by(f"increase({shrunk}[$__range] @ end())", *by),
    )
    unclean, truncations, elections = (
        most_grown(chosen(f"tidemark_{what}_total"), LINES // 3)
        for what in ("unclean_elections", "truncations", "leader_elections")
    )
    events = queries(
        (unclean, f"{CLUSTER} unclean election, {{{{kind}}}}"),
        (truncations, f"{CLUSTER} truncation, {{{{kind}}}}"),
        (elections, f"{CLUSTER} elections"),
    )
    return [
        [
            lines(
                7,
                "Largest follower lag by broker",
                f"Age of the oldest record that is missing on a replica of the broker. {FEW}",
                queries((largest(chosen("tidemark_broker_replica_lag_seconds_max")), BY_BROKER)),
                unit=SECONDS,
                links=[TO_BROKERS],
            ),
            lines(
                8,
                "Uncommitted records",
                "Records above the high watermarks, not yet on all in-sync followers.",
                queries((chosen("tidemark_cluster_uncommitted_records"), CLUSTER)),
                unit="short",
            ),
        ],
        [
            lines(
                9,
                "ISR churn by broker",
                f"Removals of the broker from in-sync sets. {FEW} {ESTIMATED}",
                queries((shrinks, BY_BROKER)),
                unit="short",
            ),
            lines(
                10,
                "Elections and truncations",
                f"Leader elections and log truncations. {FEW} {ESTIMATED}",
                events,
                unit="short",
            ),
        ],
        [
            states(
                13,
                "Broker answers",
                f"Whether the broker answered the last pass. {FEW}",
                queries((smallest(chosen("tidemark_broker_up")), BY_BROKER)),
                words=ANSWERS,
            ),
            lines(
                12,
                "Age of the newest pass",
                "Grows while the collector or the stream is stalled; all panels are then outdated.",
                queries((pass_age(), CLUSTER)),
                unit=SECONDS,
            ),
        ],
    ]


def build() -> dashboard.Dashboard:
    lost, unclean = (
        chosen("tidemark_committed_records_lost_total", kind="proven"),
        chosen("tidemark_unclean_elections_total"),
    )
    events = f"{increase(lost, RECENT)} > 0 or {increase(unclean, RECENT)} > 0"
    open_critical = chosen("tidemark_alert_open", severity="critical")
    # One that resolves between two scrapes shows in its counter alone.
    fired = increase(chosen("tidemark_alerts_fired_total", severity="critical"), RECENT)
    critical = " or ".join(
        f"{sum_by(each, 'kafka_cluster', 'alertname')} > 0" for each in (open_critical, fired)
    )
    return frame.make_dashboard(
        UID,
        "Overview",
        "Replication of the watched Kafka clusters, and whether Tidemark is alive.",
        [frame.clusters()],
        [
            frame.annotation("Loss or unclean election", "red", events, f"{CLUSTER} {{{{kind}}}}"),
            frame.annotation("Critical alert", "orange", critical, f"{CLUSTER} {{{{alertname}}}}"),
        ],
        grid((5, _numbers()), (8, _lists()), *((8, row) for row in _graphs())),
    )
