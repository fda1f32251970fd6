"""The state of one partition's cluster. Mirrors the variables of KafkaReplication.tla.

Every value is hashable. Replicas count from 0 here; output counts from 1 (`broker`). In-sync sets
are ascending tuples. NO_EPOCH (-1) is the epoch of a replica that knows of no leader epoch yet.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tidemark.core.leader_epochs import NO_EPOCH
from tidemark_lab.model.log import Log

MAX_REPLICAS: Final = 7
MAX_LOG_SIZE: Final = 16
MAX_RECORDS: Final = 16
MAX_EPOCH: Final = 16

Replicas = tuple[int, ...]
_ALL_REPLICAS: Final = tuple(tuple(range(count)) for count in range(MAX_REPLICAS + 1))


class Constants(NamedTuple):
    """The bounds of the state space, and the faults that can happen in it."""

    replicas: int = 2
    log_size: int = 2
    records: int = 2
    # Leader epochs run from 0 to this.
    max_epoch: int = 2
    min_isr: int = 1
    unclean_election: bool = False
    lossy_disk: bool = False
    # Whether `committed` and `acked` are kept. They make the space larger.
    history: bool = True

    @property
    def all_replicas(self) -> Replicas:
        return _ALL_REPLICAS[self.replicas]

    @property
    def effective_min_isr(self) -> int:
        return min(self.min_isr, self.replicas)


class QuorumState(NamedTuple):
    """A decision of the controller, and the request or metadata record that carries it."""

    leader_epoch: int
    leader: int | None
    isr: Replicas
    # KRaft only: the number of this decision, the eligible leader replicas of KIP-966, and, while
    # the ISR is empty, the replica that led last.
    partition_epoch: int = 0
    elr: Replicas = ()
    last_known_leader: int | None = None


class ModelReplica(NamedTuple):
    """One replica: its high watermark, and the newest decision that it knows (`replicaState`)."""

    high_watermark: int
    leader_epoch: int
    leader: int | None
    isr: Replicas
    # KRaft only: the newest partition epoch that this replica knows, and the in-sync set that it
    # has requested as leader.
    partition_epoch: int = -1
    pending_isr: Replicas | None = None


class ModelState(NamedTuple):
    """The whole state.

    `requests` holds every LeaderAndIsr request, oldest first. A replica may receive any newer one,
    late or never. `committed` and `acked` are history variables that no replica can read:
    `committed[o]` is the record that a leader first showed to consumers at offset o, `acked` are
    the records that were acknowledged with acks=all.
    """

    logs: tuple[Log, ...]
    replicas: tuple[ModelReplica, ...]
    quorum: QuorumState
    requests: tuple[QuorumState, ...] = ()
    next_record_id: int = 0
    committed: Log = ()
    acked: Log = ()


def initial(constants: Constants) -> ModelState:
    """Init: empty logs, all replicas in sync, no leader."""
    return ModelState(
        logs=((),) * constants.replicas,
        replicas=(ModelReplica(0, NO_EPOCH, None, ()),) * constants.replicas,
        quorum=QuorumState(NO_EPOCH, None, constants.all_replicas),
    )


def presumes_leadership(state: ModelState, replica: int) -> bool:
    """ReplicaPresumesLeadership: it accepts writes. A zombie does so and is not the true leader."""
    return state.replicas[replica].leader == replica


def true_leader(state: ModelState) -> int | None:
    """IsTrueLeader: the elected replica, once it acts as leader in the epoch of its election."""
    quorum = state.quorum
    leader = quorum.leader
    if leader is None:
        return None
    local = state.replicas[leader]
    return leader if local.leader == leader and local.leader_epoch == quorum.leader_epoch else None


# The functions below call the constructor: `_replace` takes twice the time in the search.


def with_replica(
    state: ModelState,
    replica: int,
    local: ModelReplica,
    log: Log | None = None,
    quorum: QuorumState | None = None,
) -> ModelState:
    """The state with one replica changed, and its log and the quorum where they are given."""
    logs, replicas = state.logs, state.replicas
    if log is not None and log is not logs[replica]:
        logs = (*logs[:replica], log, *logs[replica + 1 :])
    return ModelState(
        logs,
        (*replicas[:replica], local, *replicas[replica + 1 :]),
        quorum or state.quorum,
        state.requests,
        state.next_record_id,
        state.committed,
        state.acked,
    )


def with_decision(state: ModelState, decision: QuorumState) -> ModelState:
    """The state after the controller has decided and sent its decision to the replicas."""
    return ModelState(
        state.logs,
        state.replicas,
        decision,
        (*state.requests, decision),
        state.next_record_id,
        state.committed,
        state.acked,
    )


def broker(replica: int | None) -> int | None:
    """The broker id that output shows: brokers count from 1."""
    return None if replica is None else replica + 1
