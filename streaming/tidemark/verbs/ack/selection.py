"""Selection of the alerts to close, and the event that closes one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import click

from tidemark.command_line.places import partition_of
from tidemark.core.alert_records import newest_by, place
from tidemark.core.codec import encode_lone_event
from tidemark.core.errors import ConfigError
from tidemark.core.events import Ack
from tidemark.core.records import Alert

_IDENTITY: Final = {"kafka_cluster", "alertname", "severity"}
# A shorter prefix of a fingerprint is probably a typing error.
MIN_PREFIX: Final = 6


def newest_alerts(alerts: Iterable[Alert]) -> dict[str, Alert]:
    """The newest record of each alert by fingerprint."""
    complete = (alert for alert in alerts if alert.labels.keys() >= _IDENTITY)
    return newest_by(lambda alert: alert.fingerprint, complete)


def is_event(alert: Alert) -> bool:
    """Whether an alert reports an event. Only such alerts can be closed by hand."""
    return "incident" in alert.labels


def is_open(alert: Alert) -> bool:
    return alert.state != "resolved"


def open_events(newest: Mapping[str, Alert]) -> list[Alert]:
    """Open event alerts, the oldest first."""
    events = [alert for alert in newest.values() if is_event(alert) and is_open(alert)]
    return sorted(events, key=lambda alert: (alert.starts_at, alert.fingerprint))


def select_alerts(newest: Mapping[str, Alert], selector: str) -> list[Alert]:
    """Event alerts by fingerprint (or its prefix), record id, incident or partition.

    Of a partition, the open ones. Open alerts come first. Raises ConfigError for no match, an
    ambiguous prefix, or an alert about a state.
    """
    wanted = selector.strip().lower()
    fingerprint = wanted.partition(".")[0]
    found = [
        alert
        for alert in newest.values()
        if fingerprint == alert.fingerprint or wanted == alert.labels.get("incident")
    ]
    if not found and len(wanted) >= MIN_PREFIX:
        found = [alert for known, alert in newest.items() if known.startswith(wanted)]
        if len(found) > 1:
            raise ConfigError(
                f"{len(found)} alerts begin with {selector}; give the whole fingerprint."
            )
    if not found:
        found = _of_partition(newest.values(), selector)
    if not found:
        raise ConfigError(
            "no alert of the last 7 days has the fingerprint, id, incident or partition "
            f"{selector}. `tidemark ack` without arguments lists the open ones."
        )
    for alert in found:
        if not is_event(alert):
            raise ConfigError(
                f"{describe(alert)} is about a state: it resolves when its cause is gone and "
                "cannot be acknowledged. To mute it, use a silence in Alertmanager or "
                "notify.maintenance."
            )
    return sorted(found, key=lambda alert: (not is_open(alert), alert.starts_at))


def _of_partition(alerts: Iterable[Alert], selector: str) -> list[Alert]:
    """Open event alerts of the partition; alerts about its state where there are no others."""
    try:
        place = partition_of(selector)
    except click.BadParameter:
        return []
    found = [
        alert
        for alert in alerts
        if (alert.labels.get("topic"), alert.labels.get("partition"))
        == (place.topic, str(place.partition))
        and place.cluster in (None, alert.labels["kafka_cluster"])
        and is_open(alert)
    ]
    clusters = sorted({alert.labels["kafka_cluster"] for alert in found})
    if len(clusters) > 1:
        raise ConfigError(
            f"{place} is in several clusters; write {clusters[0]}/{place} or another of "
            f"{', '.join(clusters)}."
        )
    return [alert for alert in found if is_event(alert)] or found


def describe(alert: Alert) -> str:
    """An alert's name, place and fingerprint."""
    return f"{alert.labels['alertname']} {place(alert)} ({alert.fingerprint})"


def ack_record(alert: Alert, by: str, comment: str | None, now: float) -> bytes:
    """The batch that closes an alert, for every Kafka partition of the event topic.

    An operator's clock may be behind the collector's; the end of an alert is never before its last
    transition.
    """
    now = max(now, alert.at)
    topic, partition = alert.labels.get("topic"), alert.labels.get("partition", "")
    event = Ack(
        fingerprint=alert.fingerprint,
        observed_at=now,
        topic=topic,
        partition=int(partition) if topic is not None and partition.isdecimal() else None,
        by=by,
        comment=comment,
    )
    return encode_lone_event(alert.labels["kafka_cluster"], "tidemark-ack", event)
