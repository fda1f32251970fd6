"""When the alerts of a fault were first posted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tidemark_lab.brokers.receiver import ReceivedAlert

# An alert begins with a pass, whose samples may be slightly older than our time of the fault.
EARLY_SECONDS: Final = 2.0


def first_posts(alerts: Iterable[ReceivedAlert], since: float) -> dict[str, float]:
    """Alert -> when it was first posted; of those that began to fire after `since`."""
    found: dict[str, float] = {}
    for alert in alerts:
        posted = alert.status == "firing" and alert.received_at >= since
        if posted and alert.started_at >= since - EARLY_SECONDS:
            found.setdefault(alert.name, alert.received_at)
    return found
