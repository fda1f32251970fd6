"""What a collector would write of a state: the model's end of the wire schema.

Every live replica is sampled in one instant; the controller's decision is what Metadata shows. A high watermark counts
as committed only where a leader gives it under the fence of its epoch, or, where brokers know no epochs, where the named
leader believes to lead. Nothing here is concluded, and nothing is read that a client could not read.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from tidemark.core.events import (
    MAX_LINEAGE,
    OK,
    TIMED_OUT,
    Batch,
    BrokerAnswer,
    Event,
    Observation,
    Pass,
    Replica,
)
from tidemark.model.log import Log, epoch_start, epoch_starts
from tidemark.model.protocols.protocol import Protocol
from tidemark.model.state import (
    NO_EPOCH,
    ClusterState,
    Constants,
    Replicas,
    is_true_leader,
    presumes_leadership,
)

TOPIC: Final = "model"
PARTITION: Final = 0
NOBODY: Final[frozenset[int]] = frozenset()

Lineage = list[tuple[int, int]]


def observe(
    protocol: Protocol,
    constants: Constants,
    state: ClusterState,
    at: float,
    silent: Collection[int] = NOBODY,
) -> Observation | None:
    """One observation at Unix time `at`; None when all replicas are `silent` (counted from 0), for then nothing is seen.

    Broker ids count from 1. Under a protocol without leader epochs none is shown, neither of leaders nor of logs.
    """
    answering = [replica for replica in constants.everyone if replica not in silent]
    if not answering:
        return None
    quorum = state.quorum
    known_epoch = (
        quorum.leader_epoch if protocol.leader_epochs and quorum.leader_epoch != NO_EPOCH else None
    )
    observation = Observation(
        topic=TOPIC,
        partition=PARTITION,
        observed_at=at,
        leader=None if quorum.leader is None else quorum.leader + 1,
        leader_epoch=known_epoch,
        leaderless=quorum.leader is None,
        replicas=_named(constants.everyone),
        in_sync_replicas=_named(quorum.isr),
        eligible_leader_replicas=_named(quorum.elr) if protocol.kraft else None,
        effective_min_in_sync_replicas=constants.effective_min_isr,
        metadata_from=_named(tuple(answering)),
        metadata_at=at,
        compacted=False,
        samples=[_sample(protocol, state, replica, silent) for replica in constants.everyone],
    )
    if quorum.leader in answering:
        _add_leader(observation, protocol, state, quorum.leader, at)
    return observation


def observed_batch(
    protocol: Protocol,
    constants: Constants,
    state: ClusterState,
    number: int,
    at: float,
    period_ms: float = 1000.0,
    silent: Collection[int] = NOBODY,
) -> Batch:
    """Pass `number`, that ends at `at`: the observation if there is one, and the pass record. As `collect --to -` writes it."""
    seen = observe(protocol, constants, state, at, silent)
    answers = [
        BrokerAnswer(broker=replica + 1, outcome=TIMED_OUT if replica in silent else OK)
        for replica in constants.everyone
    ]
    ended = Pass(
        number=number,
        started_at=at,
        ended_at=at,
        monotonic=at,
        period_ms=period_ms,
        brokers=answers,
        missed={TOPIC: [(PARTITION, PARTITION)]} if seen is None else {},
        partitions=1,
    )
    events: list[Event] = [ended] if seen is None else [seen, ended]
    return Batch(
        v=1,
        cluster="model",
        collector="model",
        collector_epoch=1,
        pass_number=number,
        events=events,
    )


def _sample(
    protocol: Protocol, state: ClusterState, replica: int, silent: Collection[int]
) -> Replica:
    if replica in silent:
        return Replica(broker=replica + 1, error=TIMED_OUT)
    log, believed = state.logs[replica], state.replicas[replica]
    epochs = protocol.leader_epochs
    return Replica(
        broker=replica + 1,
        log_end_offset=len(log),
        high_watermark=believed.high_watermark,
        log_start_offset=0,
        last_stable_offset=believed.high_watermark if epochs else None,
        leader_epoch=believed.leader_epoch
        if epochs and believed.leader_epoch != NO_EPOCH
        else None,
        leads=presumes_leadership(state, replica),
        lineage=lineage_of(log)[-MAX_LINEAGE:] if epochs else None,
    )


def _add_leader(
    observation: Observation, protocol: Protocol, state: ClusterState, leader: int, at: float
) -> None:
    """What only the elected leader can tell: where its log ends, what it has committed, its lineage."""
    log, believed = state.logs[leader], state.replicas[leader]
    observation.leader_log_end_offset_before = observation.leader_log_end_offset_after = len(log)
    observation.leader_before_at = observation.leader_after_at = at
    if not protocol.leader_epochs:
        observation.committed = (
            believed.high_watermark if presumes_leadership(state, leader) else None
        )
        return
    if not is_true_leader(state, leader):
        return
    start = epoch_start(log, believed.leader_epoch)
    if not protocol.fenced or believed.high_watermark >= start:
        # Below it a new leader answers OFFSET_NOT_AVAILABLE (KIP-207): it does not know how far the one before had come.
        observation.committed = believed.high_watermark
    lineage = lineage_of(log)
    if not lineage or lineage[-1][0] != believed.leader_epoch:
        # Assigned on becoming leader, before there is any record of it.
        lineage.append((believed.leader_epoch, len(log)))
    observation.lineage = lineage[-MAX_LINEAGE:]
    observation.lineage_complete_from = (
        0 if len(lineage) <= MAX_LINEAGE else observation.lineage[0][0]
    )


def lineage_of(log: Log) -> Lineage:
    """(leader epoch, end offset), ascending: as OffsetForLeaderEpoch tells it."""
    starts = epoch_starts(log)
    ends = [start for _, start in starts[1:]] + [len(log)]
    return [(epoch, end) for (epoch, _), end in zip(starts, ends, strict=False)]


def _named(replicas: Replicas) -> list[int]:
    return [replica + 1 for replica in replicas]
