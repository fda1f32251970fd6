"""Counters of what happened, from alert records consumed since the start. Never summed from views.

Elections and joins, for which there is no alert, are counted from one view of a partition to its next (`Table`).

Bounded: one series per (cluster, alert name, severity) and per broker; the memory of incidents is a least recently
used map.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from itertools import product
from typing import Any, Final, get_args

from tidemark.core.identity import alert_name
from tidemark.core.records import Alert, Severity
from tidemark.detect import DETECTORS
from tidemark_exporters.evidence import ranges
from tidemark_exporters.export.text import label_set

MAX_REMEMBERED: Final = 20_000
LOSS: Final = "KafkaCommittedDataLoss"
LOST: Final = "tidemark_committed_records_lost_total"
FIRED: Final = "tidemark_alerts_fired_total"
TRUNCATIONS: Final = "tidemark_truncations_total"
UNCLEAN: Final = "tidemark_unclean_elections_total"
ELECTIONS: Final = "tidemark_leader_elections_total"
SHRINKS: Final = "tidemark_isr_shrinks_total"
LED: Final = "tidemark_isr_shrinks_led_total"
CAUSES: Final = "tidemark_isr_shrinks_by_cause_total"
EXPANDS: Final = "tidemark_isr_expands_total"
# The values of `kind`, each born at 0.
KINDS: Final = {
    LOST: ("proven", "exposed"),
    TRUNCATIONS: ("below_high_watermark", "above_high_watermark", "unknown"),
    UNCLEAN: ("confirmed", "suspected", "last_known_leader"),
}
# What `suspected_cause` may be in the evidence of an in-sync change (core/membership.py), and what anything else becomes.
CAUSES_OF_SHRINKS: Final = (
    "the leader's own shrink",
    "does not answer",
    "stopped or fenced",
    "fencing",
    "controlled shutdown",
    "reassignment",
)
UNEXPLAINED: Final = "unknown"


class EventCounters:
    """Takes alert records in order (duplicates by id already dropped) and adds up."""

    def __init__(self) -> None:
        # metric -> inside of the braces -> value
        self.values: dict[str, dict[str, int]] = {
            name: {} for name in (FIRED, *KINDS, ELECTIONS, SHRINKS, LED, CAUSES, EXPANDS)
        }
        self._clusters: set[str] = set()
        # Label sets of alerts that were open at some refresh.
        self.ever_open: set[str] = set()
        # An incident, loss or shrink already counted -> how much of it.
        self._counted: OrderedDict[tuple[str, ...], int] = OrderedDict()

    def known(self, cluster: str) -> None:
        """Bears the cluster's counters at 0, so that the first event is an increase."""
        if cluster in self._clusters:
            return
        self._clusters.add(cluster)
        for detector, severity in product(DETECTORS, get_args(Severity)):
            self._add(
                FIRED, 0, kafka_cluster=cluster, alertname=alert_name(detector), severity=severity
            )
        for name, kinds in KINDS.items():
            for kind in kinds:
                self._add(name, 0, kafka_cluster=cluster, kind=kind)
        for cause in (*CAUSES_OF_SHRINKS, UNEXPLAINED):
            self._add(CAUSES, 0, kafka_cluster=cluster, cause=cause)
        self._add(ELECTIONS, 0, kafka_cluster=cluster)

    def known_broker(self, cluster: str, broker: object) -> None:
        for name in (SHRINKS, LED, EXPANDS):
            self._add(name, 0, kafka_cluster=cluster, broker=broker)

    def changes(
        self, elections: Mapping[str, int], expands: Mapping[tuple[str, object], int]
    ) -> None:
        """Takes over what was counted from one view to the next: elections by cluster, joins by (cluster, broker)."""
        for cluster, count in elections.items():
            self.values[ELECTIONS][label_set(kafka_cluster=cluster)] = count
        for (cluster, broker), count in expands.items():
            self.values[EXPANDS][label_set(kafka_cluster=cluster, broker=broker)] = count

    def count(self, alert: Alert) -> None:
        """Counts one record. `update` records only extend what their firing began."""
        labels = alert.labels
        cluster, name = labels.get("kafka_cluster", ""), labels.get("alertname", "")
        if alert.state == "resolved":
            return
        if alert.state == "firing":
            self._add(
                FIRED, 1, kafka_cluster=cluster, alertname=name, severity=labels.get("severity", "")
            )
            if name == "KafkaLogTruncation":
                self._count_event(TRUNCATIONS, _where_cut(alert.evidence), alert)
            if name == "KafkaUncleanElection":
                self._count_event(UNCLEAN, _how_unclean(alert), alert)
        if name == LOSS:
            self._count_loss(cluster, labels.get("incident", alert.fingerprint), alert.evidence)
        if name == "KafkaIsrChange":
            self._count_shrink(cluster, alert)

    def _count_event(self, name: str, kind: str, alert: Alert) -> None:
        """One firing is one event; a change of severity fires again with the same incident, and counts as what it has become."""
        cluster, incident = (
            alert.labels.get("kafka_cluster", ""),
            alert.labels.get("incident", alert.id),
        )
        event = (name, kind, cluster, incident, alert.labels.get("broker", ""))
        self._add(name, self._growth(event, 1), kafka_cluster=cluster, kind=kind)

    def _count_loss(self, cluster: str, incident: str, evidence: dict[str, Any]) -> None:
        for kind in KINDS[LOST]:
            lost = sum(end - start for start, end in ranges(evidence.get(kind)))
            self._add(
                LOST,
                self._growth((kind, cluster, incident), lost),
                kafka_cluster=cluster,
                kind=kind,
            )

    def _count_shrink(self, cluster: str, alert: Alert) -> None:
        """The brokers that left since this alert was last heard of; its evidence names the sets before and after."""
        before, after = alert.evidence.get("before"), alert.evidence.get("after")
        if not isinstance(before, list) or not isinstance(after, list):
            return
        cause, leader = alert.evidence.get("suspected_cause"), alert.evidence.get("leader")
        for broker in set(before) - set(after):
            moment = (
                alert.fingerprint,
                str(alert.evidence.get("changed_at", alert.at)),
                str(broker),
            )
            news = self._growth(("shrink", *moment), 1)
            self._add(SHRINKS, news, kafka_cluster=cluster, broker=broker)
            self._add(
                CAUSES,
                news,
                kafka_cluster=cluster,
                cause=cause if cause in CAUSES_OF_SHRINKS else UNEXPLAINED,
            )
            if isinstance(leader, int):
                self._add(LED, news, kafka_cluster=cluster, broker=leader)

    def _growth(self, key: tuple[str, ...], total: int) -> int:
        """How far `total` exceeds what was already counted under `key`."""
        before = self._counted.pop(key, 0)
        self._counted[key] = max(before, total)
        if len(self._counted) > MAX_REMEMBERED:
            self._counted.popitem(last=False)
        return max(0, total - before)

    def _add(self, name: str, amount: int, **labels: object) -> None:
        series = self.values[name]
        key = label_set(**labels)
        series[key] = series.get(key, 0) + amount


def _where_cut(evidence: dict[str, Any]) -> str:
    cut, committed = evidence.get("cut_at"), evidence.get("highest_high_watermark")
    if not isinstance(cut, int) or not isinstance(committed, int):
        return "unknown"
    return "below_high_watermark" if cut < committed else "above_high_watermark"


def _how_unclean(alert: Alert) -> str:
    """A verdict that this version does not know is a suspicion, unless it pages."""
    if alert.evidence.get("verdict") == "last known leader":
        return "last_known_leader"
    return "confirmed" if alert.labels.get("severity") == "critical" else "suspected"
