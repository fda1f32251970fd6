"""The JSON document that Alertmanager posts to webhooks, version 4.

Mirrors `template.Data` and `webhook.Message` of Alertmanager: a receiver of Alertmanager's webhooks
reads these documents too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from tidemark.core.records import Alert
from tidemark.core.text import rfc3339

# Alertmanager's endsAt of an alert that has not ended.
NOT_ENDED: Final = "0001-01-01T00:00:00Z"


def alert_document(
    alert: Alert, annotations: Mapping[str, str] | None = None, generator_url: str = ""
) -> dict[str, Any]:
    """One alert of a document. `annotations` replace the alert's own."""
    resolved = alert.state == "resolved"
    # The end may come from a collector whose clock is behind that of the one before.
    ends_at = max(alert.starts_at, alert.at if alert.ends_at is None else alert.ends_at)
    return {
        "status": "resolved" if resolved else "firing",
        "labels": alert.labels,
        "annotations": alert.annotations if annotations is None else annotations,
        "startsAt": rfc3339(alert.starts_at),
        "endsAt": rfc3339(ends_at) if resolved else NOT_ENDED,
        "generatorURL": generator_url,
        "fingerprint": alert.fingerprint,
    }


def webhook_document(
    receiver: str,
    alerts: Sequence[dict[str, Any]],
    group_labels: Mapping[str, str],
    *,
    route: str = "{}",
    external_url: str = "",
    headline: Mapping[str, str] | None = None,
    truncated: int = 0,
    open_elsewhere: bool = False,
) -> dict[str, Any]:
    """A batch of alerts, each as `alert_document` returns it; it fires while one of them fires.

    `route` begins the group key. `headline` holds annotations of the batch as a whole. `truncated`
    counts alerts that are left out. `open_elsewhere`: another alert of the group fires.
    """
    labels = ", ".join(f"{name}={quoted(value)}" for name, value in sorted(group_labels.items()))
    firing = open_elsewhere or any(alert["status"] == "firing" for alert in alerts)
    return {
        "receiver": receiver,
        "status": "firing" if firing else "resolved",
        "alerts": alerts,
        "groupLabels": group_labels,
        "commonLabels": _common([alert["labels"] for alert in alerts]),
        "commonAnnotations": {
            **_common([alert["annotations"] for alert in alerts]),
            **(headline or {}),
        },
        "externalURL": external_url,
        "version": "4",
        "groupKey": f"{route}:{{{labels}}}",
        "truncatedAlerts": truncated,
    }


def quoted(text: str) -> str:
    """As Alertmanager writes the value of a label in a group key."""
    return msgspec.json.encode(text).decode()


def _common(maps: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What all maps have in common."""
    first, *others = maps or [{}]
    return {
        name: value
        for name, value in first.items()
        if all(other.get(name) == value for other in others)
    }
