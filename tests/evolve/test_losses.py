"""The proof of a loss: what each number of it does, and each guard that keeps it silent."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tidemark.core.leader_epochs import NO_EPOCH, Committed
from tidemark.core.partition import LossCandidate, PartitionState, ReplicaState
from tidemark.evolve.losses import find_loss, keeps_committed

# Leader 1 committed 12 under epoch 0 and reached 15; broker 2 leads epoch 2, and its records of epochs <= 0 end at 5.
LEADER = ReplicaState(
    2, log_end_offset=9, log_start_offset=0, leader_epoch=2, leads=True, sampled_at=10.0
)
COMMITTED = Committed(0, 12, 1.0, 15, 1)
LOST = LossCandidate(epoch_before=0, epoch_after=2, start=5, end=12, exposed_to=15, pass_number=7)


def state(
    answer: dict[str, Any] | None = None, committed: list[Committed] | None = None, **fields: Any
) -> PartitionState:
    whole = {
        "leader": 2,
        "leader_epoch": 2,
        "replicas": [msgspec.structs.replace(LEADER, **answer or {})],
        "committed": [COMMITTED] if committed is None else committed,
        "lineage": [(0, 5), (2, 9)],
        "lineage_complete_from": 0,
        "observed_at": 10.0,
        "pass_number": 7,
        **fields,
    }
    return PartitionState(**whole)


def lost(start: int, end: int) -> LossCandidate:
    return msgspec.structs.replace(LOST, start=start, end=end)


def test_what_the_new_leader_lacks_of_what_was_committed_is_lost() -> None:
    assert find_loss(state()) == LOST


@pytest.mark.parametrize(
    ("why", "silent"),
    [
        ("nobody leads", state(leader=None)),
        ("the leader was never sampled", state(replicas=[])),
        ("the leader does not answer", state({"error": "timed_out"})),
        ("it was not sampled this time", state({"sampled_at": 9.0})),
        ("the broker says that it does not lead", state({"leads": False})),
        ("its log end is not known", state({"log_end_offset": None})),
        ("it answered before it knew of its election", state({"leader_epoch": 1})),
        ("the epoch that committed still leads", state(committed=[Committed(2, 12, 1.0, 15, 2)])),
        ("a later epoch committed it", state(committed=[Committed(3, 12, 1.0, 15, 3)])),
        ("its records of the epoch reach the high watermark", state(lineage=[(0, 12), (2, 12)])),
        (
            "its log start is not known: the lineage may speak of expired records",
            state({"log_start_offset": None}),
        ),
        (
            "its log begins at the high watermark: expired, not lost",
            state({"log_start_offset": 12}, lineage=[(2, 13)]),
        ),
        (
            "the lineage does not reach the epoch, and the log is long enough",
            state({"log_end_offset": 12}, lineage_complete_from=1),
        ),
        (
            "the whole of it was claimed before",
            state(committed=[Committed(0, 12, 1.0, 15, 1, lost_from=5)]),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_claim_while(why: str, silent: PartitionState) -> None:
    assert find_loss(silent) is None


def test_a_leader_that_does_not_say_whether_it_leads_counts_as_leading() -> None:
    assert find_loss(state({"leads": None})) == LOST


@pytest.mark.parametrize(
    "fields",
    [
        {"lineage": None},
        {"lineage": []},
        {"lineage_complete_from": 1},
        {"lineage_complete_from": None},
    ],
)
def test_without_a_lineage_that_covers_the_epoch_only_the_log_end_proves(
    fields: dict[str, Any],
) -> None:
    assert find_loss(state(**fields)) == lost(9, 12)
    assert find_loss(state({"log_end_offset": 12}, **fields)) is None


@pytest.mark.parametrize(("log_start", "begins"), [(4, 5), (5, 9), (8, 9)])
def test_an_end_at_or_below_the_log_start_may_be_a_rebuilt_epoch_cache(
    log_start: int, begins: int
) -> None:
    """LeaderEpochFileCache.truncateFromStart; so only the log end counts."""
    assert find_loss(state({"log_start_offset": log_start})) == lost(begins, 12)


@pytest.mark.parametrize(("unclean", "begins"), [(0, 9), (1, 8), (2, 8), (3, 9)])
def test_an_unclean_election_in_between_is_the_second_sign(unclean: int, begins: int) -> None:
    """It must have begun an epoch after the one that committed, and not after the one that leads now."""
    assert find_loss(state({"log_start_offset": 8}, unclean_epoch=unclean)) == lost(begins, 12)


def test_the_log_start_bounds_the_claim_of_an_unclean_election() -> None:
    assert find_loss(state({"log_start_offset": 5}, unclean_epoch=2)) == lost(5, 12)


def test_what_was_claimed_before_is_not_claimed_again() -> None:
    claimed = Committed(0, 12, 1.0, 15, 1, lost_from=8, lost_under=1)
    assert find_loss(state(committed=[claimed])) == LossCandidate(
        0, 2, 5, 8, exposed_to=8, pass_number=7
    )


def test_more_of_a_loss_under_the_same_leadership_is_the_whole_of_it() -> None:
    claimed = Committed(0, 12, 1.0, 15, 1, lost_from=8, lost_under=2)
    assert find_loss(state(committed=[claimed])) == LOST
    assert find_loss(state(committed=[msgspec.structs.replace(claimed, lost_from=5)])) is None


def test_before_epochs_a_second_loss_is_one_of_its_own() -> None:
    old = Committed(NO_EPOCH, 12, 9.0, 15, 1, lost_from=11, lost_under=NO_EPOCH)
    fields: dict[str, Any] = {"leader_epoch": None, "lineage": None, "lineage_complete_from": None}
    found = find_loss(state({"leader_epoch": None}, committed=[old], **fields))
    assert found == LossCandidate(NO_EPOCH, NO_EPOCH, 9, 11, exposed_to=11, pass_number=7)


def test_of_several_epochs_the_one_that_lost_most_is_named() -> None:
    one, two = Committed(0, 12, 1.0, 15, 1), Committed(1, 20, 2.0, 21, 1)
    found = find_loss(state(committed=[one, two]))
    assert found == LossCandidate(1, 2, 5, 20, 21, 7)
    assert find_loss(
        state(committed=[msgspec.structs.replace(one, high_watermark=30), two])
    ) == LossCandidate(0, 2, 5, 30, 15, 7)


def test_of_epochs_that_lost_the_same_the_newest_is_named() -> None:
    both = [Committed(1, 12, 2.0, 13, 1), Committed(0, 12, 1.0, 15, 1)]
    assert find_loss(state(committed=both)) == LossCandidate(1, 2, 5, 12, 13, 7)


def test_before_epochs_a_log_that_ends_below_what_was_committed_earlier_proves() -> None:
    old = Committed(NO_EPOCH, 12, 9.0, 15, 1)
    before_epochs: dict[str, Any] = {
        "leader_epoch": None,
        "lineage": None,
        "lineage_complete_from": None,
    }
    found = find_loss(state({"leader_epoch": None}, committed=[old], **before_epochs))
    assert found == LossCandidate(NO_EPOCH, NO_EPOCH, 9, 12, 15, 7)
    now = msgspec.structs.replace(old, at=10.0)
    assert find_loss(state({"leader_epoch": None}, committed=[now], **before_epochs)) is None


@pytest.mark.parametrize(
    ("keeps", "judged_at"),
    [
        (True, state(lineage=[(0, 12), (2, 12)], answer={"log_end_offset": 12})),
        (False, state(lineage=[(0, 11), (2, 12)], answer={"log_end_offset": 12})),
        # A lineage may speak of more than the log holds.
        (False, state(lineage=[(0, 12), (2, 12)], answer={"log_end_offset": 11})),
        (
            False,
            state(
                lineage=[(0, 12), (2, 12)], lineage_complete_from=1, answer={"log_end_offset": 12}
            ),
        ),
        (False, state(lineage=None, answer={"log_end_offset": 12})),
        (
            False,
            state(lineage=[(0, 12), (2, 12)], answer={"log_end_offset": 12, "error": "timed_out"}),
        ),
        (
            False,
            state(lineage=[(0, 12), (2, 12)], answer={"log_end_offset": 12, "sampled_at": 9.0}),
        ),
        (
            False,
            state(
                lineage=[(0, 12), (2, 12)],
                answer={"log_end_offset": 12, "leader_epoch": None},
                leader_epoch=None,
            ),
        ),
        # What the present epoch committed is no promise of an earlier one.
        (True, state(committed=[Committed(2, 12, 1.0, 15, 2)])),
        # Every earlier epoch must be there.
        (False, state(committed=[Committed(0, 5, 1.0, 5, 1), Committed(1, 12, 1.0, 12, 1)])),
        (False, state(committed=[Committed(2, 3, 1.0, 3, 2), Committed(0, 12, 1.0, 12, 1)])),
        # A part of it was claimed as lost.
        (False, state(committed=[Committed(0, 12, 1.0, 15, 1, lost_from=5)])),
    ],
)
def test_a_leader_keeps_what_was_committed(keeps: bool, judged_at: PartitionState) -> None:
    assert keeps_committed(judged_at) is keeps
