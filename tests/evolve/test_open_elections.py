"""Elections that the lineage of the new leader decides, now or once it is read."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.evolve.elections import (
    WITH_LINEAGE,
    before,
    led,
    taken_over,
    unread,
    vacant,
    verdict,
)
from tidemark.core.leader_epochs import NO_EPOCH, Committed
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import OpenElection, SampledLeadership, SparseState
from tidemark.evolve.elections import (
    RECENT_SECONDS,
    Election,
    ElectionVerdict,
    is_open,
    judge_election,
    newly_decided,
    note_election,
)
from tidemark.evolve.sampled_leadership import UNDECIDED_SECONDS


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # Every committed record is there; the ones above the high watermark need not be.
        (led(), taken_over(), None),
        (led(leader=None), taken_over(epoch=6), None),
        (led(), taken_over(end=8), ElectionVerdict.SUSPECTED),
        # The time of the former leader's sample counts, not that of the observation.
        (led(), taken_over(100.0 + RECENT_SECONDS), None),
        (led(), taken_over(100.1 + RECENT_SECONDS), ElectionVerdict.SUSPECTED),
        (led(84.0), taken_over(), ElectionVerdict.SUSPECTED),
        (led(None), taken_over(), ElectionVerdict.SUSPECTED),
        (led(replicas=[]), taken_over(), ElectionVerdict.SUSPECTED),
        # Nothing is known of its epoch.
        (led(committed=[]), taken_over(), ElectionVerdict.SUSPECTED),
        (led(leader=None, committed=[]), taken_over(epoch=6), ElectionVerdict.SUSPECTED),
        (led(committed=[Committed(3, 9, 50.0, 10, 1)]), taken_over(), ElectionVerdict.SUSPECTED),
        # Nobody joins an empty set. Sets that are all empty are of different moments.
        (vacant(), taken_over(), ElectionVerdict.ELIGIBLE),
        (vacant(eligible_leader_replicas=None), taken_over(), ElectionVerdict.ELIGIBLE),
        (vacant(eligible_leader_replicas=[3]), taken_over(), ElectionVerdict.UNCLEAN),
        (vacant(), taken_over(end=8), ElectionVerdict.SUSPECTED),
        (vacant(), taken_over(epoch=6), None),
    ],
)
def test_a_leader_with_every_record_committed_a_moment_before_had_joined(
    old: PartitionState, new: PartitionState, expected: ElectionVerdict | None
) -> None:
    assert verdict(old, new) is expected


def folded(old: PartitionState, *states: PartitionState) -> list[PartitionState]:
    """Each state with what the one before it leaves open."""
    found = []
    for state in states:
        new = replace(state, sparse=old.sparse)
        note_election(new, old)
        found.append(new)
        old = new
    return found


OPENED = led(committed=[WITH_LINEAGE])


@pytest.mark.parametrize(
    ("later", "suspected"),
    [
        # The lineage shows every committed record, or not.
        (taken_over(102.0), False),
        (taken_over(102.0, end=8), True),
        # Another election, or a lineage that is not read in time.
        (taken_over(102.0, epoch=6), True),
        (unread(101.0 + UNDECIDED_SECONDS), None),
        (unread(101.1 + UNDECIDED_SECONDS), True),
    ],
)
@pytest.mark.parametrize("members", [[1], []])
def test_an_election_is_open_until_the_new_leaders_lineage_is_read(
    later: PartitionState, suspected: bool | None, members: list[int]
) -> None:
    opened = replace(OPENED, leader=1 if members else None, in_sync_replicas=members)
    first, second = folded(opened, unread(), later)
    election = judge_election(opened, first)
    assert election is not None
    assert is_open(opened, first, election)
    assert (newly_decided(opened, first), first.unclean_epoch) == (None, None)
    found = newly_decided(first, second)
    # From an empty set it is told, even where it cost nothing.
    assert (found is not None) is (bool(suspected) or (suspected is False and not members))
    assert second.unclean_epoch == (5 if suspected else None)
    assert (second.sparse == first.sparse) is (suspected is None)
    if found is not None:
        judged = ElectionVerdict.SUSPECTED if suspected else ElectionVerdict.ELIGIBLE
        assert (found[0], found[1].leader, found[1].in_sync_replicas) == (
            Election(judged, 2, 4, 5),
            1,
            members,
        )
        (third,) = folded(second, replace(later, observed_at=later.observed_at + 1))
        assert newly_decided(second, third) is None
        assert third.sparse is not None
        assert third.sparse.open_election is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # It is certain, the lineage was read, no lineage is ever read, or the sample is too old.
        (before(committed=[WITH_LINEAGE], leaderless=True), unread()),
        (led(leader=None, leaderless=True, committed=[WITH_LINEAGE]), unread()),
        (OPENED, taken_over(end=8)),
        (led(), unread()),
        (led(84.0, committed=[WITH_LINEAGE]), unread()),
    ],
)
def test_what_no_lineage_will_decide_is_not_left_open(
    old: PartitionState, new: PartitionState
) -> None:
    election = judge_election(old, new)
    assert election is not None
    assert not is_open(old, new, election)
    note_election(new, old)
    assert (new.unclean_epoch, new.sparse) == (5, None)


def test_an_open_election_keeps_the_sets_before_it() -> None:
    old = replace(OPENED, eligible_leader_replicas=[3], last_known_eligible_leader_replicas=[4])
    (first,) = folded(old, unread())
    assert first.sparse is not None
    assert first.sparse.open_election == OpenElection(
        leader=2,
        epoch_after=5,
        leader_before=1,
        epoch_before=4,
        in_sync_replicas=[1],
        eligible=[3],
        last_known=[4],
        seen_before_at=100.0,
        at=101.0,
    )


EPOCHLESS = SampledLeadership(1, 50.0, 60.0, [1], [1, 2], [1], committed=50)


@pytest.mark.parametrize(("leader", "suspected"), [(2, False), (3, True)])
def test_an_open_election_without_epochs_is_over_with_its_leader(
    leader: int, suspected: bool
) -> None:
    opened = OpenElection(2, NO_EPOCH, 1, NO_EPOCH, [1], None, None, 10.0, 11.0)
    old = PartitionState(leader=2, observed_at=11.0, sparse=SparseState(open_election=opened))
    new = replace(old, leader=leader, observed_at=12.0)
    note_election(new, old)
    assert new.open_election == replace(opened, suspected=suspected)
    assert new.unclean_epoch is None


@pytest.mark.parametrize(("epoch", "expected"), [(None, ElectionVerdict.SUSPECTED), (5, None)])
def test_a_first_leader_epoch_shows_no_election(
    epoch: int | None, expected: ElectionVerdict | None
) -> None:
    """Brokers were upgraded: an election before the epoch is judged by none."""
    samples = [replace(EPOCHLESS, leader=leader, answering=[leader]) for leader in (1, 2)]
    known: dict[str, Any] = {"assigned": [1, 2], "observed_at": 70.0}
    old = PartitionState(leader=1, sparse=SparseState(leadership=samples[0]), **known)
    new = PartitionState(leader=2, leader_epoch=epoch, in_sync_replicas=[2], **known)
    new.sparse = SparseState(leadership=samples[1])
    assert verdict(old, new) is expected


CAUGHT_UP = ReplicaState(2, log_end_offset=9, leader_epoch=4, sampled_at=100.0)


@pytest.mark.parametrize(
    ("changes", "fields", "expected"),
    [
        ({}, {}, None),
        ({"log_end_offset": 8}, {}, ElectionVerdict.SUSPECTED),
        ({"log_end_offset": None}, {}, ElectionVerdict.SUSPECTED),
        ({"error": "refused"}, {}, ElectionVerdict.SUSPECTED),
        ({"leader_epoch": 3}, {}, ElectionVerdict.SUSPECTED),
        ({}, {"high_watermark": None}, ElectionVerdict.SUSPECTED),
        # What was sampled before metadata had leader epochs is not of this leadership.
        ({}, {"sparse": SparseState(leadership=EPOCHLESS)}, None),
        # The lineage of the new leader will decide.
        ({}, {"lineage": [(4, 9)]}, ElectionVerdict.SUSPECTED),
        ({}, {"committed": [WITH_LINEAGE]}, ElectionVerdict.SUSPECTED),
        ({}, {"at": 84.0}, ElectionVerdict.SUSPECTED),
    ],
)
def test_a_follower_at_the_high_watermark_was_about_to_join(
    changes: dict[str, Any], fields: dict[str, Any], expected: ElectionVerdict | None
) -> None:
    given = {"high_watermark": 9, **fields}
    old = led(given.pop("at", 100.0), **given)
    old.replicas = [*old.replicas, replace(CAUGHT_UP, **changes)]
    assert verdict(old, unread()) is expected
