"""kafka-replication.yaml: the detectors' alerts by Prometheus, where Tidemark does not deliver them itself."""

from __future__ import annotations

from dashboards.alerting import Rule, RuleFile
from dashboards.promql import increase, series
from tidemark.core.identity import alert_name
from tidemark.core.records import Severity
from tidemark.detect import DETECTORS
from tidemark.detect.thresholds import Thresholds

HEADER = """
Only where direct delivery is off (tidemark export --no-notify): with both, each fault is notified twice.
The alert names are those of direct delivery; the topic and the evidence are on the status page and in the alerts topic.
Events: an increase over 15 minutes, at once. States: longer than a broker restart, except those that cannot wait.
Needs Prometheus 2.42 or later (keep_firing_for).
"""
WINDOW = "15m"
RESTART = "10m"
LAG_SECONDS = Thresholds().lag_ms / 1000


def _state(detector: str, expression: str, severity: Severity | None, description: str, hold: str = RESTART) -> Rule:
    return Rule(alert_name(detector), expression, severity, DETECTORS[detector].summary, description, hold=hold)


def _judged(detector: str, description: str) -> Rule:
    """A state that only the stream can judge: its own open alerts, as the exporter counts them, with their severity."""
    return _state(detector, f"{series('tidemark_alert_open', alertname=alert_name(detector))} > 0", None, description)


def _event(detector: str, counter: str, severity: Severity, description: str) -> Rule:
    return Rule(alert_name(detector), f"{increase(counter, WINDOW)} > 0", severity, DETECTORS[detector].summary, description, keep=WINDOW)


RULES = [
    _event(
        "COMMITTED_DATA_LOSS",
        series("tidemark_committed_records_lost_total", kind="proven"),
        "critical",
        "Cluster {{ $labels.kafka_cluster }}: committed records were lost within 15 minutes, proven by the leaders' own lineage. "
        "The alerts topic has partition, offsets and evidence.",
    ),
    _event(
        "UNCLEAN_ELECTION",
        series("tidemark_unclean_elections_total"),
        "critical",
        "Cluster {{ $labels.kafka_cluster }}: an unclean election, seen or suspected, within 15 minutes; committed records may be lost.",
    ),
    _event(
        "LOG_TRUNCATION",
        series("tidemark_truncations_total"),
        "info",
        "Cluster {{ $labels.kafka_cluster }}: a replica's log was cut back within 15 minutes.",
    ),
    _state(
        "OFFLINE",
        f"{series('tidemark_partitions_leaderless')} > 0",
        "critical",
        "Cluster {{ $labels.kafka_cluster }}: {{ $value }} partitions without a leader for a minute.",
        hold="1m",
    ),
    _state(
        "UNDER_MIN_ISR",
        f"{series('tidemark_partitions_under_min_in_sync')} > 0",
        "critical",
        "Cluster {{ $labels.kafka_cluster }}: {{ $value }} partitions under their minimum for 2 minutes.",
        hold="2m",
    ),
    _state(
        "UNDER_REPLICATED",
        f"{series('tidemark_partitions_under_replicated')} > 0",
        "warning",
        "Cluster {{ $labels.kafka_cluster }}: {{ $value }} partitions under-replicated for 10 minutes.",
    ),
    _state(
        "FOLLOWER_LAG",
        f"{series('tidemark_broker_replica_lag_seconds_max')} > {LAG_SECONDS:g}",
        "warning",
        "Cluster {{ $labels.kafka_cluster }}: a replica on broker {{ $labels.broker }} is {{ $value }} seconds behind, for 10 minutes.",
    ),
    _judged("FOLLOWER_UNREACHABLE", "Cluster {{ $labels.kafka_cluster }}: {{ $value }} replicas did not answer for 10 minutes."),
    _judged("HW_STALLED", "Cluster {{ $labels.kafka_cluster }}: {{ $value }} high watermarks have stood for 10 minutes."),
    _judged("ISR_CHURN", "Cluster {{ $labels.kafka_cluster }}: the in-sync sets of {{ $value }} partitions have churned for 10 minutes."),
    _judged(
        "ISR_CHANGE", "Cluster {{ $labels.kafka_cluster }}: the in-sync sets of {{ $value }} partitions have not settled for 10 minutes."
    ),
    _state(
        "COLLECTOR_GAP",
        f"{series('tidemark_partitions_blind')} > 0",
        "info",
        "Cluster {{ $labels.kafka_cluster }}: {{ $value }} partitions unseen for 5 minutes.",
        hold="5m",
    ),
]

FILE = RuleFile("kafka-replication", HEADER, RULES)
