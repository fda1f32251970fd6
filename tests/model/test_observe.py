"""The events of a state contain what a client can read, and nothing else."""

from __future__ import annotations

from tidemark.core.codec import decode_batch, encode_batch
from tidemark.core.events import TIMED_OUT, Observation, Pass
from tidemark.model.invariants import INVARIANTS
from tidemark.model.log import Record
from tidemark.model.observe import build_batch, observe
from tidemark.model.oracle import batch_contents, diverging_replicas, lost_offsets
from tidemark.model.protocols import PROTOCOLS
from tidemark.model.search import check
from tidemark.model.state import Constants, ModelReplica, ModelState, QuorumState, initial
from tidemark.model.traces import shortest_traces

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


def test_the_elected_leader_reports_the_committed_offset_and_its_lineage() -> None:
    observation = seen()
    assert (observation.leader, observation.leader_epoch, observation.leaderless) == (2, 2, False)
    assert observation.committed == 2
    assert (observation.lineage, observation.lineage_complete_from) == ([(0, 2), (2, 3)], 0)
    assert (observation.leader_log_end_offset_before, observation.leader_log_end_offset_after) == (
        3,
        3,
    )
    assert (
        observation.replicas,
        observation.in_sync_replicas,
        observation.eligible_leader_replicas,
    ) == ([1, 2, 3], [2, 3], [1])
    assert observation.effective_min_in_sync_replicas == 2


def test_every_replica_is_sampled_with_its_own_leader_epoch() -> None:
    one, two, three = seen().samples
    assert [
        (s.log_end_offset, s.high_watermark, s.leader_epoch, s.leads) for s in (one, two, three)
    ] == [
        (2, 2, 0, True),
        (3, 2, 2, True),
        (2, 1, 2, False),
    ]
    assert (one.lineage, three.lineage) == ([(0, 2)], [(0, 2)])
    assert all(
        sample.log_start_offset == 0 and sample.error is None for sample in (one, two, three)
    )


def test_a_high_watermark_of_another_epoch_is_not_committed() -> None:
    unaware = STATE._replace(quorum=LATER._replace(leader=0, leader_epoch=3))
    observation = seen(unaware)
    # Broker 1 was elected in epoch 3 and does not know it: it considers itself leader in epoch 0.
    assert (
        observation.leader,
        observation.leader_epoch,
        observation.committed,
        observation.lineage,
    ) == (1, 3, None, None)
    assert observation.leader_log_end_offset_before == 2


def test_a_leader_below_the_start_of_its_epoch_reports_no_committed_offset() -> None:
    young = STATE._replace(
        replicas=(
            STATE.replicas[0],
            STATE.replicas[1]._replace(high_watermark=1),
            STATE.replicas[2],
        )
    )
    assert seen(young).committed is None
    # Before KIP-207 it reported one.
    assert seen(young, "kip-101").committed == 1


def test_the_lineage_ends_with_the_epoch_without_records() -> None:
    fresh = STATE._replace(logs=(STATE.logs[0], (A, B), STATE.logs[2]))
    assert seen(fresh).lineage == [(0, 2), (2, 2)]


def test_a_silent_replica_has_an_error_and_no_offsets() -> None:
    observation = seen(silent=(2,))
    silent = observation.samples[2]
    assert (silent.error, silent.log_end_offset, silent.high_watermark, silent.leads) == (
        TIMED_OUT,
        None,
        None,
        None,
    )
    assert observation.committed == 2


def test_a_silent_leader_reports_no_committed_offset() -> None:
    observation = seen(silent=(1,))
    assert (observation.leader, observation.committed, observation.lineage) == (2, None, None)
    assert (
        observation.leader_log_end_offset_before is None
        and observation.samples[1].error == TIMED_OUT
    )


def test_a_partition_without_a_leader_has_no_committed_offset() -> None:
    observation = seen(STATE._replace(quorum=LATER._replace(leader=None)))
    assert (observation.leader, observation.leaderless, observation.committed) == (None, True, None)


def test_brokers_without_epochs_report_none() -> None:
    observation = seen(protocol="truncate-to-hw")
    assert (
        observation.leader,
        observation.leader_epoch,
        observation.lineage,
        observation.committed,
    ) == (2, None, None, 2)
    assert observation.eligible_leader_replicas is None
    assert all(
        sample.leader_epoch is None and sample.lineage is None for sample in observation.samples
    )


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


def test_the_initial_state_has_no_leader() -> None:
    observation = seen(initial(CONSTANTS))
    assert (observation.leader, observation.leader_epoch, observation.leaderless) == (
        None,
        None,
        True,
    )
    assert [sample.log_end_offset for sample in observation.samples] == [0, 0, 0]


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
