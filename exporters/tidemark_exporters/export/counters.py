"""Counters of events, from the alert records that arrive after the start. Never summed from views.

Elections and expansions have no alert: `Table` counts them from a view of a partition to the next.

Bounded: one series for each (cluster, alert name, severity) and broker. Incidents are remembered in
a least recently used map.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from itertools import product
from typing import Any, Final, get_args

from tidemark.assess.losses import LOSS
from tidemark.core.identity import alert_name
from tidemark.core.records import Alert, Severity
from tidemark.core.shrink_causes import ShrinkCause
from tidemark.detect import DETECTORS
from tidemark_exporters.evidence import ranges
from tidemark_exporters.export.text_format import format_labels

MAX_REMEMBERED: Final = 20_000
FIRED: Final = "tidemark_alerts_fired_total"
LOST: Final = "tidemark_committed_records_lost_total"
TRUNCATIONS: Final = "tidemark_truncations_total"
UNCLEAN: Final = "tidemark_unclean_elections_total"
ELECTIONS: Final = "tidemark_leader_elections_total"
SHRINKS: Final = "tidemark_isr_shrinks_total"
SHRINKS_LED: Final = "tidemark_isr_shrinks_led_total"
SHRINKS_BY_CAUSE: Final = "tidemark_isr_shrinks_by_cause_total"
EXPANDS: Final = "tidemark_isr_expands_total"
# The values of `kind`; each starts at 0.
KINDS: Final = {
    LOST: ("proven", "exposed"),
    TRUNCATIONS: ("proven", "possible", "excluded"),
    UNCLEAN: ("confirmed", "suspected", "last_known_leader"),
}


class EventCounters:
    """Counts alert records in order; the caller drops duplicate ids."""

    def __init__(self) -> None:
        # metric -> label set -> value
        self.values: dict[str, Counter[str]] = {
            name: Counter()
            for name in (FIRED, *KINDS, ELECTIONS, SHRINKS, SHRINKS_LED, SHRINKS_BY_CAUSE, EXPANDS)
        }
        self._clusters: set[str] = set()
        # Label sets of alerts that were open at some refresh.
        self.ever_open: set[str] = set()
        # The hash of an incident, loss or shrink -> how much of it is counted. Its names would take
        # as much memory again.
        self._counted: OrderedDict[int, int] = OrderedDict()

    def add_cluster(self, cluster: str) -> None:
        """Starts the cluster's counters at 0, so that the first event is an increase."""
        if cluster in self._clusters:
            return
        self._clusters.add(cluster)
        for name, severity in product(map(alert_name, DETECTORS), get_args(Severity)):
            self._add(FIRED, 0, kafka_cluster=cluster, alertname=name, severity=severity)
        for name, kinds in KINDS.items():
            for kind in kinds:
                self._add(name, 0, kafka_cluster=cluster, kind=kind)
        for cause in ShrinkCause:
            self._add(SHRINKS_BY_CAUSE, 0, kafka_cluster=cluster, cause=cause)
        self._add(ELECTIONS, 0, kafka_cluster=cluster)

    def add_broker(self, cluster: str, broker: object) -> None:
        """Starts the broker's counters at 0."""
        for name in (SHRINKS, SHRINKS_LED, EXPANDS):
            self._add(name, 0, kafka_cluster=cluster, broker=broker)

    def set_changes(
        self, elections: Mapping[str, int], expands: Mapping[tuple[str, object], int]
    ) -> None:
        """Takes over the table's counts: elections by cluster, expansions by (cluster, broker)."""
        for cluster, count in elections.items():
            self.values[ELECTIONS][format_labels(kafka_cluster=cluster)] = count
        for (cluster, broker), count in expands.items():
            self.values[EXPANDS][format_labels(kafka_cluster=cluster, broker=broker)] = count

    def count(self, alert: Alert) -> None:
        """Counts one record. An `update` counts only what it adds to its firing."""
        cluster, name, severity = (
            alert.labels.get(label, "") for label in ("kafka_cluster", "alertname", "severity")
        )
        if alert.state == "resolved":
            return
        if alert.state == "firing":
            self._add(FIRED, 1, kafka_cluster=cluster, alertname=name, severity=severity)
            if name == "KafkaLogTruncation":
                self._count_incident(TRUNCATIONS, _truncation_kind(alert.evidence), alert)
            if name == "KafkaUncleanElection":
                self._count_incident(UNCLEAN, _election_kind(alert), alert)
        if name == LOSS:
            incident = alert.labels.get("incident", alert.fingerprint)
            for kind in KINDS[LOST]:
                lost = sum(end - start for start, end in ranges(alert.evidence.get(kind)))
                added = self._growth((kind, cluster, incident), lost)
                self._add(LOST, added, kafka_cluster=cluster, kind=kind)
        if name == "KafkaIsrChange":
            self._count_shrinks(cluster, alert)

    def _count_incident(self, name: str, kind: str, alert: Alert) -> None:
        """Counts an incident once for each kind: a change of severity fires again."""
        labels = alert.labels
        cluster, incident = labels.get("kafka_cluster", ""), labels.get("incident", alert.id)
        added = self._growth((name, kind, cluster, incident, labels.get("broker", "")), 1)
        self._add(name, added, kafka_cluster=cluster, kind=kind)

    def _count_shrinks(self, cluster: str, alert: Alert) -> None:
        """Counts the brokers that left; the evidence has the in-sync sets before and after."""
        evidence = alert.evidence
        before, after = evidence.get("before"), evidence.get("after")
        if not isinstance(before, list) or not isinstance(after, list):
            return
        cause, leader = evidence.get("suspected_cause"), evidence.get("leader")
        if cause not in set(ShrinkCause):
            cause = ShrinkCause.UNKNOWN
        changed_at = str(evidence.get("changed_at", alert.at))
        for broker in set(before) - set(after):
            added = self._growth(("shrink", alert.fingerprint, changed_at, str(broker)), 1)
            self._add(SHRINKS, added, kafka_cluster=cluster, broker=broker)
            self._add(SHRINKS_BY_CAUSE, added, kafka_cluster=cluster, cause=cause)
            if isinstance(leader, int):
                self._add(SHRINKS_LED, added, kafka_cluster=cluster, broker=leader)

    def _growth(self, key: tuple[str, ...], total: int) -> int:
        """How far `total` exceeds what is counted under `key`."""
        mark = hash(key)
        before = self._counted.pop(mark, 0)
        self._counted[mark] = max(before, total)
        if len(self._counted) > MAX_REMEMBERED:
            self._counted.popitem(last=False)
        return max(0, total - before)

    def _add(self, name: str, amount: int, **labels: object) -> None:
        self.values[name][format_labels(**labels)] += amount


def _truncation_kind(evidence: dict[str, Any]) -> str:
    """A verdict that this version does not know, or an older stream did not give, excludes none."""
    verdict = evidence.get("committed_records_cut")
    return verdict if verdict in KINDS[TRUNCATIONS] else "possible"


def _election_kind(alert: Alert) -> str:
    """A verdict that this version does not know counts as suspected, unless it is critical."""
    if alert.evidence.get("verdict") == "last known leader":
        return "last_known_leader"
    return "confirmed" if alert.labels.get("severity") == "critical" else "suspected"
