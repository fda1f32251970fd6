"""The state of one watched partition: what was seen last, and the little history that the detectors need.

Stored as one opaque, versioned msgpack document per partition (arrays, not maps: a healthy partition of three replicas
stays below 400 bytes). Every list has a bound, named here or where it is filled. Times are Unix seconds.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct, field

from tidemark.core.leader_epochs import Committed, LineageEntries
from tidemark.core.offset_history import Ring, from_oldest
from tidemark.core.sparse_state import Rare

# Version 2 added `rare` and tells its rings from the newest sample on.
STATE_VERSION: Final = 2
OLDEST_VERSION: Final = 1
MAX_ISR_HISTORY: Final = 16
MAX_SHRINKS: Final = 16
MAX_LIVES: Final = 64
MAX_EVENT_LIVES: Final = 16


class ReplicaState(Struct, array_like=True, gc=False):
    """The last answer of one replica's broker, and for how many passes it has been silent since."""

    broker: int
    log_end_offset: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None
    last_stable_offset: int | None = None
    leader_epoch: int | None = None
    leads: bool | None = None
    # When the answer above was read; the answer stays while the broker is silent.
    sampled_at: float | None = None
    # Null when the last pass had an answer.
    error: str | None = None
    silent_passes: int = 0
    lineage: LineageEntries | None = None


class Life(Struct, array_like=True):
    """One alert from its first sign to its end: counted, then firing, then gone."""

    detector: str
    subject: int | None
    severity: str
    # When the condition was first seen.
    since: float
    # Passes in a row with the condition, and, once it fires, passes in a row without it.
    held: int = 0
    clean: int = 0
    firing: bool = False
    fired_at: float = 0.0
    incident: str | None = None
    broker: int | None = None
    description: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)
    revision: str = ""


class LossRead(Struct, array_like=True):
    """The first of two reads that prove a loss: under `epoch_after`, [start, end) of `epoch_before` is gone."""

    epoch_before: int
    epoch_after: int
    start: int
    end: int
    # Highest log end offset seen under `epoch_before`: records in [end, exposed_to) may have been promised by acks=1.
    exposed_to: int
    pass_number: int
    confirmed: bool = False


class PartitionState(Struct, array_like=True, gc=False):
    """See the module. `cluster`, `topic` and `partition` are the key and are stored with it, not here."""

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
    # The leader's log end before and after the followers were asked, in the newest pass; null when it gave none.
    leader_before: int | None = None
    leader_after: int | None = None
    # Highest high watermark the leader showed under its present epoch, and when it last moved.
    high_watermark: int | None = None
    high_watermark_moved_at: float = 0.0
    committed: list[Committed] = []
    lineage: LineageEntries | None = None
    lineage_complete_from: int | None = None
    ring: Ring = []
    # The ring of the leadership before this one, for the times of a loss; dropped after a while.
    ring_before: Ring = []
    ring_before_until: float = 0.0
    # (time, in-sync replicas), oldest first, at most MAX_ISR_HISTORY.
    isr_history: list[tuple[float, list[int]]] = []
    # (time, broker that left, leader then, suspected cause), oldest first, at most MAX_SHRINKS.
    shrinks: list[tuple[float, int, int | None, str]] = []
    loss_read: LossRead | None = None
    # The epoch that an unclean election (proven or suspected) began.
    unclean_epoch: int | None = None
    missed_passes: int = 0
    lives: list[Life] = []
    view_at: float = 0.0
    view_digest: int = 0
    rare: Rare | None = None

    def replica(self, broker: int | None) -> ReplicaState | None:
        """The replica on a broker, if it was ever sampled."""
        for replica in self.replicas:
            if replica.broker == broker:
                return replica
        return None

    @property
    def settled(self) -> list[int]:
        """Assigned replicas without those that a reassignment is still adding (Partition.scala counts them so)."""
        return [broker for broker in self.assigned if broker not in self.adding]

    @property
    def missing(self) -> list[int]:
        """Settled replicas outside the in-sync set; empty while the in-sync set is unknown."""
        if self.in_sync_replicas is None:
            return []
        return [broker for broker in self.settled if broker not in self.in_sync_replicas]

    @property
    def leader_log_end_offset(self) -> int | None:
        """The leader's newest log end offset of the newest pass."""
        return self.leader_after if self.leader_after is not None else self.leader_before


class _Document1(Struct, array_like=True, gc=False):
    """Version 1: the state without its rings, and the rings told from their oldest samples on."""

    state: PartitionState
    ring: list[int]
    ring_before: list[int]


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[PartitionState] = msgspec.msgpack.Decoder(PartitionState)
_decoder1: msgspec.msgpack.Decoder[_Document1] = msgspec.msgpack.Decoder(_Document1)


def encode_state(state: PartitionState) -> bytes:
    """Version byte and msgpack."""
    return bytes((STATE_VERSION,)) + _encoder.encode(state)


def decode_state(blob: bytes) -> PartitionState:
    """The inverse of `encode_state`; older versions are upcast here.

    An unknown version is a programmer error: `tidemark stream` refuses a checkpoint of a newer release at start.
    """
    if blob[0] == STATE_VERSION:
        return _decoder.decode(memoryview(blob)[1:])
    assert blob[0] == OLDEST_VERSION, f"partition state version {blob[0]}"
    document = _decoder1.decode(memoryview(blob)[1:])
    document.state.ring, document.state.ring_before = (
        from_oldest(document.ring),
        from_oldest(document.ring_before),
    )
    return document.state
