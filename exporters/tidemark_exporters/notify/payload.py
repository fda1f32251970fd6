"""The webhook's body in Alertmanager's form, version 4, so that whatever takes Alertmanager's webhooks takes ours."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from tidemark.core.records import Alert
from tidemark.settings import Receiver
from tidemark_exporters.evidence import range_text
from tidemark_exporters.notify.gather import LOSS, URGENT, Batch, Group

# Alertmanager's endsAt of an alert that has not ended.
NOT_ENDED: Final = "0001-01-01T00:00:00Z"
# 9999-12-31T23:59:59Z
LAST_SECOND: Final = 253402300799.0
# How many of a batch its headline names.
WORST: Final = 5
_SEVERITY_RANK: Final = {"critical": 0, "warning": 1, "info": 2}


def render(batch: Batch, receiver: Receiver, external_url: str) -> tuple[str, bytes]:
    """(message id, JSON body). The id is the same for the same transitions, however often they are posted."""
    alerts = sorted((entry.alert for entry in batch.entries), key=_worst_first)
    # Each is posted once: what is left out here nobody hears of, so a loss never is.
    bound = receiver.max_alerts or len(alerts)
    shown = [
        alert
        for number, alert in enumerate(alerts)
        if number < bound or alert.labels.get("alertname") == LOSS
    ]
    posted = [_alert(alert, external_url) for alert in shown]
    body = {
        "receiver": receiver.name,
        "status": "firing" if any(alert.state == "firing" for alert in alerts) else "resolved",
        "alerts": posted,
        "groupLabels": _group_labels(batch.group),
        "commonLabels": _common([alert["labels"] for alert in posted]),
        "commonAnnotations": _common([alert["annotations"] for alert in posted])
        | _headline(alerts, batch.group),
        "externalURL": external_url,
        "version": "4",
        "groupKey": group_key(receiver.name, batch.group),
        "truncatedAlerts": len(alerts) - len(shown),
    }
    marks = "\n".join([receiver.name, *sorted(alert.id for alert in alerts)])
    return (
        f"msg_{hashlib.sha256(marks.encode('utf-8', 'replace')).hexdigest()[:32]}",
        msgspec.json.encode(body),
    )


def group_key(receiver: str, group: Group) -> str:
    """Alertmanager's form: the route, then the group's labels. Stable over restarts."""
    labels = ", ".join(
        f"{name}={_quoted(value)}" for name, value in sorted(_group_labels(group).items())
    )
    return f"{{}}/{{receiver={_quoted(receiver)}}}:{{{labels}}}"


def rfc3339(seconds: float) -> str:
    """2026-11-21T09:47:01.736Z of Unix seconds; what is no time of this calendar becomes the nearest that is."""
    return (
        datetime.fromtimestamp(min(max(seconds, 0.0), LAST_SECOND), UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def alert_url(external_url: str, alert: Alert) -> str:
    """Where the status page shows the alert: at its partition, else in the list; Tidemark's own stand on the first page."""
    labels, base = alert.labels, external_url.rstrip("/")
    cluster = {"cluster": labels.get("kafka_cluster", "")}
    topic, partition = labels.get("topic"), labels.get("partition", "")
    if topic and partition.isascii() and partition.isdecimal():
        page, query = "partition", cluster | {"topic": topic, "partition": partition}
    elif labels.get("alertname", "").startswith("Kafka"):
        page, query = "alerts", cluster | {"alertname": labels["alertname"]}
    else:
        return f"{base}/"
    return f"{base}/{page}?{urlencode(query, quote_via=quote, safe='', errors='replace')}#alert-{quote(alert.fingerprint)}"


def annotations_of(alert: Alert) -> dict[str, str]:
    """The alert's annotations with what of its evidence people need at once: ranges of offsets, and why it ended."""
    annotations = dict(alert.annotations)
    for kind in ("proven", "exposed"):
        text = range_text(alert.evidence.get(kind))
        if text is not None:
            annotations[kind] = text
    if alert.reason is not None:
        annotations["reason"] = alert.reason
    return annotations


def postable(
    alert: Alert,
    state: str,
    fired_at: float,
    now: float,
    ends_after: float,
    external_url: str,
    stale_since: float | None,
) -> dict[str, Any]:
    """One alert as Alertmanager's API v2 takes it: while it fires it ends `ends_after` seconds from now unless posted again.

    It starts when it began to fire, as Prometheus has it: where its condition began longer ago than a group waits,
    Alertmanager would notify at once of the first of the group, and of the others an interval later. The start is always
    given, and never after the end: Alertmanager would invent the one and refuse the other.
    """
    annotations = annotations_of(alert)
    if state == "resolved":
        ends_at = min(now, alert.ends_at if alert.ends_at is not None else alert.at)
    else:
        annotations.pop("reason", None)
        ends_at = now + ends_after
    if stale_since is not None:
        annotations["stale_since"] = rfc3339(stale_since)
    return {
        "labels": alert.labels,
        "annotations": annotations,
        "startsAt": rfc3339(min(fired_at, ends_at)),
        "endsAt": rfc3339(ends_at),
        "generatorURL": alert_url(external_url, alert),
    }


def _headline(alerts: list[Alert], group: Group) -> dict[str, str]:
    """One summary for several alerts: how many, the worst of them by name, and how many more."""
    if len(alerts) < 2:
        return {}
    firing = sum(alert.state == "firing" for alert in alerts)
    ended = len(alerts) - firing
    counts = [f"{firing} firing"] * (firing > 0) + [f"{ended} resolved"] * (ended > 0)
    of = (
        f"broker {group.broker} of {group.kafka_cluster}"
        if group.broker
        else f"cluster {group.kafka_cluster}"
    )
    worst = [_place(alert) for alert in alerts[:WORST]]
    more = [f"{len(alerts) - WORST} more"] * (len(alerts) > WORST)
    return {
        "summary": f"{len(alerts)} alerts of {of} ({', '.join(counts)}): {', '.join([*worst, *more])}."
    }


def _place(alert: Alert) -> str:
    labels = alert.labels
    words = [
        labels.get("alertname", ""),
        f"{labels['topic']}/{labels['partition']}"
        if {"topic", "partition"} <= labels.keys()
        else "",
    ]
    return " ".join(
        word for word in (*words, "resolved" if alert.state == "resolved" else "") if word
    )


def _alert(alert: Alert, external_url: str) -> dict[str, Any]:
    return {
        "status": "resolved" if alert.state == "resolved" else "firing",
        "labels": alert.labels,
        "annotations": annotations_of(alert),
        "startsAt": rfc3339(alert.starts_at),
        "endsAt": rfc3339(alert.ends_at if alert.ends_at is not None else alert.at)
        if alert.state == "resolved"
        else NOT_ENDED,
        "generatorURL": alert_url(external_url, alert),
        "fingerprint": alert.fingerprint,
    }


def _worst_first(alert: Alert) -> tuple[bool, int, bool, str]:
    rank = _SEVERITY_RANK.get(alert.labels.get("severity", ""), 3)
    return (
        alert.state != "firing",
        rank,
        alert.labels.get("alertname") not in URGENT,
        alert.fingerprint,
    )


def _group_labels(group: Group) -> dict[str, str]:
    if not group.kafka_cluster and not group.broker:
        return {}
    labels = {"kafka_cluster": group.kafka_cluster}
    return {**labels, "broker": group.broker} if group.broker else labels


def _common(maps: list[dict[str, str]]) -> dict[str, str]:
    if not maps:
        return {}
    return {
        name: value
        for name, value in maps[0].items()
        if all(other.get(name) == value for other in maps)
    }


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
