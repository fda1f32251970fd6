"""Which differences of two lineages count: closed ones after two reads, open ones after a time."""

from __future__ import annotations

from typing import Any

import pytest

from tests.evolve.observations import answer, fold, observation, silent, sparse_of
from tidemark.core.events import Observation
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import Divergence
from tidemark.evolve.divergences import MAX_GAP_SECONDS

Lineage = list[tuple[int, int]]
LEADER: Lineage = [(2, 40), (4, 100)]
# Records of epoch 2 up to 45, and of epoch 4 above: both ends are final.
FORKED: Lineage = [(2, 45), (4, 100)]
# A tail of epoch 2 and nothing of epoch 4: the follower may be about to cut it off.
TAIL: Lineage = [(2, 45)]

CLOSED = Divergence(2, 2, 4, 45, 40, closed=True, since=10.0, pass_number=0)
OPEN = Divergence(2, 2, 4, 45, 40, closed=False, since=10.0, pass_number=0)


def read(
    lineage: Lineage | None,
    at: float = 10.0,
    /,
    *,
    leader_sample: dict[str, Any] | None = None,
    sample: dict[str, Any] | None = None,
    **fields: Any,
) -> Observation:
    """A pass that reads both lineages; `lineage` and `sample` are the follower's."""
    end = lineage[-1][1] if lineage else 100
    samples = [
        answer(1, **(leader_sample or {})),
        answer(2, **{"log_end_offset": end, "lineage": lineage, **(sample or {})}),
    ]
    leaders: dict[str, Any] = {"lineage": LEADER, "lineage_complete_from": 2, "compacted": False}
    return observation(**{"observed_at": at, "samples": samples, **leaders, **fields})


def unread(log_end: int | None, at: float = 11.0, /, **fields: Any) -> Observation:
    """A pass that samples the follower and does not read its lineage."""
    return read(FORKED, at, sample={"lineage": None, "log_end_offset": log_end}, **fields)


def found(
    *events: Observation, state: PartitionState | None = None, number: int | None = None
) -> list[Divergence]:
    return sparse_of(fold(state, *events, number=number)).divergences


def test_a_difference_below_an_epoch_that_both_logs_hold_is_closed() -> None:
    assert found(read(FORKED)) == [CLOSED]
    assert found(read([(2, 35), (4, 100)])) == [Divergence(2, 2, 4, 35, 40, True, 10.0, 0)]
    assert found(read([(2, 45), (4, 98)])) == [CLOSED], "the follower lags in the newest epoch"


@pytest.mark.parametrize(
    ("lineage", "leaders", "difference"),
    [
        # The lowest difference.
        ([(2, 45), (3, 70), (4, 100)], [(2, 40), (3, 60), (4, 100)], (2, 3, 45, 40)),
        ([(2, 40), (3, 70), (4, 100)], [(2, 40), (3, 60), (4, 100)], (3, 4, 70, 60)),
        # An epoch of the follower alone ends, for the leader, where the epoch before it ends.
        ([(3, 45), (4, 100)], LEADER, (3, 4, 45, 40)),
        # The leader's lineage does not cover the follower's first epoch.
        ([(1, 20), (2, 45), (4, 100)], LEADER, (2, 4, 45, 40)),
        # Epochs of the leader alone.
        ([(2, 45), (4, 100)], [(2, 40), (3, 60), (4, 100)], (2, 3, 45, 40)),
    ],
)
def test_which_epoch_differs(
    lineage: Lineage, leaders: Lineage, difference: tuple[int, int, int, int]
) -> None:
    (one,) = found(read(lineage, lineage=leaders))
    assert (one.epoch, one.next_epoch, one.follower_end, one.leader_end) == difference
    assert one.closed


@pytest.mark.parametrize(
    ("lineage", "leaders", "difference"),
    [
        ([(1, 45), (3, 100)], [(3, 100)], (1, 3, 45, 0)),
        ([(1, 1), (3, 2)], [(3, 1)], (1, 3, 1, 0)),
        # Older than any epoch of the leader.
        ([(1, 45), (4, 100)], LEADER, (1, 2, 45, 0)),
    ],
)
def test_in_a_log_that_never_lost_its_beginning_the_first_epoch_begins_at_0(
    lineage: Lineage, leaders: Lineage, difference: tuple[int, int, int, int]
) -> None:
    (one,) = found(read(lineage, lineage=leaders, lineage_complete_from=0))
    assert (one.epoch, one.next_epoch, one.follower_end, one.leader_end) == difference
    assert one.closed
    assert one.absent


@pytest.mark.parametrize(
    "event",
    [
        read(LEADER),
        read(None),
        read([]),
        # No lineage of the leader, or one that does not reach the epoch.
        read(FORKED, lineage=None),
        read(FORKED, lineage=[(4, 100)], lineage_complete_from=4),
        read(FORKED, lineage_complete_from=None),
        read(FORKED, lineage_complete_from=3),
        # A log that lost its beginning may have held the epoch below.
        read([(1, 45), (4, 100)], lineage_complete_from=0, leader_sample={"log_start_offset": 10}),
        read([(1, 45), (4, 100)], lineage_complete_from=0, sample={"log_start_offset": 10}),
        # The leader's log may hold older epochs that were not read, or none of its first epoch.
        read([(1, 45), (3, 100)], lineage=[(3, 100)], lineage_complete_from=1),
        read([(1, 45), (3, 50)], lineage=[(3, 0)], lineage_complete_from=0),
        read(
            [(1, 45), (3, 100)],
            lineage=[(3, 100)],
            lineage_complete_from=0,
            sample={"log_start_offset": 1},
        ),
        # A copy of a compacted log dates epochs by the records that the cleaner kept.
        read(FORKED, compacted=True),
        read(FORKED, compacted=None),
        # The log start is no end of an epoch.
        read(FORKED, sample={"log_start_offset": 40}),
        read(FORKED, leader_sample={"log_start_offset": 40}),
        read(FORKED, sample={"log_start_offset": None}),
        read(FORKED, leader_sample={"log_start_offset": None}),
        # The follower does not know the election yet, or its epoch is unknown.
        read(FORKED, sample={"leader_epoch": 3}),
        read(FORKED, sample={"leader_epoch": None}),
        read(FORKED, leader_sample={"error": "timed_out"}),
        read(FORKED, sample={"error": "timed_out"}),
        read(FORKED, leader=None),
        # A reassignment adds or removed the follower.
        read(FORKED, adding=[2]),
        read(FORKED, replicas=[1]),
        # One log has no record of epoch 4: the follower may still truncate below it.
        read([(2, 45), (4, 45)]),
        read(FORKED, lineage=[(2, 40), (4, 40)]),
        # The leader is not compared with itself.
        read(LEADER, leader_sample={"lineage": FORKED}),
    ],
)
def test_no_verdict(event: Observation) -> None:
    assert found(event) == []


def test_the_newest_epoch_that_both_hold_may_still_be_cut() -> None:
    (one,) = found(read([(2, 40), (3, 70)], lineage=[(2, 40), (3, 60), (4, 100)]))
    assert one == Divergence(2, 3, 4, 70, 60, closed=False, since=10.0, pass_number=0)


def test_ends_above_both_log_starts_are_compared() -> None:
    starts = {"leader_sample": {"log_start_offset": 39}, "sample": {"log_start_offset": 39}}
    assert found(read(FORKED, **starts)) == [CLOSED]
    assert found(read(TAIL, **starts)) == [OPEN]
    assert found(read(TAIL, leader_sample={"log_start_offset": 40})) == []


def test_two_reads_of_different_passes_settle_a_closed_difference() -> None:
    settled = Divergence(2, 2, 4, 45, 40, closed=True, since=10.0, pass_number=0, confirmed=True)
    assert found(read(FORKED), read(FORKED, 11.0)) == [settled]
    assert found(read(FORKED), read(FORKED, 11.0), number=0) == [CLOSED]
    assert found(read(FORKED), read(FORKED, 99.0)) == [settled], "both ends are final"
    assert found(read(FORKED), read(FORKED, 11.0), read(FORKED, 12.0)) == [settled]


@pytest.mark.parametrize(
    ("later", "remains"),
    [
        (unread(100), True),
        (unread(120), True),
        (read(FORKED, 11.0, samples=[answer(1), silent(2)]), True),
        (read(FORKED, 11.0, samples=[silent(1), answer(2)]), True),
        (read(FORKED, 11.0, leader=None, leaderless=True), True),
        (read(LEADER, 11.0), False),
        # The log was cut, or its end is unknown.
        (unread(99), False),
        (unread(None), False),
    ],
)
def test_a_closed_difference_remains_until_a_read_refutes_it(
    later: Observation, remains: bool
) -> None:
    assert found(read(FORKED), later) == ([CLOSED] if remains else [])


@pytest.mark.parametrize(("log_end", "count"), [(100, 1), (80, 0)])
def test_a_cut_shows_at_the_end_of_the_newest_epoch(log_end: int, count: int) -> None:
    leaders: dict[str, Any] = {"lineage": [(2, 40), (3, 60), (4, 100)]}
    first = read([(2, 45), (3, 60), (4, 100)], **leaders)
    assert len(found(first, unread(log_end, **leaders))) == count


def test_another_difference_needs_two_reads_again() -> None:
    other = found(read(FORKED), read([(2, 48), (4, 100)], 11.0))
    assert other == [Divergence(2, 2, 4, 48, 40, closed=True, since=11.0, pass_number=1)]
    other = found(read(FORKED), read(FORKED, 11.0, lineage=[(2, 38), (4, 100)]))
    assert other == [Divergence(2, 2, 4, 45, 38, closed=True, since=11.0, pass_number=1)]


def test_a_tail_beyond_the_leaders_end_of_its_epoch_is_open() -> None:
    assert found(read(TAIL)) == [OPEN]
    assert found(read(TAIL, compacted=True)) == [OPEN]
    assert found(read([(2, 40)])) == []
    assert found(read([(2, 35)])) == [], "the follower has not fetched the rest yet"
    assert found(read([(4, 110)])) == [], "the leader's own epoch is not over"


def absences(lineage: Lineage, leaders: Lineage, **fields: Any) -> list[tuple[int, int, int, bool]]:
    """(epoch, follower's end, where the logs part, closed) of epochs that the leader lacks."""
    items = found(read(lineage, lineage=leaders, **{"lineage_complete_from": 0, **fields}))
    return [(i.epoch, i.follower_end, i.leader_end, i.closed) for i in items if i.absent]


@pytest.mark.parametrize(
    ("lineage", "leaders", "absent"),
    [
        # Both end at 40 below epoch 4: one by records of epoch 3, the other by those of epoch 2.
        ([(3, 40), (4, 100)], [(2, 40), (4, 100)], (3, 40, 0, True)),
        ([(3, 1), (4, 100)], [(2, 1), (4, 100)], (3, 1, 0, True)),
        ([(2, 30), (3, 40)], [(2, 40), (4, 100)], (3, 40, 30, False)),
        # The last eight epochs of the follower reach back to the leader's.
        (
            [(3, 30), *((epoch, 30) for epoch in range(4, 10)), (10, 40)],
            [(3, 40), (11, 100)],
            (10, 40, 30, False),
        ),
    ],
)
def test_records_of_an_epoch_that_the_leader_has_no_record_of(
    lineage: Lineage, leaders: Lineage, absent: tuple[int, int, int, bool]
) -> None:
    assert absences(lineage, leaders) == [absent]


@pytest.mark.parametrize("compacted", [True, None])
def test_a_cleaner_may_have_removed_all_records_of_an_epoch(compacted: bool | None) -> None:
    assert absences([(2, 30), (3, 40)], [(2, 40), (4, 100)], compacted=compacted) == []
    assert absences([(3, 40), (4, 100)], [(2, 40), (4, 100)], compacted=compacted) == []


def test_an_epoch_without_records_is_not_absent() -> None:
    assert found(read([(2, 40), (3, 40), (4, 100)])) == []
    assert found(read([(2, 40), (3, 40)])) == []


def test_nothing_is_absent_where_a_log_does_not_reach() -> None:
    logs: tuple[Lineage, Lineage] = [(3, 40), (4, 100)], [(2, 40), (4, 100)]
    assert absences(*logs, leader_sample={"log_start_offset": 10}) == []
    at_start = {"log_start_offset": 30}
    assert absences([(2, 30), (3, 40), (4, 100)], [(2, 40), (4, 100)], sample=at_start) == []
    # Eight epochs of the follower's log were read; the ones before are unknown.
    newest = [(3, 40), *((epoch, 40) for epoch in range(4, 10)), (10, 100)]
    assert absences(newest, [(2, 40), (10, 100)]) == []


def test_an_open_difference_is_dated_by_its_first_read_while_it_is_watched() -> None:
    assert found(read(TAIL), read(TAIL, 10.0 + MAX_GAP_SECONDS)) == [OPEN]
    (again,) = found(read(TAIL), read(TAIL, 10.1 + MAX_GAP_SECONDS))
    assert (again.since, again.pass_number, again.confirmed) == (10.1 + MAX_GAP_SECONDS, 1, False)


def test_an_unchanged_log_end_proves_that_the_tail_is_still_there() -> None:
    assert found(read(TAIL), unread(45)) == [OPEN]
    assert found(read(TAIL), unread(46)) == []
    assert found(read(TAIL), unread(44)) == []
    caught_up = unread(45, leader_sample={"log_end_offset": 45})
    assert found(read(TAIL), caught_up) == [], "it may have fetched up to the leader"


@pytest.mark.parametrize(
    "blind",
    [
        read(TAIL, 11.0, samples=[silent(1), answer(2)]),
        read(TAIL, 11.0, samples=[answer(1), silent(2)]),
        read(TAIL, 11.0, leader=None, leaderless=True),
    ],
)
def test_an_open_difference_is_not_watched_while_a_replica_is_silent(blind: Observation) -> None:
    assert found(read(TAIL), blind) == []


def test_each_follower_has_its_own_difference() -> None:
    follower_lineages: dict[int, Lineage] = {2: FORKED, 3: LEADER, 4: [(2, 50), (4, 100)]}
    samples = [answer(1), *(answer(b, lineage=known) for b, known in follower_lineages.items())]
    events = [read(None, at, replicas=[1, 2, 3, 4], samples=samples) for at in (10.0, 11.0)]
    assert [(item.broker, item.follower_end) for item in found(events[0])] == [(2, 45), (4, 50)]
    assert [(item.broker, item.confirmed) for item in found(*events)] == [(2, True), (4, True)]
