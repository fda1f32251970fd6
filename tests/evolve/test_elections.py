"""Verdicts on elections (PartitionChangeBuilder, KIP-966): unclean, suspected, or none."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tidemark.core.leader_epochs import Committed
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import MetadataPosition, OpenElection, SparseState
from tidemark.evolve.elections import (
    RECENT_SECONDS,
    UNDECIDED_SECONDS,
    Election,
    ElectionVerdict,
    is_open,
    judge_election,
    newly_suspected,
    note_election,
)


def before(**fields: Any) -> PartitionState:
    """No leader at epoch 4; broker 1 was the last one in sync."""
    whole = {
        "leader": None,
        "leader_epoch": 4,
        "in_sync_replicas": [1],
        "eligible_leader_replicas": [],
    }
    return PartitionState(**{**whole, **fields})


def after(**fields: Any) -> PartitionState:
    """Broker 2 leads epoch 5."""
    return PartitionState(**{"leader": 2, "leader_epoch": 5, **fields})


def recorded(offset: int, *, adjacent: bool = True) -> SparseState:
    return SparseState(metadata=MetadataPosition(offset, 0, 0.0, adjacent=adjacent))


def verdict(old: PartitionState, new: PartitionState) -> ElectionVerdict | None:
    election = judge_election(old, new)
    return None if election is None else election.verdict


def test_from_no_leader_to_one_outside_of_the_in_sync_set_is_unclean() -> None:
    assert judge_election(before(), after()) == Election(ElectionVerdict.UNCLEAN, 2, 4, 5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (before(), after(leader=None)),
        (before(), after(leader_epoch=None)),
        (before(leader_epoch=None), after()),
        (before(), after(leader_epoch=4)),
        (before(), after(leader_epoch=3)),
        (before(in_sync_replicas=None), after()),
        (before(in_sync_replicas=[1, 2]), after()),
        # The same broker again: at most, an expansion of the in-sync set was missed.
        (before(leader=2), after()),
    ],
)
def test_no_verdict_without_an_election_or_on_a_clean_one(
    old: PartitionState, new: PartitionState
) -> None:
    assert judge_election(old, new) is None


NONE_IN_SYNC: dict[str, Any] = {"in_sync_replicas": []}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # There was a leader: broker 2 may have joined under it.
        (before(leader=1), after(), ElectionVerdict.SUSPECTED),
        # An epoch was missed.
        (before(), after(leader_epoch=6), ElectionVerdict.SUSPECTED),
        # The in-sync set was empty and the eligible replicas are unknown.
        (before(**NONE_IN_SYNC, eligible_leader_replicas=None), after(), ElectionVerdict.SUSPECTED),
        (
            before(**NONE_IN_SYNC, last_known_eligible_leader_replicas=[1]),
            after(),
            ElectionVerdict.UNCLEAN,
        ),
        # A controller never leaves all three sets empty: they are of different moments.
        (before(**NONE_IN_SYNC), after(), ElectionVerdict.SUSPECTED),
        # With a replica in sync, eligible ones do not matter.
        (before(eligible_leader_replicas=None), after(), ElectionVerdict.UNCLEAN),
    ],
)
def test_an_unknown_state_before_an_election_allows_only_a_suspicion(
    old: PartitionState, new: PartitionState, expected: ElectionVerdict
) -> None:
    assert verdict(old, new) is expected


def test_the_election_of_an_eligible_replica_is_named_only_if_no_election_was_missed() -> None:
    old = before(**NONE_IN_SYNC, eligible_leader_replicas=[3, 2])
    assert judge_election(old, after()) == Election(ElectionVerdict.ELIGIBLE, 2, 4, 5)
    assert judge_election(old, after(leader_epoch=6)) is None


@pytest.mark.parametrize(
    ("last_known", "fields", "expected"),
    [
        ([2], {}, ElectionVerdict.LAST_KNOWN_LEADER),
        ([3], {}, ElectionVerdict.UNCLEAN),
        ([2], {"in_sync_replicas": [1]}, ElectionVerdict.UNCLEAN),
        ([2], {"eligible_leader_replicas": [3]}, ElectionVerdict.UNCLEAN),
        ([2], {"leader": 1}, ElectionVerdict.SUSPECTED),
    ],
)
def test_the_last_known_leader_is_named_only_where_no_other_replica_was_left(
    last_known: list[int], fields: dict[str, Any], expected: ElectionVerdict
) -> None:
    known = {"last_known_eligible_leader_replicas": last_known}
    assert verdict(before(**{**NONE_IN_SYNC, **known, **fields}), after()) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (recorded(10), recorded(11), ElectionVerdict.UNCLEAN),
        (recorded(10, adjacent=False), recorded(11), ElectionVerdict.UNCLEAN),
        # The same record, now with a sample: changes between the samples are unknown.
        (recorded(11), recorded(11), ElectionVerdict.SUSPECTED),
        (recorded(10), recorded(12, adjacent=False), ElectionVerdict.SUSPECTED),
        (None, recorded(11), ElectionVerdict.SUSPECTED),
        (recorded(10), None, ElectionVerdict.SUSPECTED),
        (SparseState(), recorded(11), ElectionVerdict.SUSPECTED),
        (recorded(10), SparseState(), ElectionVerdict.SUSPECTED),
    ],
)
def test_the_verdict_is_exact_from_one_record_of_the_metadata_log_to_the_next(
    old: SparseState | None, new: SparseState | None, expected: ElectionVerdict
) -> None:
    assert verdict(before(leader=1, sparse=old), after(sparse=new)) is expected


def joined(*, members: list[int] | None = None, epoch: int = 5, **answer: Any) -> PartitionState:
    """Broker 2 leads and is in sync with broker 1, which answers under the new epoch."""
    replicas = [ReplicaState(**{"broker": 1, "log_end_offset": 9, "leader_epoch": epoch, **answer})]
    return after(
        leader_epoch=epoch,
        in_sync_replicas=[1, 2] if members is None else members,
        replicas=replicas,
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (before(), joined(), ElectionVerdict.SUSPECTED),
        # Two brokers agree that there was no leader, or the metadata log shows it.
        (before(leaderless=True), joined(), ElectionVerdict.UNCLEAN),
        (
            before(sparse=recorded(10)),
            replace(joined(), sparse=recorded(11)),
            ElectionVerdict.UNCLEAN,
        ),
        # Nothing proves that broker 1 could have been elected.
        (before(), joined(members=[2]), ElectionVerdict.UNCLEAN),
        (before(), joined(leader_epoch=4), ElectionVerdict.UNCLEAN),
        (before(), joined(error="refused"), ElectionVerdict.UNCLEAN),
    ],
)
def test_a_leader_that_only_one_broker_could_not_name_may_have_let_the_next_one_join(
    old: PartitionState, new: PartitionState, expected: ElectionVerdict
) -> None:
    assert verdict(old, new) is expected


REPLACED: dict[str, Any] = {"leader": 1, "assigned": [1, 3], "in_sync_replicas": [1, 3]}
STAYING = ReplicaState(1, log_end_offset=9, leader_epoch=5)
SILENT = ReplicaState(1, log_end_offset=9, leader_epoch=5, error="refused")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (before(**REPLACED), after(assigned=[2, 4], in_sync_replicas=[2, 4]), None),
        (
            before(**REPLACED),
            after(assigned=[2, 1], in_sync_replicas=[2, 1], replicas=[STAYING]),
            None,
        ),
        (
            before(**REPLACED),
            after(assigned=[2, 1], in_sync_replicas=[2], replicas=[STAYING]),
            ElectionVerdict.SUSPECTED,
        ),
        (
            before(**REPLACED),
            after(assigned=[2, 1], in_sync_replicas=[2, 1], replicas=[SILENT]),
            ElectionVerdict.SUSPECTED,
        ),
        (
            before(**REPLACED),
            after(assigned=[2, 4], in_sync_replicas=[4]),
            ElectionVerdict.SUSPECTED,
        ),
        (
            before(**REPLACED),
            after(assigned=[2, 4], in_sync_replicas=[2, 4], leader_epoch=6),
            ElectionVerdict.SUSPECTED,
        ),
        # The leader was assigned before, or the assignment is unknown.
        (
            before(**REPLACED | {"assigned": [1, 2, 3]}),
            after(assigned=[2, 4], in_sync_replicas=[2, 4]),
            ElectionVerdict.SUSPECTED,
        ),
        (
            before(**REPLACED | {"assigned": []}),
            after(assigned=[2, 4], in_sync_replicas=[2, 4]),
            ElectionVerdict.SUSPECTED,
        ),
    ],
)
def test_a_leader_that_was_not_assigned_came_with_a_reassignment(
    old: PartitionState, new: PartitionState, expected: ElectionVerdict | None
) -> None:
    assert verdict(old, new) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (before(leader=1), joined(), None),
        # It leads alone, or not with every former member.
        (before(leader=1), joined(members=[2]), ElectionVerdict.SUSPECTED),
        (before(leader=1), joined(members=[1]), ElectionVerdict.SUSPECTED),
        (before(leader=1, in_sync_replicas=[1, 3]), joined(), ElectionVerdict.SUSPECTED),
        # A former member does not answer, was not sampled, or does not know the new epoch.
        (before(leader=1), joined(error="timed_out"), ElectionVerdict.SUSPECTED),
        (before(leader=1), joined(broker=3), ElectionVerdict.SUSPECTED),
        (before(leader=1), joined(leader_epoch=4), ElectionVerdict.SUSPECTED),
        # More than one election: the one between is unknown.
        (before(leader=1), joined(epoch=6), ElectionVerdict.SUSPECTED),
        # No former member is known.
        (before(leader=1, in_sync_replicas=[]), joined(), ElectionVerdict.SUSPECTED),
    ],
)
def test_a_leader_that_is_in_sync_with_all_former_members_joined_before_its_election(
    old: PartitionState, new: PartitionState, expected: ElectionVerdict | None
) -> None:
    assert verdict(old, new) is expected


COMMITTED = Committed(4, 9, 50.0, 10, 1)


def led(at: float | None = 100.0, **fields: Any) -> PartitionState:
    """Broker 1 leads at epoch 4 and was sampled last at `at`."""
    former = ReplicaState(1, log_end_offset=10, leader_epoch=4, leads=True, sampled_at=at)
    known = {"observed_at": 100.0, "replicas": [former], "committed": [COMMITTED]}
    return before(**{"leader": 1, **known, **fields})


def taken_over(at: float = 101.0, end: int = 9, epoch: int = 5) -> PartitionState:
    """Broker 2 leads; its records of epoch 4 end at `end`."""
    leader = ReplicaState(2, log_end_offset=12, leader_epoch=epoch, leads=True, sampled_at=at)
    lineage = {"lineage": [(4, end), (epoch, 12)], "lineage_complete_from": 0}
    known = {"observed_at": at, "replicas": [leader], "committed": [COMMITTED]}
    return after(leader_epoch=epoch, **known, **lineage)


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
        (led(committed=[Committed(3, 9, 50.0, 10, 1)]), taken_over(), ElectionVerdict.SUSPECTED),
    ],
)
def test_a_leader_with_every_record_committed_a_moment_before_had_joined(
    old: PartitionState, new: PartitionState, expected: ElectionVerdict | None
) -> None:
    assert verdict(old, new) is expected


WITH_LINEAGE = replace(COMMITTED, lineage=[(4, 9)], lineage_complete_from=0)


def unread(at: float = 101.0, epoch: int = 5) -> PartitionState:
    """Broker 2 leads, and its lineage was not read yet."""
    return replace(taken_over(at, epoch=epoch), lineage=None, lineage_complete_from=None)


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
def test_an_election_is_open_until_the_new_leaders_lineage_is_read(
    later: PartitionState, suspected: bool | None
) -> None:
    first, second = folded(OPENED, unread(), later)
    election = judge_election(OPENED, first)
    assert election is not None
    assert is_open(OPENED, first, election)
    assert (newly_suspected(OPENED, first), first.unclean_epoch) == (None, None)
    found = newly_suspected(first, second)
    assert (found is not None) is bool(suspected)
    assert second.unclean_epoch == (5 if suspected else None)
    if suspected is None:
        assert second.sparse == first.sparse
    if found is not None:
        assert (found.leader, found.epoch_before, found.in_sync_replicas) == (2, 4, [1])
        (third,) = folded(second, replace(later, observed_at=later.observed_at + 1))
        assert newly_suspected(second, third) is None
        assert third.sparse is not None
        assert third.sparse.open_election is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # It is certain, the lineage was read, no lineage is ever read, or the sample is too old.
        (before(committed=[WITH_LINEAGE], leaderless=True), unread()),
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


REASSIGNED: dict[str, Any] = {"leader": 1, "adding": [2], "sparse": recorded(7)}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # One record lets the added replica join, removes the others, and elects it.
        ({}, {}, None),
        ({"adding": [], "removing": [1]}, {}, None),
        ({"adding": []}, {}, ElectionVerdict.UNCLEAN),
        # The reassignment goes on.
        ({}, {"adding": [2]}, ElectionVerdict.UNCLEAN),
        ({}, {"removing": [1]}, ElectionVerdict.UNCLEAN),
        # The controller marks the leader as recovering.
        (
            {},
            {
                "sparse": SparseState(
                    metadata=MetadataPosition(8, 0, 0.0, recovering=True, adjacent=True)
                )
            },
            ElectionVerdict.UNCLEAN,
        ),
    ],
)
def test_a_record_that_completes_a_reassignment_is_a_clean_election(
    old: dict[str, Any], new: dict[str, Any], expected: ElectionVerdict | None
) -> None:
    known = before(**{**REASSIGNED, **old})
    assert verdict(known, after(**{"sparse": recorded(8), **new})) is expected


def test_the_sets_of_the_record_decide() -> None:
    """A broker that is cut off showed an older in-sync set after the record."""
    position = MetadataPosition(7, 0, 0.0, adjacent=True, in_sync_replicas=[1, 2])
    old = before(leader=1, sparse=SparseState(metadata=position))
    assert verdict(old, after(sparse=recorded(8))) is None
    assert verdict(old, after(sparse=recorded(8, adjacent=False))) is ElectionVerdict.SUSPECTED


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
