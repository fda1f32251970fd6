"""The parts of a partition's state that few partitions have, at rare times.

They are one nullable field of the state, so a healthy partition pays one byte for all of them.
Each list has its bound beside it.
"""

from __future__ import annotations

import copy
from typing import Final

from msgspec import Struct

from tidemark.core.escrow import HeldRange
from tidemark.core.events import OpenTransaction

# Leader epochs that began lately; more than a storm needs.
MAX_EPOCH_STARTS: Final = 16
# Older starts are dropped; no storm is judged over a longer time.
EPOCH_START_SECONDS: Final = 3600.0
MAX_ANOMALIES: Final = 8
FORMER_TOPIC_SECONDS: Final = 3600.0
# A suspicion that nothing settles is reported for a day by default, and then dropped.
SUSPICION_SECONDS: Final = 7 * 86_400.0


class MetadataPosition(Struct, array_like=True, gc=False):
    """The newest record of the metadata log about the partition: exact, ordered by `offset`."""

    offset: int
    partition_epoch: int
    # When it was read, by the collector's clock; 0: by a reader that was late.
    at: float
    # LeaderRecoveryState: an unclean election that no replica has confirmed since.
    recovering: bool = False
    # The record before it was read too: nothing happened in between.
    adjacent: bool = False
    # The in-sync set of the record; None: written by a version that did not keep it.
    in_sync_replicas: list[int] | None = None
    # Brokers whose image is known to have reached what the partition's state shows.
    image_from: list[int] = []
    # As in the record; None: this Kafka has none.
    eligible_leader_replicas: list[int] | None = None
    last_known_eligible_leader_replicas: list[int] | None = None
    # A reassignment adds or removes replicas.
    reassigning: bool = False


class EpochStart(Struct, array_like=True, gc=False):
    """A leader epoch and when it began, at the latest; NO_EPOCH: metadata has none."""

    at: float
    epoch: int


class LastStable(Struct, array_like=True, gc=False):
    """A last stable offset below the high watermark, and since when it has not moved."""

    offset: int
    since: float
    # The newest that is known of the transaction which holds it.
    transaction: OpenTransaction | None = None


class Adding(Struct, array_like=True, gc=False):
    """A replica that a reassignment adds: its log end offset, and when that last moved."""

    broker: int
    log_end_offset: int | None
    advanced_at: float
    # (time, records that it has not copied), oldest first, at most
    # `assess.reassignment_progress.MAX_SAMPLES`.
    remaining: list[tuple[float, int]] = []


class Anomaly(Struct, array_like=True, gc=False):
    """An impossible lineage: what is wrong, at which broker, since when without a break."""

    broker: int
    what: str
    since: float
    # When the lineage was read last. A lineage that is not read again proves nothing new.
    seen_at: float = 0.0
    # The newest entry alone shows it, so that reading the newest entry can refute it.
    of_newest: bool = False


class CheckpointSeen(Struct, array_like=True, gc=False):
    """A broker's checkpoint files as last read (CheckpointFile)."""

    broker: int
    high_watermark: int | None
    modified_at: float | None
    observed_at: float
    recovery_point: int | None = None
    log_start_offset: int | None = None
    first_dirty_offset: int | None = None
    # (leader epoch, its first offset), ascending, the newest MAX_LINEAGE.
    lineage_starts: list[tuple[int, int]] | None = None


class Regression(Struct, array_like=True, gc=False):
    """A leader that reports less under its fence than before in the same epoch."""

    shown: int
    highest: int
    since: float


class BehindCommitted(Struct, array_like=True, gc=False):
    """An in-sync replica whose log ends below what was committed before the pass."""

    broker: int
    log_end_offset: int
    committed: int


class Suspicion(Struct, array_like=True, gc=False):
    """A loss without proof: [start, end) was committed, and a leader's log once ended at `start`.

    Only clusters without leader epochs or without topic ids leave one.
    """

    start: int
    end: int
    leader: int
    at: float
    # Nothing shows that the log is the one from before: the topic may have been created again.
    recreated: bool = False
    # The leader was elected from outside of the in-sync set that committed [start, end).
    outside: bool = False


class Divergence(Struct, array_like=True, gc=False):
    """A follower whose records of `epoch` end elsewhere than the leader's of the same epoch.

    `closed`: both logs hold a later epoch, so both ends are final and two reads settle it.
    Otherwise the follower may still truncate, and only time decides.
    """

    broker: int
    epoch: int
    # The leader's next epoch after `epoch`; it names the incident.
    next_epoch: int
    follower_end: int
    leader_end: int
    closed: bool
    since: float
    pass_number: int
    confirmed: bool = False
    # The leader's log has no record of the epoch; the logs part at `leader_end`.
    absent: bool = False
    # The longer of the two ends may only be where the oldest epoch of a cache begins: a deletion
    # moves it, and a crash may take back the log start alone.
    suspected: bool = False


class OpenElection(Struct, array_like=True, gc=False):
    """An election that may have been unclean, until the leader's lineage decides.

    The sets are those before it; `suspected`: they remain the only knowledge of it.
    """

    leader: int
    epoch_after: int
    leader_before: int | None
    epoch_before: int
    in_sync_replicas: list[int] | None
    eligible: list[int] | None
    last_known: list[int] | None
    seen_before_at: float
    at: float
    suspected: bool = False


class LogReset(Struct, array_like=True, gc=False):
    """A log that was empty, ended below its own high watermark, or that no reassignment created.

    `unwatched`: any log after a time in which nobody watched and which shows nothing from before.
    """

    broker: int
    at: float
    unwatched: bool = False


class FormerTopic(Struct, array_like=True, gc=False):
    """The topic that had this name before: Kafka gives the id of a deleted topic to no other.

    `restored`: it is the same topic, whose leader epochs went back at all replicas. None: brokers
    know no id.
    """

    topic_id: str | None
    leader_epoch: int | None
    # When it was replaced, or its id was shown last.
    at: float
    restored: bool = False
    # Observations that showed its id again: all of them, and the newest ones in a row.
    returned: int = 0
    in_a_row: int = 0


class LeftInSync(Struct, array_like=True, gc=False):
    """A broker outside of the in-sync set, and what was committed when it was last seen in it."""

    broker: int
    high_watermark: int


class SampledLeadership(Struct, array_like=True, gc=False):
    """The newest leader that answered as such, where metadata has no leader epochs."""

    leader: int
    # Its first and its newest answer.
    began_at: float
    served_at: float
    # The newest in-sync set that was not empty, also after its last answer.
    in_sync_replicas: list[int]
    assigned: list[int]
    # The replicas whose brokers answered at `served_at`.
    answering: list[int]
    # The highest high watermark of any leader until `served_at`.
    committed: int
    # At most one per replica.
    left: list[LeftInSync] = []
    # The leader before it, and its newest answer.
    former_leader: int | None = None
    former_served_at: float | None = None


class AuditFinding(Struct, array_like=True, gc=False):
    """Different batches at one offset, from the newest audit."""

    offset: int
    leader_epoch: int | None
    brokers: list[int]
    crcs: list[int]
    at: float
    # Of each broker, where the batches have different leader epochs.
    leader_epochs: list[int | None] | None = None
    # The least one of these replicas when they were compared.
    high_watermark: int | None = None


class Escrowed(Struct, array_like=True, gc=False):
    """What the escrow holds, by its newest event."""

    # At most `core.escrow.MAX_RANGES`.
    ranges: list[HeldRange]
    at: float
    # Unix seconds; the escrow may have ended since, and what it held is deleted by then.
    kept_until: float


class SparseState(Struct, array_like=True, gc=False):
    """See the module."""

    metadata: MetadataPosition | None = None
    # Oldest first, at most MAX_EPOCH_STARTS.
    epoch_starts: list[EpochStart] = []
    # At most one per replica.
    adding: list[Adding] = []
    last_stable: LastStable | None = None
    # At most MAX_ANOMALIES.
    anomalies: list[Anomaly] = []
    # At most one per replica.
    checkpoints: list[CheckpointSeen] = []
    regression: Regression | None = None
    # At most one per replica.
    divergences: list[Divergence] = []
    audit: AuditFinding | None = None
    # At most one per replica.
    behind_committed: list[BehindCommitted] = []
    suspicion: Suspicion | None = None
    # The first of the observations in a row that may mix two topics of one name
    # (`evolve.recreation`).
    mixed_since: float | None = None
    # Replicas whose logs may be those of a new topic, where topics have no id; at most one each.
    resets: list[LogReset] = []
    open_election: OpenElection | None = None
    # Only where metadata has no leader epochs (Kafka before 2.1).
    leadership: SampledLeadership | None = None
    # For FORMER_TOPIC_SECONDS; one that was restored from a backup, for good.
    former_topic: FormerTopic | None = None
    escrow: Escrowed | None = None
    # The first of the observations in a row in which brokers show a leader epoch before the known
    # one, and no replica shows that.
    back_since: float | None = None


EMPTY: Final = SparseState()


def copy_of(sparse: SparseState | None) -> SparseState:
    """A copy to change: states share their parts with the states before them."""
    return SparseState() if sparse is None else copy.copy(sparse)
