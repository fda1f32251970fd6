"""Thresholds of the detectors, global and by topic pattern; each has a unit and a reason."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType, field, structs

from tidemark.assess.safe_to_stop import LagThreshold
from tidemark.core.sparse_state import MAX_EPOCH_STARTS

# By then Kafka has removed a silent follower from the in-sync set: after replica.lag.time.max.ms
# (30 s), or at the end of its session.
REMOVED_MS: Final = 60_000.0
# A follower that fetches now and then catches up for a moment: lag and stall end once that lasts.
CAUGHT_UP_PASSES: Final = 10

# Topics whose threshold is remembered.
MAX_TOPICS: Final = 20_000

# The bounds exclude .inf and .nan.
Milliseconds = Annotated[float, Meta(ge=0, le=1e12)]
Passes = Annotated[int, Meta(ge=1, le=1000)]
# The state remembers no more.
Bumps = Annotated[int, Meta(ge=2, le=MAX_EPOCH_STARTS)]


class Thresholds(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a condition must reach. `docs/reference-config.yaml` repeats the reasons."""

    # One slow request or a pause of the collector affects fewer than three passes.
    fire_passes: Passes = 3
    # Two passes without the condition end it. One would flap at the edge of a threshold.
    clear_passes: Passes = 2
    # Far above a fetch round (500 ms), and far below replica.lag.time.max.ms (30 s), when Kafka
    # itself acts.
    lag_ms: Milliseconds = 2_000
    # The same for a high watermark that does not move while records wait above it.
    high_watermark_stalled_ms: Milliseconds = 5_000
    # Three shrinks in ten minutes are no restart: a restart causes one.
    churn_shrinks: Annotated[int, Meta(ge=2, le=1_000_000)] = 3
    # The restart of a broker takes less; until then it is info, no warning.
    under_replicated_escalates_ms: Milliseconds = 600_000
    # A new leader's high watermark catches up within fetch rounds; consumers wait until it does.
    high_watermark_regressed_ms: Milliseconds = 60_000
    # Above transaction.max.timeout.ms (15 min), when the coordinator ends every transaction that
    # it knows.
    last_stable_stuck_ms: Milliseconds = 900_000
    # A copy that moves at all moves within minutes, also when it is throttled.
    reassignment_stuck_ms: Milliseconds = 600_000
    # A follower truncates within a few fetches of a new epoch, a busy one within seconds.
    divergence_ms: Milliseconds = 30_000
    # A restart of every broker moves a leader three times at most.
    epoch_bumps: Bumps = 5
    # A resumed leader learns of its successor within a metadata fetch (80 ms measured).
    zombie_leader_ms: Milliseconds = 5_000
    # Brokers fetch the metadata log all the time; the quorum fences one that is absent for 9 s.
    stale_broker_ms: Milliseconds = 10_000
    # The epoch cache is flushed asynchronously after a truncation.
    lineage_anomaly_ms: Milliseconds = 5_000
    # Three times replica.high.watermark.checkpoint.interval.ms (5 s).
    checkpoint_stale_ms: Milliseconds = 15_000
    # Below this number, the broker is merely busy.
    purgatory_operations: Annotated[int, Meta(ge=1, le=2**31 - 1)] = 1_000
    # The default of leader.imbalance.per.broker.percentage.
    imbalance_percent: Annotated[float, Meta(gt=0, le=100)] = 10.0
    # Twice leader.imbalance.check.interval.seconds (5 min): Kafka had its chance.
    imbalance_ms: Milliseconds = 600_000
    # How long a broker may be absent after a controlled shutdown.
    restart_grace_ms: Milliseconds = 600_000
    # Event alerts end after a day.
    event_expires_ms: Milliseconds = 86_400_000
    # A partition that this many passes missed is blind.
    gap_passes: Passes = 3


class Override(Struct, kw_only=True, forbid_unknown_fields=True):
    """Thresholds for topics whose whole name matches `topics`; the first match wins.

    Fields that it leaves out keep the global value.
    """

    topics: str
    fire_passes: Passes | UnsetType = UNSET
    clear_passes: Passes | UnsetType = UNSET
    lag_ms: Milliseconds | UnsetType = UNSET
    high_watermark_stalled_ms: Milliseconds | UnsetType = UNSET
    churn_shrinks: Annotated[int, Meta(ge=2, le=1_000_000)] | UnsetType = UNSET
    under_replicated_escalates_ms: Milliseconds | UnsetType = UNSET
    high_watermark_regressed_ms: Milliseconds | UnsetType = UNSET
    last_stable_stuck_ms: Milliseconds | UnsetType = UNSET
    reassignment_stuck_ms: Milliseconds | UnsetType = UNSET
    divergence_ms: Milliseconds | UnsetType = UNSET
    epoch_bumps: Bumps | UnsetType = UNSET


class Detection(Struct, kw_only=True, forbid_unknown_fields=True):
    """The `detect` section of the configuration."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    overrides: list[Override] = []
    # Detector ids (FOLLOWER_LAG, …) that raise no alert.
    disabled: list[str] = []

    def all_thresholds(self) -> list[Thresholds]:
        """The global ones, and those of each override."""
        return [self.thresholds, *map(self._overridden, self.overrides)]

    def for_topic(self, topic: str | None) -> Thresholds:
        """The thresholds for one topic (None: detectors of brokers and clusters)."""
        for override in self.overrides if topic is not None else []:
            if re.fullmatch(override.topics, topic or ""):
                return self._overridden(override)
        return self.thresholds

    def lag_threshold(self) -> LagThreshold:
        """The threshold lag_ms by topic, fast, for those who judge views."""
        return lru_cache(maxsize=MAX_TOPICS)(lambda topic: self.for_topic(topic).lag_ms)

    def _overridden(self, override: Override) -> Thresholds:
        fields = structs.asdict(override).items()
        changes = {k: v for k, v in fields if v is not UNSET and k != "topics"}
        return structs.replace(self.thresholds, **changes)
