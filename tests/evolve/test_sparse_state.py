"""The sparse state that an observation begins, continues or ends; a healthy partition has none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.evolve.observations import (
    answer,
    fold,
    observation,
    second_ends,
    silent,
    sparse_after,
    sparse_of,
)
from tidemark.assess.reassignment_progress import MAX_SAMPLES
from tidemark.core.events import Observation
from tidemark.core.leader_epochs import NO_EPOCH
from tidemark.core.partition import LossCandidate, PartitionState
from tidemark.core.sparse_state import (
    EPOCH_START_SECONDS,
    SUSPICION_SECONDS,
    Adding,
    BehindCommitted,
    EpochStart,
    LastStable,
    Regression,
    SparseState,
    Suspicion,
)
from tidemark.evolve.sparse_state import recent_epoch_starts


def test_a_healthy_partition_has_no_sparse_state() -> None:
    lineages: list[dict[str, Any]] = [
        {},
        {"lineage": [(4, 100)], "lineage_complete_from": 4},
        {"lineage": [(3, 1), (4, 100)]},
    ]
    assert fold(None, *(observation(**fields) for fields in lineages)).sparse is None


def test_sparse_state_that_is_over_is_dropped() -> None:
    assert fold(None, observation(adding=[2]), observation()).sparse is None


def test_old_epoch_starts_are_dropped() -> None:
    old, new = EpochStart(10.0, 4), EpochStart(11.0, 5)
    sparse = SparseState(epoch_starts=[old, new])
    assert recent_epoch_starts(sparse, 9.9 + EPOCH_START_SECONDS) is sparse.epoch_starts
    assert recent_epoch_starts(sparse, 10.0 + EPOCH_START_SECONDS) == [new]
    assert recent_epoch_starts(sparse, 11.0 + EPOCH_START_SECONDS) == []


def copying(log_end: int | None) -> Observation:
    """Broker 2 is being added and its log ends there; None: it does not answer."""
    copy = silent(2) if log_end is None else answer(2, log_end_offset=log_end)
    return observation(adding=[2], samples=[answer(1), copy])


@pytest.mark.parametrize(
    ("events", "progress"),
    [
        ([copying(40)], [Adding(2, 40, 10.0)]),
        ([copying(40), copying(40)], [Adding(2, 40, 10.0)]),
        ([copying(40), copying(41)], [Adding(2, 41, 11.0)]),
        # A copy that starts over moves too.
        ([copying(40), copying(3)], [Adding(2, 3, 11.0)]),
        # Silence is no progress.
        ([copying(40), copying(None)], [Adding(2, 40, 10.0)]),
        ([copying(40), copying(None), copying(40)], [Adding(2, 40, 10.0)]),
        ([copying(None), copying(None)], [Adding(2, None, 10.0)]),
        ([copying(None), copying(5)], [Adding(2, 5, 11.0)]),
        # It is silent when it is added.
        ([observation(), copying(None)], [Adding(2, None, 11.0)]),
        # Each replica has its own progress.
        ([observation(adding=[3, 2])], [Adding(3, None, 10.0), Adding(2, 100, 10.0)]),
        ([observation(adding=[3, 2]), observation(adding=[2])], [Adding(2, 100, 10.0)]),
    ],
)
def test_progress_of_an_added_replica_is_dated_by_its_last_move(
    events: list[Observation], progress: list[Adding]
) -> None:
    found = sparse_after(*events).adding
    assert [Adding(a.broker, a.log_end_offset, a.advanced_at) for a in found] == progress


def test_what_a_copy_lacks_is_sampled_every_ten_seconds() -> None:
    """From the leader's log start on; silence gives no sample."""
    ends = [None, 40, 41, None, *range(42, 60)]
    state = None
    for second, end in enumerate(ends):
        event = copying(end)
        event.samples[0].log_start_offset = 30
        event.observed_at = 10.0 + 4 * second
        state = fold(state, event)
    assert state is not None
    (adding,) = sparse_of(state).adding
    assert adding.remaining[:4] == [(14.0, 60), (26.0, 58), (38.0, 55), (50.0, 52)]


@pytest.mark.parametrize(
    ("log_end", "second", "log_start", "remaining"),
    [
        # A second pass at the same moment adds none, one ten seconds later does.
        (50, 0.0, 0, [(10.0, 60)]),
        (50, 9.9, 0, [(10.0, 60)]),
        (50, 10.0, 0, [(10.0, 60), (20.0, 50)]),
        # What the leader has deleted is not copied.
        (50, 10.0, 70, [(10.0, 60), (20.0, 30)]),
    ],
)
def test_when_and_what_of_a_copy_is_sampled(
    log_end: int, second: float, log_start: int, remaining: list[tuple[float, int]]
) -> None:
    later = copying(log_end)
    later.observed_at = 10.0 + second
    later.samples[0].log_start_offset = log_start
    (adding,) = sparse_of(fold(None, copying(40), later)).adding
    assert adding.remaining == remaining


def test_a_leader_that_was_not_sampled_has_deleted_nothing() -> None:
    event = observation(adding=[2], samples=[answer(2, log_end_offset=40)])
    (adding,) = sparse_of(fold(None, event)).adding
    assert adding.remaining == [(10.0, 60)]


def test_samples_of_a_copy_are_bounded_and_follow_a_clock_that_is_set_back() -> None:
    state = None
    for second in range(0, 500, 10):
        event = copying(40)
        event.observed_at = 1000.0 + second
        state = fold(state, event)
    (adding,) = sparse_of(state).adding if state is not None else []
    assert len(adding.remaining) == MAX_SAMPLES
    event = copying(50)
    event.observed_at = 1400.0
    (adding,) = sparse_of(fold(state, event)).adding
    assert adding.remaining[-1] == (1400.0, 50)
    assert adding.remaining == sorted(adding.remaining)


def stable(offset: int | None, **leader: Any) -> Observation:
    """The leader's last stable offset; the high watermark is 90."""
    return observation(samples=[answer(1, last_stable_offset=offset, **leader), answer(2)])


def less(committed: int | None, **fields: Any) -> Observation:
    return observation(committed=committed, **fields)


REGRESSED = Regression(80, 90, 11.0)


UNKNOWN_ISR: dict[str, Any] = {"in_sync_replicas": None}


@pytest.mark.parametrize(
    ("part", "events", "expected"),
    [
        # A last stable offset below the high watermark is dated by its last move.
        ("last_stable", [stable(50)], LastStable(50, 10.0)),
        ("last_stable", [stable(89)], LastStable(89, 10.0)),
        ("last_stable", [stable(50), stable(50)], LastStable(50, 10.0)),
        ("last_stable", [stable(50), stable(51)], LastStable(51, 11.0)),
        ("last_stable", [stable(50), stable(90)], None),
        # A leader without an answer changes nothing.
        ("last_stable", [stable(50), stable(None)], LastStable(50, 10.0)),
        ("last_stable", [stable(50), stable(95, error="timed_out")], LastStable(50, 10.0)),
        (
            "last_stable",
            [stable(50), observation(samples=[silent(1), answer(2)])],
            LastStable(50, 10.0),
        ),
        # The leader's alone counts, and only below a known high watermark.
        ("last_stable", [observation(samples=[answer(1), answer(2, last_stable_offset=50)])], None),
        (
            "last_stable",
            [
                observation(
                    samples=[answer(1, last_stable_offset=90), answer(2, last_stable_offset=50)]
                )
            ],
            None,
        ),
        (
            "last_stable",
            [
                observation(
                    committed=None,
                    samples=[answer(1, last_stable_offset=50, high_watermark=None), answer(2)],
                )
            ],
            None,
        ),
        # A leader that reports less than before regresses until it reports as much.
        ("regression", [less(90), less(80)], REGRESSED),
        ("regression", [less(90), less(80), less(85)], Regression(85, 90, 11.0)),
        ("regression", [less(90), less(80), less(90)], None),
        # No answer ends nothing.
        ("regression", [less(90), less(80), less(None)], REGRESSED),
        # Another leadership may report less.
        ("regression", [less(90), less(80, leader=2, leader_epoch=5)], None),
        ("regression", [less(90), less(80, leader_epoch=5)], None),
        ("regression", [less(90), less(80, leader=2)], None),
        ("regression", [less(90), less(80), less(70, leader=2, leader_epoch=5)], None),
        ("regression", [less(90), less(80), less(70, leader_epoch=5)], None),
        ("regression", [less(90), less(80), less(70, leader=2)], None),
        # Late, and of an earlier epoch.
        ("regression", [less(90), less(80), less(95, leader_epoch=3)], REGRESSED),
        ("regression", [less(90), less(80), less(70, leader_epoch=3)], REGRESSED),
        # An in-sync replica that ends below what was committed before is behind.
        (
            "behind_committed",
            [second_ends(100), second_ends(89)],
            [BehindCommitted(2, 89, 90)],
        ),
        ("behind_committed", [second_ends(100), second_ends(90)], []),
        # In any order of the samples, and without the leader's.
        (
            "behind_committed",
            [second_ends(100), observation(samples=[answer(2, log_end_offset=80)])],
            [BehindCommitted(2, 80, 90)],
        ),
        (
            "behind_committed",
            [
                second_ends(100),
                observation(samples=[answer(2, log_end_offset=80), answer(1)]),
            ],
            [BehindCommitted(2, 80, 90)],
        ),
        # The follower may have been sampled before these records were committed.
        ("behind_committed", [second_ends(80)], []),
        (
            "behind_committed",
            [second_ends(100), second_ends(89), second_ends(90)],
            [],
        ),
        (
            "behind_committed",
            [second_ends(100), second_ends(89, in_sync_replicas=[1])],
            [],
        ),
        (
            "behind_committed",
            [second_ends(100, **UNKNOWN_ISR), second_ends(89, **UNKNOWN_ISR)],
            [],
        ),
        ("behind_committed", [second_ends(100), second_ends(89, topic_id="b")], []),
        (
            "behind_committed",
            [
                second_ends(100),
                second_ends(89),
                observation(samples=[answer(1), silent(2)]),
            ],
            [],
        ),
    ],
)
def test_what_is_wrong_with_the_offsets(
    part: str, events: list[Observation], expected: object
) -> None:
    assert getattr(sparse_after(*events), part) == expected


@pytest.mark.parametrize(
    ("lost_from", "log_end", "committed"), [(None, 89, 90), (70, 69, 70), (70, 70, None)]
)
def test_records_that_any_epoch_committed_count_unless_they_are_lost(
    lost_from: int | None, log_end: int, committed: int | None
) -> None:
    state = fold(None, observation(), observation(leader_epoch=5, committed=50))
    state.committed[0].lost_from = lost_from
    behind = [] if committed is None else [BehindCommitted(2, log_end, committed)]
    assert sparse_of(fold(state, second_ends(log_end, leader_epoch=5))).behind_committed == behind


def without_epochs(
    at: float, log_end: int | None = None, leader: int | None = 2, **fields: Any
) -> Observation:
    """Brokers without epochs. Broker 2 leads, its log ends at `log_end`; None: broker 1 leads."""
    old: dict[str, Any] = {"observed_at": at, "leader_epoch": None}
    if log_end is None:
        samples = [answer(1, leader_epoch=None), answer(2, leader_epoch=None)]
        return observation(samples=samples, **old, **fields)
    samples = [silent(1), answer(2, log_end_offset=log_end, leader_epoch=None, leads=True)]
    return observation(leader=leader, samples=samples, committed=None, **old, **fields)


# A first read shows that records from 60 on are lost; then the log is longer than it was.
FIRST_READ = [without_epochs(10.0), without_epochs(11.0, 60)]
SUSPECTED = Suspicion(60, 90, 2, 12.0)


def suspicion_after(state: PartitionState, *events: Observation) -> Suspicion | None:
    return sparse_of(fold(state, *events)).suspicion


def suspected() -> PartitionState:
    return fold(None, *FIRST_READ, without_epochs(12.0, 130))


def test_without_epochs_a_first_read_that_no_second_confirms_is_a_suspicion() -> None:
    first = fold(None, *FIRST_READ)
    assert sparse_of(first).suspicion is None, "the second read may be a proof"
    assert suspicion_after(first, without_epochs(12.0, 60)) is None, "proven"
    assert suspicion_after(first, without_epochs(12.0, 130)) == SUSPECTED
    assert suspicion_after(first, without_epochs(12.0, 130, leader=None)) is None


def test_a_first_read_of_a_replica_that_is_not_in_sync_is_enough() -> None:
    alone: dict[str, Any] = {"in_sync_replicas": [1]}
    events = [without_epochs(10.0, **alone), without_epochs(11.0, 60, **alone)]
    assert suspicion_after(fold(None, *events), without_epochs(12.0, 130, **alone)) == SUSPECTED


def test_a_suspicion_ends_after_its_time_with_a_proof_or_with_the_topic() -> None:
    state, until = suspected(), 12.0 + SUSPICION_SECONDS
    state.loss_candidate = None
    assert suspicion_after(state, without_epochs(until - 1, 140)) == SUSPECTED
    assert suspicion_after(state, without_epochs(until, 140)) is None
    assert suspicion_after(state, without_epochs(13.0, 140, topic_id="b")) is None
    proven = fold(state, without_epochs(13.0, 60), without_epochs(14.0, 60))
    assert proven.loss_candidate is not None
    assert proven.loss_candidate.confirmed
    assert sparse_of(proven).suspicion is None


@pytest.mark.parametrize(
    ("start", "end", "suspicion"),
    [
        (70, 90, SUSPECTED),
        (50, 90, Suspicion(50, 90, 2, 12.0)),
        # Another range.
        (70, 95, Suspicion(70, 95, 2, 12.0)),
    ],
)
def test_a_second_suspicion_of_the_same_records_has_the_lower_start(
    start: int, end: int, suspicion: Suspicion
) -> None:
    state = suspected()
    state.loss_candidate = LossCandidate(NO_EPOCH, NO_EPOCH, start, end, 100, 0)
    assert suspicion_after(state, without_epochs(13.0, 130)) == suspicion


@pytest.mark.parametrize(
    "candidate",
    [
        LossCandidate(NO_EPOCH, NO_EPOCH, 60, 90, 100, 0, confirmed=True),
        LossCandidate(3, 4, 60, 90, 100, 0),
    ],
)
def test_a_loss_that_is_proven_or_can_be_refuted_is_no_suspicion(candidate: LossCandidate) -> None:
    state = fold(None, without_epochs(10.0), without_epochs(11.0, 130))
    state.loss_candidate = candidate
    assert suspicion_after(state, without_epochs(12.0, 130)) is None
