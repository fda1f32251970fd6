"""Bodies of requests: the webhook document, and alerts of Alertmanager's API v2. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from tidemark.core.links import below, dashboard_path, runbook_path
from tidemark.core.records import Alert
from tidemark.core.text import counted, rfc3339
from tidemark.core.webhook import alert_document, quoted, webhook_document
from tidemark.settings import Notify, Receiver
from tidemark_exporters.evidence import holders_text, interval_text, range_text
from tidemark_exporters.notify.groups import Group, is_loss, urgency

# How many alerts of a batch its headline names.
WORST: Final = 5
_RANGES: Final = ("proven", "exposed")
_SEVERITY_RANK: Final = {"critical": 0, "warning": 1, "info": 2}


def webhook_body(
    alerts: Sequence[Alert],
    group: Group,
    receiver: Receiver,
    notify: Notify,
    *,
    is_update: bool = False,
    open_elsewhere: bool = False,
) -> tuple[bytes, str]:
    """(JSON, message id). The same transitions have the same id, however often they are posted.

    `is_update`: the group was posted before. `open_elsewhere`: others of its alerts are open, so it
    still fires.
    """
    alerts = sorted(alerts, key=_worst_first)
    # An alert beyond the bound is never posted, so a loss is posted all the same.
    bound = receiver.max_alerts or len(alerts)
    shown = [each for number, each in enumerate(alerts) if number < bound or is_loss(each)]
    cause, url = group.labels.get("cause"), notify.external_url
    document = webhook_document(
        receiver.name,
        [
            alert_document(each, annotations_of(each, notify, cause), alert_url(url, each))
            for each in shown
        ],
        group.labels,
        route=f"{{}}/{{receiver={quoted(receiver.name)}}}",
        external_url=url,
        headline=_headline(alerts, group, is_update=is_update),
        truncated=len(alerts) - len(shown),
        open_elsewhere=open_elsewhere,
    )
    ids = "\n".join([receiver.name, *sorted(alert.id for alert in alerts)]).encode(errors="replace")
    return msgspec.json.encode(document), f"msg_{hashlib.sha256(ids).hexdigest()[:32]}"


def alertmanager_alert(
    alert: Alert,
    state: str,
    fired_at: float,
    now: float,
    ends_after: float,
    notify: Notify,
    stale_since: float | None = None,
    cause: str | None = None,
) -> dict[str, Any]:
    """One alert for Alertmanager. A firing alert ends in `ends_after` seconds unless posted again.

    It starts when it fired, as an alert of Prometheus does, and not when its condition began.
    Alertmanager notifies at once of a group whose first alert started longer ago than `group_wait`,
    and of its other alerts only after `group_interval`. The start is always set and never after the
    end: Alertmanager replaces a missing start and refuses an alert that starts after its end.
    """
    annotations = annotations_of(alert, notify, cause)
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
        "generatorURL": alert_url(notify.external_url, alert),
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


def annotations_of(alert: Alert, notify: Notify, cause: str | None = None) -> dict[str, str]:
    """The alert's annotations, from its evidence the ranges, when they were written, who led before
    and who had the records; the reason of its end, its cause's id; links as of now, so that a
    change of an address reaches open alerts.

    The cause is no label: labels identify an alert.
    """
    added: dict[str, str | None] = {kind: range_text(alert.evidence.get(kind)) for kind in _RANGES}
    if isinstance(broker := alert.evidence.get("leader_before"), int):
        added["leader_before"] = str(broker)
    added["written_between"] = interval_text(alert.evidence.get("written_between"))
    added["records_held_by"] = holders_text(alert.evidence.get("records_held_by"))
    added["reason"], added["cause"] = alert.reason, cause
    added["runbook_url"] = below(notify.external_url, runbook_path(alert))
    if notify.dashboard_url is not None:
        added["dashboard_url"] = below(notify.dashboard_url, dashboard_path(alert.labels))
    return alert.annotations | {name: text for name, text in added.items() if text is not None}


def _headline(alerts: list[Alert], group: Group, *, is_update: bool) -> dict[str, str]:
    """One summary for several alerts: what was lost, their number, the worst, and how many more."""
    of_cause = group.began_at is not None
    if len(alerts) < 2 and not (of_cause and is_update):
        return {}
    firing = sum(alert.state == "firing" for alert in alerts)
    states = ((firing, "firing"), (len(alerts) - firing, "resolved"))
    counts = ", ".join(f"{count} {state}" for count, state in states if count)
    cluster, broker = group.labels.get("kafka_cluster", ""), group.labels.get("broker")
    place = f"cluster {cluster}" if broker is None else f"broker {broker} of {cluster}"
    if of_cause:
        place = f"one cause in {cluster}"
    named = [_title(alert) for alert in alerts[:WORST]]
    named += [f"{len(alerts) - WORST} more"] * (len(alerts) > WORST)
    lost = _lost_text(group)
    listed = f"{counted(len(alerts), 'alert')} of {place} ({counts}): {', '.join(named)}."
    return {"summary": f"{'Update: ' * (of_cause and is_update)}{lost}{listed}"}


def _lost_text(group: Group) -> str:
    """What the losses of a cause come to so far: partitions, records, and the worst of them."""
    if not group.lost:
        return ""
    partitions = counted(len(group.places), "partition")
    if len(group.lost) < len(group.places):
        partitions = f"{len(group.lost)} of {partitions} of this cause"
    text = f"{partitions} in {group.labels['kafka_cluster']} lost committed records"
    (topic, number), (most, proven) = max(
        group.lost.items(), key=lambda item: (item[1][0], item[0])
    )
    fewest = min(records for records, _ in group.lost.values())
    if not fewest:
        return f"{text}. "
    each = f"{most} records" if fewest == most else f"{fewest} to {most} records"
    if len(group.lost) > 1:
        each += f" each, worst {topic}-{number}"
    else:
        each += f", {topic}-{number}"
    return f"{text}: {each} {range_text(proven)}. "


def _title(alert: Alert) -> str:
    labels = alert.labels
    located = {"topic", "partition"} <= labels.keys()
    place = f"{labels['topic']}-{labels['partition']}" if located else ""
    state = "resolved" if alert.state == "resolved" else ""
    return " ".join(filter(None, [labels.get("alertname"), place, state]))


def _worst_first(alert: Alert) -> tuple[bool, int, int, str]:
    labels = alert.labels
    rank = _SEVERITY_RANK.get(labels.get("severity", ""), len(_SEVERITY_RANK))
    return alert.state != "firing", rank, urgency(alert), alert.fingerprint
