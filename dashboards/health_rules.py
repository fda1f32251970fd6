"""tidemark-health.yaml: Tidemark's own health. Always loaded: a watcher that is down reports nothing."""

from __future__ import annotations

from dashboards.alerting import Rule, RuleFile
from dashboards.promql import happened, increase, series

HEADER = """
Tidemark's own health. Load it wherever Tidemark is scraped; alerts about Kafka are in kafka-replication.yaml.
Needs Prometheus 2.42 or later (keep_firing_for).
"""
# A pass comes every 5 s at the slowest default, a micro-batch of a large cluster every 5 s more.
STALE_SECONDS = 60
# Rendering takes at most ten times as long as it took last.
RENDER_SECONDS = 120
# Where alerts come all the time some always wait, though none for long.
WAITING_SECONDS = 60
# Who stands still: nothing more is written, or it is written and not judged. Events that came before a collector stopped
# count for as long as the window, so both alerts wait that long.
FLOW = "3m"

_AGE = f"time() - {series('tidemark_last_pass_timestamp_seconds')}"
_SAME = "on (job, instance)"
# Events come and no cluster's passes are judged: it is not one collector that stands still.
_UNJUDGED = f"({increase(series('tidemark_event_records_total'), FLOW)} > 0 unless {_SAME} {_AGE} <= {STALE_SECONDS})"

RULES = [
    Rule(
        "TidemarkExportAbsent",
        f"absent({series('tidemark_build_info')})",
        "warning",
        "No exporter of Tidemark is scraped.",
        "tidemark_build_info has been absent for 5 minutes: tidemark export is down, unreachable or not scraped.",
        hold="5m",
    ),
    Rule(
        "TidemarkExportNotReady",
        f"{series('tidemark_export_ready')} == 0",
        "warning",
        "The exporter has not caught up with its topics.",
        "tidemark export at {{ $labels.instance }} has not read its topics to their end for 10 minutes.",
        hold="10m",
    ),
    Rule(
        "TidemarkExportStalled",
        f"time() - ({series('tidemark_export_refresh_timestamp_seconds')} > 0) > {RENDER_SECONDS}",
        "warning",
        "The exporter serves old metrics: what it shows of Kafka is no news.",
        "tidemark export at {{ $labels.instance }} rendered its metrics last {{ $value | humanizeDuration }} ago.",
        hold="1m",
    ),
    Rule(
        "TidemarkNothingWatched",
        f"{series('tidemark_export_ready')} == 1 unless {_SAME} {series('tidemark_last_pass_timestamp_seconds')}",
        "warning",
        "The exporter knows of no collection pass: no Kafka cluster is being watched.",
        "tidemark export at {{ $labels.instance }} has read its topics and found no pass in them for 10 minutes.",
        hold="10m",
    ),
    Rule(
        "TidemarkCollectorStalled",
        f"{_AGE} > {STALE_SECONDS} unless {_SAME} {_UNJUDGED}",
        "warning",
        "The collector stands still: Kafka is not being watched.",
        "Cluster {{ $labels.kafka_cluster }}: the newest pass is {{ $value | humanizeDuration }} old, and no collector writes events.",
        hold=FLOW,
    ),
    Rule(
        "TidemarkStreamStalled",
        f"{_AGE} > {STALE_SECONDS} and {_SAME} {_UNJUDGED}",
        "warning",
        "The stream stands still: passes are collected and not judged, and Kafka is not being watched.",
        "Cluster {{ $labels.kafka_cluster }}: the newest judged pass is {{ $value | humanizeDuration }} old, and events are waiting.",
        hold=FLOW,
    ),
    Rule(
        "TidemarkCollectorDropsRecords",
        f"{increase(series('tidemark_collect_records_dropped_total'), '15m')} > 0",
        "warning",
        "A collector could not publish what it saw.",
        "The collector at {{ $labels.instance }} dropped records within 15 minutes: its Kafka is slow or away. Holes show as unseen partitions.",
        keep="15m",
    ),
    Rule(
        "TidemarkDeadLetters",
        happened(series("tidemark_dead_letters_total"), "15m"),
        "warning",
        "Events could not be decoded and were set aside.",
        "Dead letters within 15 minutes; the dead-letters topic has reason, partition and offset.",
        keep="15m",
    ),
    Rule(
        "TidemarkRecordsUndecodable",
        happened(series("tidemark_export_records_undecodable_total"), "15m"),
        "warning",
        "The exporter met records that it cannot read.",
        "Records of topic {{ $labels.topic }} were skipped within 15 minutes: another version writes there, or another program.",
        keep="15m",
    ),
    Rule(
        "TidemarkSeriesDropped",
        f"{increase(series('tidemark_series_dropped_total'), '15m')} > 0",
        "info",
        "The exporter leaves series out to keep within export.max_series.",
        "Series of tier {{ $labels.tier }} have been left out for 15 minutes; raise export.max_series or choose a coarser export.granularity.",
        hold="15m",
    ),
    Rule(
        "TidemarkDeliveryStuck",
        f"{series('tidemark_delivery_queue_length')} > 0 and {series('tidemark_delivery_oldest_seconds')} > {WAITING_SECONDS}",
        "warning",
        "Alerts wait for a receiver that does not take them.",
        "{{ $value }} alerts have waited for receiver {{ $labels.receiver }} for 5 minutes.",
        hold="5m",
    ),
    Rule(
        "TidemarkAlertsUndelivered",
        happened(series("tidemark_deliveries_total", outcome="=~dropped|rejected"), "15m"),
        "warning",
        "Alerts did not reach a receiver and will not be tried again.",
        "Receiver {{ $labels.receiver }}: alerts were {{ $labels.outcome }} within 15 minutes.",
        keep="15m",
    ),
]

FILE = RuleFile("tidemark-health", HEADER, RULES)
