"""kafka-replication.yaml: the detectors' alerts, where Prometheus delivers them.

Every detector has a rule. Where the exporter's metrics show the condition, the rule queries them.
Otherwise it queries the counters of alert records (events) or the open alerts (states), with the
severity of the series.
"""

from __future__ import annotations

from dashboards.alerting import Rule, RuleFile
from dashboards.promql import happened, series
from tidemark.core.identity import alert_name
from tidemark.core.records import Severity
from tidemark.detect import DETECTORS
from tidemark.detect.default_thresholds import Thresholds

HEADER = """
Only where direct delivery is off (tidemark export --no-notify): with both, each fault is notified
twice. The alert names are those of direct delivery. The status page and the alerts topic have topic
and evidence.
Events fire at once, when a counter grew within 15 minutes or appears with a higher value.
States wait longer than a broker restart, except urgent ones.
Needs Prometheus 2.42 or later (keep_firing_for).
"""
WINDOW = "15m"
RESTART = "10m"
# Urgent states, which do not wait as long as a restart takes.
HOLD = {"OFFLINE": "1m", "QUORUM_UNHEALTHY": "1m", "UNDER_MIN_ISR": "2m", "COLLECTOR_GAP": "5m"}
LAG_SECONDS = Thresholds().lag_ms / 1000
CLUSTER = "Cluster {{ $labels.kafka_cluster }}"
KIND = "{{ $labels.kind }}"
EVIDENCE = "The alerts topic has partition, offsets and evidence."


def _state(detector: str, condition: str, severity: Severity | None, description: str) -> Rule:
    hold = HOLD.get(detector, RESTART)
    return Rule(
        alert_name(detector),
        condition,
        severity,
        DETECTORS[detector].summary,
        f"{CLUSTER}: {description}, for {hold}.",
        hold=hold,
    )


def _event(detector: str, counter: str, severity: Severity | None, description: str) -> Rule:
    return Rule(
        alert_name(detector),
        happened(counter, WINDOW),
        severity,
        DETECTORS[detector].summary,
        f"{CLUSTER}: {description}",
        keep=WINDOW,
    )


def _rules_from_metrics(detector: str) -> list[Rule]:
    """The rules for a condition that the exporter's metrics show; none for other detectors."""
    partitions = "{{ $value }} partitions"
    unclean = "tidemark_unclean_elections_total"
    match detector:
        case "OFFLINE":
            leaderless = f"{series('tidemark_partitions_leaderless')} > 0"
            return [_state(detector, leaderless, "critical", f"{partitions} without a leader")]
        case "UNDER_MIN_ISR":
            under = f"{series('tidemark_partitions_under_min_in_sync')} > 0"
            return [_state(detector, under, "critical", f"{partitions} under min ISR")]
        case "AT_MIN_ISR":
            at = f"{series('tidemark_partitions_at_min_in_sync')} > 0"
            return [_state(detector, at, "warning", f"{partitions} at min ISR")]
        case "UNDER_REPLICATED":
            lacking = f"{series('tidemark_partitions_under_replicated')} > 0"
            return [_state(detector, lacking, "warning", f"{partitions} under-replicated")]
        case "FOLLOWER_LAG":
            lag = f"{series('tidemark_broker_replica_lag_seconds_max')} > {LAG_SECONDS:g}"
            behind = (
                "a replica on broker {{ $labels.broker }} is {{ $value | humanizeDuration }} behind"
            )
            return [_state(detector, lag, "warning", behind)]
        case "COLLECTOR_GAP":
            blind = f"{series('tidemark_partitions_blind')} > 0"
            return [_state(detector, blind, "info", f"{partitions} not observed")]
        case "COMMITTED_DATA_LOSS":
            lost = series("tidemark_committed_records_lost_total", kind="proven")
            proof = (
                f"committed records were lost within {WINDOW}, as the leaders' lineages prove. "
                f"{EVIDENCE}"
            )
            return [_event(detector, lost, "critical", proof)]
        case "UNCLEAN_ELECTION":
            confirmed = series(unclean, kind="confirmed")
            suspected = series(unclean, kind="=~suspected|last_known_leader")
            lossy = f"an unclean election within {WINDOW}; committed records may be lost."
            doubtful = f"an election within {WINDOW} that may have been unclean ({KIND})."
            return [
                _event(detector, confirmed, "critical", f"{lossy} {EVIDENCE}"),
                _event(detector, suspected, "warning", f"{doubtful} {EVIDENCE}"),
            ]
        case "LOG_TRUNCATION":
            counter = series("tidemark_truncations_total")
            truncated = f"a replica's log was truncated within {WINDOW} ({KIND})."
            return [_event(detector, counter, "info", truncated)]
        case _:
            return []


def _rule_from_alerts(detector: str) -> Rule:
    """The rule for a condition that only the stream judges, with the severity of the alert."""
    name = alert_name(detector)
    if DETECTORS[detector].kind == "event":
        fired = series("tidemark_alerts_fired_total", alertname=name)
        return _event(detector, fired, None, f"{name} fired within {WINDOW}.")
    open_alerts = f"{series('tidemark_alert_open', alertname=name)} > 0"
    return _state(detector, open_alerts, None, f"{{{{ $value }}}} {name} alerts open")


def rules_of(detector: str) -> list[Rule]:
    """The rules for a detector's condition: at least one."""
    return _rules_from_metrics(detector) or [_rule_from_alerts(detector)]


# In the order of the detector table.
RULES = [rule for detector in DETECTORS for rule in rules_of(detector)]
FILE = RuleFile("kafka-replication", HEADER, RULES)
