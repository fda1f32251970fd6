"""Bodies of requests: the webhook document, and alerts of Alertmanager's API v2. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from tidemark.core.records import Alert
from tidemark.core.text import rfc3339
from tidemark.core.webhook import alert_document, quoted, webhook_document
from tidemark.settings import Receiver
from tidemark_exporters.evidence import range_text
from tidemark_exporters.notify.queue import URGENT, is_loss

# How many alerts of a batch its headline names.
WORST: Final = 5
_SEVERITY_RANK: Final = {"critical": 0, "warning": 1, "info": 2}


def webhook_body(
    alerts: Sequence[Alert], group_labels: dict[str, str], receiver: Receiver, external_url: str
) -> tuple[bytes, str]:
    """(JSON, message id). The same transitions have the same id, however often they are posted."""
    alerts = sorted(alerts, key=_worst_first)
    # An alert beyond the bound is never posted, so a loss is posted all the same.
    bound = receiver.max_alerts or len(alerts)
    shown = [each for number, each in enumerate(alerts) if number < bound or is_loss(each)]
    document = webhook_document(
        receiver.name,
        [
            alert_document(each, annotations_of(each), alert_url(external_url, each))
            for each in shown
        ],
        group_labels,
        route=f"{{}}/{{receiver={quoted(receiver.name)}}}",
        external_url=external_url,
        headline=_headline(alerts, group_labels),
        truncated=len(alerts) - len(shown),
    )
    ids = "\n".join([receiver.name, *sorted(alert.id for alert in alerts)]).encode(errors="replace")
    return msgspec.json.encode(document), f"msg_{hashlib.sha256(ids).hexdigest()[:32]}"


def alertmanager_alert(
    alert: Alert,
    state: str,
    fired_at: float,
    now: float,
    ends_after: float,
    external_url: str,
    stale_since: float | None = None,
) -> dict[str, Any]:
    """One alert for Alertmanager. A firing alert ends in `ends_after` seconds unless posted again.

    It starts when it fired, as an alert of Prometheus does, and not when its condition began.
    Alertmanager notifies at once of a group whose first alert started longer ago than `group_wait`,
    and of its other alerts only after `group_interval`. The start is always set and never after the
    end: Alertmanager replaces a missing start and refuses an alert that starts after its end.
    """
    annotations = annotations_of(alert)
    if state == "resolved":
        ends_at = min(now, alert.at if alert.ends_at is None else alert.ends_at)
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


def alert_url(external_url: str, alert: Alert) -> str:
    """The page that shows the alert: its partition's, else the list; for own alerts the first."""
    labels, base = alert.labels, external_url.rstrip("/")
    query = {"cluster": labels.get("kafka_cluster", "")}
    topic, partition = labels.get("topic"), labels.get("partition", "")
    if topic and partition.isascii() and partition.isdecimal():
        page, query = "partition", query | {"topic": topic, "partition": partition}
    elif labels.get("alertname", "").startswith("Kafka"):
        page, query = "alerts", query | {"alertname": labels["alertname"]}
    else:
        return f"{base}/"
    text = urlencode(query, quote_via=quote, safe="", errors="replace")
    return f"{base}/{page}?{text}#alert-{quote(alert.fingerprint)}"


def annotations_of(alert: Alert) -> dict[str, str]:
    """The alert's annotations, the offset ranges of its evidence, and the reason of its end."""
    added = {kind: range_text(alert.evidence.get(kind)) for kind in ("proven", "exposed")}
    added["reason"] = alert.reason
    return alert.annotations | {name: text for name, text in added.items() if text is not None}


def _headline(alerts: list[Alert], group_labels: dict[str, str]) -> dict[str, str]:
    """One summary for several alerts: their number, the worst by name, and how many more."""
    if len(alerts) < 2:
        return {}
    firing = sum(alert.state == "firing" for alert in alerts)
    states = ((firing, "firing"), (len(alerts) - firing, "resolved"))
    counts = ", ".join(f"{count} {state}" for count, state in states if count)
    cluster, broker = group_labels.get("kafka_cluster", ""), group_labels.get("broker")
    cause = f"cluster {cluster}" if broker is None else f"broker {broker} of {cluster}"
    named = [_title(alert) for alert in alerts[:WORST]]
    named += [f"{len(alerts) - WORST} more"] * (len(alerts) > WORST)
    return {"summary": f"{len(alerts)} alerts of {cause} ({counts}): {', '.join(named)}."}


def _title(alert: Alert) -> str:
    labels = alert.labels
    located = {"topic", "partition"} <= labels.keys()
    place = f"{labels['topic']}/{labels['partition']}" if located else ""
    state = "resolved" if alert.state == "resolved" else ""
    return " ".join(filter(None, [labels.get("alertname"), place, state]))


def _worst_first(alert: Alert) -> tuple[bool, int, bool, str]:
    labels = alert.labels
    rank = _SEVERITY_RANK.get(labels.get("severity", ""), len(_SEVERITY_RANK))
    urgent = labels.get("alertname") in URGENT
    return alert.state != "firing", rank, not urgent, alert.fingerprint
