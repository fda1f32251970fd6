"""Which differences of two lineages count: closed ones by two reads, open ones while they are watched."""

from __future__ import annotations

from typing import Any

import pytest

from tests.evolve.observed import answer, fold, observation, silent
from tidemark.core.events import Observation
from tidemark.core.partition import PartitionState
from tidemark.core.sparse_state import Divergence
from tidemark.evolve.divergences import MAX_GAP_SECONDS

Lineage = list[tuple[int, int]]
LEADER: Lineage = [(2, 40), (4, 100)]
# Records of epoch 2 up to 45, and of epoch 4 above: both ends are final.
FORKED: Lineage = [(2, 45), (4, 100)]
# A tail of epoch 2, and nothing of epoch 4 yet: it may be about to cut it.
TAIL: Lineage = [(2, 45)]

CLOSED = Divergence(2, 2, 4, 45, 40, closed=True, since=10.0, pass_number=0)
OPEN = Divergence(2, 2, 4, 45, 40, closed=False, since=10.0, pass_number=0)


def look(
    read: Lineage | None,
    at: float = 10.0,
    /,
    *,
    one: dict[str, Any] | None = None,
    other: dict[str, Any] | None = None,
    **fields: Any,
) -> Observation:
    """A pass that reads both lineages; `one` and `other` alter the leader's and the follower's answers."""
    end = read[-1][1] if read else 100
    samples = [
        answer(1, **(one or {})),
        answer(2, **{"log_end_offset": end, "lineage": read, **(other or {})}),
    ]
    leaders: dict[str, Any] = {"lineage": LEADER, "lineage_complete_from": 2, "compacted": False}
    return observation(**{"observed_at": at, "samples": samples, **leaders, **fields})


def found(
    *events: Observation, state: PartitionState | None = None, number: int | None = None
) -> list[Divergence]:
    state = fold(state, *events, number=number)
    return [] if state.sparse is None else state.sparse.divergences


def test_below_a_later_epoch_that_both_hold_a_difference_is_closed() -> None:
    assert found(look(FORKED)) == [CLOSED]
    assert found(look([(2, 35), (4, 100)])) == [Divergence(2, 2, 4, 35, 40, True, 10.0, 0)]


@pytest.mark.parametrize(
    ("lineage", "leaders", "difference"),
    [
        # The lowest one is named.
        ([(2, 45), (3, 70), (4, 100)], [(2, 40), (3, 60), (4, 100)], (2, 3, 45, 40)),
        ([(2, 40), (3, 70), (4, 100)], [(2, 40), (3, 60), (4, 100)], (3, 4, 70, 60)),
        # An epoch that only the follower's log has ends, for the leader, where the epoch before it does.
        ([(3, 45), (4, 100)], LEADER, (3, 4, 45, 40)),
        # Epochs that only the leader's log has.
        ([(2, 45), (4, 100)], [(2, 40), (3, 60), (4, 100)], (2, 3, 45, 40)),
    ],
)
def test_which_epoch_differs(
    lineage: Lineage, leaders: Lineage, difference: tuple[int, int, int, int]
) -> None:
    (one,) = found(look(lineage, lineage=leaders))
    assert (one.epoch, one.next_epoch, one.follower_end, one.leader_end) == difference
    assert one.closed


@pytest.mark.parametrize(
    ("lineage", "leaders", "difference"),
    [
        ([(1, 45), (3, 100)], [(3, 100)], (1, 3, 45, 0)),
        ([(1, 1), (3, 2)], [(3, 1)], (1, 3, 1, 0)),
    ],
)
def test_a_first_epoch_begins_where_a_log_that_never_lost_its_beginning_does(
    lineage: Lineage, leaders: Lineage, difference: tuple[int, int, int, int]
) -> None:
    (one,) = found(look(lineage, lineage=leaders, lineage_complete_from=0))
    assert (one.epoch, one.next_epoch, one.follower_end, one.leader_end) == difference
    assert one.closed
    assert one.absent


def test_records_of_an_epoch_older_than_any_of_the_leaders_are_not_its_own() -> None:
    (one,) = found(look([(1, 45), (4, 100)], lineage_complete_from=0))
    assert (one.epoch, one.next_epoch, one.follower_end, one.leader_end) == (1, 2, 45, 0)
    assert one.absent


@pytest.mark.parametrize(
    "event",
    [
        look(LEADER),
        look(None),
        look([]),
        # No lineage of the leader, or one that does not reach the epoch.
        look(FORKED, lineage=None),
        look(FORKED, lineage=[(4, 100)], lineage_complete_from=4),
        look(FORKED, lineage_complete_from=None),
        look(FORKED, lineage_complete_from=3),
        # A log that lost its beginning may have held the epoch below.
        look([(1, 45), (4, 100)], lineage_complete_from=0, one={"log_start_offset": 10}),
        look([(1, 45), (4, 100)], lineage_complete_from=0, other={"log_start_offset": 10}),
        # Epochs below may be in it and were not read; or its first epoch has no record yet.
        look([(1, 45), (3, 100)], lineage=[(3, 100)], lineage_complete_from=1),
        look([(1, 45), (3, 50)], lineage=[(3, 0)], lineage_complete_from=0),
        look(
            [(1, 45), (3, 100)],
            lineage=[(3, 100)],
            lineage_complete_from=0,
            other={"log_start_offset": 1},
        ),
        # A copy out of a compacted log dates epochs by what the cleaner left.
        look(FORKED, compacted=True),
        look(FORKED, compacted=None),
        # Where a log begins is no end of an epoch.
        look(FORKED, other={"log_start_offset": 40}),
        look(FORKED, one={"log_start_offset": 40}),
        look(FORKED, other={"log_start_offset": None}),
        look(FORKED, one={"log_start_offset": None}),
        # It does not know the election yet, or nobody knows what it knows.
        look(FORKED, other={"leader_epoch": 3}),
        look(FORKED, other={"leader_epoch": None}),
        look(FORKED, one={"error": "timed_out"}),
        look(FORKED, other={"error": "timed_out"}),
        look(FORKED, leader=None),
        # One that a reassignment is adding.
        look(FORKED, adding=[2]),
        look(FORKED, replicas=[1]),
        # Epoch 4 has no records in one of them: what is below may be cut yet.
        look([(2, 45), (4, 45)]),
        look(FORKED, lineage=[(2, 40), (4, 40)]),
    ],
)
def test_no_verdict(event: Observation) -> None:
    assert found(event) == []


def test_a_follower_that_is_behind_within_the_newest_epoch_has_diverged_below_it_all_the_same() -> (
    None
):
    assert found(look([(2, 45), (4, 98)])) == [CLOSED]


def test_the_newest_epoch_that_both_hold_may_yet_be_cut() -> None:
    (one,) = found(look([(2, 40), (3, 70)], lineage=[(2, 40), (3, 60), (4, 100)]))
    assert one == Divergence(2, 3, 4, 70, 60, closed=False, since=10.0, pass_number=0)


def test_the_leader_is_not_held_against_itself() -> None:
    assert found(look(LEADER, one={"lineage": FORKED})) == []


def test_above_both_log_starts_there_is_a_verdict() -> None:
    assert found(look(FORKED, one={"log_start_offset": 39}, other={"log_start_offset": 39})) == [
        CLOSED
    ]
    assert found(look(TAIL, one={"log_start_offset": 39}, other={"log_start_offset": 39})) == [OPEN]
    assert found(look(TAIL, one={"log_start_offset": 40})) == []


def test_two_reads_of_different_passes_settle_a_closed_difference() -> None:
    settled = Divergence(2, 2, 4, 45, 40, closed=True, since=10.0, pass_number=0, confirmed=True)
    assert found(look(FORKED), look(FORKED, 11.0)) == [settled]
    assert found(look(FORKED), look(FORKED, 11.0), number=0) == [CLOSED]
    assert found(look(FORKED), look(FORKED, 99.0)) == [settled], (
        "however long ago the first was: both ends are final"
    )
    assert found(look(FORKED), look(FORKED, 11.0), look(FORKED, 12.0)) == [settled]


def test_a_closed_difference_stands_until_a_read_refutes_it() -> None:
    state = fold(None, look(FORKED))
    unread = {"lineage": None, "log_end_offset": 100}
    for later in (
        look(FORKED, 11.0, other=unread),
        look(FORKED, 11.0, other={**unread, "log_end_offset": 120}),
        look(FORKED, 11.0, samples=[answer(1), silent(2)]),
        look(FORKED, 11.0, samples=[silent(1), answer(2)]),
        look(FORKED, 11.0, leader=None, leaderless=True),
    ):
        assert found(later, state=state) == [CLOSED]
    assert found(look(LEADER, 11.0), state=state) == []
    assert found(look(FORKED, 11.0, other={**unread, "log_end_offset": 99}), state=state) == [], (
        "its log was cut"
    )
    assert found(look(FORKED, 11.0, other={**unread, "log_end_offset": None}), state=state) == []


def test_a_cut_shows_at_the_end_of_the_newest_epoch() -> None:
    leaders: dict[str, Any] = {"lineage": [(2, 40), (3, 60), (4, 100)]}
    forked: Lineage = [(2, 45), (3, 60), (4, 100)]
    state = fold(None, look(forked, **leaders))
    assert (
        len(
            found(
                look(forked, 11.0, other={"lineage": None, "log_end_offset": 100}, **leaders),
                state=state,
            )
        )
        == 1
    )
    assert (
        found(
            look(forked, 11.0, other={"lineage": None, "log_end_offset": 80}, **leaders),
            state=state,
        )
        == []
    )


def test_another_difference_is_a_first_read_of_its_own() -> None:
    other = found(look(FORKED), look([(2, 48), (4, 100)], 11.0))
    assert other == [Divergence(2, 2, 4, 48, 40, closed=True, since=11.0, pass_number=1)]
    other = found(look(FORKED), look(FORKED, 11.0, lineage=[(2, 38), (4, 100)]))
    assert other == [Divergence(2, 2, 4, 45, 38, closed=True, since=11.0, pass_number=1)]


def test_a_tail_that_runs_past_the_leaders_end_of_its_epoch_is_open() -> None:
    assert found(look(TAIL)) == [OPEN]
    assert found(look(TAIL, compacted=True)) == [OPEN]
    assert found(look([(2, 40)])) == []
    assert found(look([(2, 35)])) == [], "it has yet to fetch the rest"
    assert found(look([(4, 110)])) == [], "the leader's own epoch is not over"


def absences(read: Lineage, leaders: Lineage, **fields: Any) -> list[tuple[int, int, int, bool]]:
    """(epoch, follower's end, where they part, closed) of records of an epoch that the leader's log has none of."""
    seen = found(look(read, lineage=leaders, **{"lineage_complete_from": 0, **fields}))
    return [
        (item.epoch, item.follower_end, item.leader_end, item.closed)
        for item in seen
        if item.absent
    ]


@pytest.mark.parametrize(
    ("read", "leaders", "absent"),
    [
        # Both end at 40 below epoch 4, the one by records of epoch 3, the other by those of epoch 2.
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
def test_records_of_an_epoch_that_the_leader_has_none_of(
    read: Lineage, leaders: Lineage, absent: tuple[int, int, int, bool]
) -> None:
    assert absences(read, leaders) == [absent]


@pytest.mark.parametrize("compacted", [True, None])
def test_a_cleaner_may_have_left_none_of_an_epochs_records(compacted: bool | None) -> None:
    assert absences([(2, 30), (3, 40)], [(2, 40), (4, 100)], compacted=compacted) == []
    assert absences([(3, 40), (4, 100)], [(2, 40), (4, 100)], compacted=compacted) == []


def test_an_epoch_without_records_is_not_missed() -> None:
    assert found(look([(2, 40), (3, 40), (4, 100)])) == []
    assert found(look([(2, 40), (3, 40)])) == []


def test_where_logs_do_not_reach_nothing_is_absent() -> None:
    assert absences([(3, 40), (4, 100)], [(2, 40), (4, 100)], one={"log_start_offset": 10}) == []
    at_start = {"log_start_offset": 30}
    assert absences([(2, 30), (3, 40), (4, 100)], [(2, 40), (4, 100)], other=at_start) == []
    # Eight epochs were read of the follower's log; of those before it nothing is known.
    read = [(3, 40), *((epoch, 40) for epoch in range(4, 10)), (10, 100)]
    assert absences(read, [(2, 40), (10, 100)]) == []


def test_an_open_difference_is_dated_by_its_first_read_while_it_is_watched() -> None:
    assert found(look(TAIL), look(TAIL, 10.0 + MAX_GAP_SECONDS)) == [OPEN]
    (again,) = found(look(TAIL), look(TAIL, 10.1 + MAX_GAP_SECONDS))
    assert (again.since, again.pass_number, again.confirmed) == (10.1 + MAX_GAP_SECONDS, 1, False)


def test_an_unchanged_log_end_shows_that_the_tail_is_still_there() -> None:
    state = fold(None, look(TAIL))
    unread = {"lineage": None, "log_end_offset": 45}
    assert found(look(TAIL, 11.0, other=unread), state=state) == [OPEN]
    assert found(look(TAIL, 11.0, other={**unread, "log_end_offset": 46}), state=state) == []
    assert found(look(TAIL, 11.0, other={**unread, "log_end_offset": 44}), state=state) == []
    assert found(look(TAIL, 11.0, one={"log_end_offset": 45}, other=unread), state=state) == [], (
        "it may have fetched up to the leader"
    )


@pytest.mark.parametrize(
    "blind",
    [
        look(TAIL, 11.0, samples=[silent(1), answer(2)]),
        look(TAIL, 11.0, samples=[answer(1), silent(2)]),
        look(TAIL, 11.0, leader=None, leaderless=True),
    ],
)
def test_an_open_difference_is_not_watched_while_either_is_silent(blind: Observation) -> None:
    assert found(look(TAIL), blind) == []


def test_each_follower_has_its_own_difference() -> None:
    three = [
        answer(1),
        answer(2, lineage=FORKED),
        answer(3, lineage=LEADER),
        answer(4, lineage=[(2, 50), (4, 100)]),
    ]
    event = look(None, replicas=[1, 2, 3, 4], samples=three)
    assert [(item.broker, item.follower_end) for item in found(event)] == [(2, 45), (4, 50)]
    again = look(None, 11.0, replicas=[1, 2, 3, 4], samples=three)
    assert [(item.broker, item.confirmed) for item in found(event, again)] == [(2, True), (4, True)]
