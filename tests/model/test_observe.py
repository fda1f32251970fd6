"""The events of a state contain what a client can read, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.core.codec import decode_batch, encode_batch
from tidemark.core.events import TIMED_OUT, Observation, Pass, Replica
from tidemark_lab.model.invariants import INVARIANTS
from tidemark_lab.model.log import Record
from tidemark_lab.model.observe import build_batch, observe
from tidemark_lab.model.oracle import batch_contents, diverging_replicas, lost_offsets
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.search import check
from tidemark_lab.model.state import Constants, ModelReplica, ModelState, QuorumState, initial
from tidemark_lab.model.traces import shortest_traces

CONSTANTS = Constants(replicas=3, min_isr=2)
KIP_320, KIP_966, TO_HW = PROTOCOLS["kip-320"], PROTOCOLS["kip-966"], PROTOCOLS["truncate-to-hw"]
A, B, C = Record(0, 0), Record(0, 1), Record(2, 2)
LATER = QuorumState(2, 1, (1, 2), partition_epoch=3, elr=(0,))
# Replica 1 leads in epoch 2 with all of epoch 0, and 2 follows. 0 still considers itself leader.
STATE = ModelState(
    logs=((A, B), (A, B, C), (A, B)),
    replicas=(
        ModelReplica(2, 0, 0, (0, 1, 2)),
        ModelReplica(2, 2, 1, (1, 2), 3),
        ModelReplica(1, 2, 1, (1, 2), 3),
    ),
    quorum=LATER,
    requests=(LATER,),
    next_record_id=3,
    committed=(A, B),
)


def seen(
    state: ModelState = STATE, protocol: str = "kip-966", silent: tuple[int, ...] = ()
) -> Observation:
    observation = observe(PROTOCOLS[protocol], CONSTANTS, state, 100.0, silent)
    assert observation is not None
    return observation


UNAWARE = STATE._replace(quorum=LATER._replace(leader=0, leader_epoch=3))
YOUNG = STATE._replace(
    replicas=(STATE.replicas[0], STATE.replicas[1]._replace(high_watermark=1), STATE.replicas[2])
)
WITHOUT_RECORDS = STATE._replace(logs=(STATE.logs[0], (A, B), STATE.logs[2]))


@pytest.mark.parametrize(
    ("observation", "expected"),
    [
        # The elected leader reports the committed offset and its lineage.
        (
            seen(),
            {
                "leader": 2,
                "leader_epoch": 2,
                "leaderless": False,
                "committed": 2,
                "lineage": [(0, 2), (2, 3)],
                "lineage_complete_from": 0,
                "leader_log_end_offset_before": 3,
                "leader_log_end_offset_after": 3,
                "replicas": [1, 2, 3],
                "in_sync_replicas": [2, 3],
                "eligible_leader_replicas": [1],
                "effective_min_in_sync_replicas": 2,
            },
        ),
        # A high watermark of another epoch is not committed: broker 1 was elected in epoch 3 and
        # does not know it. It considers itself leader in epoch 0.
        (
            seen(UNAWARE),
            {
                "leader": 1,
                "leader_epoch": 3,
                "committed": None,
                "lineage": None,
                "leader_log_end_offset_before": 2,
            },
        ),
        # A leader below the start of its epoch reports no committed offset since KIP-207.
        (seen(YOUNG), {"committed": None}),
        (seen(YOUNG, "kip-101"), {"committed": 1}),
        # A lineage ends with the epoch without records.
        (seen(WITHOUT_RECORDS), {"lineage": [(0, 2), (2, 2)]}),
        # Until 2.0.0 a leader noted its epoch with the first record (KAFKA-7415).
        (seen(WITHOUT_RECORDS, "kip-101"), {"lineage": [(0, 2)], "lineage_complete_from": 0}),
        # A silent follower does not matter; a silent leader reports no committed offset.
        (seen(silent=(2,)), {"committed": 2}),
        (
            seen(silent=(1,)),
            {
                "leader": 2,
                "committed": None,
                "lineage": None,
                "leader_log_end_offset_before": None,
            },
        ),
        (
            seen(STATE._replace(quorum=LATER._replace(leader=None))),
            {"leader": None, "leaderless": True, "committed": None},
        ),
        # Brokers without epochs report none.
        (
            seen(protocol="truncate-to-hw"),
            {
                "leader": 2,
                "leader_epoch": None,
                "lineage": None,
                "committed": 2,
                "eligible_leader_replicas": None,
            },
        ),
        # The initial state has no leader.
        (seen(initial(CONSTANTS)), {"leader": None, "leader_epoch": None, "leaderless": True}),
    ],
)
def test_the_observation_of_a_state(observation: Observation, expected: dict[str, Any]) -> None:
    assert {name: getattr(observation, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("observation", "expected"),
    [
        # Every replica is sampled with its own leader epoch.
        (
            seen(),
            [
                (2, 2, 0, True, [(0, 2)]),
                (3, 2, 2, True, [(0, 2), (2, 3)]),
                (2, 1, 2, False, [(0, 2)]),
            ],
        ),
        (
            seen(protocol="truncate-to-hw"),
            [(2, 2, None, True, None), (3, 2, None, True, None), (2, 1, None, False, None)],
        ),
        (seen(initial(CONSTANTS)), [(0, 0, None, False, [])] * 3),
    ],
)
def test_the_samples_of_a_state(observation: Observation, expected: list[Any]) -> None:
    samples = observation.samples
    assert [
        (each.log_end_offset, each.high_watermark, each.leader_epoch, each.leads, each.lineage)
        for each in samples
    ] == expected
    assert [(each.log_start_offset, each.error) for each in samples] == [(0, None)] * 3


@pytest.mark.parametrize("silent", [1, 2])
def test_a_silent_replica_has_an_error_and_no_offsets(silent: int) -> None:
    sample = seen(silent=(silent,)).samples[silent]
    assert sample == Replica(broker=silent + 1, error=TIMED_OUT)


def test_without_any_response_the_partition_is_missed_and_not_observed() -> None:
    all_replicas = (0, 1, 2)
    assert observe(KIP_966, CONSTANTS, STATE, 1.0, all_replicas) is None
    batch = build_batch(KIP_966, CONSTANTS, STATE, 4, 1.0, silent=all_replicas)
    (finished,) = batch.events
    assert isinstance(finished, Pass) and finished.missed == {"model": [(0, 0)]}
    assert {answer.outcome for answer in finished.brokers} == {TIMED_OUT}


def test_replay_can_read_a_batch() -> None:
    batch = build_batch(KIP_966, CONSTANTS, STATE, 4, 104.0)
    assert decode_batch(encode_batch(batch)) == batch
    observation, finished = batch.events
    assert isinstance(observation, Observation) and isinstance(finished, Pass)
    assert (finished.number, finished.missed, observation.observed_at) == (4, {}, finished.ended_at)


def test_every_state_of_a_space_can_be_encoded() -> None:
    constants = Constants(log_size=2, records=2, max_epoch=1)
    for protocol in PROTOCOLS.values():
        for number, trace in enumerate(shortest_traces(protocol, constants, max_traces=400)):
            batch = build_batch(protocol, constants, trace.last, number, float(number))
            assert decode_batch(encode_batch(batch)) == batch


def test_the_oracle_returns_the_lost_offsets() -> None:
    verdict = check(TO_HW, Constants(), [INVARIANTS["LeaderCompleteness"]])
    assert verdict.trace is not None
    *before, last = verdict.trace.states
    assert lost_offsets(last) and not any(lost_offsets(state) for state in before)
    leaderless = last._replace(quorum=last.quorum._replace(leader=None))
    assert lost_offsets(leaderless) == ()


def test_the_oracle_returns_the_diverging_replicas() -> None:
    verdict = check(TO_HW, Constants(), [INVARIANTS["LogMatching"]])
    assert verdict.trace is not None
    ((one, other, offset),) = diverging_replicas(verdict.trace.last)
    a, b = (batch_contents(verdict.trace.last.logs[replica])[offset] for replica in (one, other))
    assert a[0] == b[0] == offset and a[1:] != b[1:]
    assert not any(diverging_replicas(state) for state in verdict.trace.states[:-1])
