"""kafka-replication.yaml: the detectors' alerts by Prometheus, where Tidemark does not deliver them itself.

Every line of the detector table has a rule. Where the exporter's own figures say the same, they are asked; else the
alert records that it counts (events) and the alerts that it sees open (states), with the severity of the series.
"""

from __future__ import annotations

from collections.abc import Iterator

from dashboards.alerting import Rule, RuleFile
from dashboards.promql import happened, series
from tidemark.core.identity import alert_name
from tidemark.core.records import Severity
from tidemark.detect import DETECTORS
from tidemark.detect.thresholds import Thresholds

HEADER = """
Only where direct delivery is off (tidemark export --no-notify): with both, each fault is notified twice.
The alert names are those of direct delivery; the topic and the evidence are on the status page and in the alerts topic.
Events: at once, when a counter grew within 15 minutes or comes into sight above where it was seen last.
States: longer than a broker restart, except those that cannot wait.
Needs Prometheus 2.42 or later (keep_firing_for).
"""
WINDOW = "15m"
RESTART = "10m"
# States that cannot wait as long as a restart takes.
HOLD = {"OFFLINE": "1m", "QUORUM_UNHEALTHY": "1m", "UNDER_MIN_ISR": "2m", "COLLECTOR_GAP": "5m"}
LAG_SECONDS = Thresholds().lag_ms / 1000
WHERE = "Cluster {{ $labels.kafka_cluster }}"


def _state(detector: str, expression: str, severity: Severity | None, description: str) -> Rule:
    hold = HOLD.get(detector, RESTART)
    return Rule(
        alert_name(detector),
        expression,
        severity,
        DETECTORS[detector].summary,
        f"{WHERE}: {description}, for {hold}.",
        hold=hold,
    )


def _event(detector: str, counter: str, severity: Severity | None, description: str) -> Rule:
    expression = happened(counter, WINDOW)
    return Rule(
        alert_name(detector),
        expression,
        severity,
        DETECTORS[detector].summary,
        f"{WHERE}: {description}",
        keep=WINDOW,
    )


def _by_the_figures() -> Iterator[tuple[str, Rule]]:
    """Detector and rule, where the exporter's figures say it themselves."""
    rules = (
        (
            "OFFLINE",
            f"{series('tidemark_partitions_leaderless')} > 0",
            "critical",
            "{{ $value }} partitions without a leader",
        ),
        (
            "UNDER_MIN_ISR",
            f"{series('tidemark_partitions_under_min_in_sync')} > 0",
            "critical",
            "{{ $value }} partitions under their minimum",
        ),
        (
            "AT_MIN_ISR",
            f"{series('tidemark_partitions_at_min_in_sync')} > 0",
            "warning",
            "{{ $value }} partitions at their minimum",
        ),
        (
            "UNDER_REPLICATED",
            f"{series('tidemark_partitions_under_replicated')} > 0",
            "warning",
            "{{ $value }} partitions under-replicated",
        ),
        (
            "FOLLOWER_LAG",
            f"{series('tidemark_broker_replica_lag_seconds_max')} > {LAG_SECONDS:g}",
            "warning",
            "a replica on broker {{ $labels.broker }} is {{ $value | humanizeDuration }} behind",
        ),
        (
            "COLLECTOR_GAP",
            f"{series('tidemark_partitions_blind')} > 0",
            "info",
            "{{ $value }} partitions unseen",
        ),
    )
    for detector, expression, severity, description in rules:
        yield detector, _state(detector, expression, severity, description)  # type: ignore[arg-type]
    where = "The alerts topic has partition, offsets and evidence."
    yield (
        "COMMITTED_DATA_LOSS",
        _event(
            "COMMITTED_DATA_LOSS",
            series("tidemark_committed_records_lost_total", kind="proven"),
            "critical",
            f"committed records were lost within {WINDOW}, proven by the leaders' own lineage. {where}",
        ),
    )
    unclean = "tidemark_unclean_elections_total"
    suspected = f"an election within {WINDOW} that may have been unclean ({{{{ $labels.kind }}}})"
    for kind, severity, words in (
        (
            "confirmed",
            "critical",
            f"an unclean election within {WINDOW}; committed records may be lost",
        ),
        ("=~suspected|last_known_leader", "warning", suspected),
    ):
        rule = _event("UNCLEAN_ELECTION", series(unclean, kind=kind), severity, f"{words}. {where}")  # type: ignore[arg-type]
        yield "UNCLEAN_ELECTION", rule
    truncations = series("tidemark_truncations_total")
    yield (
        "LOG_TRUNCATION",
        _event(
            "LOG_TRUNCATION",
            truncations,
            "info",
            f"a replica's log was cut back ({{{{ $labels.kind }}}}) within {WINDOW}.",
        ),
    )


def _by_the_alerts(detector: str) -> Rule:
    """What only the stream can judge, with the severity that it gave."""
    name = alert_name(detector)
    if DETECTORS[detector].kind == "event":
        return _event(
            detector,
            series("tidemark_alerts_fired_total", alertname=name),
            None,
            f"fired within {WINDOW}: {name}.",
        )
    return _state(
        detector,
        f"{series('tidemark_alert_open', alertname=name)} > 0",
        None,
        f"{{{{ $value }}}} open: {name}",
    )


def rules() -> list[Rule]:
    """In the order of the detector table; whoever is added to that has a rule."""
    figures: dict[str, list[Rule]] = {}
    for detector, rule in _by_the_figures():
        figures.setdefault(detector, []).append(rule)
    return [
        rule
        for detector in DETECTORS
        for rule in figures.get(detector) or [_by_the_alerts(detector)]
    ]


FILE = RuleFile("kafka-replication", HEADER, rules())
