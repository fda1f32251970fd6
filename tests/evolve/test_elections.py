"""Verdicts on elections (PartitionChangeBuilder, KIP-966): unclean, suspected, or none."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.evolve.elections import after, before, recorded, verdict
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import LogReset, MetadataPosition, SparseState
from tidemark.evolve.elections import Election, ElectionVerdict, judge_election


def test_from_no_leader_to_one_outside_of_the_in_sync_set_is_unclean() -> None:
    assert judge_election(before(), after()) == Election(ElectionVerdict.UNCLEAN, 2, 4, 5)


NONE_IN_SYNC: dict[str, Any] = {"in_sync_replicas": []}
REPLACED: dict[str, Any] = {"leader": 1, "assigned": [1, 3], "in_sync_replicas": [1, 3]}
STAYING = ReplicaState(1, log_end_offset=9, leader_epoch=5)
SILENT, RESET = replace(STAYING, error="refused"), LogReset(2, 1.0, unwatched=True)
RECOVERING = MetadataPosition(8, 0, 0.0, recovering=True, adjacent=True)
REASSIGNED: dict[str, Any] = {"leader": 1, "adding": [2], "sparse": recorded(7)}


def without_any(last_known: list[int], **fields: Any) -> PartitionState:
    """No replica is in sync or eligible."""
    known = {"last_known_eligible_leader_replicas": last_known}
    return before(**{**NONE_IN_SYNC, **known, **fields})


def reassigned(**fields: Any) -> PartitionState:
    return before(**{**REASSIGNED, **fields})


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
        # No election, or a clean one.
        (before(), after(leader=None), None),
        (before(), after(leader_epoch=None), None),
        (before(leader_epoch=None), after(), None),
        (before(), after(leader_epoch=4), None),
        (before(), after(leader_epoch=3), None),
        (before(in_sync_replicas=None), after(), None),
        (before(in_sync_replicas=[1, 2]), after(), None),
        # The same broker again: at most, an expansion of the in-sync set was missed.
        (before(leader=2), after(), None),
        # An unknown state before an election allows only a suspicion.
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
        # The last known leader is named only where no other replica was left.
        (without_any([2]), after(), ElectionVerdict.LAST_KNOWN_LEADER),
        (without_any([3]), after(), ElectionVerdict.UNCLEAN),
        (without_any([2], in_sync_replicas=[1]), after(), ElectionVerdict.UNCLEAN),
        # Those that were eligible may have been struck off since they were read.
        (
            without_any([2], eligible_leader_replicas=[3]),
            after(),
            ElectionVerdict.UNCLEAN_OR_LAST_KNOWN,
        ),
        (without_any([1], eligible_leader_replicas=[3]), after(), ElectionVerdict.UNCLEAN),
        (
            without_any([2], eligible_leader_replicas=[3], sparse=recorded(10)),
            after(sparse=recorded(11)),
            ElectionVerdict.UNCLEAN,
        ),
        (without_any([2], leader=1), after(), ElectionVerdict.SUSPECTED),
        # The verdict is exact from one record of the metadata log to the next.
        (
            before(leader=1, sparse=recorded(10)),
            after(sparse=recorded(11)),
            ElectionVerdict.UNCLEAN,
        ),
        (
            before(leader=1, sparse=recorded(10, adjacent=False)),
            after(sparse=recorded(11)),
            ElectionVerdict.UNCLEAN,
        ),
        # The same record, now with a sample: changes between the samples are unknown.
        (
            before(leader=1, sparse=recorded(11)),
            after(sparse=recorded(11)),
            ElectionVerdict.SUSPECTED,
        ),
        (
            before(leader=1, sparse=recorded(10)),
            after(sparse=recorded(12, adjacent=False)),
            ElectionVerdict.SUSPECTED,
        ),
        (before(leader=1, sparse=None), after(sparse=recorded(11)), ElectionVerdict.SUSPECTED),
        (before(leader=1, sparse=recorded(10)), after(sparse=None), ElectionVerdict.SUSPECTED),
        (
            before(leader=1, sparse=SparseState()),
            after(sparse=recorded(11)),
            ElectionVerdict.SUSPECTED,
        ),
        (
            before(leader=1, sparse=recorded(10)),
            after(sparse=SparseState()),
            ElectionVerdict.SUSPECTED,
        ),
        # A leader that only one broker could not name may have let the next one join.
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
        # A leader that was not assigned came with a reassignment.
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
        # A leader that is in sync with all former members joined before its election.
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
        # After a gap, and without a topic id, it may be of a new topic.
        (before(), after(sparse=SparseState(resets=[RESET])), ElectionVerdict.SUSPECTED),
        # A record that completes a reassignment is a clean election.
        # One record lets the added replica join, removes the others, and elects it.
        (reassigned(), after(sparse=recorded(8)), None),
        (reassigned(adding=[], removing=[1]), after(sparse=recorded(8)), None),
        (reassigned(adding=[]), after(sparse=recorded(8)), ElectionVerdict.UNCLEAN),
        # The reassignment goes on.
        (reassigned(), after(sparse=recorded(8), adding=[2]), ElectionVerdict.UNCLEAN),
        (reassigned(), after(sparse=recorded(8), removing=[1]), ElectionVerdict.UNCLEAN),
        # The controller marks the leader as recovering.
        (reassigned(), after(sparse=SparseState(metadata=RECOVERING)), ElectionVerdict.UNCLEAN),
    ],
)
def test_the_verdict_on_an_election(
    old: PartitionState, new: PartitionState, expected: ElectionVerdict | None
) -> None:
    assert verdict(old, new) is expected


def test_the_election_of_an_eligible_replica_is_named_only_if_no_election_was_missed() -> None:
    old = before(**NONE_IN_SYNC, eligible_leader_replicas=[3, 2])
    assert judge_election(old, after()) == Election(ElectionVerdict.ELIGIBLE, 2, 4, 5)
    assert judge_election(old, after(leader_epoch=6)) is None


def test_the_sets_of_the_record_decide() -> None:
    """A broker that is cut off showed older sets and no reassignment after the record."""
    position = MetadataPosition(7, 0, 0.0, adjacent=True, in_sync_replicas=[1, 2])
    old = before(leader=1, sparse=SparseState(metadata=position))
    assert verdict(old, after(sparse=recorded(8))) is None
    assert verdict(old, after(sparse=recorded(8, adjacent=False))) is ElectionVerdict.SUSPECTED
    position = MetadataPosition(
        7,
        0,
        0.0,
        in_sync_replicas=[],
        eligible_leader_replicas=[],
        last_known_eligible_leader_replicas=[2],
    )
    shown = {**NONE_IN_SYNC, "eligible_leader_replicas": [2]}
    old = before(**shown, sparse=SparseState(metadata=position))
    assert judge_election(old, after(sparse=recorded(8))) == Election(
        ElectionVerdict.LAST_KNOWN_LEADER, 2, 4, 5, recorded=True
    )
    position = MetadataPosition(7, 0, 0.0, in_sync_replicas=[1], reassigning=True)
    old = before(leader=1, sparse=SparseState(metadata=position))
    assert verdict(old, after(sparse=recorded(8))) is None
