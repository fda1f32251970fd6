"""Were the records that a replica cut off committed? Proven, possible or excluded."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tidemark.core.leader_epochs import Committed
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import LogReset, SparseState
from tidemark.evolve.truncation_proof import Cut, CutVerdict, judge_cut

PROVEN, POSSIBLE, EXCLUDED = CutVerdict.PROVEN, CutVerdict.POSSIBLE, CutVerdict.EXCLUDED
# Leader 1 committed 10 under epoch 0. Leader 2 committed 30 under epoch 1; epoch 0 ended at 12.
FIRST = Committed(0, 10, 1.0, 15, 1, lineage=[(0, 15)], lineage_complete_from=0, over_at=5.0)
SECOND = Committed(1, 30, 2.0, 30, 2)
# Broker 3 followed both.
KNOWN = ReplicaState(3, log_end_offset=20, high_watermark=0, leader_epoch=1, sampled_at=5.0)
BEFORE = PartitionState(leader=2, leader_epoch=1, observed_at=5.0, committed=[FIRST, SECOND])
AFTER = replace(BEFORE, lineage=[(0, 12), (1, 30)], lineage_complete_from=0)


def judge(cut: int, before: dict[str, Any] | None = None, **known: Any) -> Cut:
    return judge_cut(replace(BEFORE, **(before or {})), AFTER, replace(KNOWN, **known), cut)


@pytest.mark.parametrize(
    ("known", "verdict"),
    [
        # A follower knows what is committed, and its leader's own log had it.
        ({"high_watermark": 15}, PROVEN),
        ({"high_watermark": 8}, POSSIBLE),
        ({"high_watermark": 15, "leader_epoch": 2}, POSSIBLE),
        # A former leader may have moved it after its leadership was over.
        ({"broker": 1, "high_watermark": 15}, POSSIBLE),
        ({"broker": 2, "log_end_offset": 20}, PROVEN),
    ],
)
def test_a_sample_of_the_leadership_that_committed(
    known: dict[str, Any], verdict: CutVerdict
) -> None:
    before = {"leader": 9, "committed": [replace(FIRST, lineage=[]), SECOND]}
    assert judge(8, before, **known).verdict is verdict


# Broker 1 led epoch 0 and knows of no other; epoch 1 has begun.
DEPOSED: dict[str, Any] = {
    "broker": 1,
    "leader_epoch": 0,
    "log_end_offset": 15,
    "high_watermark": 10,
}


@pytest.mark.parametrize(
    ("cut", "before", "known", "verdict"),
    [
        (10, {}, {}, EXCLUDED),
        (12, {}, {"high_watermark": 12}, EXCLUDED),
        # Below its last high watermark, or below what it was seen to commit.
        (11, {}, {"high_watermark": 12}, POSSIBLE),
        (9, {}, {}, PROVEN),
        # It may have restarted, its epoch is not over, or the sample is old.
        (10, {}, {"leader_epoch": 1}, POSSIBLE),
        (10, {"leader_epoch": 0}, {}, POSSIBLE),
        (10, {}, {"sampled_at": 4.0}, POSSIBLE),
        (10, {}, {"sampled_at": None}, POSSIBLE),
        # A record showed the end of the epoch after the sample, or it is unknown when that was.
        (10, {"committed": [replace(FIRST, over_at=5.1), SECOND]}, {}, POSSIBLE),
        (10, {"committed": [replace(FIRST, over_at=None), SECOND]}, {}, POSSIBLE),
        (10, {}, {"high_watermark": None}, POSSIBLE),
        # Another broker led.
        (10, {"committed": [replace(FIRST, leader=3), SECOND]}, {}, POSSIBLE),
    ],
)
def test_a_deposed_leader_shows_its_last_high_watermark(
    cut: int, before: dict[str, Any], known: dict[str, Any], verdict: CutVerdict
) -> None:
    # Leader 2 never had what epoch 0 did not commit.
    after = replace(AFTER, lineage=[(0, 10), (1, 30)])
    sample = replace(KNOWN, **{**DEPOSED, **known})
    assert judge_cut(replace(BEFORE, **before), after, sample, cut).verdict is verdict


EIGHT = [(epoch, 14 + epoch) for epoch in range(1, 9)]
LEADING = {"leader": 2, "lineage": [(0, 12), (1, 20)], "lineage_complete_from": 0}
# The whole log of broker 3 is cut off.
CUT_TO_0: dict[str, Any] = {"log_end_offset": 20, "log_start_offset": 0}


@pytest.mark.parametrize(
    ("cut", "before", "known", "expected"),
    [
        # The epochs of its own log decide.
        # The same epochs as the leader: all below the high watermark was committed.
        (8, {}, {"lineage": [(0, 12), (1, 20)]}, (PROVEN, 20)),
        (12, {}, {"lineage": [(0, 12), (1, 20)]}, (PROVEN, 20)),
        # A tail of epoch 0 above what epoch 0 committed: other records were committed there.
        (12, {}, {"lineage": [(0, 20)]}, (POSSIBLE, None)),
        (9, {}, {"lineage": [(0, 20)]}, (PROVEN, 12)),
        (11, {}, {"lineage": [(0, 20)]}, (PROVEN, 12)),
        # Its log is not known.
        (8, {}, {"lineage": None}, (POSSIBLE, None)),
        # An empty log has nothing to lose.
        (0, {}, {"log_start_offset": 20}, (EXCLUDED, None)),
        (0, {}, {"log_start_offset": 19, "lineage": [(0, 12), (1, 20)]}, (PROVEN, 20)),
        # The newest lineage that is known of its own log.
        # The leader's own lineage, its lineage of an earlier leadership, and a sampled one.
        (11, LEADING, {"broker": 2, "leader_epoch": 2}, (PROVEN, 20)),
        (11, {**LEADING, "lineage": []}, {"broker": 2, "leader_epoch": 2}, (POSSIBLE, None)),
        (11, {}, {"broker": 1, "leader_epoch": 2, "log_end_offset": 15}, (PROVEN, 12)),
        (
            11,
            {},
            {
                "broker": 1,
                "leader_epoch": 2,
                "log_end_offset": 20,
                "lineage": [(0, 12), (1, 20)],
            },
            (PROVEN, 20),
        ),
        # It was read before the broker led.
        (
            11,
            {"committed": [FIRST, replace(SECOND, lineage=[(0, 12), (1, 20)])]},
            {"broker": 2, "leader_epoch": 2, "lineage": [(0, 20)]},
            (POSSIBLE, None),
        ),
        (
            11,
            {
                "committed": [
                    FIRST,
                    replace(SECOND, lineage=[(0, 12), (1, 20)], lineage_complete_from=0),
                ]
            },
            {"broker": 2, "leader_epoch": 2, "lineage": [(0, 20)]},
            (PROVEN, 20),
        ),
        # A sampled lineage of as many epochs as are read may lack older ones.
        (
            11,
            {},
            {"leader_epoch": 2, "lineage": [(epoch, 20) for epoch in range(1, 9)]},
            (POSSIBLE, None),
        ),
        (11, {}, {"leader_epoch": 2, "lineage": EIGHT}, (POSSIBLE, None)),
        (11, {}, {"leader_epoch": 2, "lineage": [(1, 20)]}, (PROVEN, 20)),
        # Of two lineages up to the same epoch the sampled one counts.
        (
            11,
            {
                "leader": 9,
                "committed": [FIRST, replace(SECOND, lineage=[(1, 30)], lineage_complete_from=1)],
            },
            {"broker": 2, "leader_epoch": 2, "lineage": [(0, 12), (1, 20)]},
            (PROVEN, 20),
        ),
        # A cut to the beginning is judged from the first record on.
        # Nothing proves even the first record, nor that it was another one.
        (0, {}, CUT_TO_0, (POSSIBLE, None)),
        (0, {}, CUT_TO_0 | {"leader_epoch": 2, "lineage": [(2, 20)]}, (POSSIBLE, None)),
        (0, {}, CUT_TO_0 | {"leader_epoch": 0, "high_watermark": None}, (POSSIBLE, None)),
        (0, {}, CUT_TO_0 | {"leader_epoch": 0, "high_watermark": 0}, (POSSIBLE, None)),
        # A former leader's high watermark proves nothing.
        (
            0,
            {"leader": 9},
            CUT_TO_0 | {"broker": 1, "leader_epoch": 1, "lineage": [(2, 20)]},
            (POSSIBLE, None),
        ),
        # The logs part after the first record, which alone was committed.
        (0, {}, CUT_TO_0 | {"lineage": [(0, 1), (2, 20)]}, (PROVEN, 1)),
        (0, {}, CUT_TO_0 | {"log_end_offset": 1, "lineage": [(0, 1)]}, (PROVEN, 1)),
        # The cache holds as many epochs as are read, from the first one on.
        (
            0,
            {},
            CUT_TO_0 | {"lineage": [(0, 5), *((epoch, 20) for epoch in range(2, 9))]},
            (PROVEN, 5),
        ),
    ],
)
def test_the_epochs_of_its_own_log_decide(
    cut: int,
    before: dict[str, Any],
    known: dict[str, Any],
    expected: tuple[CutVerdict, int | None],
) -> None:
    found = judge(cut, before, **known)
    assert (found.verdict, found.below) == expected


def test_a_cut_is_held_against_the_epochs_that_the_log_had() -> None:
    found = [judge(12, lineage=lineage).committed for lineage in ([(0, 20)], None)]
    assert [entry and entry.epoch for entry in found] == [0, 1]


FOLLOWED = replace(KNOWN, lineage=[(0, 12), (1, 20)])
DELETED = [FIRST, replace(SECOND, log_start_offset=20)]
LED_BEFORE = replace(SECOND, lineage=[(0, 12), (1, 30)], lineage_complete_from=0)


@pytest.mark.parametrize(
    ("after", "known", "cut", "expected"),
    [
        # A log that may be of a new topic proves nothing.
        (
            replace(AFTER, sparse=SparseState(resets=[LogReset(3, 4.0)])),
            FOLLOWED,
            8,
            (POSSIBLE, None),
        ),
        (
            replace(AFTER, sparse=SparseState(resets=[LogReset(3, 4.0)])),
            replace(FOLLOWED, broker=4),
            8,
            (PROVEN, 20),
        ),
        # Deleted records were not cut.
        (replace(AFTER, committed=DELETED), FOLLOWED, 12, (POSSIBLE, None)),
        # The logs part after an epoch of one record. Leader 2 of epoch 3 has the record of epoch 1
        # at 12 from an earlier leader.
        (
            replace(
                AFTER,
                leader_epoch=3,
                lineage=[(0, 12), (1, 13), (3, 30)],
                committed=[Committed(3, 30, 2.0, 30, 2)],
            ),
            replace(KNOWN, lineage=[(0, 12), (1, 13), (2, 20)], leader_epoch=2),
            10,
            (PROVEN, 13),
        ),
        # The lineage of an earlier leadership counts where the present one lacks it.
        (
            replace(
                AFTER,
                leader_epoch=2,
                lineage=[(2, 40)],
                lineage_complete_from=2,
                committed=[LED_BEFORE, Committed(2, 40, 3.0, 40, 4)],
            ),
            replace(KNOWN, log_end_offset=12, lineage=[(0, 12)], leader_epoch=2),
            11,
            (PROVEN, 12),
        ),
    ],
)
def test_what_the_state_after_the_cut_proves(
    after: PartitionState, known: ReplicaState, cut: int, expected: tuple[CutVerdict, int | None]
) -> None:
    found = judge_cut(BEFORE, after, known, cut)
    assert (found.verdict, found.below) == expected
