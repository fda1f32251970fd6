"""Which alerts an operator means, and the event that closes one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tidemark.core.codec import encode_batch
from tidemark.core.errors import ConfigError
from tidemark.core.events import Ack, Batch
from tidemark.core.records import Alert

_ORDER: Final = {"firing": 0, "update": 1, "resolved": 2}
_IDENTITY: Final = {"kafka_cluster", "alertname", "severity"}
# Shorter beginnings of a fingerprint are as likely a slip of the hand.
MIN_PREFIX: Final = 6


def newest_alerts(alerts: Iterable[Alert]) -> dict[str, Alert]:
    """The newest record of each fingerprint; records come at least once and in any order."""
    newest: dict[str, Alert] = {}
    for alert in alerts:
        if not alert.labels.keys() >= _IDENTITY:
            continue
        known = newest.get(alert.fingerprint)
        if known is None or (known.at, _ORDER[known.state]) <= (alert.at, _ORDER[alert.state]):
            newest[alert.fingerprint] = alert
    return newest


def is_event(alert: Alert) -> bool:
    """Whether an alert tells of something that happened; only such an alert can be closed by hand."""
    return "incident" in alert.labels


def is_open(alert: Alert) -> bool:
    """Whether it has not ended."""
    return alert.state != "resolved"


def chosen_alerts(newest: Mapping[str, Alert], mark: str) -> list[Alert]:
    """Event alerts by fingerprint (or the beginning of it), record id or incident, those that are open before the others.

    Raises ConfigError when there is none, when the beginning fits several, and when the alert is a state.
    """
    wanted = mark.strip().lower()
    fingerprint = wanted.partition(".")[0]
    found = [
        alert
        for alert in newest.values()
        if fingerprint == alert.fingerprint or wanted == alert.labels.get("incident")
    ]
    if not found and len(wanted) >= MIN_PREFIX:
        found = [alert for key, alert in newest.items() if key.startswith(wanted)]
        if len(found) > 1:
            raise ConfigError(f"{len(found)} alerts begin with {mark}; give the whole fingerprint.")
    if not found:
        raise ConfigError(
            f"no alert of the last 7 days has the fingerprint, id or incident {mark}. `tidemark ack` alone lists those that are open."
        )
    state = next((alert for alert in found if not is_event(alert)), None)
    if state is not None:
        raise ConfigError(
            f"{describe(state)} is a state: it ends by itself when its cause is gone and cannot be acknowledged. To be left alone meanwhile, "
            f"use a silence in Alertmanager or a maintenance window (notify)."
        )
    return sorted(found, key=lambda alert: (not is_open(alert), alert.starts_at))


def open_events(newest: Mapping[str, Alert]) -> list[Alert]:
    """Event alerts that are open, the oldest first."""
    return sorted(
        (a for a in newest.values() if is_event(a) and is_open(a)),
        key=lambda alert: (alert.starts_at, alert.fingerprint),
    )


def describe(alert: Alert) -> str:
    """Its name and place."""
    labels = alert.labels
    place = "/".join(
        labels[name] for name in ("kafka_cluster", "topic", "partition") if name in labels
    )
    return f"{labels.get('alertname', 'the alert')} {place} ({alert.fingerprint})"


def ack_record(alert: Alert, by: str, comment: str | None, now: float) -> bytes:
    """The record that closes an alert; it goes to every Kafka partition of the event topic.

    The writer is no collector: it has no clock, owns no partition and ends nobody's ownership. An operator's clock that is
    behind the collector's does not make the end older than the beginning.
    """
    labels = alert.labels
    now = max(now, alert.at)
    topic = labels.get("topic")
    event = Ack(
        fingerprint=alert.fingerprint,
        observed_at=now,
        topic=topic,
        partition=int(labels["partition"])
        if topic is not None and labels.get("partition", "").isdecimal()
        else None,
        by=by,
        comment=comment,
    )
    return encode_batch(
        Batch(
            v=1,
            cluster=labels["kafka_cluster"],
            collector="tidemark-ack",
            collector_epoch=int(now * 1000),
            pass_number=0,
            events=[event],
        )
    )
