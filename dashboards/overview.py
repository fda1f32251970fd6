"""The Overview: is anything lost, offline or about to be, who is behind, and is Tidemark itself awake."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, GridPos, Panel, VariableRefresh, VariableSort

from dashboards.panels import SOURCE, lines, number, query
from dashboards.promql import chosen, increase, series, sum_by

UID = "tidemark-overview"
CLUSTER = "{{kafka_cluster}}"
WIDE, HIGH = 4, 5


def _numbers() -> list[Builder[Panel]]:
    """The row of figures: from left to right, the worst first."""

    def at(column: int) -> GridPos:
        return GridPos(h=HIGH, w=WIDE, x=column * WIDE, y=0)

    lost = increase(chosen("tidemark_committed_records_lost_total", kind="proven"), "$__range")
    critical = sum_by(chosen("tidemark_alert_open", severity="critical"), "kafka_cluster")
    leaderless = chosen("tidemark_partitions_leaderless")
    under_minimum = chosen("tidemark_partitions_under_min_in_sync")
    under_replicated = chosen("tidemark_partitions_under_replicated")
    unseen = "The last passes did not see them: neither healthy nor lost."
    return [
        number(1, "Committed records lost", "Proven, within the time shown: a lower bound.", at(0), lost, CLUSTER, bad=0.5, colour="red"),
        number(
            2, "Critical alerts open", "Alerts that page.", at(1), critical, CLUSTER, bad=1, colour="red", absent="none since the start"
        ),
        number(3, "Offline partitions", "No leader serves them.", at(2), leaderless, CLUSTER, bad=1, colour="red"),
        number(4, "Under min ISR", "Producers with acks=all are refused.", at(3), under_minimum, CLUSTER, bad=1, colour="red"),
        number(5, "Under-replicated", "Assigned replicas are out of sync.", at(4), under_replicated, CLUSTER, bad=1, colour="orange"),
        number(6, "Unseen partitions", unseen, at(5), chosen("tidemark_partitions_blind"), CLUSTER, bad=1, colour="purple"),
    ]


def _graphs() -> list[Builder[Panel]]:
    """The graphs below, two in a row: lag and what waits, churn and events, then Tidemark itself."""

    def at(row: int, column: int) -> GridPos:
        return GridPos(h=8, w=12, x=column * 12, y=HIGH + row * 8)

    shrinks = sum_by(increase(chosen("tidemark_isr_shrinks_total"), "$__rate_interval"), "kafka_cluster", "broker")
    events = [
        query(increase(chosen("tidemark_unclean_elections_total"), "$__rate_interval"), f"{CLUSTER} unclean elections", "A"),
        query(increase(chosen("tidemark_truncations_total"), "$__rate_interval"), f"{CLUSTER} truncations", "B"),
    ]
    age = f"time() - {chosen('tidemark_last_pass_timestamp_seconds')}"
    queues = [query(series("tidemark_delivery_queue_length"), "{{receiver}}", "A")]
    by_broker = f"{CLUSTER} broker {{{{broker}}}}"
    return [
        lines(
            7,
            "Largest follower lag by broker",
            "Age of the oldest record that a replica on the broker lacks.",
            at(0, 0),
            [query(chosen("tidemark_broker_replica_lag_seconds_max"), by_broker)],
            unit="s",
        ),
        lines(
            8,
            "Uncommitted records",
            "Records above the high watermarks: they wait for the in-sync followers.",
            at(0, 1),
            [query(sum_by(chosen("tidemark_topic_uncommitted_records"), "kafka_cluster"), CLUSTER)],
            unit="short",
        ),
        lines(9, "ISR churn by broker", "Times that the broker left an in-sync set.", at(1, 0), [query(shrinks, by_broker)], unit="short"),
        lines(10, "Unclean elections and truncations", "Events as they are found.", at(1, 1), events, unit="short"),
        lines(
            11,
            "Open alerts by name",
            "Every severity.",
            at(2, 0),
            [
                query(
                    sum_by(chosen("tidemark_alert_open"), "kafka_cluster", "alertname", "severity"),
                    f"{CLUSTER} {{{{alertname}}}} {{{{severity}}}}",
                )
            ],
            unit="short",
        ),
        lines(
            12,
            "Age of the newest pass",
            "Grows while the collector or the stream stands still: then nothing else here is news.",
            at(2, 1),
            [query(age, CLUSTER)],
            unit="s",
        ),
        lines(
            13,
            "Brokers that answer",
            "1: the broker answered the last pass.",
            at(3, 0),
            [query(chosen("tidemark_broker_up"), by_broker)],
            unit="short",
        ),
        lines(14, "Alerts that wait for a receiver", "Grows while a receiver is down.", at(3, 1), queues, unit="short"),
    ]


def build() -> dashboard.Dashboard:
    clusters = (
        dashboard.QueryVariable("kafka_cluster")
        .label("Cluster")
        .datasource(SOURCE)
        .query(f"label_values({series('tidemark_last_pass_timestamp_seconds')}, kafka_cluster)")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
    )
    lost = chosen("tidemark_committed_records_lost_total", kind="proven")
    losses = (
        dashboard.AnnotationQuery()
        .name("Loss or unclean election")
        .datasource(SOURCE)
        .enable(True)
        .icon_color("red")
        .expr(f"{increase(lost, '1m')} > 0 or {increase(chosen('tidemark_unclean_elections_total'), '1m')} > 0")
        .title_format("Loss or unclean election")
        .text_format(CLUSTER)
    )
    board = (
        dashboard.Dashboard("Tidemark / Overview")
        .uid(UID)
        .description("Replication of the watched Kafka clusters, and whether Tidemark itself is awake.")
        .tags(["kafka", "tidemark"])
        .editable()
        .refresh("30s")
        .time("now-1h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(clusters)
        .annotation(losses)
    )
    for panel in (*_numbers(), *_graphs()):
        board = board.with_panel(panel)
    return board
