"""What the scenes must bring about: one table. Pure data, so that a reader can check it against the runbooks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidemark.core.identity import alert_name
from tidemark.detect import DETECTORS
from tidemark.detect.thresholds import Thresholds

HEALTHY: Final = "healthy"
PAUSED: Final = "follower paused"
ROLLING: Final = "rolling restart"
UNCLEAN: Final = "unclean election"
SCENES: Final = (HEALTHY, PAUSED, ROLLING, UNCLEAN)

# The faults of a scene, in their order; a row's time runs from the one that causes it.
PAUSE_FOLLOWER: Final = "follower paused"
KILL_FOLLOWER: Final = "follower killed"
KILL_LEADER: Final = "leader killed"
RETURN_STALE: Final = "stale follower returns"
RETURN_LEADER: Final = "old leader returns"

LOSS: Final = "COMMITTED_DATA_LOSS"
# Beyond the detector's hysteresis an alert may take two passes and two seconds.
EXTRA_PASSES: Final = 2
EXTRA_SECONDS: Final = 2.0
# A loss is claimed when reads of two passes agree.
_LOSS_READS: Final = 2


@dataclass(frozen=True)
class Expectation:
    """An alert on the watched partition that must come in `scene`, `about` this broker (None: whichever it names).

    `ends`: it must be resolved before the scene is over. Event alerts stay open for a day.
    """

    scene: str
    detector: str
    cause: str
    about: int | None = None
    ends: bool = False

    @property
    def alert(self) -> str:
        return alert_name(self.detector)


# Broker 1 leads the watched partition, broker 2 follows; broker 3 leads Tidemark's own topics.
LEADER: Final = 1
FOLLOWER: Final = 2
WITNESS: Final = 3

EXPECTATIONS: Final = (
    Expectation(PAUSED, "FOLLOWER_LAG", PAUSE_FOLLOWER, FOLLOWER, ends=True),
    Expectation(PAUSED, "FOLLOWER_UNREACHABLE", PAUSE_FOLLOWER, FOLLOWER, ends=True),
    Expectation(PAUSED, "HW_STALLED", PAUSE_FOLLOWER, ends=True),
    Expectation(PAUSED, "ISR_CHANGE", PAUSE_FOLLOWER, ends=True),
    Expectation(PAUSED, "UNDER_REPLICATED", PAUSE_FOLLOWER, ends=True),
    Expectation(UNCLEAN, "FOLLOWER_LAG", KILL_FOLLOWER, FOLLOWER, ends=True),
    Expectation(UNCLEAN, "FOLLOWER_UNREACHABLE", KILL_FOLLOWER, FOLLOWER, ends=True),
    Expectation(UNCLEAN, "HW_STALLED", KILL_FOLLOWER, ends=True),
    Expectation(UNCLEAN, "ISR_CHANGE", KILL_FOLLOWER, ends=True),
    Expectation(UNCLEAN, "UNDER_REPLICATED", KILL_FOLLOWER, ends=True),
    Expectation(UNCLEAN, "OFFLINE", KILL_LEADER, ends=True),
    Expectation(UNCLEAN, "UNCLEAN_ELECTION", RETURN_STALE),
    Expectation(UNCLEAN, LOSS, RETURN_STALE),
    Expectation(UNCLEAN, "LOG_TRUNCATION", RETURN_LEADER, LEADER),
)


def expected(scene: str, *causes: str) -> tuple[Expectation, ...]:
    """The expectations of a scene, of these causes alone when any are given."""
    return tuple(e for e in EXPECTATIONS if e.scene == scene and (not causes or e.cause in causes))


def hysteresis_passes(detector: str, thresholds: Thresholds) -> int:
    """How many passes the detector must see its condition: printed beside each figure, not hidden in it."""
    if detector == LOSS:
        return _LOSS_READS
    row = DETECTORS[detector]
    if row.kind == "event":
        return 0
    return row.fire_passes or thresholds.fire_passes


def allowed_seconds(detector: str, thresholds: Thresholds, pass_seconds: float) -> float:
    """From the moment the condition was detectable to the webhook."""
    return (EXTRA_PASSES + hysteresis_passes(detector, thresholds)) * pass_seconds + EXTRA_SECONDS
