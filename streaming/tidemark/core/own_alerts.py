"""Alerts about Tidemark itself. Their names begin with `Tidemark`."""

from __future__ import annotations

from typing import Any, Final

from tidemark.core.identity import fingerprint, transition_id
from tidemark.core.records import Alert, AlertState, Severity

WATCHDOG: Final = "TidemarkWatchdog"
STALLED: Final = "TidemarkStreamStalled"
TEST: Final = "TidemarkTest"
# Those that reach receivers.
DELIVERED: Final = (STALLED, WATCHDOG, TEST)


def own_alert(
    name: str,
    severity: Severity,
    summary: str,
    description: str,
    *,
    starts_at: float,
    at: float,
    firing: bool = True,
    labels: dict[str, str] | None = None,
    evidence: dict[str, Any] | None = None,
) -> Alert:
    """One transition of an own alert. Times are Unix seconds; `labels` add to its identity."""
    identity = {"alertname": name, "severity": severity, **(labels or {})}
    alert_fingerprint = fingerprint(identity)
    state: AlertState = "firing" if firing else "resolved"
    return Alert(
        id=transition_id(alert_fingerprint, at, state),
        fingerprint=alert_fingerprint,
        state=state,
        labels=identity,
        annotations={"summary": summary, "description": description},
        evidence=evidence or {},
        starts_at=starts_at,
        ends_at=None if firing else at,
        at=at,
    )
