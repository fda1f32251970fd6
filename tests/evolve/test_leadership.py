"""A new leadership begins anew, and the epochs that began are counted, those that nobody saw too."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import MAX_EPOCH_STARTS, MetadataPosition, Regression, SparseState
from tidemark.evolve.leadership import PREVIOUS_HISTORY_SECONDS, begin_leadership, is_new_leadership


def led(leader: int | None, epoch: int | None, **fields: Any) -> PartitionState:
    return PartitionState(leader=leader, leader_epoch=epoch, **{"observed_at": 100.0, **fields})


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        (led(1, 4), led(1, 4), False),
        (led(1, 4), led(1, 5), True),
        (led(1, 4), led(2, 5), True),
        # Before epochs, and where two brokers tell different leaders.
        (led(1, None), led(2, None), True),
        (led(1, 4), led(None, 4), True),
    ],
)
def test_another_leader_or_another_epoch_is_a_new_leadership(
    before: PartitionState, after: PartitionState, new: bool
) -> None:
    assert is_new_leadership(before, after) is new


def test_what_was_true_of_the_leader_before_is_forgotten_and_its_ring_kept_a_while() -> None:
    before = led(1, 4, offset_history=[1, 2])
    after = led(
        2,
        5,
        offset_history=[1, 2],
        lineage=[(4, 9)],
        lineage_complete_from=4,
        leader_end_before=1,
        leader_end_after=2,
        high_watermark=9,
    )
    begin_leadership(after, before, 110.0)
    assert (after.offset_history, after.lineage, after.lineage_complete_from) == ([], None, None)
    assert (after.leader_end_before, after.leader_end_after) == (None, None)
    assert (after.high_watermark, after.high_watermark_moved_at) == (None, 110.0)
    assert (after.previous_offset_history, after.previous_offset_history_until) == (
        [1, 2],
        110.0 + PREVIOUS_HISTORY_SECONDS,
    )


def test_a_leadership_that_was_never_read_leaves_the_ring_before_it() -> None:
    after = led(3, 6)
    begin_leadership(after, led(2, 5, offset_history=[], previous_offset_history=[1, 2]), 110.0)
    assert after.previous_offset_history == [1, 2]


def epoch_starts(
    before: PartitionState, after: PartitionState, began_at: float | None = None
) -> list[tuple[float, int]] | None:
    begin_leadership(after, before, 110.0, began_at)
    return None if after.sparse is None else after.sparse.epoch_starts


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (led(1, None), led(1, 5)),
        (led(1, 4), led(1, None)),
        (led(1, 4), led(2, 4)),
        (led(1, 4), led(2, 3)),
    ],
)
def test_no_epoch_began_where_none_is_higher_than_one_that_was_known(
    before: PartitionState, after: PartitionState
) -> None:
    assert epoch_starts(before, after) is None


def test_an_epoch_began_when_the_state_before_it_was_seen_last_or_when_the_metadata_log_says() -> (
    None
):
    assert epoch_starts(led(1, 4), led(2, 5)) == [(100.0, 5)]
    assert epoch_starts(led(1, 4), led(2, 5), 104.0) == [(104.0, 5)]
    assert epoch_starts(led(1, 4), led(2, 5), 120.0) == [(110.0, 5)], (
        "the controller's clock is ahead: not after it was read"
    )
    recorded = led(1, 4, sparse=SparseState(metadata=MetadataPosition(7, 0, 103.0)))
    assert epoch_starts(recorded, led(2, 5)) == [(103.0, 5)]
    sampled = led(1, 4, sparse=SparseState(metadata=MetadataPosition(7, 0, 90.0)))
    assert epoch_starts(sampled, led(2, 5)) == [(100.0, 5)]
    assert epoch_starts(led(1, 4, sparse=SparseState(epoch_starts=[(1.0, 4)])), led(2, 5)) == [
        (100.0, 5)
    ]


def test_each_epoch_that_a_look_jumped_over_began_too() -> None:
    assert epoch_starts(led(1, 4), led(2, 7)) == [(100.0, 5), (100.0, 6), (100.0, 7)]
    assert epoch_starts(led(1, 4), led(2, 6), 104.0) == [(100.0, 5), (104.0, 6)]
    assert epoch_starts(led(1, 4), led(2, 6), 50.0) == [(50.0, 5), (50.0, 6)], (
        "an epoch begins before the next one"
    )


def test_epochs_that_began_are_kept_in_order_up_to_a_bound() -> None:
    after = led(
        2, 6, sparse=SparseState(epoch_starts=[(90.0, 5)], regression=Regression(1, 2, 3.0))
    )
    old = after.sparse
    assert epoch_starts(led(1, 5), after) == [(90.0, 5), (100.0, 6)]
    assert after.sparse is not None and after.sparse.regression is None, (
        "it was of the leadership before"
    )
    assert old is not None and old.epoch_starts == [(90.0, 5)] and old.regression is not None, (
        "states share their parts with those before them"
    )
    after = led(2, 1000, sparse=SparseState(epoch_starts=[(90.0, 5)]))
    found = epoch_starts(led(1, 5), after)
    assert found is not None
    assert [epoch for _, epoch in found] == list(range(1001 - MAX_EPOCH_STARTS, 1001))
