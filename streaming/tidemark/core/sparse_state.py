"""What few partitions have, and those seldom: kept apart, so that a healthy partition pays one byte for all of it.

Every list here has its bound beside it.
"""

from __future__ import annotations

import copy
from typing import Final

from msgspec import Struct

# Leader epochs that began lately; more than a storm needs.
MAX_BUMPS: Final = 16
# They are forgotten after this long; no storm is judged over more.
BUMP_SECONDS: Final = 3600.0
MAX_ANOMALIES: Final = 8
# A suspicion that nothing can settle is told for a day by default; then it is forgotten.
SUSPICION_SECONDS: Final = 7 * 86_400.0


class MetadataPosition(Struct, array_like=True, gc=False):
    """The newest record of the metadata log about the partition: exact, ordered by `offset`."""

    offset: int
    partition_epoch: int
    # By the collector's clock, when it was read.
    at: float
    # LeaderRecoveryState: the leader was elected uncleanly and has not been confirmed since.
    recovering: bool = False
    # The record before it was read too: nothing can have happened in between.
    adjacent: bool = False


class Adding(Struct, array_like=True, gc=False):
    """A replica that a reassignment is adding: its highest log end offset, and when that last grew."""

    broker: int
    log_end_offset: int | None
    advanced_at: float


class Anomaly(Struct, array_like=True, gc=False):
    """Something a lineage cannot look like: what, at which broker, since when it has been so without a break."""

    broker: int
    what: str
    since: float
    # When it was read last: a lineage that is not read again shows nothing new.
    seen_at: float = 0.0
    # Whether the newest entry alone shows it, so that reading it again can refute it.
    of_newest: bool = False


class CheckpointSeen(Struct, array_like=True, gc=False):
    """A broker's checkpoint files as last read (CheckpointFile)."""

    broker: int
    high_watermark: int | None
    modified_at: float | None
    observed_at: float


class Regression(Struct, array_like=True, gc=False):
    """A leader that shows less under its fence than it showed before in the same epoch."""

    shown: int
    highest: int
    since: float


class Suspicion(Struct, array_like=True, gc=False):
    """A leader without epochs once ended below what was committed: [start, end) may be gone, and nothing can prove it."""

    start: int
    end: int
    leader: int
    at: float


class Divergence(Struct, array_like=True, gc=False):
    """A follower whose records of `epoch` end elsewhere than the leader's of the same epoch.

    `closed`: both logs hold a later epoch, so both ends are final and two reads settle it. Else the follower may still
    be about to truncate, and only time tells.
    """

    broker: int
    epoch: int
    # The leader's next epoch after `epoch`: with it the incident is named.
    next_epoch: int
    follower_end: int
    leader_end: int
    closed: bool
    since: float
    pass_number: int
    confirmed: bool = False
    # The leader's log has nothing of the epoch; `leader_end` is where the two logs part.
    absent: bool = False


class AuditFinding(Struct, array_like=True, gc=False):
    """Different content at one (offset, epoch), as the newest audit found it."""

    offset: int
    leader_epoch: int | None
    brokers: list[int]
    crcs: list[int]
    at: float


class Rare(Struct, array_like=True, gc=False):
    """See the module."""

    metadata: MetadataPosition | None = None
    # (time, leader epoch that began), oldest first, at most MAX_BUMPS.
    bumps: list[tuple[float, int]] = []
    # At most one a replica.
    adding: list[Adding] = []
    # (last stable offset, since when it has stood there below the high watermark)
    last_stable: tuple[int, float] | None = None
    # At most MAX_ANOMALIES.
    anomalies: list[Anomaly] = []
    # At most one a replica.
    checkpoints: list[CheckpointSeen] = []
    regression: Regression | None = None
    # At most one a replica.
    divergences: list[Divergence] = []
    audit: AuditFinding | None = None
    # In-sync replicas whose log ends below what was committed before the pass, with (log end, committed).
    short: list[tuple[int, int, int]] = []
    suspicion: Suspicion | None = None

    @property
    def speaks(self) -> bool:
        """Whether a state detector may have something to say of it; epochs that began are history alone.

        Checkpoint files as they should be say nothing: `detect.checkpoint_stale.is_odd` looks at them.
        """
        recovering = self.metadata is not None and self.metadata.recovering
        below = self.regression or self.short or self.suspicion
        return bool(self.adding or self.last_stable or self.anomalies or below or recovering)

    def is_dormant(self, now: float) -> bool:
        """Whether it holds history alone, which no observation that moves offsets changes."""
        return (
            not (self.speaks or self.checkpoints or self.divergences or self.audit)
            and self.fresh_bumps(now) is self.bumps
        )

    def fresh_bumps(self, now: float) -> list[tuple[float, int]]:
        """The bumps that are not forgotten yet; the very list when none is."""
        if not self.bumps or self.bumps[0][0] > now - BUMP_SECONDS:
            return self.bumps
        return [bump for bump in self.bumps if bump[0] > now - BUMP_SECONDS]

    @property
    def is_empty(self) -> bool:
        """Whether it can be dropped."""
        return not (
            self.speaks
            or self.checkpoints
            or self.metadata
            or self.bumps
            or self.divergences
            or self.audit
        )


def rare_of(rare: Rare | None) -> Rare:
    """A copy to change, for states share their parts with those before them."""
    return Rare() if rare is None else copy.copy(rare)
