"""A new leadership starts with an empty history. Every epoch that began counts."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tidemark.core.leader_epochs import Committed
from tidemark.core.partition import LossCandidate, PartitionState
from tidemark.core.sparse_state import (
    MAX_EPOCH_STARTS,
    EpochStart,
    MetadataPosition,
    Regression,
    SparseState,
)
from tidemark.evolve.leadership import PREVIOUS_HISTORY_SECONDS, begin_leadership, is_new_leadership


def led(leader: int | None, epoch: int | None, **fields: Any) -> PartitionState:
    return PartitionState(leader=leader, leader_epoch=epoch, **{"observed_at": 100.0, **fields})


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        (led(1, 4), led(1, 4), False),
        (led(1, 4), led(1, 5), True),
        # Without epochs, and where the leader of an epoch becomes unknown.
        (led(1, None), led(2, None), True),
        (led(1, 4), led(None, 4), True),
    ],
)
def test_another_leader_or_another_epoch_is_a_new_leadership(
    before: PartitionState, after: PartitionState, new: bool
) -> None:
    assert is_new_leadership(before, after) is new


def test_the_offset_history_of_the_previous_leadership_is_kept_for_a_while() -> None:
    before = led(1, 4, offset_history=[1, 2], previous_offset_history=[3, 4])
    leader = {"lineage": [(4, 9)], "lineage_complete_from": 4, "high_watermark": 9}
    after = led(2, 5, offset_history=[1, 2], leader_end_before=1, leader_end_after=2, **leader)
    begin_leadership(after, before, 110.0)
    fresh = led(2, 5, high_watermark_moved_at=110.0, sparse=after.sparse)
    fresh.previous_offset_history, fresh.previous_offset_history_epoch = [1, 2], 4
    fresh.previous_offset_history_until = 110.0 + PREVIOUS_HISTORY_SECONDS
    assert after == fresh


def read_once(*, confirmed: bool) -> LossCandidate:
    return LossCandidate(3, 4, 5, 9, 9, 7, confirmed=confirmed)


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({}, [1, 2]),
        # A leadership without samples leaves the history before it.
        ({"offset_history": []}, [3, 4]),
        # A loss that was read once keeps the history that dates it.
        ({"loss_candidate": read_once(confirmed=False)}, [3, 4]),
        ({"loss_candidate": read_once(confirmed=True)}, [1, 2]),
    ],
)
def test_which_offset_history_is_kept(fields: dict[str, Any], kept: list[int]) -> None:
    after = led(2, 5)
    known = {"offset_history": [1, 2], "previous_offset_history": [3, 4], **fields}
    begin_leadership(after, led(1, 4, **known), 110.0)
    assert after.previous_offset_history == kept


# Leaders 1 and 2 committed under epochs 3 and 4; the lineage of leader 2 has all of it.
TABLE = [Committed(3, 10, 1.0, 10, 1), Committed(4, 20, 2.0, 20, 2)]
LINEAGE: dict[str, Any] = {"lineage": [(3, 10), (4, 20)], "lineage_complete_from": 0}


@pytest.mark.parametrize(
    ("fields", "covers"),
    [
        (LINEAGE, True),
        ({**LINEAGE, "lineage": [(3, 9), (4, 20)]}, False),
        # Only the epochs before count: of its own, more may have been committed since.
        ({**LINEAGE, "lineage": [(3, 10), (4, 15)]}, True),
        ({**LINEAGE, "lineage_complete_from": None}, False),
        ({**LINEAGE, "lineage": []}, False),
    ],
)
def test_the_lineage_of_a_leadership_that_is_over_is_kept(
    fields: dict[str, Any], covers: bool
) -> None:
    before = led(2, 4, committed=TABLE, **fields)
    after = led(1, 5)
    begin_leadership(after, before, 110.0)
    first, second = after.committed
    assert first == TABLE[0]
    is_known = bool(fields["lineage"]) and fields["lineage_complete_from"] is not None
    assert second.lineage == (fields["lineage"] if is_known else [])
    assert (second.covers_earlier, second.read_at, second.over_at) == (covers, 2.0, 110.0)


def epoch_starts(
    before: PartitionState, after: PartitionState, began_at: float | None = None
) -> list[tuple[float, int]] | None:
    begin_leadership(after, before, 110.0, began_at)
    if after.sparse is None:
        return None
    return [(start.at, start.epoch) for start in after.sparse.epoch_starts]


@pytest.mark.parametrize(
    ("before", "after", "began_at", "starts"),
    [
        # No higher epoch.
        (led(1, None), led(1, 5), None, None),
        (led(1, 4), led(1, None), None, None),
        (led(1, 4), led(2, 4), None, None),
        (led(1, 4), led(2, 3), None, None),
        # Each epoch that a pass skipped began too.
        (led(1, 4), led(2, 7), None, [(100.0, 5), (100.0, 6), (100.0, 7)]),
        (led(1, 4), led(2, 6), 104.0, [(100.0, 5), (104.0, 6)]),
        # An epoch begins before the next one.
        (led(1, 4), led(2, 6), 50.0, [(50.0, 5), (50.0, 6)]),
    ],
)
def test_every_epoch_up_to_the_new_one_began(
    before: PartitionState,
    after: PartitionState,
    began_at: float | None,
    starts: list[tuple[float, int]] | None,
) -> None:
    # A copy: mutmut runs the tests again in one process.
    assert epoch_starts(before, copy.deepcopy(after), began_at) == starts


@pytest.mark.parametrize(
    ("sparse", "began_at", "start"),
    [
        (None, None, 100.0),
        (None, 104.0, 104.0),
        # The controller's clock is ahead: not after the record was read.
        (None, 120.0, 110.0),
        (SparseState(metadata=MetadataPosition(7, 0, 103.0)), None, 103.0),
        (SparseState(metadata=MetadataPosition(7, 0, 90.0)), None, 100.0),
        (SparseState(epoch_starts=[EpochStart(1.0, 4)]), None, 100.0),
    ],
)
def test_an_epoch_began_when_the_metadata_log_says_or_the_state_was_confirmed_last(
    sparse: SparseState | None, began_at: float | None, start: float
) -> None:
    assert epoch_starts(led(1, 4, sparse=sparse), led(2, 5), began_at) == [(start, 5)]


def test_epoch_starts_are_added_to_a_copy_up_to_a_bound() -> None:
    known = SparseState(epoch_starts=[EpochStart(90.0, 5)], regression=Regression(1, 2, 3.0))
    after = led(2, 6, sparse=known)
    assert epoch_starts(led(1, 5), after) == [(90.0, 5), (100.0, 6)]
    assert after.sparse is not None
    assert after.sparse.regression is None, "it was that of the previous leadership"
    assert known.epoch_starts == [EpochStart(90.0, 5)], "states share their parts"
    assert known.regression is not None
    found = epoch_starts(led(1, 5), led(2, 1000, sparse=known))
    assert found is not None
    assert [epoch for _, epoch in found] == list(range(1001 - MAX_EPOCH_STARTS, 1001))
