"""Groups of alerts: those of one cause have one group key, and share posts. Pure.

A cause begins with a critical alert, and takes all critical alerts of the cluster for
`TOGETHER_SECONDS`, then for `PAGE_SECONDS` those that have a broker or a partition of it: an
unclean election of forty partitions is one cause. Its brokers are those that its critical alerts
suspect, and the leaders that were lost. While one of its alerts is open, it also takes the other
alerts of these brokers and partitions, for `FOLLOW_SECONDS`. All other alerts are grouped by
cluster and suspected broker, without an end.

A critical alert never joins a group without one: the receiver may have opened a ticket for that
group, and would not page for an update. Everything follows from the records of the alerts topic in
their order, so an alert has the same group after a restart. Times are those of the records, Unix
seconds.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tidemark.assess.losses import LOSS
from tidemark.core.records import Alert
from tidemark_exporters.evidence import ranges

OFFLINE: Final = "KafkaOffline"
# Alerts that are posted at once, the worst first.
URGENT: Final = (LOSS, OFFLINE)
# Several brokers fail together, and the partitions of one have no broker of the other.
TOGETHER_SECONDS: Final = 10.0
# A later loss by the same broker is another page: elections of one cause take seconds, and their
# proofs two passes.
PAGE_SECONDS: Final = 120.0
# Within this, the old leaders come back and truncate their logs.
FOLLOW_SECONDS: Final = 900.0
# Bounds for one receiver: causes, groups without one, alerts, and partitions of a cause. An alert
# of which the group is forgotten has no cause.
MAX_CAUSES: Final = 500
MAX_GROUPS: Final = 10_000
MAX_MEMBERS: Final = 50_000
MAX_PLACES: Final = 10_000

Place = tuple[str, str]


def is_loss(alert: Alert) -> bool:
    """A loss is never held back, dropped or given up."""
    return alert.labels.get("alertname") == LOSS


def is_urgent(alert: Alert) -> bool:
    return alert.labels.get("alertname") in URGENT


def is_page(alert: Alert) -> bool:
    return is_urgent(alert) or alert.labels.get("severity") == "critical"


def urgency(alert: Alert) -> int:
    """0 for a loss, 1 for an offline partition, 2 for all else and for the end of any alert."""
    if alert.state != "firing" or not is_urgent(alert):
        return len(URGENT)
    return URGENT.index(alert.labels["alertname"])


def place_of(alert: Alert) -> Place | None:
    """(topic, partition) of an alert about a partition."""
    topic, partition = alert.labels.get("topic"), alert.labels.get("partition")
    return (topic, partition) if topic and partition else None


@dataclass(slots=True, eq=False)
class Group:
    """Alerts whose posts have one group key, and how posting them goes."""

    labels: dict[str, str]
    # The time of the first alert; None where the group is no cause.
    began_at: float | None = None
    brokers: set[str] = field(default_factory=set)
    places: set[Place] = field(default_factory=set)
    # The number of records that are proven to be lost, by partition, and the ranges.
    lost: dict[Place, tuple[int, list[tuple[int, int]]]] = field(default_factory=dict)
    # Fingerprints of its open alerts.
    open: set[str] = field(default_factory=set)
    # The number of its posts, when the last was first tried, and the worst urgency among them.
    posts: int = 0
    posted_at: float = 0.0
    urgency: int = len(URGENT)

    def is_related(self, alert: Alert) -> bool:
        """Whether the alert has the cluster, and a broker or a partition, of this cause."""
        if self.labels["kafka_cluster"] != alert.labels.get("kafka_cluster", ""):
            return False
        together = is_page(alert) and abs(alert.at - (self.began_at or 0.0)) <= TOGETHER_SECONDS
        return (
            together
            or place_of(alert) in self.places
            or not self.brokers.isdisjoint(_brokers_of(alert))
        )

    def is_recent(self, alert: Alert) -> bool:
        """Whether this is a cause, and an alert that fires now is not too late for it."""
        if self.began_at is None:
            return False
        age = abs(alert.at - self.began_at)
        return age <= PAGE_SECONDS if is_page(alert) else bool(self.open) and age <= FOLLOW_SECONDS

    def add(self, alert: Alert) -> None:
        self.open.add(alert.fingerprint)
        if self.began_at is None:
            return
        if is_page(alert):
            self.brokers.update(_brokers_of(alert))
        place = place_of(alert)
        if place is not None and len(self.places) < MAX_PLACES:
            self.places.add(place)
        self.note_loss(alert)

    def note_loss(self, alert: Alert) -> None:
        """Takes the newest evidence of a loss over."""
        place = place_of(alert)
        if place in self.places and is_loss(alert):
            proven = ranges(alert.evidence.get("proven"))
            self.lost[place] = sum(end - start for start, end in proven), proven

    def end(self, fingerprint: str) -> None:
        """After its last alert, what fires is urgent again."""
        self.open.discard(fingerprint)
        if not self.open:
            self.urgency = len(URGENT)

    def note_posted(self, alerts: Iterable[Alert], at: float) -> None:
        """Its post with these alerts was tried."""
        self.posts, self.posted_at = self.posts + 1, at
        self.urgency = min(self.urgency, *map(urgency, alerts))


def _brokers_of(alert: Alert) -> set[str]:
    """The suspected broker, else the leader; of an election or a loss also the lost leader."""
    found = [alert.labels.get("broker") or alert.evidence.get("leader")]
    if is_page(alert):
        found.append(alert.evidence.get("leader_before"))
    return {str(broker) for broker in found if broker is not None}


class Groups:
    """The groups of one receiver's alerts. Bounded: the least recently used are forgotten."""

    def __init__(self) -> None:
        self._causes: list[Group] = []
        # The groups without a cause, by the values of their labels.
        self._others: OrderedDict[tuple[str, ...], Group] = OrderedDict()
        self._members: OrderedDict[str, Group] = OrderedDict()

    def fire(self, alert: Alert) -> None:
        """Takes an alert that fires into its group."""
        known = self._members.get(alert.fingerprint)
        if known is None or not (alert.fingerprint in known.open or known.is_recent(alert)):
            known = self._find(alert)
        self.move(alert, known)

    def move(self, alert: Alert, group: Group) -> None:
        """Makes an alert that fires a member of this group."""
        known = self._members.pop(alert.fingerprint, None)
        if known is not None and known is not group:
            known.end(alert.fingerprint)
        group.add(alert)
        self._members[alert.fingerprint] = group
        if len(self._members) > MAX_MEMBERS:
            forgotten, old = self._members.popitem(last=False)
            old.end(forgotten)

    def refresh(self, alert: Alert) -> None:
        """Takes the newest evidence of an alert over."""
        group = self._members.get(alert.fingerprint)
        if group is not None:
            group.note_loss(alert)

    def end(self, fingerprint: str) -> None:
        """An alert resolved, or is dropped."""
        group = self._members.get(fingerprint)
        if group is not None:
            group.end(fingerprint)

    def of(self, alert: Alert) -> Group:
        """The group in which an alert fired last."""
        return self._members.get(alert.fingerprint) or self._without_cause(alert)

    def cause_of(self, fingerprint: str) -> str | None:
        """The id of the cause of an alert, if it has one."""
        group = self._members.get(fingerprint)
        return None if group is None else group.labels.get("cause")

    def _find(self, alert: Alert) -> Group:
        for cause in reversed(self._causes):
            if cause.is_recent(alert) and cause.is_related(alert):
                return cause
        if not is_page(alert):
            return self._without_cause(alert)
        text = f"{alert.fingerprint}/{round(alert.at * 1000)}"
        labels = {
            "kafka_cluster": alert.labels.get("kafka_cluster", ""),
            "cause": hashlib.sha256(text.encode()).hexdigest()[:8],
        }
        self._causes = [*self._causes, Group(labels, alert.at)][-MAX_CAUSES:]
        return self._causes[-1]

    def _without_cause(self, alert: Alert) -> Group:
        labels = {"kafka_cluster": alert.labels.get("kafka_cluster", "")}
        if broker := alert.labels.get("broker"):
            labels["broker"] = broker
        key = tuple(labels.values())
        group = self._others.setdefault(key, Group(labels))
        self._others.move_to_end(key)
        if len(self._others) > MAX_GROUPS:
            self._others.popitem(last=False)
        return group
