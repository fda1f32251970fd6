"""The state of one watched partition: the newest observation, and the history that detectors need.

It is stored as one opaque, versioned msgpack document per partition (arrays, not maps: a healthy
partition with three replicas takes 350 to 530 bytes before the stream compresses it). Every list
has its bound, named here or where it is filled. Times are Unix seconds.
"""

from __future__ import annotations

import copy
from typing import Final

import msgspec
from msgspec import Struct

from tidemark.core.errors import StateError
from tidemark.core.leader_epochs import Committed, LineageEntries
from tidemark.core.offset_history import OffsetHistory
from tidemark.core.shrink_causes import OF_THE_BROKER, ShrinkCause, ShrinkExplanation
from tidemark.core.sparse_state import (
    CheckpointSeen,
    FormerTopic,
    LogReset,
    MetadataPosition,
    OpenElection,
    SampledLeadership,
    SparseState,
)
from tidemark.core.tracked_alert import TrackedAlert

# Version 2 added `sparse` and stores offset histories from the newest sample on. Version 3 keeps
# the cause of a shrink and its certainty apart.
STATE_VERSION: Final = 3
MAX_ISR_HISTORY: Final = 16
MAX_SHRINKS: Final = 16
MAX_ALERTS: Final = 64
MAX_EVENT_ALERTS: Final = 16


class ReplicaState(Struct, array_like=True, gc=False):
    """The last answer of one replica's broker, and the passes without an answer since."""

    broker: int
    log_end_offset: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None
    last_stable_offset: int | None = None
    leader_epoch: int | None = None
    leads: bool | None = None
    # When the answer above was read; it stays while the broker does not answer.
    sampled_at: float | None = None
    # None when the last pass had an answer.
    error: str | None = None
    silent_passes: int = 0
    lineage: LineageEntries | None = None
    # Of its segments, when that was read last.
    size_bytes: int | None = None


class IsrChange(Struct, array_like=True, gc=False):
    """An in-sync set, and when it was first seen."""

    at: float
    in_sync_replicas: list[int]


class Shrink(Struct, array_like=True, gc=False):
    """A broker that left the in-sync set, under which leader and why."""

    at: float
    broker: int
    leader: int | None
    cause: ShrinkCause
    # Whether a record of the metadata log gives the cause.
    recorded: bool = False
    # The broker that made it late, where the links of that moment show it.
    suspect: int | None = None

    @property
    def explanation(self) -> ShrinkExplanation:
        """The cause with its certainty."""
        return ShrinkExplanation(self.cause, self.recorded, self.suspect)

    @property
    def suspected(self) -> int | None:
        """The suspected cause: the broker that drove it out, itself, or None."""
        if self.suspect is None and self.cause in OF_THE_BROKER:
            return self.broker
        return self.suspect


class LossCandidate(Struct, array_like=True):
    """The first of two reads that prove a loss: [start, end) of `epoch_before` is gone."""

    epoch_before: int
    # The leader epoch of the read.
    epoch_after: int
    start: int
    end: int
    # Highest log end offset seen under `epoch_before`: producers with acks=1 may have an
    # acknowledgement for the records in [end, exposed_to).
    exposed_to: int
    pass_number: int
    confirmed: bool = False
    # The leader's log has other records where these were: it never was in sync with them.
    diverged: bool = False


class PartitionState(Struct, array_like=True, gc=False):
    """See the module. Cluster, topic and partition are the key of the document, not part of it."""

    topic_id: str | None = None
    collector: str = ""
    collector_epoch: int = 0
    pass_number: int = -1
    observed_at: float = 0.0
    leader: int | None = None
    leader_epoch: int | None = None
    leaderless: bool = False
    assigned: list[int] = []
    in_sync_replicas: list[int] | None = None
    eligible_leader_replicas: list[int] | None = None
    last_known_eligible_leader_replicas: list[int] | None = None
    adding: list[int] = []
    removing: list[int] = []
    effective_min_in_sync_replicas: int | None = None
    replicas: list[ReplicaState] = []
    # The leader's log end offset before and after the followers were sampled, in the newest pass;
    # None when the leader gave none.
    leader_end_before: int | None = None
    leader_end_after: int | None = None
    # Highest high watermark that the leader reported under its present epoch, and when it moved.
    high_watermark: int | None = None
    high_watermark_moved_at: float = 0.0
    committed: list[Committed] = []
    lineage: LineageEntries | None = None
    lineage_complete_from: int | None = None
    offset_history: OffsetHistory = []
    # The history of the leadership before this one dates a loss; dropped after a while.
    previous_offset_history: OffsetHistory = []
    previous_offset_history_until: float = 0.0
    # Oldest first, at most MAX_ISR_HISTORY.
    isr_history: list[IsrChange] = []
    # Oldest first, at most MAX_SHRINKS.
    shrinks: list[Shrink] = []
    loss_candidate: LossCandidate | None = None
    # The epoch that an unclean election began, proven or suspected.
    unclean_epoch: int | None = None
    missed_passes: int = 0
    alerts: list[TrackedAlert] = []
    published_at: float = 0.0
    published_digest: int = 0
    sparse: SparseState | None = None
    # The leader epoch that `previous_offset_history` is of.
    previous_offset_history_epoch: int | None = None
    # The newest fenced reading of the high watermark in this leadership; 0: none.
    high_watermark_read_at: float = 0.0
    # Whether the cleanup policy compacts the topic; None: not known.
    compacted: bool | None = None
    # As the topic's configuration was read last; None: not known.
    unclean_leader_election: bool | None = None
    throttled_replicas: list[int] | None = None
    # No record from here on was compacted away, as far as the policy was seen. None: the topic is
    # compacted, or was not observed.
    uncompacted_from: int | None = None

    def replica(self, broker: int | None) -> ReplicaState | None:
        """The replica on a broker; None when it was never sampled."""
        for replica in self.replicas:
            if replica.broker == broker:
                return replica
        return None

    @property
    def by_broker(self) -> dict[int, ReplicaState]:
        """The replicas that were sampled, by their brokers."""
        return {replica.broker: replica for replica in self.replicas}

    @property
    def settled(self) -> list[int]:
        """Assigned replicas without those that a reassignment still adds (Partition.scala)."""
        return [broker for broker in self.assigned if broker not in self.adding]

    @property
    def assigned_in_sync(self) -> list[int]:
        """A member of the in-sync set that is not assigned holds nothing (KAFKA-9672)."""
        return [broker for broker in self.in_sync_replicas or [] if broker in self.assigned]

    @property
    def missing(self) -> list[int]:
        """Settled replicas outside the in-sync set; empty while the in-sync set is unknown."""
        if self.in_sync_replicas is None:
            return []
        return [broker for broker in self.settled if broker not in self.in_sync_replicas]

    @property
    def last_leader(self) -> int | None:
        """The leader; while there is none, the last broker that was seen to answer as such."""
        if self.leader is not None:
            return self.leader
        if self.sampled_leadership is not None:
            return self.sampled_leadership.leader
        return self.committed[-1].leader if self.committed else None

    @property
    def leader_log_end_offset(self) -> int | None:
        """The leader's newest log end offset of the newest pass."""
        return self.leader_end_before if self.leader_end_after is None else self.leader_end_after

    @property
    def metadata_position(self) -> MetadataPosition | None:
        """The newest record of the metadata log; None: none was read."""
        return None if self.sparse is None else self.sparse.metadata

    @property
    def open_election(self) -> OpenElection | None:
        """An election that may have been unclean."""
        return None if self.sparse is None else self.sparse.open_election

    @property
    def sampled_leadership(self) -> SampledLeadership | None:
        """The newest leadership that a sample confirmed; None where metadata has leader epochs."""
        return None if self.sparse is None else self.sparse.leadership

    @property
    def checkpoints(self) -> list[CheckpointSeen]:
        """What readers found in the checkpoint files, by broker."""
        return [] if self.sparse is None else self.sparse.checkpoints

    @property
    def former_topic(self) -> FormerTopic | None:
        """The topic that had this name lately, or this one before its epochs went back."""
        return None if self.sparse is None else self.sparse.former_topic

    @property
    def is_restored(self) -> bool:
        """Whether its epochs went back, so that one number may stand for two leaderships."""
        former = self.former_topic
        return former is not None and former.restored

    @property
    def resets(self) -> list[LogReset]:
        """Replicas whose logs may be those of a new topic."""
        return [] if self.sparse is None else self.sparse.resets


def copy_to_change(state: PartitionState) -> PartitionState:
    """A copy whose table of committed records may change too; all else is replaced, not changed."""
    after = copy.copy(state)
    after.committed = [copy.copy(entry) for entry in state.committed]
    return after


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[PartitionState] = msgspec.msgpack.Decoder(PartitionState)
_HEAD: Final = bytes((STATE_VERSION,))


def encode_state(state: PartitionState) -> bytes:
    """Version byte and msgpack."""
    return _HEAD + _encoder.encode(state)


def decode_state(blob: bytes) -> PartitionState:
    """The inverse of `encode_state`. Raises StateError, also for another version's."""
    if not blob or blob[0] != STATE_VERSION:
        raise StateError(f"its version is {blob[:1].hex() or 'empty'}, not {STATE_VERSION:02x}")
    try:
        return _decoder.decode(memoryview(blob)[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise StateError(error) from None
