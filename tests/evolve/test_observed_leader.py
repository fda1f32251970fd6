"""The leader's log end offset, lineage, high watermark and committed offsets over observations."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.evolve.observations import NO_LEADER_END, SEEN, answer, fold, observation, silent
from tidemark.core.events import Observation
from tidemark.core.leader_epochs import NO_EPOCH, Committed, committed_under
from tidemark.core.offset_history import add_sample
from tidemark.core.partition import PartitionState
from tidemark.evolve.leadership import PREVIOUS_HISTORY_SECONDS

# Where all replicas answered, the epochs of the partition would have gone back.
OF_ONE = [answer(1), silent(2)]
TWO_EPOCHS = fold(None, observation(), observation(leader=2, leader_epoch=5, committed=100))


@pytest.mark.parametrize(
    ("fields", "entry"),
    [
        (
            {"leader_epoch": 4, "committed": 95},
            Committed(4, 95, 12.0, 100, 1, read_at=10.0, over_at=10.0),
        ),
        ({"leader_epoch": 3, "committed": 70}, Committed(3, 70, 12.0, 70, 1)),
        # Without a fence, an epoch or a leader it proves nothing.
        ({"leader_epoch": 4, "committed": None}, None),
        ({"leader_epoch": None, "committed": 95}, None),
        ({"leader_epoch": 4, "committed": 95, "leader": None}, None),
    ],
)
def test_a_late_fenced_reading_is_true_of_its_own_epoch(
    fields: dict[str, Any], entry: Committed | None
) -> None:
    known = list(TWO_EPOCHS.committed)
    assert [item.high_watermark for item in known] == [90, 100]
    others = [item for item in known if entry is None or item.epoch != entry.epoch]
    after = fold(TWO_EPOCHS, observation(observed_at=12.0, samples=OF_ONE, **fields))
    assert after.committed == ([entry, *others] if entry else known)
    assert TWO_EPOCHS.committed == known


@pytest.mark.parametrize(
    ("fields", "unclean_epoch", "counts"),
    [
        ({}, None, True),
        ({}, 4, True),
        # The leader of epoch 4 was deposed uncleanly: it may have committed alone since.
        ({}, 5, False),
        # Only the controller shrinks the in-sync set, so it committed nothing alone before that.
        ({"in_sync_replicas": [1]}, None, False),
    ],
)
def test_a_late_reading_counts_where_its_epoch_counted(
    fields: dict[str, Any], unclean_epoch: int | None, counts: bool
) -> None:
    before = replace(TWO_EPOCHS, unclean_epoch=unclean_epoch)
    late = observation(observed_at=12.0, leader_epoch=4, committed=95, samples=OF_ONE, **fields)
    assert fold(before, late).committed[0].high_watermark == (95 if counts else 90)


def test_a_pass_that_cannot_name_the_leader_starts_no_leadership() -> None:
    before = fold(None, observation(), observation(observed_at=11.0))
    unnamed = observation(leader=None, observed_at=12.0, **NO_LEADER_END)
    after = fold(before, unnamed)
    assert (after.high_watermark, after.high_watermark_moved_at) == (90, 10.0)
    assert after.offset_history == before.offset_history


# Broker 1 led epoch 4 to 100. Broker 2 leads epoch 5, its log ends at 85.
ELECTED: dict[str, Any] = {
    "leader": 2,
    "leader_epoch": 5,
    "committed": 80,
    "leader_log_end_offset_before": 80,
    "leader_log_end_offset_after": 85,
}
NEW_LEADER = answer(2, log_end_offset=85, leader_epoch=5)


@pytest.mark.parametrize(
    ("fields", "exposed"),
    [
        ({}, 110),
        # The successor has written as far since, or its end is unknown.
        ({"leader_log_end_offset_after": 110}, 100),
        ({"leader_log_end_offset_after": None}, 100),
        # The former leader was not sampled, or shows no more.
        ({"samples": [silent(1), NEW_LEADER]}, 100),
        ({"samples": [NEW_LEADER]}, 100),
        ({"samples": [answer(1, log_end_offset=None), answer(2)]}, 100),
        ({"samples": [answer(1, log_end_offset=99), answer(2)]}, 100),
        ({"samples": [answer(1, log_end_offset=90), answer(2, log_end_offset=200)]}, 100),
        # It leads again: the epoch of its records is unknown.
        (
            {
                "leader": 1,
                "leader_epoch": 6,
                "committed": 70,
                "leader_log_end_offset_after": 80,
            },
            100,
        ),
    ],
)
def test_a_former_leader_that_returns_shows_how_far_its_own_log_went(
    fields: dict[str, Any], exposed: int
) -> None:
    samples = [silent(1), answer(2, log_end_offset=80, leader_epoch=5)]
    state = fold(SEEN, observation(**ELECTED, observed_at=12.0, samples=samples))
    returned = {"samples": [answer(1, log_end_offset=110), NEW_LEADER], "observed_at": 13.0}
    after = fold(state, observation(**{**ELECTED, **returned, **fields}))
    assert after.committed[0].log_end_offset == exposed
    assert after.committed[1].log_end_offset == max(
        85, fields.get("leader_log_end_offset_after") or 0
    )
    assert [entry.log_end_offset for entry in state.committed] == [100, 85], "unchanged"


@pytest.mark.parametrize("other", [9, 3], ids=["no replica", "silent"])
def test_each_former_leader_is_judged_by_itself(other: int) -> None:
    three: dict[str, Any] = {**ELECTED, "replicas": [1, 2, 3]}
    samples = [silent(1), NEW_LEADER, answer(3)]
    state = fold(SEEN, observation(**three, observed_at=12.0, samples=samples))
    state.committed = [Committed(3, 50, 1.0, 60, other), *state.committed]
    samples = [answer(1, log_end_offset=110), NEW_LEADER, silent(3)]
    after = fold(state, observation(**three, observed_at=13.0, samples=samples))
    assert [entry.log_end_offset for entry in after.committed] == [60, 110, 85]


def test_without_epochs_the_log_of_a_former_leader_shows_nothing() -> None:
    other = observation(
        leader=2,
        leader_epoch=None,
        leader_log_end_offset_after=80,
        samples=[answer(1, log_end_offset=110), answer(2)],
    )
    after = fold(fold(None, observation(leader_epoch=None)), other)
    assert after.committed[0].log_end_offset == 100


@pytest.mark.parametrize("fields", [{"leader": None, "leader_epoch": None}, {"leader_epoch": 3}])
def test_an_observation_without_the_known_epoch_does_not_show_the_leader(
    fields: dict[str, Any],
) -> None:
    """It shows what was deleted."""
    after = fold(SEEN, observation(samples=[answer(1), answer(2, log_start_offset=30)], **fields))
    assert (after.leader, after.leader_end_before, after.leader_end_after) == (1, None, None)
    assert (
        after.high_watermark,
        after.offset_history,
        after.committed[0].log_start_offset,
    ) == (90, SEEN.offset_history, 30)


NEW: dict[str, Any] = {"leader": 2, "leader_epoch": 5, "observed_at": 20.0}


def test_a_new_leadership_starts_its_own_history() -> None:
    before = fold(None, observation(lineage=[(4, 100)], lineage_complete_from=4))
    unseen = observation(**NEW, **NO_LEADER_END, committed=None, samples=[])
    after = fold(before, unseen)
    assert (after.offset_history, after.high_watermark) == ([], None)
    assert (after.lineage, after.lineage_complete_from) == (None, None)
    assert (after.leader_end_before, after.leader_end_after) == (None, None)
    assert after.previous_offset_history == before.offset_history
    # The broker does not know yet that it leads.
    assert fold(before, observation(**NEW)).offset_history == []
    known = observation(
        **{**NEW, "samples": [answer(2, leader_epoch=5, leads=True)]},
        leader_before_at=19.5,
        leader_after_at=19.9,
    )
    # The first sample is the later one: before it, the broker may have followed.
    assert fold(before, known).offset_history == [19_900, 100]


@pytest.mark.parametrize(("late", "kept"), [(0.0, True), (0.1, False)])
def test_the_offset_history_of_the_previous_leadership_is_dropped(late: float, kept: bool) -> None:
    state = fold(None, observation(), observation(**NEW))
    assert state.previous_offset_history
    at = 20.0 + PREVIOUS_HISTORY_SECONDS + late
    after = fold(state, observation(**{**NEW, "observed_at": at}))
    assert after.previous_offset_history == (state.previous_offset_history if kept else [])


ENDS = {"leader_log_end_offset_after": 105}


def history(samples: list[int]) -> dict[str, Any]:
    return {"offset_history": samples}


def unfenced(*samples: Any) -> dict[str, Any]:
    return {"committed": None, "samples": [*samples]}


def with_empty(**fields: Any) -> dict[str, Any]:
    return {"samples": [answer(1), answer(2, log_end_offset=0, **fields)]}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # The offset history has the earlier of the leader's two ends.
        ({**ENDS, "leader_before_at": 9.5, "leader_after_at": 9.9}, history([9_500, 100])),
        ({**ENDS, "leader_after_at": 9.9}, history([10_000, 100])),
        (
            {
                **ENDS,
                "leader_before_at": 9.5,
                "leader_after_at": 9.9,
                "leader_log_end_offset_before": None,
            },
            history([9_900, 105]),
        ),
        (NO_LEADER_END, history([])),
        # It does not act as leader, or under another epoch.
        ({**ENDS, "samples": [answer(1, leads=False)]}, history([])),
        ({**ENDS, "samples": [answer(1, leader_epoch=3)]}, history([])),
        # An unfenced high watermark of the leader is no proof.
        (
            unfenced(answer(1, high_watermark=85), answer(2, high_watermark=70)),
            {"high_watermark": 85, "committed": []},
        ),
        (
            unfenced(answer(1, high_watermark=85, leads=None)),
            {"high_watermark": 85, "committed": []},
        ),
        (
            unfenced(answer(1, high_watermark=85, leads=False)),
            {"high_watermark": None, "committed": []},
        ),
        # It knows another epoch, or none.
        (
            unfenced(answer(1, high_watermark=85, leader_epoch=5)),
            {"high_watermark": None, "committed": []},
        ),
        (
            unfenced(answer(1, high_watermark=85, leader_epoch=None)),
            {"high_watermark": 85, "committed": []},
        ),
        (unfenced(silent(1), answer(2)), {"high_watermark": None, "committed": []}),
        (unfenced(answer(2)), {"high_watermark": None, "committed": []}),
        # A fenced high watermark is committed under its epoch.
        ({}, {"committed": [Committed(4, 90, 10.0, 100, 1)]}),
        ({"leader_epoch": None}, {"committed": [Committed(NO_EPOCH, 90, 10.0, 100, 1)]}),
        ({"leader": None}, {"committed": []}),
        (
            {"committed": 105, "leader_log_end_offset_after": 103},
            {"committed": [Committed(4, 105, 10.0, 105, 1)]},
        ),
        # An in-sync replica that was empty under this leader: its log is of a deleted topic.
        (with_empty(), {"committed": []}),
        (with_empty(leader_epoch=3), {"committed": [Committed(4, 90, 10.0, 100, 1)]}),
        (
            {**with_empty(), "in_sync_replicas": [1]},
            {"committed": [Committed(4, 90, 10.0, 100, 1)]},
        ),
        (
            {**with_empty(leader_epoch=None), "leader_epoch": None},
            {"committed": [Committed(NO_EPOCH, 90, 10.0, 100, 1)]},
        ),
        ({**with_empty(), "committed": 0}, {"committed": [Committed(4, 0, 10.0, 100, 1)]}),
        ({**with_empty(), "committed": 1}, {"committed": []}),
        # Without epochs a deposed leader names itself.
        ({"leader_epoch": None, "metadata_from": [1]}, {"committed": []}),
        (NO_LEADER_END, {"committed": [Committed(4, 90, 10.0, 90, 1)]}),
        ({**NO_LEADER_END, "committed": 0}, {"committed": [Committed(4, 0, 10.0, 0, 1)]}),
        # Its lineage was read: its records have epochs.
        (
            {"lineage": [(4, 100)], "lineage_complete_from": 4},
            {"committed": [Committed(4, 90, 10.0, 100, 1, dated=True)]},
        ),
    ],
)
def test_what_the_first_observation_shows_of_the_leader(
    fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    state = fold(None, observation(**fields))
    assert {name: getattr(state, name) for name in expected} == expected


def test_the_offset_history_gets_one_sample_per_observation() -> None:
    assert (SEEN.leader_end_before, SEEN.leader_end_after) == (100, 100)
    blind = fold(SEEN, observation(observed_at=11.0, **NO_LEADER_END))
    assert blind.offset_history == SEEN.offset_history
    seen = fold(SEEN, observation(observed_at=11.0, leader_log_end_offset_after=105))
    assert seen.offset_history == add_sample(SEEN.offset_history, 11.0, 100)
    assert (seen.leader_end_before, seen.leader_end_after) == (100, 105)


def lineage(entries: list[tuple[int, int]] | None, complete_from: int | None) -> Observation:
    return observation(lineage=entries, lineage_complete_from=complete_from)


KNOWN = [(2, 30), (3, 50), (4, 100)]


@pytest.mark.parametrize(
    ("read", "complete_from", "merged", "reach"),
    [
        # One that reaches as far or further replaces the known one.
        ([(2, 30), (4, 110)], 2, [(2, 30), (4, 110)], 2),
        ([(1, 9), (4, 110)], 1, [(1, 9), (4, 110)], 1),
        # One of the newest epochs alone renews them.
        ([(4, 110)], 4, [(2, 30), (3, 50), (4, 110)], 2),
        ([(3, 60), (4, 110)], 3, [(2, 30), (3, 60), (4, 110)], 2),
        # One out of order, or of unknown reach, is ignored.
        ([(4, 110), (3, 120)], 2, KNOWN, 2),
        ([(4, 110)], None, KNOWN, 2),
        (None, 4, KNOWN, 2),
    ],
)
def test_the_leaders_lineage_is_merged_from_reads_of_any_length(
    read: list[tuple[int, int]] | None,
    complete_from: int | None,
    merged: list[tuple[int, int]],
    reach: int,
) -> None:
    state = fold(None, lineage(KNOWN, 2), lineage(read, complete_from))
    assert (state.lineage, state.lineage_complete_from) == (merged, reach)


@pytest.mark.parametrize(
    ("read", "merged"),
    [
        ([(4, 110)], [(2, 30), (3, 50), (4, 110)]),
        ([(5, 120)], [(5, 120)]),
        # The metadata of a backup gives epochs again.
        ([(3, 110)], [(3, 110)]),
        ([(3, 50), (4, 110)], [(2, 30), (3, 50), (4, 110)]),
    ],
)
def test_without_epochs_another_epoch_may_be_of_another_leadership(
    read: list[tuple[int, int]], merged: list[tuple[int, int]]
) -> None:
    epochs = (lineage(KNOWN, 2), lineage(read, read[0][0]))
    state = fold(None, *(replace(event, leader_epoch=None) for event in epochs))
    assert (state.lineage, state.lineage_complete_from) == (merged, merged[0][0])


@pytest.mark.parametrize(("count", "reach"), [(7, 1), (8, 4)])
def test_a_lineage_is_bounded_and_its_reach_follows(count: int, reach: int) -> None:
    """With one entry too many the oldest is dropped; lower epochs are not covered any more."""
    older = [(2 * number, 10 * number) for number in range(1, count + 1)]
    newest = (2 * count + 1, 990)
    state = fold(None, lineage(older, 1), lineage([newest], newest[0]))
    assert (state.lineage, state.lineage_complete_from) == ([*older, newest][-8:], reach)


def moved(state: PartitionState) -> tuple[int | None, float]:
    return state.high_watermark, state.high_watermark_moved_at


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (90, 9.5)),
        ({"committed": 80}, (90, 9.5)),
        ({"committed": 91}, (91, 11.0)),
        ({"committed": 91, "leader_before_at": 10.8}, (91, 10.8)),
    ],
)
def test_the_high_watermark_is_the_highest_and_dated_by_the_read_of_the_leader(
    fields: dict[str, Any], expected: tuple[int, float]
) -> None:
    state = fold(None, observation(leader_before_at=9.5))
    assert moved(state) == (90, 9.5)
    assert moved(fold(state, observation(observed_at=11.0, **fields))) == expected


def test_a_silent_leader_moves_no_high_watermark() -> None:
    silent_leader = observation(committed=None, observed_at=11.0, samples=[silent(1)])
    assert moved(fold(None, observation(committed=None), silent_leader)) == (90, 10.0)


def test_only_the_epoch_whose_lineage_was_read_is_dated() -> None:
    read = observation(leader_epoch=5, lineage=[(4, 90), (5, 100)], lineage_complete_from=4)
    assert [entry.dated for entry in fold(SEEN, read, observation(leader_epoch=5)).committed] == [
        False,
        True,
    ]


def undated(read: list[tuple[int, int]], committed: int, **fields: Any) -> Observation:
    """Metadata without epochs; the lineage of the leader reaches back to the first one read."""
    samples = [answer(broker, leader_epoch=None) for broker in (1, 2)]
    lineages = {"lineage": read, "lineage_complete_from": read[0][0]}
    whole = {"leader_epoch": None, "samples": samples, "committed": committed}
    return observation(**{**whole, **lineages, **fields})


NEWEST = Committed(
    4,
    90,
    10.0,
    90,
    1,
    dated=True,
    read_at=10.0,
    lineage=[(3, 50), (4, 100)],
    lineage_complete_from=3,
)

OTHER = undated([(2, 10), (4, 80)], 70, observed_at=11.0, leader=2)


@pytest.mark.parametrize(
    ("later", "entry"),
    [
        ([], NEWEST),
        # Records above the end of the lineage are of a newer epoch.
        ([undated([(4, 95)], 99, observed_at=11.0)], {"high_watermark": 95, "end": 95}),
        ([undated([(4, 110)], 95, observed_at=11.0)], {"high_watermark": 95, "end": 110}),
        # Another broker shows less of the same epoch: what its own log says is kept apart.
        ([OTHER], NEWEST),
        # The lineage that reaches further back is kept.
        ([OTHER, undated([(4, 95)], 80, observed_at=12.0)], replace(NEWEST, read_at=12.0)),
        # The leader's own log goes on under an older epoch: with metadata of a backup.
        ([undated([(3, 95)], 90, observed_at=11.0)], replace(NEWEST, lineage_complete_from=None)),
        # It is shorter, or that of another broker.
        ([undated([(2, 89)], 89, observed_at=11.0)], NEWEST),
        ([undated([(2, 95)], 95, observed_at=11.0, leader=2)], NEWEST),
    ],
)
def test_without_epochs_the_lineage_dates_what_was_committed(
    later: list[Observation], entry: Committed | dict[str, int]
) -> None:
    state = fold(None, undated([(3, 50), (4, 100)], 90), *later)
    if isinstance(entry, dict):
        mark, end = entry["high_watermark"], entry["end"]
        moved_on = {"high_watermark": mark, "log_end_offset": mark, "at": 11.0, "read_at": 11.0}
        entry = replace(NEWEST, **moved_on, lineage=[(3, 50), (4, end)])
    assert [committed_under(state.committed, epoch) for epoch in (3, 4)] == [None, entry]
