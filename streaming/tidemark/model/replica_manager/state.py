"""What brokers, their disks and the controller hold. Mirrors Partition, Replica, UnifiedLog and PartitionRegistration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from tidemark.model.log import EpochStart, Log
from tidemark.model.protocols.protocol import Protocol
from tidemark.model.state import NO_EPOCH

# The defaults of Kafka: how long a fetch may wait for records (replica.fetch.wait.max.ms), a producer for its answer
# (request.timeout.ms), and how long a member of the in-sync set may lag (replica.lag.time.max.ms: 30 s since 2.5, 10 s before).
FETCH_WAIT_MS: Final = 500
PRODUCE_WAIT_MS: Final = 30_000
LAG_TIME_MS: Final = 30_000
LAG_TIME_BEFORE_2_5_MS: Final = 10_000

Brokers = tuple[int, ...]


@dataclass(frozen=True)
class Remote:
    """What a leader knows of a follower, from its fetches only. `log_end_offset` is None until the first one in this epoch."""

    log_end_offset: int | None = None
    last_caught_up_ms: int | None = None
    last_fetch_ms: int | None = None
    last_fetch_leader_log_end_offset: int = 0


@dataclass(frozen=True)
class DelayedProduce:
    """A producer with acks=all: it waits for the high watermark to reach `required_offset`, or for PRODUCE_WAIT_MS."""

    record: int
    required_offset: int
    deadline_ms: int


@dataclass(frozen=True)
class DelayedFetch:
    """A follower's fetch that found nothing: it waits for an append or for FETCH_WAIT_MS."""

    follower: int
    offset: int
    deadline_ms: int


@dataclass(frozen=True)
class FetchAnswer:
    """A fetch's answer on its way: records from `offset` on and the high watermark; or where the logs part; or an error."""

    leader: int
    offset: int
    records: Log = ()
    high_watermark: int = 0
    diverging: tuple[int, int] | None = None
    error: str | None = None


@dataclass(frozen=True)
class Disk:
    """What survives: the log up to `flushed`, the replication-offset-checkpoint, and whether the last stop was clean."""

    flushed: int = 0
    high_watermark_checkpoint: int = 0
    clean: bool = True


@dataclass(frozen=True)
class Broker:
    """One broker's replica of the partition. Offsets of a broker that is down are those on its disk."""

    id: int
    running: bool = True
    log: Log = ()
    high_watermark: int = 0
    epoch_cache: tuple[EpochStart, ...] = ()
    leader: int | None = None
    leader_epoch: int = NO_EPOCH
    partition_epoch: int = NO_EPOCH
    in_sync_replicas: Brokers = ()
    pending_in_sync_replicas: Brokers | None = None
    remotes: dict[int, Remote] = field(default_factory=dict)
    produce_purgatory: tuple[DelayedProduce, ...] = ()
    fetch_purgatory: tuple[DelayedFetch, ...] = ()
    answer: FetchAnswer | None = None
    # A new follower may not fetch before it knows where its log parts from the leader's (until KIP-595).
    truncating: bool = False
    disk: Disk = Disk()

    @property
    def log_end_offset(self) -> int:
        return len(self.log)

    @property
    def leads(self) -> bool:
        return self.running and self.leader == self.id

    @property
    def maximal_in_sync_replicas(self) -> Brokers:
        """The in-sync set and whoever may soon be in it; of a set that is to shrink, the old one (PartitionState.maximalIsr)."""
        return tuple(sorted({*self.in_sync_replicas, *(self.pending_in_sync_replicas or ())}))


@dataclass(frozen=True)
class Controller:
    """The controller's decision about the partition, and which brokers it takes for alive."""

    leader: int | None
    leader_epoch: int
    in_sync_replicas: Brokers
    alive: Brokers
    partition_epoch: int = 0
    eligible_leader_replicas: Brokers = ()
    last_known_leader: int | None = None
    recovering: bool = False


@dataclass(frozen=True)
class Cluster:
    """Everything, and what the last call did in words (`notes`).

    `committed` and `acked` are ghosts, as in the searched model; `acked_by_one` are the records of acks=1, which promises less.
    """

    protocol: Protocol
    brokers: tuple[Broker, ...]
    controller: Controller
    min_in_sync_replicas: int = 1
    unclean_leader_election: bool = False
    now_ms: int = 0
    next_record: int = 0
    committed: Log = ()
    acked: Log = ()
    acked_by_one: Log = ()
    notes: tuple[str, ...] = ()

    def broker(self, broker: int) -> Broker:
        return self.brokers[broker - 1]

    @property
    def assigned(self) -> Brokers:
        """The assigned replicas; the first one is preferred."""
        return tuple(each.id for each in self.brokers)

    @property
    def effective_min_in_sync_replicas(self) -> int:
        return min(self.min_in_sync_replicas, len(self.brokers))

    @property
    def lag_time_max_ms(self) -> int:
        """The default of most of the protocol's releases: of kip-320's, 2.5 and 2.6 have the longer one."""
        return LAG_TIME_MS if self.protocol.kraft else LAG_TIME_BEFORE_2_5_MS

    def having(self, changed: Broker) -> Cluster:
        """With one broker changed."""
        return replace(
            self, brokers=(*self.brokers[: changed.id - 1], changed, *self.brokers[changed.id :])
        )

    def noting(self, *notes: str) -> Cluster:
        """With words on what happened."""
        return replace(self, notes=(*self.notes, *notes))


def named(records: Log | tuple[int, ...]) -> str:
    """The records as a reader sees them: m0, m1, …"""
    return ", ".join(f"m{record if isinstance(record, int) else record.id}" for record in records)
