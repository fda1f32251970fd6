"""What brokers, their disks and the controller hold.

Mirrors Partition, Replica, UnifiedLog and PartitionRegistration.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from tidemark.core.leader_epochs import NO_EPOCH
from tidemark_lab.model.log import EpochStart, Log
from tidemark_lab.model.protocols.protocol import Protocol
from tidemark_lab.model.replica_manager.delayed import (
    DelayedDeleteRecords,
    DelayedFetch,
    DelayedProduce,
    FetchIsolation,
    FetchResponse,
)

# Kafka's default of replica.lag.time.max.ms: how long a member of the ISR may lag.
LAG_TIME_MS: Final = 30_000
LAG_TIME_BEFORE_2_5_MS: Final = 10_000

# Longer runs of records are written as a range.
MOST_NAMES: Final = 3

Brokers = tuple[int, ...]


class Fact(Enum):
    """What a step did, for what counts steps; notes say it to readers."""

    PRODUCE_COMPLETED = "produce"
    FOLLOWER_FETCH_COMPLETED = "follower's fetch"
    CONSUMER_FETCH_COMPLETED = "consumer's fetch"
    DELETE_RECORDS_COMPLETED = "DeleteRecords"
    # With NOT_ENOUGH_REPLICAS, before or after the append.
    WRITE_REFUSED = "write refused"
    FOLLOWS = "a broker follows a leader"
    # The leader does not know the epoch of the follower's last record.
    EPOCH_UNKNOWN = "epoch unknown"


@dataclass(frozen=True)
class RemoteReplica:
    """What a leader knows of a follower, only from its fetches.

    `log_end_offset` is None until the first fetch of this epoch.
    """

    log_end_offset: int | None = None
    last_caught_up_ms: int | None = None
    last_fetch_ms: int | None = None
    last_fetch_leader_log_end_offset: int = 0
    log_start_offset: int | None = None


@dataclass(frozen=True)
class Disk:
    """What survives a crash: the log up to `flushed`, and the checkpoint files.

    `clean` says whether the last shutdown was clean: it left `.kafka_cleanshutdown`. The files of
    the recovery point and the log start are None until they are first written.
    """

    flushed: int = 0
    high_watermark_checkpoint: int = 0
    clean: bool = True
    recovery_point_checkpoint: int | None = None
    log_start_offset_checkpoint: int | None = None


@dataclass(frozen=True)
class Broker:
    """One broker's replica of the partition. A stopped broker has the offsets of its disk."""

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
    remotes: dict[int, RemoteReplica] = field(default_factory=dict)
    produce_purgatory: tuple[DelayedProduce, ...] = ()
    fetch_purgatory: tuple[DelayedFetch, ...] = ()
    response: FetchResponse | None = None
    # Until KIP-595, a new follower must ask where to truncate before it can fetch.
    truncating: bool = False
    disk: Disk = Disk()
    # The offset from which on the log is not known to be on disk (UnifiedLog.recoveryPoint).
    recovery_point: int = 0
    log_start_offset: int = 0
    delete_purgatory: tuple[DelayedDeleteRecords, ...] = ()
    # Fetches that found nothing at their first attempt, and that no watcher list has yet.
    unwatched: tuple[DelayedFetch, ...] = ()

    @property
    def log_end_offset(self) -> int:
        return len(self.log)

    @property
    def leads(self) -> bool:
        return self.running and self.leader == self.id

    @property
    def maximal_in_sync_replicas(self) -> Brokers:
        """The in-sync set and all replicas that may soon be in it (PartitionState.maximalIsr)."""
        return tuple(sorted({*self.in_sync_replicas, *(self.pending_in_sync_replicas or ())}))


@dataclass(frozen=True)
class Controller:
    """The controller's decision about the partition, and the brokers that it considers alive."""

    leader: int | None
    leader_epoch: int
    in_sync_replicas: Brokers
    alive: Brokers
    partition_epoch: int = 0
    eligible_leader_replicas: Brokers = ()
    last_known_leader: int | None = None
    recovering: bool = False


@dataclass(frozen=True)
class Consumer:
    """A consumer without a group. `position` is the offset that it fetches next.

    `rack` is the broker in its rack (client.rack), where the brokers have a replica selector.
    """

    id: int
    isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK
    position: int = 0
    rack: int | None = None
    preferred_read_replica: int | None = None

    @property
    def reader(self) -> int:
        return -self.id


@dataclass(frozen=True)
class TransactionalRecord:
    """A record of a transaction, or the marker that ends it: `kind` is data, commit or abort."""

    record: int
    producer: str
    kind: str


@dataclass(frozen=True)
class ClusterModel:
    """The whole cluster. `notes` and `facts` are what the last call did.

    `committed` and `acked` are history variables, as in the searched model. `acked_with_acks_1`
    are the records that were acknowledged with acks=1.
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
    acked_with_acks_1: Log = ()
    notes: tuple[str, ...] = ()
    facts: frozenset[Fact] = frozenset()
    consumers: tuple[Consumer, ...] = ()
    transactional: tuple[TransactionalRecord, ...] = ()
    # replica.lag.max.messages, which 0.9 removed; None: time alone counts.
    lag_max_messages: int | None = None
    # Every decision, oldest first: a broker can learn one late, after it was replaced.
    decisions: tuple[Controller, ...] = ()

    def broker(self, broker: int) -> Broker:
        return self.brokers[broker - 1]

    @property
    def assigned(self) -> Brokers:
        """The assigned replicas. The first one is preferred."""
        return tuple(broker.id for broker in self.brokers)

    @property
    def effective_min_in_sync_replicas(self) -> int:
        return min(self.min_in_sync_replicas, len(self.brokers))

    @property
    def lag_time_max_ms(self) -> int:
        """The default in most releases of the protocol. 2.5 and 2.6 have the longer one too."""
        return LAG_TIME_MS if self.protocol.kraft else LAG_TIME_BEFORE_2_5_MS

    def with_broker(self, changed: Broker) -> ClusterModel:
        before, after = self.brokers[: changed.id - 1], self.brokers[changed.id :]
        return replace(self, brokers=(*before, changed, *after))

    def consumer(self, consumer: int) -> Consumer:
        return next(each for each in self.consumers if each.id == consumer)

    def with_consumer(self, changed: Consumer) -> ClusterModel:
        others = (each for each in self.consumers if each.id != changed.id)
        return replace(self, consumers=tuple(sorted((*others, changed), key=lambda c: c.id)))

    def with_notes(self, *notes: str) -> ClusterModel:
        return replace(self, notes=(*self.notes, *notes))

    def without_notes(self) -> ClusterModel:
        return replace(self, notes=(), facts=frozenset())

    def with_facts(self, *facts: Fact) -> ClusterModel:
        return replace(self, facts=self.facts.union(facts))


def record_names(records: Log | tuple[int, ...]) -> str:
    """The records as output shows them: m0, m1, …, or m0–m4 for more than three in a row."""
    ids = [record if isinstance(record, int) else record.id for record in records]
    if len(ids) > MOST_NAMES and ids == list(range(ids[0], ids[-1] + 1)):
        return f"m{ids[0]}–m{ids[-1]}"
    return ", ".join(f"m{each}" for each in ids)


def broker_list(brokers: Brokers) -> str:
    """Broker ids as output shows them: 1,2,3."""
    return ",".join(map(str, brokers)) or "none"
