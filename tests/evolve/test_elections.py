"""Verdicts on elections (PartitionChangeBuilder, KIP-966): what is known decides between unclean, suspected and silence."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.core.leader_epochs import Committed
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import MetadataPosition, SparseState
from tidemark.evolve.elections import RECENT_SECONDS, Election, judge_election


def before(**fields: Any) -> PartitionState:
    """Nobody leads at epoch 4; broker 1 was the last in sync."""
    return PartitionState(
        **{
            "leader": None,
            "leader_epoch": 4,
            "in_sync_replicas": [1],
            "eligible_leader_replicas": [],
            **fields,
        }
    )


def after(**fields: Any) -> PartitionState:
    return PartitionState(**{"leader": 2, "leader_epoch": 5, **fields})


def recorded(offset: int, *, adjacent: bool = True) -> SparseState:
    return SparseState(metadata=MetadataPosition(offset, 0, 0.0, adjacent=adjacent))


def verdict(one: PartitionState, other: PartitionState) -> str | None:
    election = judge_election(one, other)
    return None if election is None else election.verdict


def test_from_no_leader_to_one_outside_of_the_in_sync_set_is_unclean() -> None:
    assert judge_election(before(), after()) == Election("unclean", 2, 4, 5)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (before(), after(leader=None)),
        (before(), after(leader_epoch=None)),
        (before(leader_epoch=None), after()),
        (before(), after(leader_epoch=4)),
        (before(), after(leader_epoch=3)),
        (before(in_sync_replicas=None), after()),
        (before(in_sync_replicas=[1, 2]), after()),
        # The same broker again: an expansion of the in-sync set was missed at most.
        (before(leader=2), after()),
    ],
)
def test_no_verdict_without_an_election_or_on_a_clean_one(
    one: PartitionState, other: PartitionState
) -> None:
    assert judge_election(one, other) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # A leader was still there: it may have let broker 2 in before it went.
        (before(leader=1), after()),
        # An epoch was missed.
        (before(), after(leader_epoch=6)),
        # Nobody in sync, and who was eligible is not known.
        (before(in_sync_replicas=[], eligible_leader_replicas=None), after()),
    ],
)
def test_a_gap_leaves_a_suspicion(one: PartitionState, other: PartitionState) -> None:
    assert verdict(one, other) == "suspected unclean"


def test_with_somebody_in_sync_it_does_not_matter_who_was_eligible() -> None:
    assert verdict(before(eligible_leader_replicas=None), after()) == "unclean"


def test_with_nobody_in_sync_or_eligible_it_is_unclean() -> None:
    assert verdict(before(in_sync_replicas=[]), after()) == "unclean"


def test_an_eligible_leader_is_named_so_when_nothing_was_missed() -> None:
    assert judge_election(
        before(in_sync_replicas=[], eligible_leader_replicas=[3, 2]), after()
    ) == Election("eligible leader replica", 2, 4, 5)
    assert (
        judge_election(
            before(in_sync_replicas=[], eligible_leader_replicas=[3, 2]), after(leader_epoch=6)
        )
        is None
    )


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"last_known_eligible_leader_replicas": [2]}, "last known leader"),
        ({"last_known_eligible_leader_replicas": [3]}, "unclean"),
        ({"last_known_eligible_leader_replicas": [2], "in_sync_replicas": [1]}, "unclean"),
        ({"last_known_eligible_leader_replicas": [2], "eligible_leader_replicas": [3]}, "unclean"),
        ({"last_known_eligible_leader_replicas": [2], "leader": 1}, "suspected unclean"),
    ],
)
def test_the_last_known_leader_is_named_so_only_where_nobody_else_was_left(
    fields: dict[str, Any], named: str
) -> None:
    assert verdict(before(**{"in_sync_replicas": [], **fields}), after()) == named


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        (recorded(10), recorded(11), "unclean"),
        (recorded(10, adjacent=False), recorded(11), "unclean"),
        # The same record, seen again with a sample: what lies between the samples is not known.
        (recorded(11), recorded(11), "suspected unclean"),
        (recorded(10), recorded(12, adjacent=False), "suspected unclean"),
        (None, recorded(11), "suspected unclean"),
        (recorded(10), None, "suspected unclean"),
        (SparseState(), recorded(11), "suspected unclean"),
        (recorded(10), SparseState(), "suspected unclean"),
    ],
)
def test_a_leader_that_was_there_is_no_doubt_from_one_record_of_the_metadata_log_to_the_next(
    old: SparseState | None, new: SparseState | None, named: str
) -> None:
    assert verdict(before(leader=1, sparse=old), after(sparse=new)) == named


def joined(*, members: list[int] | None = None, epoch: int = 5, **answer: Any) -> PartitionState:
    """Broker 2 leads and is in sync with broker 1, which answers under the new epoch."""
    replicas = [ReplicaState(**{"broker": 1, "log_end_offset": 9, "leader_epoch": epoch, **answer})]
    return after(
        leader_epoch=epoch,
        in_sync_replicas=[1, 2] if members is None else members,
        replicas=replicas,
    )


def test_a_leader_that_one_broker_alone_could_not_name_may_have_let_the_next_one_join() -> None:
    assert verdict(before(), joined()) == "suspected unclean"
    assert verdict(before(leaderless=True), joined()) == "unclean", (
        "two brokers agree that there was none"
    )
    for elected in (joined(members=[2]), joined(leader_epoch=4), joined(error="refused")):
        assert verdict(before(), elected) == "unclean", (
            "nothing shows that broker 1 was there to be elected"
        )
    read = joined()
    read.sparse = recorded(11)
    assert verdict(before(sparse=recorded(10)), read) == "unclean"


def test_a_leader_that_was_not_assigned_came_with_a_reassignment() -> None:
    old = {"leader": 1, "assigned": [1, 3], "in_sync_replicas": [1, 3]}
    assert verdict(before(**old), after(assigned=[2, 4], in_sync_replicas=[2, 4])) is None
    staying = [ReplicaState(1, log_end_offset=9, leader_epoch=5)]
    assert (
        verdict(before(**old), after(assigned=[2, 1], in_sync_replicas=[2, 1], replicas=staying))
        is None
    )
    silent = [ReplicaState(1, log_end_offset=9, leader_epoch=5, error="refused")]
    for elected in (
        after(assigned=[2, 1], in_sync_replicas=[2], replicas=staying),
        after(assigned=[2, 1], in_sync_replicas=[2, 1], replicas=silent),
        after(assigned=[2, 4], in_sync_replicas=[4]),
        after(assigned=[2, 4], in_sync_replicas=[2, 4], leader_epoch=6),
    ):
        assert verdict(before(**old), elected) == "suspected unclean"
    for assigned in ([1, 2, 3], []):
        assert (
            verdict(
                before(**{**old, "assigned": assigned}),
                after(assigned=[2, 4], in_sync_replicas=[2, 4]),
            )
            == "suspected unclean"
        )


def test_who_is_in_sync_with_all_that_were_joined_before_it_was_elected() -> None:
    assert verdict(before(leader=1), joined()) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # It leads alone, or not with everybody who was in sync.
        (before(leader=1), joined(members=[2])),
        (before(leader=1), joined(members=[1])),
        (before(leader=1, in_sync_replicas=[1, 3]), joined()),
        # Who was in sync does not answer, was not asked, or does not know the new epoch: it may have been away.
        (before(leader=1), joined(error="timed_out")),
        (before(leader=1), joined(broker=3)),
        (before(leader=1), joined(leader_epoch=4)),
        # More than one election: the one between may have been anything.
        (before(leader=1), joined(epoch=6)),
        # Nobody is known to have been in sync.
        (before(leader=1, in_sync_replicas=[]), joined()),
    ],
)
def test_anything_less_leaves_the_suspicion(one: PartitionState, other: PartitionState) -> None:
    assert verdict(one, other) == "suspected unclean"


SEEN = Committed(4, 9, 50.0, 10, 1)


def led(at: float | None = 100.0, **fields: Any) -> PartitionState:
    """Broker 1 leads at epoch 4 and was sampled last at `at`."""
    former = ReplicaState(1, log_end_offset=10, leader_epoch=4, leads=True, sampled_at=at)
    return before(
        **{"leader": 1, "observed_at": 100.0, "replicas": [former], "committed": [SEEN], **fields}
    )


def taken_over(at: float = 101.0, end: int = 9, epoch: int = 5) -> PartitionState:
    """Broker 2 leads; its records of epoch 4 end at `end`."""
    leader = ReplicaState(2, log_end_offset=12, leader_epoch=epoch, leads=True, sampled_at=at)
    known = {"lineage": [(4, end), (epoch, 12)], "lineage_complete_from": 4, "committed": [SEEN]}
    return after(leader_epoch=epoch, observed_at=at, replicas=[leader], **known)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # All that was committed is there; what stood above it need not be.
        (led(), taken_over(), None),
        (led(leader=None), taken_over(epoch=6), None),
        (led(), taken_over(end=8), "suspected unclean"),
        # When the former leader was seen last, not when the partition was.
        (led(), taken_over(100.0 + RECENT_SECONDS), None),
        (led(), taken_over(100.1 + RECENT_SECONDS), "suspected unclean"),
        (led(84.0), taken_over(), "suspected unclean"),
        (led(None), taken_over(), "suspected unclean"),
        (led(replicas=[]), taken_over(), "suspected unclean"),
        # Nothing is known of its epoch.
        (led(committed=[]), taken_over(), "suspected unclean"),
        (led(committed=[Committed(3, 9, 50.0, 10, 1)]), taken_over(), "suspected unclean"),
    ],
)
def test_who_has_all_that_its_predecessor_had_committed_a_moment_before_had_joined(
    one: PartitionState, other: PartitionState, expected: str | None
) -> None:
    assert verdict(one, other) == expected
