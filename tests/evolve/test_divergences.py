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

# With an older epoch, as many as are read.
EIGHTH: Lineage = [*((epoch, 5 * epoch) for epoch in range(10, 16)), (17, 100)]
CLOSED = Divergence(2, 2, 4, 45, 40, closed=True, since=10.0, pass_number=0)
OPEN = Divergence(2, 2, 4, 45, 40, closed=False, since=10.0, pass_number=0)


# It was watched from its first record on, and never compacted.
WATCHED = PartitionState(uncompacted_from=0)


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
    return sparse_of(fold(state or WATCHED, *events, number=number)).divergences


# Both logs lost all records below 39.
STARTS_AT_39 = {"leader_sample": {"log_start_offset": 39}, "sample": {"log_start_offset": 39}}


@pytest.mark.parametrize(
    ("event", "difference"),
    [
        # A difference below an epoch that both logs hold is closed.
        (read(FORKED), CLOSED),
        (read([(2, 35), (4, 100)]), Divergence(2, 2, 4, 35, 40, True, 10.0, 0)),
        # The follower lags in the newest epoch.
        (read([(2, 45), (4, 98)]), CLOSED),
        # A tail beyond the leader's end of its epoch is open.
        (read(TAIL), OPEN),
        (read(TAIL, compacted=True), OPEN),
        # Both hold epoch 3, and the follower may still truncate it.
        (
            read([(2, 40), (3, 70)], lineage=[(2, 40), (3, 60), (4, 100)]),
            Divergence(2, 3, 4, 70, 60, closed=False, since=10.0, pass_number=0),
        ),
        # Ends above both log starts are compared.
        (read(FORKED, **STARTS_AT_39), CLOSED),
        (read(TAIL, **STARTS_AT_39), OPEN),
    ],
)
def test_one_read_finds_a_difference(event: Observation, difference: Divergence) -> None:
    assert found(event) == [difference]


@pytest.mark.parametrize(
    ("lineage", "leaders", "difference", "absent"),
    [
        # The lowest difference.
        ([(2, 45), (4, 70), (5, 100)], [(2, 40), (4, 60), (5, 100)], (2, 4, 45, 40), False),
        # The lowest one that is certain: where the oldest epoch of a cache begins may have moved.
        ([(2, 45), (3, 70), (4, 100)], [(2, 40), (3, 60), (4, 100)], (3, 4, 70, 60), False),
        ([(2, 40), (3, 70), (4, 100)], [(2, 40), (3, 60), (4, 100)], (3, 4, 70, 60), False),
        # The lineage of the longer log shows whether its end is sure.
        ([(2, 45), (3, 70), (4, 100)], LEADER, (3, 4, 70, 40), False),
        # Of epochs below the oldest that were read, a follower may hold records.
        ([(3, 40), *EIGHTH], [(2, 40), (17, 100)], (10, 17, 50, 40), False),
        # An epoch of the follower alone ends, for the leader, where the epoch before it ends.
        ([(3, 45), (4, 100)], LEADER, (3, 4, 45, 40), False),
        # The leader's lineage does not cover the follower's first epoch.
        ([(1, 20), (2, 45), (4, 100)], LEADER, (2, 4, 45, 40), False),
        # Epochs of the leader alone.
        ([(2, 45), (4, 100)], [(2, 40), (3, 60), (4, 100)], (2, 3, 45, 40), False),
        # In a log that never lost its beginning, the first epoch begins at 0.
        ([(1, 45), (3, 100)], [(3, 100)], (1, 3, 45, 0), True),
        ([(1, 1), (3, 2)], [(3, 1)], (1, 3, 1, 0), True),
        # Older than any epoch of the leader.
        ([(1, 45), (4, 100)], LEADER, (1, 2, 45, 0), True),
    ],
)
def test_which_epoch_differs(
    lineage: Lineage, leaders: Lineage, difference: tuple[int, int, int, int], absent: bool
) -> None:
    complete_from = 0 if absent else 2
    (one,) = found(read(lineage, lineage=leaders, lineage_complete_from=complete_from))
    assert (one.epoch, one.next_epoch, one.follower_end, one.leader_end) == difference
    assert one.closed
    assert one.absent is absent


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
        # An end at the log start of one of the two is no end, whatever was committed.
        read(FORKED, committed=None, leader_sample={"log_start_offset": 40}),
        read(FORKED, committed=None, sample={"log_start_offset": 40}),
        # A copy of a compacted log dates epochs by the records that the cleaner kept.
        read(FORKED, compacted=True),
        read(FORKED, compacted=None),
        # The follower has not fetched the rest yet.
        read([(2, 40)]),
        read([(2, 35)]),
        # The leader's own epoch is not over.
        read([(4, 110)]),
        # An epoch without records is not absent.
        read([(2, 40), (3, 40), (4, 100)]),
        read([(2, 40), (3, 40)]),
        # The log start is no end of an epoch.
        read(TAIL, leader_sample={"log_start_offset": 40}),
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


CONFIRMED = Divergence(2, 2, 4, 45, 40, closed=True, since=10.0, pass_number=0, confirmed=True)


@pytest.mark.parametrize(
    ("later", "difference"),
    [
        # Two reads of different passes confirm it.
        ([read(FORKED, 11.0)], CONFIRMED),
        ([read(FORKED, 11.0), read(FORKED, 12.0)], CONFIRMED),
        # Both ends are final: the time between the reads does not matter.
        ([read(FORKED, 99.0)], CONFIRMED),
        # Another difference needs two reads again.
        (
            [read([(2, 48), (4, 100)], 11.0)],
            Divergence(2, 2, 4, 48, 40, closed=True, since=11.0, pass_number=1),
        ),
        (
            [read(FORKED, 11.0, lineage=[(2, 38), (4, 100)])],
            Divergence(2, 2, 4, 45, 38, closed=True, since=11.0, pass_number=1),
        ),
        # It remains until a read refutes it.
        ([unread(100)], CLOSED),
        ([unread(120)], CLOSED),
        ([read(FORKED, 11.0, samples=[answer(1), silent(2)])], CLOSED),
        ([read(FORKED, 11.0, samples=[silent(1), answer(2)])], CLOSED),
        ([read(FORKED, 11.0, leader=None, leaderless=True)], CLOSED),
        ([read(LEADER, 11.0)], None),
        # The log was cut, or its end is unknown.
        ([unread(99)], None),
        ([unread(None)], None),
    ],
)
def test_a_closed_difference_is_confirmed_by_a_second_read_and_remains_until_it_is_refuted(
    later: list[Observation], difference: Divergence | None
) -> None:
    assert found(read(FORKED), *later) == ([difference] if difference else [])


def test_two_reads_of_one_pass_confirm_nothing() -> None:
    assert found(read(FORKED), read(FORKED, 11.0), number=0) == [CLOSED]


@pytest.mark.parametrize(("log_end", "count"), [(100, 1), (80, 0)])
def test_a_cut_shows_at_the_end_of_the_newest_epoch(log_end: int, count: int) -> None:
    leaders: dict[str, Any] = {"lineage": [(2, 40), (3, 60), (4, 100)]}
    first = read([(2, 45), (3, 60), (4, 100)], **leaders)
    assert len(found(first, unread(log_end, **leaders))) == count


# Both end at 40 below epoch 4: one by records of epoch 3, the other by those of epoch 2.
OTHER_RECORDS: tuple[Lineage, Lineage] = ([(3, 40), (4, 100)], [(2, 40), (4, 100)])
# Epoch 3 of the follower begins within epoch 2 of the leader.
OTHER_TAIL: tuple[Lineage, Lineage] = ([(2, 30), (3, 40)], [(2, 40), (4, 100)])


@pytest.mark.parametrize(
    ("lineages", "fields", "absent"),
    [
        (OTHER_RECORDS, {}, [(3, 40, 0, True)]),
        (([(3, 1), (4, 100)], [(2, 1), (4, 100)]), {}, [(3, 1, 0, True)]),
        (OTHER_TAIL, {}, [(3, 40, 30, False)]),
        # The last eight epochs of the follower reach back to the leader's.
        (
            (
                [(3, 30), *((epoch, 30) for epoch in range(4, 10)), (10, 40)],
                [(3, 40), (11, 100)],
            ),
            {},
            [(10, 40, 30, False)],
        ),
        # A cleaner may have removed all records of an epoch.
        (OTHER_TAIL, {"compacted": True}, []),
        (OTHER_TAIL, {"compacted": None}, []),
        (OTHER_RECORDS, {"compacted": True}, []),
        (OTHER_RECORDS, {"compacted": None}, []),
        # A log that lost its beginning does not reach the epoch.
        (OTHER_RECORDS, {"leader_sample": {"log_start_offset": 10}}, []),
        (
            ([(2, 30), (3, 40), (4, 100)], [(2, 40), (4, 100)]),
            {"sample": {"log_start_offset": 30}},
            [],
        ),
        # Eight epochs of the follower's log were read; the ones before are unknown.
        (
            (
                [(3, 40), *((epoch, 40) for epoch in range(4, 10)), (10, 100)],
                [(2, 40), (10, 100)],
            ),
            {},
            [],
        ),
    ],
)
def test_records_of_an_epoch_that_the_leader_has_no_record_of(
    lineages: tuple[Lineage, Lineage],
    fields: dict[str, Any],
    absent: list[tuple[int, int, int, bool]],
) -> None:
    """`absent`: (epoch, follower's end, where the logs part, closed)."""
    lineage, leaders = lineages
    items = found(read(lineage, lineage=leaders, **{"lineage_complete_from": 0, **fields}))
    assert absent == [
        (item.epoch, item.follower_end, item.leader_end, item.closed)
        for item in items
        if item.absent
    ]


@pytest.mark.parametrize(
    ("later", "difference"),
    [
        # It is dated by its first read while it is watched.
        (read(TAIL, 10.0 + MAX_GAP_SECONDS), OPEN),
        (
            read(TAIL, 10.1 + MAX_GAP_SECONDS),
            Divergence(2, 2, 4, 45, 40, closed=False, since=10.1 + MAX_GAP_SECONDS, pass_number=1),
        ),
        # An unchanged log end proves that the tail is still there.
        (unread(45), OPEN),
        (unread(46), None),
        (unread(44), None),
        # It is not watched while a replica is silent.
        (read(TAIL, 11.0, samples=[silent(1), answer(2)]), None),
        (read(TAIL, 11.0, samples=[answer(1), silent(2)]), None),
        (read(TAIL, 11.0, leader=None, leaderless=True), None),
    ],
)
def test_an_open_difference_is_dated_by_its_first_read_while_it_is_watched(
    later: Observation, difference: Divergence | None
) -> None:
    assert found(read(TAIL), later) == ([difference] if difference else [])


def test_a_follower_that_ends_where_the_leader_does_may_have_fetched_up_to_it() -> None:
    ends = {"leader_sample": {"log_end_offset": 45}}
    assert found(read(TAIL, **ends), unread(45, **ends)) == []


def test_each_follower_has_its_own_difference() -> None:
    follower_lineages: dict[int, Lineage] = {2: FORKED, 3: LEADER, 4: [(2, 50), (4, 100)]}
    samples = [answer(1), *(answer(b, lineage=known) for b, known in follower_lineages.items())]
    events = [read(None, at, replicas=[1, 2, 3, 4], samples=samples) for at in (10.0, 11.0)]
    assert [(item.broker, item.follower_end) for item in found(events[0])] == [(2, 45), (4, 50)]
    assert [(item.broker, item.confirmed) for item in found(*events)] == [(2, True), (4, True)]


def test_below_what_was_written_since_the_policy_is_known_a_difference_is_suspected() -> None:
    for known_from, suspected in ((40, False), (41, True)):
        watched = PartitionState(uncompacted_from=known_from)
        (difference,) = found(read(FORKED), state=watched)
        assert difference.suspected is suspected
        # No copy of a log holds more of its newest epoch than the log that it is of.
        (difference,) = found(read(TAIL), state=watched)
        assert not difference.suspected


def test_the_policy_is_known_for_what_was_written_since_it_was_seen() -> None:
    first = fold(None, observation())
    assert first.uncompacted_from == 0
    began_at_1 = [answer(1), answer(2, log_start_offset=1)]
    assert fold(None, observation(samples=began_at_1)).uncompacted_from == 100
    compacted = fold(first, observation(compacted=True))
    assert compacted.uncompacted_from is None
    longer = [answer(1, log_end_offset=110), answer(2)]
    assert fold(compacted, observation(samples=longer)).uncompacted_from is None
    again = fold(compacted, observation(samples=longer, compacted=False))
    assert again.uncompacted_from == 110
    assert fold(again, observation(compacted=False)).uncompacted_from == 110
