"""The alerts that each scene must cause: one table, to be compared with the runbooks. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidemark.core.identity import alert_name
from tidemark.detect import DETECTORS
from tidemark.detect.broker_down import ID as BROKER_DOWN
from tidemark.detect.broker_down import PAUSE_MS
from tidemark.detect.thresholds import Thresholds

HEALTHY: Final = "healthy"
PAUSED: Final = "follower paused"
ROLLING: Final = "rolling restart"
UNCLEAN: Final = "unclean election"
SCENES: Final = (HEALTHY, PAUSED, ROLLING, UNCLEAN)

# The faults of a scene, in order. An alert's latency counts from the fault that causes it.
PAUSE_FOLLOWER: Final = "follower paused"
KILL_FOLLOWER: Final = "follower killed"
KILL_LEADER: Final = "leader killed"
RETURN_STALE: Final = "stale follower returns"
RETURN_LEADER: Final = "old leader returns"

LOSS: Final = "COMMITTED_DATA_LOSS"
# Allowed latency beyond the detector's hysteresis.
EXTRA_PASSES: Final = 2
EXTRA_SECONDS: Final = 2.0
# The longest pause between two posts about one cause.
UPDATE_SECONDS: Final = 30.0
# A loss fires when reads of two passes agree.
_LOSS_READS: Final = 2


@dataclass(frozen=True)
class ExpectedAlert:
    """An alert on the watched partition, or on a broker, that `fault` must cause in `scene`.

    `broker`: the broker it must name, None for any. `resolves`: it must be resolved before the
    scene ends. Event alerts stay open for a day.
    """

    scene: str
    detector: str
    fault: str
    broker: int | None = None
    resolves: bool = False
    # It updates the message about a page of the scene.
    follows: bool = False

    @property
    def name(self) -> str:
        return alert_name(self.detector)


# Broker 1 leads the watched partition, broker 2 follows; broker 3 leads Tidemark's own topics.
LEADER: Final = 1
FOLLOWER: Final = 2
OWN_TOPICS_LEADER: Final = 3

EXPECTED_ALERTS: Final = (
    ExpectedAlert(PAUSED, "FOLLOWER_LAG", PAUSE_FOLLOWER, FOLLOWER, resolves=True),
    ExpectedAlert(PAUSED, BROKER_DOWN, PAUSE_FOLLOWER, FOLLOWER, resolves=True),
    ExpectedAlert(PAUSED, "HW_STALLED", PAUSE_FOLLOWER, resolves=True),
    ExpectedAlert(PAUSED, "ISR_CHANGE", PAUSE_FOLLOWER, resolves=True),
    ExpectedAlert(PAUSED, "UNDER_REPLICATED", PAUSE_FOLLOWER, resolves=True),
    ExpectedAlert(UNCLEAN, "FOLLOWER_LAG", KILL_FOLLOWER, FOLLOWER, resolves=True),
    ExpectedAlert(UNCLEAN, BROKER_DOWN, KILL_FOLLOWER, FOLLOWER, resolves=True),
    ExpectedAlert(UNCLEAN, "HW_STALLED", KILL_FOLLOWER, resolves=True),
    ExpectedAlert(UNCLEAN, "ISR_CHANGE", KILL_FOLLOWER, resolves=True),
    ExpectedAlert(UNCLEAN, "UNDER_REPLICATED", KILL_FOLLOWER, resolves=True),
    ExpectedAlert(UNCLEAN, "OFFLINE", KILL_LEADER, resolves=True),
    ExpectedAlert(UNCLEAN, "UNCLEAN_ELECTION", RETURN_STALE),
    ExpectedAlert(UNCLEAN, LOSS, RETURN_STALE),
    ExpectedAlert(UNCLEAN, "LOG_TRUNCATION", RETURN_LEADER, LEADER, follows=True),
)


def expected_alerts(scene: str, *faults: str) -> tuple[ExpectedAlert, ...]:
    """The expected alerts of a scene; only those of `faults` when any are given."""
    return tuple(
        e for e in EXPECTED_ALERTS if e.scene == scene and (not faults or e.fault in faults)
    )


def hysteresis_passes(detector_id: str, thresholds: Thresholds) -> int:
    """How many passes must show the condition before the detector fires."""
    if detector_id == LOSS:
        return _LOSS_READS
    detector = DETECTORS[detector_id]
    return 0 if detector.kind == "event" else detector.fire_passes or thresholds.fire_passes


def allowed_seconds(expected: ExpectedAlert, thresholds: Thresholds, pass_seconds: float) -> float:
    """The allowed time from the first moment the condition is observable to the webhook."""
    passes = EXTRA_PASSES + hysteresis_passes(expected.detector, thresholds)
    held = PAUSE_MS / 1000 if expected.detector == BROKER_DOWN else 0.0
    updated = UPDATE_SECONDS if expected.follows else 0.0
    return passes * pass_seconds + held + updated + EXTRA_SECONDS
