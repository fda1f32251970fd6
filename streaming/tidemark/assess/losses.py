"""Losses of committed records, from alert records, with what it takes to send the records again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from msgspec import Struct

from tidemark.core.alert_records import newest_by
from tidemark.core.identity import alert_name
from tidemark.core.links import holder_entries
from tidemark.core.records import Alert, View
from tidemark.core.text import rfc3339

LOSS: Final = alert_name("COMMITTED_DATA_LOSS")
_IDENTITY: Final = ("kafka_cluster", "topic", "partition", "incident")


class Loss(Struct, kw_only=True, rename={"start": "from", "end": "to"}):
    """The lost offsets [start, end) of a partition.

    Encoded, its fields are the columns of the CSV and the keys of the JSON form. Scripts rely on
    their order; new ones come last. Times are RFC 3339; null is unknown.
    """

    cluster: str
    topic: str
    partition: int
    start: int
    end: int
    # No record of the range was written before the first time, every record by the second.
    from_time: str | None
    to_time: str | None
    # The range above it: producers with acks=1 may have got an acknowledgement for its records.
    exposed_from: int | None
    exposed_to: int | None
    confidence: str
    # open, or why the alert ended: acked, expired, deleted, …
    state: str
    found_at: str
    incident: str
    fingerprint: str
    # The newest leader epoch of the lost records, and that of the leader which lacks them.
    leader_epoch_before: int | None = None
    leader_epoch_after: int | None = None
    # The broker that had committed them: its disk is the one to save.
    leader_before: int | None = None


class LossFilter(NamedTuple):
    """Selects losses; null selects all."""

    # Whether it selects a partition: topic, number.
    covers: Callable[[str, int], bool] | None = None
    cluster: str | None = None
    # Unix seconds.
    found_since: float | None = None

    def matches(self, loss: Loss) -> bool:
        return (
            (self.covers is None or self.covers(loss.topic, loss.partition))
            and self.cluster in (None, loss.cluster)
            and (self.found_since is None or loss.found_at >= rfc3339(self.found_since))
        )


def read_losses(alerts: Iterable[Alert]) -> list[Loss]:
    """Each loss once, open or not, by cluster, topic, partition and time. Ignores other alerts."""
    newest = newest_by(
        lambda alert: tuple(alert.labels.get(name, "") for name in _IDENTITY),
        (alert for alert in alerts if alert.labels.get("alertname") == LOSS),
    )
    return sorted(
        (loss for alert in newest.values() if (loss := _read_loss(alert)) is not None),
        key=lambda loss: (loss.cluster, loss.topic, loss.partition, loss.found_at, loss.start),
    )


class OpenLoss(NamedTuple):
    """A loss that the view of its partition reports: half open, and the words of its alert."""

    start: int
    end: int
    description: str
    place: str = ""
    # Whose disks have the records, or may: none may restart before its log is copied.
    holders: frozenset[int] = frozenset()

    def __str__(self) -> str:
        return f"[{self.start}, {self.end})"


def open_losses(view: View) -> list[OpenLoss]:
    """No answer about the partition may leave them out."""
    return sorted(_open_losses(view))


def held_losses(views: Iterable[View], *brokers: int) -> list[str]:
    """Why none of these brokers may be stopped: a restart cuts lost records off its log."""
    return [
        f"{loss.place} lost offsets {loss}, which broker {broker} has or may have: copy its log "
        "before it restarts"
        for view in views
        for loss in open_losses(view)
        for broker in sorted(loss.holders.intersection(brokers))
    ]


def _open_losses(view: View) -> Iterator[OpenLoss]:
    for alert in view.alerts:
        labels, evidence = alert.labels, alert.evidence
        start, end = _range(evidence.get("proven"))
        if labels.get("alertname") == LOSS and start is not None and end is not None:
            place = f"{labels.get('topic')}-{labels.get('partition')}"
            text = alert.annotations.get("description", "")
            yield OpenLoss(start, end, text, place, _holders(view, evidence))


def _holders(view: View, evidence: dict[str, Any]) -> frozenset[int]:
    """Those of the alert but for the ones that follow the later leader by now, in sync with it."""
    entries = holder_entries(evidence.get("records_held_by"))
    states = {_number(each.get("broker")): each.get("state") for each in entries}
    found = {broker for broker, state in states.items() if state == "held"}
    before = _number(evidence.get("leader_before"))
    if before != evidence.get("leader") and states.get(before) != "cut":
        found.add(before)
    after = _number(evidence.get("leader_epoch_after"))
    cut = {
        each.broker
        for each in view.replicas
        if each.in_sync and each.broker != view.leader and None not in (after, each.leader_epoch)
        if (each.leader_epoch or 0) >= (after or 0)
    }
    return frozenset(broker for broker in found if broker is not None) - cut


def _read_loss(alert: Alert) -> Loss | None:
    """None where the record has no valid range or partition."""
    labels, evidence = alert.labels, alert.evidence
    start, end = _range(evidence.get("proven"))
    if start is None or end is None or not labels.get("partition", "").isdecimal():
        return None
    written = evidence.get("written_between")
    from_time, to_time = written if isinstance(written, list) and len(written) == 2 else (None,) * 2
    exposed_from, exposed_to = _range(evidence.get("exposed"))
    return Loss(
        cluster=labels.get("kafka_cluster", ""),
        topic=labels.get("topic", ""),
        partition=int(labels["partition"]),
        start=start,
        end=end,
        from_time=_time(from_time),
        to_time=_time(to_time),
        exposed_from=exposed_from,
        exposed_to=exposed_to,
        confidence=str(evidence.get("confidence", "")),
        state="open" if alert.state != "resolved" else alert.reason or "resolved",
        found_at=_time(alert.starts_at) or rfc3339(0.0),
        incident=labels.get("incident", ""),
        fingerprint=alert.fingerprint,
        leader_epoch_before=_number(evidence.get("leader_epoch_before")),
        leader_epoch_after=_number(evidence.get("leader_epoch_after")),
        leader_before=_number(evidence.get("leader_before")),
    )


def _range(value: Any) -> tuple[int, int] | tuple[None, None]:
    match value:
        case [int(start), int(end)] if 0 <= start < end:
            return start, end
    return None, None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**31 else None


def _time(value: Any) -> str | None:
    return rfc3339(value) if isinstance(value, int | float) and 0 <= value < 1e11 else None
