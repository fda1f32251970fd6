"""Counters of what happened, from alert records consumed since the start. Never summed from views.

Bounded: one series per (cluster, alert name, severity) and per broker; the memory of incidents is a least recently
used map.
"""

from __future__ import annotations

from collections import OrderedDict
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
SHRINKS: Final = "tidemark_isr_shrinks_total"
# One firing of these is one event; a change of severity fires again with the same `incident` and is not counted twice.
BY_INCIDENT: Final = {"KafkaLogTruncation": "tidemark_truncations_total", "KafkaUncleanElection": "tidemark_unclean_elections_total"}


class EventCounters:
    """Takes alert records in order (duplicates by id already dropped) and adds up."""

    def __init__(self) -> None:
        # metric -> inside of the braces -> value
        self.values: dict[str, dict[str, int]] = {name: {} for name in (FIRED, LOST, SHRINKS, *BY_INCIDENT.values())}
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
            self._add(FIRED, 0, kafka_cluster=cluster, alertname=alert_name(detector), severity=severity)
        for name in BY_INCIDENT.values():
            self._add(name, 0, kafka_cluster=cluster)
        for kind in ("proven", "exposed"):
            self._add(LOST, 0, kafka_cluster=cluster, kind=kind)

    def known_broker(self, cluster: str, broker: object) -> None:
        self._add(SHRINKS, 0, kafka_cluster=cluster, broker=broker)

    def count(self, alert: Alert) -> None:
        """Counts one record. `update` records only extend what their firing began."""
        labels = alert.labels
        cluster, name = labels.get("kafka_cluster", ""), labels.get("alertname", "")
        if alert.state == "resolved":
            return
        if alert.state == "firing":
            self._add(FIRED, 1, kafka_cluster=cluster, alertname=name, severity=labels.get("severity", ""))
            if name in BY_INCIDENT:
                event = ("event", cluster, name, labels.get("incident", alert.id), labels.get("broker", ""))
                self._add(BY_INCIDENT[name], self._growth(event, 1), kafka_cluster=cluster)
        if name == LOSS:
            self._count_loss(cluster, labels.get("incident", alert.fingerprint), alert.evidence)
        if name == "KafkaIsrChange":
            self._count_shrink(cluster, alert)

    def _count_loss(self, cluster: str, incident: str, evidence: dict[str, Any]) -> None:
        for kind in ("proven", "exposed"):
            lost = sum(end - start for start, end in ranges(evidence.get(kind)))
            self._add(LOST, self._growth((kind, cluster, incident), lost), kafka_cluster=cluster, kind=kind)

    def _count_shrink(self, cluster: str, alert: Alert) -> None:
        """The brokers that left since this alert was last heard of; its evidence names the sets before and after."""
        before, after = alert.evidence.get("before"), alert.evidence.get("after")
        if not isinstance(before, list) or not isinstance(after, list):
            return
        for broker in set(before) - set(after):
            moment = (alert.fingerprint, str(alert.evidence.get("changed_at", alert.at)), str(broker))
            self._add(SHRINKS, self._growth(("shrink", *moment), 1), kafka_cluster=cluster, broker=broker)

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
