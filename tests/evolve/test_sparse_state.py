"""The sparse things that an observation can begin, carry on or end; a partition that has none remembers nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.evolve.observed import answer, fold, observation, silent
from tidemark.core.events import Observation
from tidemark.core.leader_epochs import NO_EPOCH
from tidemark.core.partition import LossCandidate, PartitionState
from tidemark.core.sparse_state import (
    MAX_ANOMALIES,
    SUSPICION_SECONDS,
    Adding,
    Anomaly,
    Regression,
    SparseState,
    Suspicion,
)


def sparse(*events: Observation, state: PartitionState | None = None) -> SparseState:
    """What is remembered after observations one second apart; nothing is an empty one."""
    for second, event in enumerate(events):
        state = fold(state, event)
        assert event.observed_at == 10.0 + second, "tests tell their times"
    assert state is not None
    return state.sparse or SparseState()


def test_a_healthy_partition_remembers_nothing_rare() -> None:
    state = fold(
        None,
        observation(),
        observation(lineage=[(4, 100)], lineage_complete_from=4),
        observation(lineage=[(3, 1), (4, 100)]),
    )
    assert state.sparse is None


def test_what_is_over_is_forgotten() -> None:
    assert fold(None, observation(adding=[2]), observation()).sparse is None


def copying(at: float, log_end: int | None) -> Observation:
    return observation(
        observed_at=at,
        adding=[2],
        samples=[answer(1), silent(2) if log_end is None else answer(2, log_end_offset=log_end)],
    )


def test_the_progress_of_a_replica_that_is_added_is_dated_by_when_its_log_end_moved() -> None:
    assert sparse(copying(10.0, 40)).adding == [Adding(2, 40, 10.0)]
    assert sparse(copying(10.0, 40), copying(11.0, 40)).adding == [Adding(2, 40, 10.0)]
    assert sparse(copying(10.0, 40), copying(11.0, 41)).adding == [Adding(2, 41, 11.0)]
    assert sparse(copying(10.0, 40), copying(11.0, 3)).adding == [Adding(2, 3, 11.0)], (
        "a copy that begins anew moves too"
    )


def test_silence_is_no_progress() -> None:
    assert sparse(copying(10.0, 40), copying(11.0, None)).adding == [Adding(2, 40, 10.0)]
    assert sparse(copying(10.0, 40), copying(11.0, None), copying(12.0, 40)).adding == [
        Adding(2, 40, 10.0)
    ]
    assert sparse(copying(10.0, None), copying(11.0, None)).adding == [Adding(2, None, 10.0)]
    assert sparse(copying(10.0, None), copying(11.0, 5)).adding == [Adding(2, 5, 11.0)]


def test_each_added_replica_has_its_own_progress() -> None:
    both = observation(adding=[3, 2])
    assert sparse(both).adding == [Adding(3, None, 10.0), Adding(2, 100, 10.0)]
    one = observation(observed_at=11.0, adding=[2])
    assert sparse(both, one).adding == [Adding(2, 100, 10.0)]


def stable(at: float, offset: int | None, **fields: Any) -> Observation:
    return observation(
        observed_at=at, samples=[answer(1, last_stable_offset=offset), answer(2)], **fields
    )


def test_a_last_stable_offset_below_the_high_watermark_is_dated_by_when_it_came_to_stand_there() -> (
    None
):
    assert sparse(stable(10.0, 50)).last_stable == (50, 10.0)
    assert sparse(stable(10.0, 50), stable(11.0, 50)).last_stable == (50, 10.0)
    assert sparse(stable(10.0, 50), stable(11.0, 51)).last_stable == (51, 11.0)
    assert sparse(stable(10.0, 50), stable(11.0, 90)).last_stable is None
    assert sparse(stable(10.0, 89)).last_stable == (89, 10.0)


def test_a_leader_that_is_not_seen_changes_nothing_about_transactions() -> None:
    stuck = stable(10.0, 50)
    for unknown in (
        stable(11.0, None),
        observation(observed_at=11.0, samples=[silent(1), answer(2)]),
        observation(
            observed_at=11.0,
            samples=[answer(1, last_stable_offset=95, error="timed_out"), answer(2)],
        ),
    ):
        assert sparse(stuck, unknown).last_stable == (50, 10.0)
    assert (
        sparse(
            observation(
                committed=None,
                samples=[answer(1, last_stable_offset=50, high_watermark=None), answer(2)],
            )
        ).last_stable
        is None
    )


def test_only_the_leader_tells_of_transactions() -> None:
    assert (
        sparse(
            observation(
                samples=[answer(1, last_stable_offset=90), answer(2, last_stable_offset=50)]
            )
        ).last_stable
        is None
    )


def test_a_replica_is_looked_at_wherever_its_sample_stands() -> None:
    """Samples may come in any order, and of some replicas only."""
    known = fold(None, observation())
    later = observation(observed_at=11.0, samples=[answer(2, log_end_offset=80)])
    assert (fold(known, later).sparse or SparseState()).short == [(2, 80, 90)]
    swapped = observation(observed_at=11.0, samples=[answer(2, log_end_offset=80), answer(1)])
    assert (fold(known, swapped).sparse or SparseState()).short == [(2, 80, 90)]


def less(at: float, committed: int | None, **fields: Any) -> Observation:
    return observation(observed_at=at, committed=committed, **fields)


def test_a_leader_that_shows_less_than_before_regresses_until_it_shows_as_much() -> None:
    assert sparse(less(10.0, 90), less(11.0, 80)).regression == Regression(80, 90, 11.0)
    assert sparse(less(10.0, 90), less(11.0, 80), less(12.0, 85)).regression == Regression(
        85, 90, 11.0
    )
    assert sparse(less(10.0, 90), less(11.0, 80), less(12.0, 90)).regression is None
    assert sparse(less(10.0, 90), less(11.0, 80), less(12.0, None)).regression == Regression(
        80, 90, 11.0
    ), "no answer is no cure"


@pytest.mark.parametrize(
    "other", [{"leader": 2, "leader_epoch": 5}, {"leader_epoch": 5}, {"leader": 2}]
)
def test_another_leadership_may_show_less(other: dict[str, Any]) -> None:
    assert sparse(less(10.0, 90), less(11.0, 80, **other)).regression is None
    assert sparse(less(10.0, 90), less(11.0, 80), less(12.0, 70, **other)).regression is None


def test_a_late_reading_of_an_earlier_epoch_does_not_end_a_regression() -> None:
    for late in (less(12.0, 95, leader_epoch=3), less(12.0, 70, leader_epoch=3)):
        assert sparse(less(10.0, 90), less(11.0, 80), late).regression == Regression(80, 90, 11.0)


def read(
    at: float,
    lineage: list[tuple[int, int]] | None = None,
    leaders: list[tuple[int, int]] | None = None,
    **fields: Any,
) -> Observation:
    """A pass that reads the lineage of broker 2, or the leader's."""
    return observation(
        observed_at=at, samples=[answer(1), answer(2, lineage=lineage)], lineage=leaders, **fields
    )


DAMAGED = [(3, 50), (4, 40)]
DAMAGE = "epoch 4 ends at 40 after epoch 3 ended at 50"


def test_a_lineage_that_is_out_of_order_is_an_anomaly_since_it_was_first_read() -> None:
    assert sparse(read(10.0, DAMAGED)).anomalies == [
        Anomaly(2, DAMAGE, 10.0, 10.0, of_newest=False)
    ]
    assert sparse(read(10.0, DAMAGED), read(11.0, DAMAGED)).anomalies == [
        Anomaly(2, DAMAGE, 10.0, 11.0, of_newest=False)
    ]
    assert sparse(read(10.0, DAMAGED), read(11.0)).anomalies == [
        Anomaly(2, DAMAGE, 10.0, 10.0, of_newest=False)
    ], "not read again"
    assert sparse(read(10.0, DAMAGED), read(11.0, [(3, 50), (4, 100)])).anomalies == []
    assert sparse(read(10.0, DAMAGED), read(11.0, [(4, 100)])).anomalies[0].what == DAMAGE, (
        "its newest entry alone refutes nothing"
    )
    other = sparse(read(10.0, DAMAGED), read(11.0, [(3, 50), (4, 30)])).anomalies
    assert [(item.what, item.since) for item in other] == [
        ("epoch 4 ends at 30 after epoch 3 ended at 50", 11.0)
    ]


@pytest.mark.parametrize(
    ("lineage", "what"),
    [
        ([(1, 10), (3, 50), (3, 60)], "epoch 3 ends at 60 after epoch 3 ended at 50"),
        ([(1, 10), (3, 50), (2, 60)], "epoch 2 ends at 60 after epoch 3 ended at 50"),
        ([(1, 10), (2, 10), (3, 9)], "epoch 3 ends at 9 after epoch 2 ended at 10"),
    ],
)
def test_the_first_pair_that_cannot_be_is_named(lineage: list[tuple[int, int]], what: str) -> None:
    assert [item.what for item in sparse(read(10.0, lineage)).anomalies] == [what]


def test_the_leaders_lineage_is_looked_at_as_a_followers_is() -> None:
    assert [(item.broker, item.what) for item in sparse(read(10.0, leaders=DAMAGED)).anomalies] == [
        (1, DAMAGE)
    ]
    assert (
        sparse(read(10.0, leaders=[(5, 2)])).anomalies[0].what
        == "epoch 5 is above the leader epoch 4"
    )
    assert sparse(read(10.0, leaders=[(5, 100)], leader_epoch=None)).anomalies == [], (
        "no epoch is told that it could be above"
    )


def test_records_of_an_epoch_above_the_leaders_are_an_anomaly_of_the_newest_entry() -> None:
    above = Anomaly(1, "epoch 5 is above the leader epoch 4", 10.0, 10.0, of_newest=True)
    assert sparse(read(10.0, leaders=[(5, 100)])).anomalies == [above]
    assert sparse(read(10.0, leaders=[(3, 9), (5, 100)])).anomalies == [above]
    assert sparse(read(10.0, leaders=[(4, 100)])).anomalies == []
    assert sparse(read(10.0, leaders=[(5, 100)]), read(11.0, leaders=[(4, 100)])).anomalies == [], (
        "its newest entry refutes it"
    )
    assert (
        sparse(read(10.0, leaders=[(5, 100)]), read(11.0, leaders=[(3, 9), (4, 100)])).anomalies
        == []
    )
    assert sparse(read(10.0, leaders=[(5, 100)], leader=None)).anomalies == [], (
        "nobody knows whose it is"
    )
    assert sparse(read(10.0, leaders=[])).anomalies == []


def test_a_follower_is_held_against_the_epoch_that_it_knows_itself() -> None:
    said = "epoch 5 is above the leader epoch 4 that the broker knows"
    assert sparse(read(10.0, [(5, 100)])).anomalies == [
        Anomaly(2, said, 10.0, 10.0, of_newest=True)
    ]
    assert sparse(read(10.0, [(5, 100)]), read(11.0, [(4, 100)])).anomalies == []
    ahead = observation(samples=[answer(1), answer(2, leader_epoch=5, lineage=[(5, 100)])])
    assert sparse(ahead).anomalies == [], (
        "it may know of an election that the metadata does not tell yet"
    )
    unknown = observation(samples=[answer(1), answer(2, leader_epoch=None, lineage=[(5, 100)])])
    assert sparse(unknown).anomalies == []
    wrong = observation(
        observed_at=11.0, samples=[answer(1), answer(2, lineage=[(5, 100)], error="timed_out")]
    )
    assert sparse(observation(), wrong).anomalies == [], "what it knew before it fell silent"


def test_a_lineage_of_a_leader_that_was_never_sampled_is_held_against_the_metadata() -> None:
    unsampled = {"samples": [answer(2)], "lineage_complete_from": 3}
    assert sparse(observation(lineage=[(3, 9), (4, 100)], **unsampled)).anomalies == []
    assert [
        item.broker
        for item in sparse(observation(lineage=[(3, 9), (5, 100)], **unsampled)).anomalies
    ] == [1]


def test_a_deposed_leaders_lineage_is_held_against_what_it_knows() -> None:
    state = fold(None, observation(leader=2, leader_epoch=5))
    late = observation(observed_at=11.0, lineage=[(5, 100)])
    said = "epoch 5 is above the leader epoch 4 that the broker knows"
    assert [
        (item.broker, item.what) for item in (fold(state, late).sparse or SparseState()).anomalies
    ] == [(1, said)]


def test_anomalies_of_one_broker_do_not_hide_those_of_another() -> None:
    both = observation(samples=[answer(1, lineage=DAMAGED), answer(2, lineage=DAMAGED)])
    assert [item.broker for item in sparse(both).anomalies] == [1, 2]
    assert [item.broker for item in sparse(both, read(11.0, [(4, 100), (5, 100)])).anomalies] == [
        1,
        2,
    ]
    whole = read(11.0, [(3, 50), (4, 100)])
    assert [item.broker for item in sparse(both, whole).anomalies] == [1]


def test_a_bounded_number_of_anomalies_is_kept() -> None:
    samples = [answer(broker, lineage=DAMAGED) for broker in range(1, MAX_ANOMALIES + 3)]
    assert [item.broker for item in sparse(observation(samples=samples)).anomalies] == list(
        range(1, MAX_ANOMALIES + 1)
    )


def ends(at: float, log_end: int, **fields: Any) -> Observation:
    return observation(
        observed_at=at, samples=[answer(1), answer(2, log_end_offset=log_end)], **fields
    )


def test_an_in_sync_replica_that_ends_below_what_was_committed_before_is_short() -> None:
    assert sparse(ends(10.0, 100), ends(11.0, 89)).short == [(2, 89, 90)]
    assert sparse(ends(10.0, 100), ends(11.0, 90)).short == []
    assert sparse(ends(10.0, 80)).short == [], (
        "what is committed in this pass it need not have had when it was asked"
    )
    assert sparse(ends(10.0, 100), ends(11.0, 89), ends(12.0, 90)).short == []
    assert sparse(ends(10.0, 100), ends(11.0, 89, in_sync_replicas=[1])).short == []
    assert (
        sparse(ends(10.0, 100, in_sync_replicas=None), ends(11.0, 89, in_sync_replicas=None)).short
        == []
    )
    assert sparse(ends(10.0, 100), ends(11.0, 89, topic_id="b")).short == []
    silenced = observation(observed_at=12.0, samples=[answer(1), silent(2)])
    assert sparse(ends(10.0, 100), ends(11.0, 89), silenced).short == []


def test_what_any_epoch_committed_and_is_not_known_to_be_lost_must_be_there() -> None:
    state = fold(None, observation(), observation(leader_epoch=5, committed=50))
    assert (fold(state, ends(11.0, 89, leader_epoch=5)).sparse or SparseState()).short == [
        (2, 89, 90)
    ]
    state.committed[0].lost_from = 70
    assert (fold(state, ends(11.0, 69, leader_epoch=5)).sparse or SparseState()).short == [
        (2, 69, 70)
    ]
    assert (fold(state, ends(11.0, 70, leader_epoch=5)).sparse or SparseState()).short == []


OLD: dict[str, Any] = {"leader_epoch": None}


def before_epochs(at: float, log_end: int, leader: int | None = 2, **fields: Any) -> Observation:
    """Brokers without leader epochs: broker 2 leads, and its log ends there."""
    samples = [silent(1), answer(2, log_end_offset=log_end, leader_epoch=None, leads=True)]
    return observation(
        observed_at=at, leader=leader, samples=samples, committed=None, **OLD, **fields
    )


def first(at: float = 10.0) -> Observation:
    return observation(
        observed_at=at, samples=[answer(1, leader_epoch=None), answer(2, leader_epoch=None)], **OLD
    )


def test_before_epochs_a_first_read_that_no_second_confirms_leaves_a_suspicion() -> None:
    assert sparse(first(), before_epochs(11.0, 60)).suspicion is None, (
        "the second read may be a proof yet"
    )
    assert sparse(
        first(), before_epochs(11.0, 60), before_epochs(12.0, 130)
    ).suspicion == Suspicion(60, 90, 2, 12.0)
    proven = sparse(first(), before_epochs(11.0, 60), before_epochs(12.0, 60))
    assert proven.suspicion is None


def test_a_first_read_alone_is_enough_to_look_again() -> None:
    """Broker 2 is not in sync, so nothing else is sparse about it."""
    events = [first(), before_epochs(11.0, 60), before_epochs(12.0, 130)]
    for event in events:
        event.in_sync_replicas = [1]
    assert sparse(*events).suspicion == Suspicion(60, 90, 2, 12.0)


def test_a_suspicion_stays_for_its_time_and_ends_with_a_proof_or_the_topic() -> None:
    state = fold(None, first(), before_epochs(11.0, 60), before_epochs(12.0, 130))
    state.loss_candidate = None
    until = 12.0 + SUSPICION_SECONDS
    assert (
        fold(state, before_epochs(until - 1, 140)).sparse or SparseState()
    ).suspicion == Suspicion(60, 90, 2, 12.0)
    assert (fold(state, before_epochs(until, 140)).sparse or SparseState()).suspicion is None
    assert (
        fold(state, before_epochs(13.0, 140, topic_id="b")).sparse or SparseState()
    ).suspicion is None
    proven = fold(state, before_epochs(13.0, 60), before_epochs(14.0, 60))
    assert proven.loss_candidate is not None and proven.loss_candidate.confirmed
    assert (proven.sparse or SparseState()).suspicion is None


def test_a_second_suspicion_of_the_same_records_reaches_as_low_as_either() -> None:
    def after(start: int, end: int) -> Suspicion | None:
        state = fold(None, first(), before_epochs(11.0, 60), before_epochs(12.0, 130))
        state.loss_candidate = LossCandidate(NO_EPOCH, NO_EPOCH, start, end, 100, 0)
        return (fold(state, before_epochs(13.0, 130)).sparse or SparseState()).suspicion

    assert after(70, 90) == Suspicion(60, 90, 2, 12.0)
    assert after(50, 90) == Suspicion(50, 90, 2, 12.0)
    assert after(70, 95) == Suspicion(70, 95, 2, 12.0), "another range"


@pytest.mark.parametrize(
    "told",
    [
        LossCandidate(NO_EPOCH, NO_EPOCH, 60, 90, 100, 0, confirmed=True),
        LossCandidate(3, 4, 60, 90, 100, 0),
    ],
)
def test_what_was_proven_or_can_be_refuted_is_no_suspicion(told: LossCandidate) -> None:
    state = fold(None, first(), before_epochs(11.0, 130))
    state.loss_candidate = told
    assert (fold(state, before_epochs(12.0, 130)).sparse or SparseState()).suspicion is None


def test_no_suspicion_is_raised_while_nobody_leads() -> None:
    state = fold(None, first(), before_epochs(11.0, 60))
    assert (
        fold(state, before_epochs(12.0, 130, leader=None)).sparse or SparseState()
    ).suspicion is None
