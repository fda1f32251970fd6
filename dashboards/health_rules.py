"""tidemark-health.yaml: the health of Tidemark itself.

Load it wherever Tidemark is scraped: a process that is down cannot report itself.
"""

from __future__ import annotations

from dashboards.alerting import Rule, RuleFile
from dashboards.promql import EXPORT_BUILD, happened, increase, series

HEADER = """
The health of Tidemark itself. Load this file wherever Tidemark is scraped.
Alerts about Kafka are in kafka-replication.yaml.
Needs Prometheus 2.42 or later (keep_firing_for).
"""
# By default, a pass takes at most 5 s, and a micro-batch of a large cluster 5 s more.
STALE_SECONDS = 60
# The next refresh begins after at most ten times the duration of the last one.
REFRESH_SECONDS = 120
# Under constant load the queue is never empty, but no alert waits for long.
QUEUED_SECONDS = 60
# Separates a stalled collector (no events) from a stalled stream (events that are not judged).
# Both alerts wait that long, because events from before a stop are inside the window.
FLOW = "3m"

_AGE = f"time() - {series('tidemark_last_pass_timestamp_seconds')}"
_SAME = "on (job, instance)"
# Events arrive, and no cluster's passes are judged: not a single collector is the cause.
_EVENTS = f"{increase(series('tidemark_event_records_total'), FLOW)} > 0"
_UNJUDGED = f"({_EVENTS} unless {_SAME} {_AGE} <= {STALE_SECONDS})"
_UNDELIVERED = series("tidemark_deliveries_total", outcome="=~dropped|rejected")


def _found_at_a_start(metric: str) -> str:
    """Within 15 minutes. After a long stop, the new process's first sample may have it."""
    found = series(metric)
    since = f"last_over_time({found}[1d] offset 15m)"
    return f"{increase(found, '15m')} > 0 or ({found} > 0 unless {since} >= {found})"


RULES = [
    Rule(
        "TidemarkExportAbsent",
        f"absent({EXPORT_BUILD})",
        "warning",
        "No Tidemark exporter is scraped.",
        "tidemark_build_info of an exporter has been absent for 5 minutes: it is down, unreachable "
        "or not scraped.",
        hold="5m",
    ),
    Rule(
        "TidemarkExportNotReady",
        f"{series('tidemark_export_ready')} == 0",
        "warning",
        "The exporter has not read its topics to their end.",
        "tidemark export at {{ $labels.instance }} has not been ready for 10 minutes.",
        hold="10m",
    ),
    Rule(
        "TidemarkExportStalled",
        f"time() - ({series('tidemark_export_refresh_timestamp_seconds')} > 0) > {REFRESH_SECONDS}",
        "warning",
        "The exporter serves outdated metrics about Kafka.",
        "The last refresh of tidemark export at {{ $labels.instance }} was "
        "{{ $value | humanizeDuration }} ago.",
        hold="1m",
    ),
    Rule(
        "TidemarkNothingWatched",
        f"{series('tidemark_export_ready')} == 1"
        f" unless {_SAME} {series('tidemark_last_pass_timestamp_seconds')}",
        "warning",
        "The exporter has received no collection pass.",
        "tidemark export at {{ $labels.instance }} has been ready for 10 minutes without a pass in "
        "its topics.",
        hold="10m",
    ),
    Rule(
        "TidemarkCollectorStalled",
        f"{_AGE} > {STALE_SECONDS} unless {_SAME} {_UNJUDGED}",
        "warning",
        "No collector publishes events of a Kafka cluster.",
        "Cluster {{ $labels.kafka_cluster }}: the newest pass is {{ $value | humanizeDuration }} "
        "old, and no collector writes events.",
        hold=FLOW,
    ),
    Rule(
        "TidemarkStreamStalled",
        f"{_AGE} > {STALE_SECONDS} and {_SAME} {_UNJUDGED}",
        "warning",
        "The stream is stalled: passes are collected but not judged.",
        "Cluster {{ $labels.kafka_cluster }}: the newest judged pass is "
        "{{ $value | humanizeDuration }} old, and events are waiting.",
        hold=FLOW,
    ),
    Rule(
        "TidemarkCollectorDropsRecords",
        f"{increase(series('tidemark_collect_records_dropped_total'), '15m')} > 0",
        "warning",
        "A collector cannot publish its observations.",
        "The collector at {{ $labels.instance }} dropped records within 15 minutes: its Kafka is "
        "slow or unreachable. The affected partitions are not observed.",
        keep="15m",
    ),
    Rule(
        "TidemarkStreamOvertaken",
        f"{_found_at_a_start('tidemark_stream_overtaken_records_total')} or "
        f"{_found_at_a_start('tidemark_stream_replaced_topics_total')}",
        "warning",
        "Events were removed before the stream read them.",
        "The stream at {{ $labels.instance }} found records missing within 15 minutes: retention "
        "passed a stream that was stopped or slow, or the event topic was deleted and created "
        "again. The passes in them were not judged. Transactions of another writer look the same.",
        keep="15m",
    ),
    Rule(
        "TidemarkTopicReplaced",
        _found_at_a_start("tidemark_export_replaced_topics_total"),
        "warning",
        "A topic that the exporter reads was deleted and created again.",
        "The exporter at {{ $labels.instance }} found another topic {{ $labels.topic }} within 15 "
        "minutes, and reads it from its start. What it had not read of the deleted one is lost.",
        keep="15m",
    ),
    Rule(
        "TidemarkDeadLetters",
        happened(series("tidemark_dead_letters_total"), "15m"),
        "warning",
        "Events cannot be decoded or judged.",
        "Dead letters within 15 minutes. The dead-letters topic has reason, partition and offset.",
        keep="15m",
    ),
    Rule(
        "TidemarkRecordsUndecodable",
        happened(series("tidemark_export_records_undecodable_total"), "15m")
        + " or "
        + happened(series("tidemark_export_failures_total"), "15m"),
        "warning",
        "The exporter skips what it cannot decode, show or deliver.",
        "{{ with $labels.topic }}Records of topic {{ . }} were skipped within 15 minutes: another "
        "version or another program writes there.{{ end }}"
        "{{ with $labels.part }}The exporter failed at a {{ . }} within 15 minutes and went on "
        "without it. Its log names it once.{{ end }}",
        keep="15m",
    ),
    Rule(
        "TidemarkSeriesDropped",
        f"{increase(series('tidemark_series_dropped_total'), '15m')} > 0",
        "info",
        "The exporter leaves series out because of export.max_series.",
        "Series of tier {{ $labels.tier }} have been left out for 15 minutes. Raise "
        "export.max_series, or choose a coarser export.granularity.",
        hold="15m",
    ),
    Rule(
        "TidemarkDeliveryStuck",
        f"{series('tidemark_delivery_queue_length')} > 0"
        f" and {series('tidemark_delivery_oldest_seconds')} > {QUEUED_SECONDS}",
        "warning",
        "A receiver does not accept alerts.",
        "{{ $value }} alerts have been queued for receiver {{ $labels.receiver }} for 5 minutes.",
        hold="5m",
    ),
    Rule(
        "TidemarkAlertsUndelivered",
        happened(_UNDELIVERED, "15m"),
        "warning",
        "Alerts did not reach a receiver and are not retried.",
        "Receiver {{ $labels.receiver }}: alerts were {{ $labels.outcome }} within 15 minutes.",
        keep="15m",
    ),
]

FILE = RuleFile("tidemark-health", HEADER, RULES)
