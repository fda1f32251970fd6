"""What a collector would write about a state of the model: events of the wire schema.

All responding replicas are sampled at one instant, and Metadata shows the controller's decision. A
high watermark counts as committed only if the leader reports it in the epoch of its election, or,
under a protocol without epochs, if the elected leader considers itself leader. The events contain
only what a client can read.
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
from tidemark.core.leader_epochs import NO_EPOCH
from tidemark_lab.model.log import Log, epoch_start, epoch_starts
from tidemark_lab.model.protocols.protocol import Protocol
from tidemark_lab.model.state import (
    Constants,
    ModelState,
    Replicas,
    presumes_leadership,
    true_leader,
)

TOPIC: Final = "model"
PARTITION: Final = 0
# The topic of the model is never created again, also under protocols older than topic ids.
TOPIC_ID: Final = "model"
NO_REPLICAS: Final[frozenset[int]] = frozenset()

Lineage = list[tuple[int, int]]


def observe(
    protocol: Protocol,
    constants: Constants,
    state: ModelState,
    at: float,
    silent: Collection[int] = NO_REPLICAS,
) -> Observation | None:
    """One observation at Unix time `at`; None if no replica responds.

    `silent` are the replicas that do not respond, counted from 0. Broker ids count from 1. A
    protocol without leader epochs shows none, neither for leaders nor for logs.
    """
    responding = tuple(replica for replica in constants.all_replicas if replica not in silent)
    if not responding:
        return None
    quorum = state.quorum
    has_epoch = protocol.leader_epochs and quorum.leader_epoch != NO_EPOCH
    observation = Observation(
        topic=TOPIC,
        partition=PARTITION,
        topic_id=TOPIC_ID,
        observed_at=at,
        leader=None if quorum.leader is None else quorum.leader + 1,
        leader_epoch=quorum.leader_epoch if has_epoch else None,
        leaderless=quorum.leader is None,
        replicas=_broker_ids(constants.all_replicas),
        in_sync_replicas=_broker_ids(quorum.isr),
        eligible_leader_replicas=_broker_ids(quorum.elr) if protocol.kraft else None,
        effective_min_in_sync_replicas=constants.effective_min_isr,
        metadata_from=_broker_ids(responding),
        metadata_at=at,
        compacted=False,
        samples=[_sample(protocol, state, replica, silent) for replica in constants.all_replicas],
    )
    if quorum.leader in responding:
        _add_leader(observation, protocol, state, quorum.leader, at)
    return observation


def build_batch(
    protocol: Protocol,
    constants: Constants,
    state: ModelState,
    number: int,
    at: float,
    period_ms: float = 1000.0,
    silent: Collection[int] = NO_REPLICAS,
) -> Batch:
    """Pass `number`, which ends at `at`, as `collect --to -` writes it.

    The batch holds the observation, if there is one, and the pass record.
    """
    observation = observe(protocol, constants, state, at, silent)
    answers = [
        BrokerAnswer(broker=replica + 1, outcome=TIMED_OUT if replica in silent else OK)
        for replica in constants.all_replicas
    ]
    finished = Pass(
        number=number,
        started_at=at,
        ended_at=at,
        monotonic=at,
        period_ms=period_ms,
        brokers=answers,
        missed={TOPIC: [(PARTITION, PARTITION)]} if observation is None else {},
        partitions=1,
    )
    events: list[Event] = [finished] if observation is None else [observation, finished]
    return Batch(
        v=2,
        cluster="model",
        collector="model",
        collector_epoch=1,
        pass_number=number,
        events=events,
    )


def _sample(
    protocol: Protocol, state: ModelState, replica: int, silent: Collection[int]
) -> Replica:
    if replica in silent:
        return Replica(broker=replica + 1, error=TIMED_OUT)
    log, local = state.logs[replica], state.replicas[replica]
    epochs = protocol.leader_epochs
    return Replica(
        broker=replica + 1,
        log_end_offset=len(log),
        high_watermark=local.high_watermark,
        log_start_offset=0,
        last_stable_offset=local.high_watermark if epochs else None,
        leader_epoch=local.leader_epoch if epochs and local.leader_epoch != NO_EPOCH else None,
        leads=presumes_leadership(state, replica),
        lineage=lineage_of(log)[-MAX_LINEAGE:] if epochs else None,
    )


def _add_leader(
    observation: Observation, protocol: Protocol, state: ModelState, leader: int, at: float
) -> None:
    """Adds what only the elected leader reports: its log end, the committed offset, its lineage."""
    log, local = state.logs[leader], state.replicas[leader]
    observation.leader_log_end_offset_before = observation.leader_log_end_offset_after = len(log)
    observation.leader_before_at = observation.leader_after_at = at
    if not protocol.leader_epochs:
        leads = presumes_leadership(state, leader)
        observation.committed = local.high_watermark if leads else None
        return
    if true_leader(state) is None:
        return
    start = epoch_start(log, local.leader_epoch)
    if not protocol.fenced or local.high_watermark >= start:
        # Below it a new leader answers OFFSET_NOT_AVAILABLE (KIP-207): it does not know yet what
        # its predecessor committed.
        observation.committed = local.high_watermark
    lineage = lineage_of(log)
    notes_epoch = protocol.truncation.notes_epoch_at_election or not log
    if notes_epoch and local.leader_epoch not in dict(lineage):
        # A new leader assigns its epoch before it has records of it. Until 2.0.0 it did not; but an
        # event cannot say that a lineage was read and is empty.
        lineage.append((local.leader_epoch, len(log)))
    observation.lineage = lineage[-MAX_LINEAGE:]
    oldest, _ = observation.lineage[0]
    observation.lineage_complete_from = 0 if len(lineage) <= MAX_LINEAGE else oldest


def lineage_of(log: Log) -> Lineage:
    """(leader epoch, end offset), ascending, as OffsetForLeaderEpoch answers."""
    starts = epoch_starts(log)
    ends = [start for _, start in starts[1:]] + [len(log)]
    return [(epoch, end) for (epoch, _), end in zip(starts, ends, strict=False)]


def _broker_ids(replicas: Replicas) -> list[int]:
    return [replica + 1 for replica in replicas]
