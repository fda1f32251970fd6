"""tidemark-health.yaml: Tidemark's own health. Always loaded: a watcher that is down reports nothing."""

from __future__ import annotations

from dashboards.alerting import Rule, RuleFile
from dashboards.promql import increase, series

HEADER = "Tidemark's own health. Load it wherever Tidemark is scraped; alerts about Kafka are in kafka-replication.yaml."
# A pass comes every 5 s at the slowest default, a micro-batch of a large cluster every 5 s more.
STALE_SECONDS = 60

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
        "TidemarkStreamStale",
        f"time() - {series('tidemark_last_pass_timestamp_seconds')} > {STALE_SECONDS}",
        "warning",
        "No collection pass arrives: the collector or the stream stands still, and Kafka is not being watched.",
        "Cluster {{ $labels.kafka_cluster }}: the newest judged pass is {{ $value | humanizeDuration }} old.",
        hold="1m",
    ),
    Rule(
        "TidemarkDeadLetters",
        f"{increase(series('tidemark_dead_letters_total'), '15m')} > 0",
        "warning",
        "Events could not be decoded and were set aside.",
        "{{ $value }} dead letters within 15 minutes; the dead-letters topic has reason, partition and offset.",
        keep="15m",
    ),
    Rule(
        "TidemarkRecordsUndecodable",
        f"{increase(series('tidemark_export_records_undecodable_total'), '15m')} > 0",
        "warning",
        "The exporter met records that it cannot read.",
        "{{ $value }} records of topic {{ $labels.topic }} were skipped within 15 minutes: another version writes there, or another program.",
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
        f"{series('tidemark_delivery_queue_length')} > 0",
        "warning",
        "Alerts wait for a receiver that does not take them.",
        "{{ $value }} alerts have waited for receiver {{ $labels.receiver }} for 5 minutes.",
        hold="5m",
    ),
]

FILE = RuleFile("tidemark-health", HEADER, RULES)
