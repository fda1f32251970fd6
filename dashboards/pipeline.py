"""The Pipeline dashboard: Tidemark itself, from the collectors to the receivers."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards import frame
from dashboards.panels import SECONDS, AnyPanel, grid, lines, number, queries, states
from dashboards.promql import (
    ESTIMATED,
    EXACT,
    RECENT,
    chosen,
    counted,
    increase,
    pass_age,
    series,
    sum_by,
)

UID = frame.PIPELINE
CLUSTER = "{{kafka_cluster}}"
NOT_SCRAPED = "not scraped: set {} and add the address to Prometheus"
UNDELIVERED = series("tidemark_deliveries_total", outcome="=~dropped|rejected")
COLLECT, STREAM = NOT_SCRAPED.format("collect.listen"), NOT_SCRAPED.format("stream.listen")


def _rate(metric: str, **matchers: str) -> str:
    return f"rate({chosen(metric, **matchers)}[$__rate_interval])"


def _p99(metric: str, *by: str) -> str:
    """The 99th percentile of a histogram."""
    histogram = chosen(metric).replace(metric, f"{metric}_bucket", 1)
    return f"histogram_quantile(0.99, {sum_by(f'rate({histogram}[$__rate_interval])', *by, 'le')})"


def _numbers() -> list[AnyPanel]:
    lost = sum_by(counted(UNDELIVERED, "$__range"), "receiver")
    return [
        number(
            1,
            "Age of newest pass",
            "Above one minute, all dashboards are outdated.",
            pass_age(),
            CLUSTER,
            bad=60,
            unit="s",
        ),
        number(
            2,
            "Exporter",
            "Whether the exporter has read its topics to their end.",
            f"1 - {series('tidemark_export_ready')}",
            "{{instance}}",
            bad=1,
            words={"1": ("not ready", "red"), "0": ("ready", "green")},
        ),
        number(
            3,
            "Dead letters",
            f"Events that cannot be decoded, in the time range. {EXACT}",
            counted(series("tidemark_dead_letters_total"), "$__range"),
            "",
            bad=0.5,
            colour="orange",
        ),
        number(
            4,
            "Undecodable records",
            f"Records skipped by the exporter, in the time range. {EXACT}",
            sum_by(
                counted(series("tidemark_export_records_undecodable_total"), "$__range"), "topic"
            ),
            "{{topic}}",
            bad=0.5,
            colour="orange",
            absent="no topic read yet",
        ),
        number(
            5,
            "Undelivered alerts",
            f"Alerts rejected by a receiver or dropped, in the time range. {EXACT}",
            lost,
            "{{receiver}}",
            bad=0.5,
            absent="no receiver",
        ),
        number(
            6,
            "Queued alerts",
            "Alerts that wait for a receiver.",
            series("tidemark_delivery_queue_length"),
            "{{receiver}}",
            bad=1,
            colour="orange",
            absent="no receiver",
        ),
    ]


def _collect() -> list[AnyPanel]:
    events = queries(
        (_rate("tidemark_event_records_total"), "written"),
        (_rate("tidemark_stream_input_records_total"), "read by the stream"),
    )
    return [
        lines(
            7,
            "Pass duration, 99th percentile",
            "A pass that is longer than the period delays the next one.",
            queries((_p99("tidemark_collect_pass_seconds", "kafka_cluster"), CLUSTER)),
            unit=SECONDS,
            absent=COLLECT,
        ),
        lines(
            8,
            "Partitions by result",
            "Partitions in the last pass: observed, thinned (idle, observed less often) or missed.",
            queries((chosen("tidemark_collect_partitions"), f"{CLUSTER} {{{{result}}}}")),
            unit="short",
            absent=COLLECT,
        ),
        lines(
            9,
            "Event records per second",
            "Written by collectors, and read by the stream; both rates are equal on average.",
            events,
            unit="short",
        ),
    ]


def _stream() -> list[AnyPanel]:
    age = queries(
        (
            series("tidemark_stream_end_to_end_age_seconds"),
            "age of the oldest event at the end of its batch",
        ),
        (_p99("tidemark_stream_batch_duration_seconds"), "duration, 99th percentile"),
    )
    return [
        lines(
            10,
            "Batches",
            "Duration of a batch, and age of its oldest event when it ends.",
            age,
            unit=SECONDS,
            absent=STREAM,
        ),
        lines(
            11,
            "Stream lag",
            "Offsets behind the newest event, averaged over the partitions of the event topic.",
            queries((series("tidemark_stream_offsets_behind_average"), "offsets")),
            unit="short",
            absent=STREAM,
        ),
        lines(
            12,
            "State store",
            "Memory used by the state store.",
            queries((series("tidemark_stream_state_memory_bytes"), "bytes")),
            unit="bytes",
            absent=STREAM,
        ),
    ]


def _export() -> list[AnyPanel]:
    dropped = sum_by(increase(series("tidemark_series_dropped_total"), "$__rate_interval"), "tier")
    return [
        lines(
            13,
            "Refresh duration",
            "Duration of the last refresh of the metrics.",
            queries((series("tidemark_export_refresh_duration_seconds"), "seconds")),
            unit=SECONDS,
        ),
        lines(
            14,
            "Series by tier",
            "Series served about the watched clusters, and left out because of export.max_series. "
            f"What is left out: {ESTIMATED[0].lower()}{ESTIMATED[1:]}",
            queries(
                (sum_by(series("tidemark_series"), "tier"), "{{tier}}"),
                (f"{dropped} > 0", "{{tier}}, left out"),
            ),
            unit="short",
        ),
        lines(
            15,
            "Records read per second",
            "Records read by the exporter from Tidemark's topics.",
            queries((_rate("tidemark_export_records_read_total"), "{{topic}}")),
            unit="short",
        ),
    ]


def _deliver() -> list[AnyPanel]:
    attempts = sum_by(
        increase(series("tidemark_delivery_attempts_total"), "$__rate_interval"),
        "receiver",
        "outcome",
    )
    return [
        lines(
            16,
            "Posts",
            f"HTTP posts by receiver and outcome. {ESTIMATED}",
            queries((attempts, "{{receiver}} {{outcome}}")),
            unit="short",
            absent="no receiver",
        ),
        lines(
            17,
            "Queued alerts by receiver",
            "Grows while a receiver is down.",
            queries((series("tidemark_delivery_queue_length"), "{{receiver}}")),
            unit="short",
            absent="no receiver",
        ),
        states(
            18,
            "Ready",
            "Whether the exporter has read its topics to their end.",
            queries((series("tidemark_export_ready"), "{{instance}}")),
            words={"1": ("ready", "green"), "0": ("not ready", "red")},
        ),
    ]


def build() -> dashboard.Dashboard:
    # At the time of the scrape: `time()` would add the age of the sample, up to a minute of healthy
    # passes where Prometheus scrapes once a minute.
    newest = chosen("tidemark_last_pass_timestamp_seconds")
    stale = f"timestamp({newest}) - {newest} > 60"
    return frame.make_dashboard(
        UID,
        "Pipeline",
        "Tidemark itself: collectors, stream, exporter and delivery.",
        [frame.clusters()],
        [
            frame.annotation("No fresh pass", "red", stale, CLUSTER),
            frame.annotation(
                "Alerts not delivered",
                "orange",
                f"{increase(UNDELIVERED, RECENT)} > 0",
                "{{receiver}} {{outcome}}",
            ),
        ],
        grid(
            (5, _numbers()), *((8, row) for row in (_collect(), _stream(), _export(), _deliver()))
        ),
    )
