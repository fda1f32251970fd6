"""A loss takes two reads of different passes; an unclean election is remembered by its epoch."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.evolve.observations import SEEN, answer, fold, observation, silent
from tidemark.core.events import Observation
from tidemark.core.leader_epochs import NO_EPOCH, Committed
from tidemark.core.partition import LossCandidate, PartitionState, ReplicaState
from tidemark.core.sparse_state import LogReset, SampledLeadership, SparseState, copy_of
from tidemark.evolve.loss_reads import apply_loss

GONE = observation(
    leader=None, leader_epoch=5, in_sync_replicas=[], eligible_leader_replicas=[1], leaderless=True
)

BEHIND = observation(in_sync_replicas=[1], samples=[answer(1), answer(2, log_end_offset=89)])


@pytest.mark.parametrize(
    ("events", "epoch"),
    [
        ([GONE, observation(leader=2, leader_epoch=6)], 6),
        # A suspected one too: broker 2 was behind.
        ([BEHIND, observation(leader=2, leader_epoch=5)], 5),
        ([BEHIND, observation(leader=2, leader_epoch=5), observation(leader=2, leader_epoch=5)], 5),
        # It had reached the high watermark, and was about to join.
        ([observation(in_sync_replicas=[1]), observation(leader=2, leader_epoch=5)], None),
        ([GONE, observation(leader=1, leader_epoch=6)], None),
    ],
)
def test_an_unclean_election_is_remembered_by_its_epoch(
    events: list[Observation], epoch: int | None
) -> None:
    assert fold(None, observation(in_sync_replicas=[1]), *events).unclean_epoch == epoch


def shorter(log_end: int = 80, epoch: int = 5, leads: bool = True, **fields: Any) -> Observation:
    """Leader 2 of epoch 5 ends epoch 4 at 60, where 90 was committed."""
    leader = {"log_end_offset": log_end, "leader_epoch": epoch, "leads": leads}
    whole: dict[str, Any] = {
        "observed_at": 11.0,
        "leader": 2,
        "leader_epoch": 5,
        "committed": 60,
        "samples": [silent(1), answer(2, high_watermark=60, **leader)],
        "lineage": [(4, 60), (5, 80)],
        "lineage_complete_from": 4,
        "leader_log_end_offset_before": 80,
        "leader_log_end_offset_after": 80,
    }
    return observation(**{**whole, **fields})


FIRST = LossCandidate(4, 5, 60, 90, 100, 1)
READ_ONCE = fold(SEEN, shorter())


def test_a_loss_is_certain_at_the_second_read_of_another_pass() -> None:
    assert READ_ONCE.loss_candidate == FIRST
    assert fold(READ_ONCE, shorter(), number=1).loss_candidate == FIRST
    twice = fold(READ_ONCE, shorter(observed_at=12.0))
    assert twice.loss_candidate == LossCandidate(4, 5, 60, 90, 100, 1, confirmed=True)


OTHER_LEADERSHIP = shorter(epoch=6, leader_epoch=6, lineage=[(4, 60), (6, 80)])


@pytest.mark.parametrize(
    ("second", "candidate"),
    [
        # Two reads prove the records above both.
        (shorter(lineage=[(4, 70), (5, 80)]), replace(FIRST, start=70, confirmed=True)),
        (shorter(lineage=[(4, 50), (5, 80)]), replace(FIRST, confirmed=True)),
        # A read under another leadership is another first read.
        (OTHER_LEADERSHIP, LossCandidate(4, 6, 60, 90, 100, 2)),
    ],
)
def test_what_a_second_read_proves(second: Observation, candidate: LossCandidate) -> None:
    assert fold(READ_ONCE, second).loss_candidate == candidate


def test_a_read_of_another_epoch_is_another_first_read() -> None:
    once = fold(SEEN, shorter())
    once.committed = [Committed(3, 95, 9.0, 95, 1), *once.committed]
    other = shorter(lineage=[(3, 40), (4, 60), (5, 80)], lineage_complete_from=3)
    assert fold(once, other).loss_candidate == LossCandidate(3, 5, 40, 95, 95, 2)


def test_a_claimed_loss_is_remembered_and_not_claimed_twice() -> None:
    claimed = fold(SEEN, shorter(), shorter())
    after = fold(claimed, shorter())
    assert after.loss_candidate is None
    assert after.committed[0] == Committed(
        4, 90, 10.0, 100, 1, lost_from=60, lost_under=5, read_at=10.0, over_at=11.0
    )
    assert claimed.committed[0].lost_from is None


@pytest.mark.parametrize(("high_watermark", "lost_from"), [(50, 50), (70, 60)])
def test_a_claim_covers_its_epoch_and_earlier_ones(high_watermark: int, lost_from: int) -> None:
    state = fold(None, observation())
    state.committed = [Committed(3, high_watermark, 9.0, high_watermark, 1), *state.committed]
    after = fold(state, *(shorter(lineage_complete_from=3) for _ in range(3)))
    assert [entry.lost_from for entry in after.committed] == [lost_from, 60, None]


@pytest.mark.parametrize(
    ("later", "candidate"),
    [
        # No verdict: the leader is silent, not sampled, does not lead, or answers too early.
        (shorter(samples=[silent(1), silent(2)]), FIRST),
        (shorter(samples=[silent(1)]), FIRST),
        (shorter(95, leads=False), FIRST),
        (shorter(95, epoch=4), FIRST),
        # The records are there.
        (shorter(95, lineage=[(4, 90), (5, 95)]), None),
        # Another leadership.
        (observation(leader=2, leader_epoch=6, samples=[silent(1), silent(2)]), None),
    ],
)
def test_a_first_read_remains_until_it_is_refuted_or_its_leadership_ends(
    later: Observation, candidate: LossCandidate | None
) -> None:
    later.observed_at = 12.0
    assert fold(READ_ONCE, later).loss_candidate == candidate


def test_a_leader_without_a_lineage_cannot_refute() -> None:
    """Its log ended below the high watermark once and has grown since."""
    once = fold(SEEN, shorter(lineage=None))
    assert once.loss_candidate == LossCandidate(4, 5, 80, 90, 100, 1)
    assert fold(once, shorter(95, lineage=None)).loss_candidate == once.loss_candidate


@pytest.mark.parametrize(
    ("dated_by", "leader_epoch", "leader", "lost"),
    [
        # A log that ended too early lost what each earlier leader had committed.
        (NO_EPOCH, None, 1, True),
        (NO_EPOCH, None, 2, False),
        (NO_EPOCH, 5, 1, False),
        (2, None, 1, False),
        # The epoch itself, and those before it.
        (3, 5, 1, True),
    ],
)
def test_a_loss_that_no_lineage_dated_is_of_the_epochs_of_other_leaders_too(
    dated_by: int, leader_epoch: int | None, leader: int, lost: bool
) -> None:
    read = LossCandidate(dated_by, 5, 5, 9, 9, 0, confirmed=True)
    after = PartitionState(leader=2, leader_epoch=leader_epoch)
    after.committed = [Committed(3, 9, 1.0, 9, leader)]
    before = PartitionState(leader=2, leader_epoch=leader_epoch, loss_candidate=read)
    apply_loss(after, before, is_legitimate=True)
    assert after.committed[0].lost_from == (5 if lost else None)


def too_short(
    epoch: int | None, committed: Committed, end: int = 3, **fields: Any
) -> PartitionState:
    """Broker 2 leads, and its log ends at 3."""
    log = ReplicaState(2, end, log_start_offset=0, leader_epoch=epoch, leads=True, sampled_at=12.0)
    return PartitionState(
        leader=2,
        leader_epoch=epoch,
        observed_at=12.0,
        assigned=[2],
        replicas=[log],
        committed=[committed],
        **fields,
    )


@pytest.mark.parametrize(
    ("resets", "began_at", "suspected"),
    [
        ([], 11.0, False),
        ([LogReset(2, 11.0)], 11.0, True),
        ([], 1.0, False),
        ([LogReset(2, 11.0)], 1.0, True),
        # Of another replica than the leader.
        ([LogReset(1, 11.0)], 11.0, False),
    ],
)
def test_a_log_of_the_leader_that_was_reset_may_be_of_a_new_topic(
    resets: list[LogReset], began_at: float, suspected: bool
) -> None:
    before = PartitionState(committed=[Committed(0, 90, 1.0, 90, 1)])
    after = too_short(None, before.committed[0])
    after.sparse = SparseState(
        leadership=SampledLeadership(2, began_at, 12.0, [2], [2], [2], 90), resets=resets
    )
    apply_loss(after, before, is_legitimate=True)
    assert (after.sparse.suspicion is not None) is suspected is (after.loss_candidate is None)


@pytest.mark.parametrize(
    ("end", "fields", "suspected", "candidate"),
    [
        # Epoch 1 begins at 9, and at 5. Its log goes beyond what was committed, or ends there.
        (40, {"sparse": SparseState(resets=[LogReset(2, 11.0)])}, (20, 30), None),
        (30, {"sparse": SparseState(resets=[LogReset(2, 11.0)])}, (20, 30), None),
        (40, {}, None, None),
        (40, {"topic_id": "a"}, None, (20, 30)),
    ],
)
def test_an_epoch_of_two_leaderships_proves_no_loss(
    end: int,
    fields: dict[str, Any],
    suspected: tuple[int, int] | None,
    candidate: tuple[int, int] | None,
) -> None:
    entry = Committed(1, 30, 1.0, 30, 1, dated=True, lineage=[(0, 9), (1, 30)])
    after = too_short(
        5, entry, end, lineage=[(0, 5), (1, 20), (5, end)], lineage_complete_from=0, **fields
    )
    apply_loss(after, PartitionState(committed=[entry]), is_legitimate=True)
    assert [
        each and (each.start, each.end)
        for each in (copy_of(after.sparse).suspicion, after.loss_candidate)
    ] == [suspected, candidate]


@pytest.mark.parametrize(
    ("leader", "epoch_before", "epoch_after", "confirmed"),
    [
        # Without epochs only the leader shows that both reads are of one leadership.
        (2, None, None, True),
        (1, None, None, False),
        (1, None, 5, True),
        (1, 4, None, True),
    ],
)
def test_two_reads_without_epochs_are_of_one_leader(
    leader: int, epoch_before: int | None, epoch_after: int | None, confirmed: bool
) -> None:
    read = LossCandidate(NO_EPOCH, NO_EPOCH, 3, 9, 9, 6)
    before = PartitionState(leader=leader, leader_epoch=epoch_before, loss_candidate=read)
    after = too_short(epoch_after, Committed(NO_EPOCH, 9, 1.0, 9, 1), topic_id="a", pass_number=7)
    apply_loss(after, before, is_legitimate=True)
    assert after.loss_candidate is not None
    assert after.loss_candidate.confirmed is confirmed
