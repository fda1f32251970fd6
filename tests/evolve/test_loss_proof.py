"""The proof of a loss: the range of each case, and each reason for no claim."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tidemark.core.leader_epochs import NO_EPOCH, Committed
from tidemark.core.partition import LossCandidate, PartitionState, ReplicaState
from tidemark.evolve.loss_proof import find_loss, keeps_committed, keeps_lineage

# Leader 1 committed 12 under epoch 0 and its log ended at 15. Broker 2 leads epoch 2, and its
# records of epoch 0 end at 5.
LEADER = ReplicaState(
    2, log_end_offset=9, log_start_offset=0, leader_epoch=2, leads=True, sampled_at=10.0
)
COMMITTED = Committed(0, 12, 1.0, 15, 1)
LOST = LossCandidate(epoch_before=0, epoch_after=2, start=5, end=12, exposed_to=15, pass_number=7)
WITHOUT_EPOCHS: dict[str, Any] = {
    "leader_epoch": None,
    "lineage": None,
    "lineage_complete_from": None,
}


def state(
    answer: dict[str, Any] | None = None, *committed: Committed, **fields: Any
) -> PartitionState:
    whole = {
        "leader": 2,
        "leader_epoch": 2,
        "replicas": [replace(LEADER, **answer or {})],
        "committed": list(committed) or [COMMITTED],
        "lineage": [(0, 5), (2, 9)],
        "lineage_complete_from": 0,
        "observed_at": 10.0,
        "pass_number": 7,
        "uncompacted_from": 0,
    }
    return PartitionState(**{**whole, **fields})


def lost(start: int, end: int) -> LossCandidate:
    return replace(LOST, start=start, end=end)


def test_committed_records_that_the_new_leader_lacks_are_lost() -> None:
    assert find_loss(state()) == LOST
    assert find_loss(state({"leads": None})) == LOST, "it is unknown whether it acts as leader"


@pytest.mark.parametrize(
    ("why", "judged"),
    [
        ("no broker leads", state(leader=None)),
        ("the leader was never sampled", state(replicas=[])),
        ("the leader does not answer", state({"error": "timed_out"})),
        ("it was not sampled in this pass", state({"sampled_at": 9.0})),
        ("the broker does not act as leader", state({"leads": False})),
        ("its log end offset is unknown", state({"log_end_offset": None})),
        ("it answered before it knew of its election", state({"leader_epoch": 1})),
        ("the epoch that committed still leads", state(None, Committed(2, 12, 1.0, 15, 2))),
        ("a later epoch committed it", state(None, Committed(3, 12, 1.0, 15, 3))),
        ("its records of the epoch reach the high watermark", state(lineage=[(0, 12), (2, 12)])),
        (
            "its log start offset is unknown: the records may have expired",
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
        ("all of it was claimed before", state(None, replace(COMMITTED, lost_from=5))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_claim(why: str, judged: PartitionState) -> None:
    assert find_loss(judged) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"lineage": None},
        {"lineage": []},
        {"lineage_complete_from": 1},
        {"lineage_complete_from": None},
    ],
)
def test_without_a_lineage_that_covers_the_epoch_only_the_log_end_is_a_proof(
    fields: dict[str, Any],
) -> None:
    assert find_loss(state(**fields)) == lost(9, 12)
    assert find_loss(state({"log_end_offset": 12}, **fields)) is None


@pytest.mark.parametrize(
    ("log_start", "unclean", "start"),
    [
        # An end at or below the log start may come from a rebuilt epoch cache
        # (LeaderEpochFileCache.truncateFromStart). Then only the log end is a proof.
        (4, None, 5),
        (5, None, 9),
        (8, None, 9),
        # An unclean election is a second sign when it began an epoch after the one that
        # committed, and not after the present one. The log start bounds the claim.
        (8, 0, 9),
        (8, 1, 8),
        (8, 2, 8),
        (8, 3, 9),
        (5, 2, 5),
    ],
)
def test_an_end_at_the_log_start_needs_a_second_sign(
    log_start: int, unclean: int | None, start: int
) -> None:
    found = find_loss(state({"log_start_offset": log_start}, unclean_epoch=unclean))
    assert found == lost(start, 12)


@pytest.mark.parametrize(
    ("log_start", "dated", "start"), [(0, True, 0), (0, False, 9), (1, True, 9)]
)
def test_the_first_record_of_a_whole_log_is_of_a_later_epoch(
    log_start: int, dated: bool, start: int
) -> None:
    """The second sign of a log that never lost its beginning, where the lost records had epochs."""
    known = replace(COMMITTED, dated=dated)
    found = find_loss(state({"log_start_offset": log_start}, known, lineage=[(2, 9)]))
    assert found == lost(start, 12)


@pytest.mark.parametrize(
    ("lost_from", "lost_under", "expected"),
    [
        # Under an earlier leadership: the rest is another loss.
        (8, 1, LossCandidate(0, 2, 5, 8, exposed_to=8, pass_number=7)),
        # Under this leadership: the claim grows to the whole range.
        (8, 2, LOST),
        (5, 2, None),
    ],
)
def test_claimed_records_are_not_claimed_again(
    lost_from: int, lost_under: int, expected: LossCandidate | None
) -> None:
    claimed = replace(COMMITTED, lost_from=lost_from, lost_under=lost_under)
    assert find_loss(state(None, claimed)) == expected


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (Committed(NO_EPOCH, 12, 9.0, 15, 1), (9, 12, 15)),
        # Committed at this very moment.
        (Committed(NO_EPOCH, 12, 10.0, 15, 1), None),
        # A second loss is a loss of its own.
        (Committed(NO_EPOCH, 12, 9.0, 15, 1, lost_from=11, lost_under=NO_EPOCH), (9, 11, 11)),
    ],
)
def test_without_epochs_a_log_end_below_what_was_committed_earlier_is_a_proof(
    entry: Committed, expected: tuple[int, int, int] | None
) -> None:
    found = find_loss(state({"leader_epoch": None}, entry, **WITHOUT_EPOCHS))
    assert found == (expected and LossCandidate(NO_EPOCH, NO_EPOCH, *expected, pass_number=7))


@pytest.mark.parametrize(
    ("lineage", "epoch_after"),
    [
        # Its newest record is of the same epoch, or of an earlier one.
        ([(0, 3), (5, 9)], NO_EPOCH),
        ([(0, 3), (4, 9)], NO_EPOCH),
        ([(0, 3), (6, 9)], 6),
    ],
)
def test_without_epochs_a_log_that_did_not_go_on_shows_only_its_end(
    lineage: list[tuple[int, int]], epoch_after: int
) -> None:
    """The end of epoch 0 differs too, which proves more once the leader has written later ones."""
    known = {"lineage": [(0, 5), (5, 12)], "lineage_complete_from": 0}
    entry = replace(Committed(5, 12, 9.0, 15, 1), **known)
    judged = state({"leader_epoch": None}, entry, leader_epoch=None, lineage=lineage)
    judged.compacted = False
    found = find_loss(judged)
    assert found is not None
    start = 9 if epoch_after == NO_EPOCH else 3
    assert (found.epoch_before, found.epoch_after, found.start) == (5, epoch_after, start)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ([COMMITTED, Committed(1, 20, 2.0, 21, 1)], LossCandidate(1, 2, 5, 20, 21, 7)),
        (
            [replace(COMMITTED, high_watermark=30), Committed(1, 20, 2.0, 21, 1)],
            LossCandidate(0, 2, 5, 30, 15, 7),
        ),
        # The newest epoch of those that lost as much.
        ([Committed(1, 12, 2.0, 13, 1), COMMITTED], LossCandidate(1, 2, 5, 12, 13, 7)),
    ],
)
def test_the_loss_with_the_highest_end_is_found(
    table: list[Committed], expected: LossCandidate
) -> None:
    assert find_loss(state(None, *table)) == expected


def test_without_epochs_a_lineage_proves_more_than_the_log_end() -> None:
    table = [Committed(NO_EPOCH, 12, 9.0, 15, 1), Committed(0, 10, 9.0, 10, 1)]
    found = find_loss(state({"leader_epoch": None}, *table, leader_epoch=None))
    assert found == LossCandidate(0, 2, 5, 10, 10, pass_number=7)


WHOLE: dict[str, Any] = {"lineage": [(0, 12), (2, 12)]}


# Leader 2 committed 18 under epoch 1, and epoch 0 ended at 5 in its log.
SECOND = Committed(1, 18, 1.0, 18, 2, lineage=[(0, 5), (1, 18)], lineage_complete_from=0)


def returned(
    answer: dict[str, Any] | None = None, entry: Committed = SECOND, **fields: Any
) -> PartitionState:
    """Broker 1 leads epoch 3: it had a tail of epoch 0 up to 24, which was never committed."""
    whole = {
        "leader": 1,
        "leader_epoch": 3,
        "lineage": [(0, 24), (3, 24)],
        "compacted": False,
    }
    leader = {"broker": 1, "leader_epoch": 3, "log_end_offset": 24}
    return state({**leader, **(answer or {})}, entry, **{**whole, **fields})


FORKED = Committed(3, 18, 1.0, 18, 2, lineage=[(0, 3), (2, 10), (3, 18)], lineage_complete_from=0)
UNSURE = replace(FORKED, lineage=[(0, 5), (1, 9), (3, 18)])
SURE = Committed(2, 18, 1.0, 18, 2, lineage=[(0, 5), (2, 18)], lineage_complete_from=0)
PARTED = [(0, 3), (1, 18), (3, 24)]
THIRD = Committed(2, 18, 1.0, 18, 2, lineage=[(0, 3), (1, 5), (2, 18)], lineage_complete_from=1)


@pytest.mark.parametrize(
    ("start", "judged"),
    [
        (5, returned()),
        # What was deleted is not lost: by this leader's log start, or by an earlier one's.
        (7, returned({"log_start_offset": 7})),
        (9, returned(entry=replace(SECOND, log_start_offset=9))),
        (None, returned(entry=replace(SECOND, log_start_offset=18))),
        # Its log lacks records of an epoch of which it has none.
        (3, returned(lineage=[(0, 3), (2, 24), (3, 24)])),
        # A copy of a compacted log dates epochs by the records that survived.
        (None, returned(compacted=True)),
        (None, returned(compacted=None)),
        # So may those that were written before the policy was known.
        (5, returned(uncompacted_from=5)),
        (None, returned(uncompacted_from=6)),
        # A lineage that does not reach the epoch, or is unknown.
        (None, returned(lineage_complete_from=1)),
        (None, returned(entry=replace(SECOND, lineage_complete_from=1))),
        (None, returned(entry=replace(SECOND, lineage_complete_from=None))),
        (None, returned(entry=replace(SECOND, lineage=[]))),
        # An end at the log start is no end.
        (None, returned({"log_start_offset": 24}, lineage=[(0, 24), (3, 24)])),
        (None, returned({"log_start_offset": 7}, lineage=[(0, 7), (3, 24)])),
        # Nor is one below records of epoch 1 that both logs hold (Log Matching).
        (None, returned(entry=replace(SECOND, log_start_offset=4), lineage=PARTED)),
        # Nor is one at the log start of the leader that committed.
        (None, returned(entry=replace(SECOND, log_start_offset=5), lineage=PARTED)),
        # The first epoch of a log that never had an older one shows no end of it.
        (None, returned(entry=replace(SECOND, lineage=[(1, 18)]))),
        # An epoch of which one log has no record is no obstacle to the next one.
        (10, returned({"leader_epoch": 4}, FORKED, leader_epoch=4, lineage=[(2, 14), (4, 24)])),
        # Nor is one whose end is not sure.
        (
            9,
            returned(
                {"leader_epoch": 4}, UNSURE, leader_epoch=4, lineage=[(0, 3), (1, 14), (4, 24)]
            ),
        ),
        # The lineage of the longer log shows whether its end is sure.
        (
            3,
            returned({"leader_epoch": 4}, SURE, leader_epoch=4, lineage=[(0, 3), (1, 24), (4, 24)]),
        ),
        # Records of epoch 2 that both logs hold: they are equal below.
        (
            None,
            returned({"leader_epoch": 4}, SURE, leader_epoch=4, lineage=[(0, 3), (2, 18), (4, 24)]),
        ),
        # An epoch that one lineage does not reach is no obstacle to the next one.
        (5, returned(entry=THIRD, lineage=[(0, 3), (1, 24), (3, 24)])),
        # Both logs are equal.
        (None, returned(lineage=[(0, 5), (1, 18), (3, 24)])),
    ],
)
def test_an_older_epoch_that_ends_elsewhere_proves_a_loss(
    start: int | None, judged: PartitionState
) -> None:
    found = find_loss(judged)
    assert (None if found is None else found.start) == start


@pytest.mark.parametrize(
    ("diverged", "judged"),
    [
        (True, returned()),
        (False, state()),
        (False, returned(lineage=[(0, 3), (2, 24), (3, 24)])),
        # The shorter end of epoch 0 is at the log start of the leader that committed.
        (
            True,
            returned(
                {"leader_epoch": 4},
                replace(SURE, log_start_offset=5),
                leader_epoch=4,
                lineage=[(0, 3), (1, 24), (4, 24)],
            ),
        ),
    ],
)
def test_a_longer_epoch_shows_that_the_logs_diverged(
    diverged: bool, judged: PartitionState
) -> None:
    found = find_loss(judged)
    assert found is not None
    assert found.diverged is diverged


@pytest.mark.parametrize(
    ("keeps", "judged"),
    [
        (True, state({"log_end_offset": 12}, **WHOLE)),
        (False, state({"log_end_offset": 12}, lineage=[(0, 11), (2, 12)])),
        # A lineage may reach past the log.
        (False, state({"log_end_offset": 11}, **WHOLE)),
        (False, state({"log_end_offset": 12}, **WHOLE, lineage_complete_from=1)),
        (False, state({"log_end_offset": 12}, lineage=None)),
        (False, state({"log_end_offset": 12, "error": "timed_out"}, **WHOLE)),
        (False, state({"log_end_offset": 12, "sampled_at": 9.0}, **WHOLE)),
        (False, state({"log_end_offset": 12, "leader_epoch": None}, **WHOLE, leader_epoch=None)),
        # The present epoch's own records are not those of an earlier epoch.
        (True, state(None, Committed(2, 12, 1.0, 15, 2))),
        # Nothing was committed before, and the log is empty.
        (True, state({"log_end_offset": 0}, Committed(2, 0, 1.0, 0, 2))),
        # One record was committed, and it is another one.
        (False, state(None, Committed(0, 1, 1.0, 1, 1), lineage=[(1, 5), (2, 9)])),
        # Every earlier epoch must be there.
        (False, state(None, Committed(0, 5, 1.0, 5, 1), Committed(1, 12, 1.0, 12, 1))),
        (False, state(None, Committed(2, 3, 1.0, 3, 2), COMMITTED)),
        # A part of it was claimed as lost.
        (False, state(None, replace(COMMITTED, lost_from=5))),
        # The epoch of the newest committed record decides.
        (False, returned()),
        (True, returned(lineage=[(0, 5), (1, 18), (3, 24)])),
        # The newest committed record is of an older epoch than the one that committed it.
        (True, returned(entry=replace(SECOND, lineage=[(0, 18)]), lineage=[(0, 18), (3, 24)])),
        (False, returned(entry=replace(SECOND, lineage=[]), lineage=[(0, 18), (3, 24)])),
        # Where the first epoch of a lineage begins is unknown.
        (False, returned(lineage=[(1, 18), (3, 24)], lineage_complete_from=1)),
        # All of it was deleted.
        (True, returned(entry=replace(SECOND, log_start_offset=18))),
    ],
)
def test_whether_a_leader_keeps_all_that_was_committed(keeps: bool, judged: PartitionState) -> None:
    assert keeps_committed(judged) is keeps


@pytest.mark.parametrize(
    ("keeps", "answer", "log_start"),
    [
        # A lineage may reach past the log. All that was committed is deleted.
        (True, {"log_end_offset": 12}, 0),
        (False, {"log_end_offset": 11}, 0),
        (True, {"log_end_offset": 0}, 12),
        # A leader that does not answer keeps nothing for certain.
        (False, {"log_end_offset": 12, "error": "timed_out"}, 0),
    ],
)
def test_without_epochs_no_log_end_was_higher(
    keeps: bool, answer: dict[str, Any], log_start: int
) -> None:
    dated = Committed(0, 12, 1.0, 15, 1, log_start_offset=log_start)
    known: dict[str, Any] = {"leader_epoch": None, "lineage": [(0, 12)], "lineage_complete_from": 0}
    assert keeps_lineage(state({"leader_epoch": None, **answer}, dated, **known)) is keeps


@pytest.mark.parametrize(("covers_earlier", "high_watermark"), [(True, 18), (False, 18), (True, 7)])
def test_an_epoch_that_had_all_before_it_covers_them(
    covers_earlier: bool, high_watermark: int
) -> None:
    """The lineage has forgotten the first epoch."""
    first = Committed(0, 8, 1.0, 8, 1)
    second = replace(SECOND, high_watermark=high_watermark, covers_earlier=covers_earlier)
    lineage = [(1, 6), (2, 24), (3, 24)]
    entry = replace(second, epoch=2, lineage=lineage[:2], lineage_complete_from=1)
    judged = returned(lineage=lineage, lineage_complete_from=1)
    judged.committed = [first, entry]
    assert keeps_committed(judged) is (covers_earlier and high_watermark == 18)
