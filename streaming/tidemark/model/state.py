"""The state of one partition's cluster, hashable through and through. Mirrors the variables of KafkaReplication.tla.

Replicas are counted from 0 here and named from 1 wherever a reader sees them (`broker`). In-sync sets are ascending
tuples. -1 (NO_EPOCH) is the epoch of a replica that has heard of none.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tidemark.core.leader_epochs import NO_EPOCH
from tidemark.model.log import Log, Record

MAX_REPLICAS: Final = 7
MAX_LOG_SIZE: Final = 16
MAX_RECORDS: Final = 16
MAX_EPOCH: Final = 16

Replicas = tuple[int, ...]
_EVERYONE: Final = tuple(tuple(range(count)) for count in range(MAX_REPLICAS + 1))


class Constants(NamedTuple):
    """What bounds the space, and which faults are in it."""

    replicas: int = 2
    log_size: int = 2
    records: int = 2
    # Leader epochs run from 0 to this.
    max_epoch: int = 2
    min_isr: int = 1
    unclean_election: bool = False
    lossy_disk: bool = False
    # Whether `committed` and `acked` are kept. They remember the past, so they make the space larger.
    history: bool = True

    @property
    def everyone(self) -> Replicas:
        return _EVERYONE[self.replicas]

    @property
    def effective_min_isr(self) -> int:
        return min(self.min_isr, self.replicas)


class QuorumState(NamedTuple):
    """What the controller has decided; also the LeaderAndIsr request (or metadata record) that tells it to the replicas."""

    leader_epoch: int
    leader: int | None
    isr: Replicas
    # KRaft only: counts every change, and the eligible leader replicas of KIP-966.
    partition_epoch: int = 0
    elr: Replicas = ()


class ReplicaState(NamedTuple):
    """What one replica believes, and its high watermark."""

    high_watermark: int
    leader_epoch: int
    leader: int | None
    isr: Replicas
    # KRaft only: the change that this replica has seen last, and the in-sync set that it, leading, has asked for.
    partition_epoch: int = -1
    pending_isr: Replicas | None = None


class ClusterState(NamedTuple):
    """Everything. `requests` holds each LeaderAndIsr request ever sent, oldest first: a replica may see any newer one, late or never.

    `committed` and `acked` are ghosts: no replica can read them. `committed[o]` is the record that a leader first showed to
    consumers at offset o; `acked` are the records whose producers were told so by acks=all.
    """

    logs: tuple[Log, ...]
    replicas: tuple[ReplicaState, ...]
    quorum: QuorumState
    requests: tuple[QuorumState, ...] = ()
    next_record_id: int = 0
    committed: Log = ()
    acked: Log = ()


def initial(constants: Constants) -> ClusterState:
    """Init: empty logs, everybody in sync, nobody leads."""
    nobody = ReplicaState(0, NO_EPOCH, None, ())
    return ClusterState(
        logs=((),) * constants.replicas,
        replicas=(nobody,) * constants.replicas,
        quorum=QuorumState(NO_EPOCH, None, constants.everyone),
    )


def presumes_leadership(state: ClusterState, replica: int) -> bool:
    """ReplicaPresumesLeadership: it accepts writes, rightly or not (a zombie presumes and is not the true leader)."""
    return state.replicas[replica].leader == replica


def is_true_leader(state: ClusterState, replica: int) -> bool:
    """IsTrueLeader: it presumes to lead in the very epoch for which the controller elected it."""
    believed = state.replicas[replica]
    return (
        state.quorum.leader == replica == believed.leader
        and believed.leader_epoch == state.quorum.leader_epoch
    )


def true_leader(state: ClusterState) -> int | None:
    """The true leader; None while nobody is elected, or the elected replica does not know it yet."""
    leader = state.quorum.leader
    return leader if leader is not None and is_true_leader(state, leader) else None


def with_replica(
    state: ClusterState, replica: int, believed: ReplicaState
) -> tuple[ReplicaState, ...]:
    """The replicas with one of them changed."""
    return (*state.replicas[:replica], believed, *state.replicas[replica + 1 :])


def with_log(state: ClusterState, replica: int, log: Log) -> tuple[Log, ...]:
    """The logs with one of them changed."""
    return (*state.logs[:replica], log, *state.logs[replica + 1 :])


def broker(replica: int | None) -> int | None:
    """The name a reader sees: brokers count from 1."""
    return None if replica is None else replica + 1


__all__ = [
    "NO_EPOCH",
    "ClusterState",
    "Constants",
    "Log",
    "QuorumState",
    "Record",
    "ReplicaState",
    "Replicas",
]
