"""The alerts that a schedule must cause, and when they came. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tidemark.core.identity import alert_name
from tidemark.core.records import Alert
from tidemark.detect import DETECTORS
from tidemark.detect.broker_down import PAUSE_MS
from tidemark.detect.default_thresholds import Thresholds

# When a condition was first visible to a client apart from Tidemark: detector, since, broker.
FirstSeen = Callable[[str, float, int | None], float | None]
# What the independent probe dates (tidemark_lab.brokers.reference_detector).
DATED: Final = frozenset(
    {
        *("OFFLINE", "UNCLEAN_ELECTION", "COMMITTED_DATA_LOSS", "LOG_TRUNCATION"),
        *("FOLLOWER_LAG", "BROKER_DOWN", "HW_STALLED", "ISR_CHANGE", "UNDER_REPLICATED"),
        "LEADER_ALONE",
    }
)
# The allowed time beyond the detector's hysteresis.
EXTRA_PASSES: Final = 2
EXTRA_SECONDS: Final = 2.0
# The longest pause between two posts about one cause.
UPDATE_SECONDS: Final = 30.0
# A loss fires when reads of two passes agree.
_LOSS_READS: Final = 2


class ReceivedAlert(NamedTuple):
    """A transition of an alert, and when it was received (Unix seconds).

    From the reducer, or from a webhook.
    """

    alert: Alert
    received_at: float


class Mark(NamedTuple):
    """A fault that was injected, and when: Unix seconds. `healed_at`: None while it lasts."""

    key: str
    name: str
    detail: str
    at: float
    healed_at: float | None = None


@dataclass(frozen=True)
class Expected:
    """An alert that must come after the fault `after`, counted from its injection.

    `broker`: the one that it must name. `partitions`: on so many at least. `resolves`: before the
    schedule, or its scene, ends; alerts on events stay open for a day. `versions`: only with these.
    `follows`: it updates the message about a page.
    """

    detector: str
    after: str
    severity: str | None = None
    broker: int | None = None
    partitions: int = 1
    resolves: bool = False
    versions: tuple[str, ...] | None = None
    follows: bool = False

    @property
    def alert(self) -> str:
        return alert_name(self.detector)

    def is_met_by(self, alert: Alert) -> bool:
        """Whether it is the wanted alert, and fires."""
        return (
            alert.labels["alertname"] == self.alert
            and alert.state == "firing"
            and self.severity in (None, alert.labels["severity"])
            and self.broker in (None, named_broker(alert))
        )

    def allowed_seconds(self, thresholds: Thresholds, pass_seconds: float = 1.0) -> float:
        """From the first moment that the condition is visible: hysteresis, 2 passes and 2 s."""
        passes = EXTRA_PASSES + hysteresis_passes(self.detector, thresholds)
        held = {"BROKER_DOWN": PAUSE_MS / 1000, "ZOMBIE_LEADER": thresholds.zombie_leader_ms / 1000}
        updated = UPDATE_SECONDS if self.follows else 0.0
        return passes * pass_seconds + held.get(self.detector, 0.0) + updated + EXTRA_SECONDS


def named_broker(alert: Alert) -> int | None:
    """The suspected cause, or else the leader, as of an election, which has no suspect."""
    broker = alert.labels.get("broker")
    return alert.evidence.get("leader") if broker is None else int(broker)


def hysteresis_passes(detector: str, thresholds: Thresholds) -> int:
    """How many passes must show the condition before the detector fires."""
    if detector == "COMMITTED_DATA_LOSS":
        return _LOSS_READS
    known = DETECTORS[detector]
    return 0 if known.kind == "event" else known.fire_passes or thresholds.fire_passes


def have_resolved(
    fired: Iterable[ReceivedAlert], alerts: Sequence[ReceivedAlert], until: float = math.inf
) -> bool:
    """Whether all of these ended before a time."""
    ended = {
        received.alert.fingerprint: received.received_at
        for received in alerts
        if received.alert.state == "resolved" and received.received_at < until
    }
    return all(one.received_at <= ended.get(one.alert.fingerprint, -1.0) for one in fired)


def open_alerts(alerts: Iterable[ReceivedAlert]) -> set[str]:
    """Names of the alerts whose newest transition is not their end."""
    newest = {received.alert.fingerprint: received.alert for received in alerts}
    return {a.labels["alertname"] for a in newest.values() if a.state != "resolved"}
