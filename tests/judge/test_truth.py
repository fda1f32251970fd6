from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judge.examples import PLACE, acknowledged, log, replicas
from tidemark_lab.brokers.load_producer import AcknowledgedRecord, record_key
from tidemark_lab.judge.truth import Ledger, LostRecord, Removed, Truth, establish, ranges

# Offsets 0 to 4 were acknowledged, one a second from 10.0 on; 3 and 4 hold other records now.
ACKED = [acknowledged(offset, offset, 10.0 + offset) for offset in range(5)]
AFTER = {0: 0, 1: 1, 2: 2, 3: 30, 4: 40}
LOST = [*ACKED, acknowledged(3, 30, 50.0), acknowledged(4, 40, 51.0)]


def test_what_the_leader_does_not_hold_is_lost_and_the_rest_is_held() -> None:
    found = establish(LOST, replicas(_1=AFTER, _2=AFTER), {PLACE: 2})
    assert [(record.offset, record.id) for record in found.lost] == [(3, 3), (4, 4)]
    held = {offset: one.acked_at for offset, one in found.held[PLACE].items()}
    assert held == {0: 10.0, 1: 11.0, 2: 12.0, 3: 50.0, 4: 51.0}
    assert found.document()["lost"] == {"orders-0": [(3, 5)]}
    assert not found.diverged


def test_what_was_never_acknowledged_is_held_without_a_time() -> None:
    found = establish([], replicas(_1={0: 7}), {PLACE: 1})
    assert found.held[PLACE][0] == (7, 0, None)


def test_a_leader_without_a_log_is_unread_and_not_empty() -> None:
    found = establish(ACKED, replicas(_1=AFTER), {PLACE: 2})
    assert list(found.unread) == [PLACE]
    assert not found.lost


def test_replicas_differ_where_a_record_differs_or_is_missing() -> None:
    logs = replicas(_1={5: 1, 6: 2}, _2={4: 9, 5: 1, 6: 3, 7: 4})
    # Offset 4 is below the log start of broker 1.
    assert establish([], logs, {PLACE: 1}).diverged == {PLACE: [6, 7]}


@given(st.sets(st.integers(0, 60)))
def test_ranges_cover_the_offsets_and_nothing_else(offsets: set[int]) -> None:
    found = ranges(list(offsets))
    assert {offset for start, end in found for offset in range(start, end)} == offsets
    assert all(end < start for (_, end), (start, _) in itertools.pairwise(found))


# It may lack records whose key is newer.
COMPACTED = Removed(compacted=[PLACE])
SAME_KEY = next(i for i in range(8, 100) if record_key(i) == record_key(7))
ONE = [acknowledged(5, 7, 1.0)]


@pytest.mark.parametrize(
    ("records", "ids", "removed", "lost"),
    [
        # What was deleted below the log start is not lost.
        (ACKED, {3: 3}, Removed({PLACE: 3}), [4]),
        # It counts as deleted even while it is on the disk, but not where another record is.
        (ACKED, {2: 2, 3: 3, 4: 4}, Removed({PLACE: 3}), []),
        (ACKED, {2: 20, 3: 3, 4: 4}, Removed({PLACE: 3}), [2]),
        # Nor is what was acknowledged before the topic was created again.
        (ACKED, {}, Removed(since={PLACE: 12.9}), [3, 4]),
        (ONE, {6: SAME_KEY}, COMPACTED, []),
        (ONE, {6: 8}, COMPACTED, [5]),
        (ONE, {4: SAME_KEY}, COMPACTED, [5]),
        (ONE, {5: 8, 6: SAME_KEY}, COMPACTED, [5]),
        (ONE, {6: SAME_KEY}, Removed(), [5]),
    ],
)
def test_what_was_removed_in_good_order_is_not_lost(
    records: list[AcknowledgedRecord], ids: dict[int, int], removed: Removed, lost: list[int]
) -> None:
    found = establish(records, replicas(_1=ids), {PLACE: 1}, removed)
    assert [record.offset for record in found.lost] == lost
    held = sum(one.acked_at is not None for one in found.held[PLACE].values())
    assert len(lost) + found.removed.get("orders", 0) + held == len(records)


def test_compacted_replicas_differ_only_where_both_have_a_record() -> None:
    logs = replicas(_1={0: 1, 2: 3}, _2={0: 1, 1: 2, 2: 4})
    found = establish([], logs, {PLACE: 1}, Removed(compacted=[PLACE]))
    assert found.diverged == {PLACE: [2]}


@pytest.fixture
def ledger() -> Ledger:
    """Records 7 and 8 at offsets 0 and 1, on both disks."""
    made = Ledger(Truth(), {PLACE: 1})
    records = [acknowledged(0, 7, 10.0), acknowledged(1, 8, 10.0)]
    made.take(records)
    assert made.settle(made.read(replicas(_1={0: 7, 1: 8}, _2={0: 7, 1: 8}), 0)) == []
    made.take([*records, acknowledged(2, 9, 11.0)])
    return made


def test_what_no_replica_has_is_lost_once_with_the_epoch_that_it_had(ledger: Ledger) -> None:
    after = {broker: {PLACE: log({0: 7, 1: 20}, 2)} for broker in (1, 2)}
    lost = [
        LostRecord(*PLACE, 1, 8, 10.0, 3, epoch=0),
        LostRecord(*PLACE, 2, 9, 11.0, 3, epoch=None),
    ]
    assert ledger.settle(ledger.read(after, 3)) == lost
    assert ledger.settle(ledger.read(after, 4)) == []
    assert ledger.truth.lost == lost
    assert ledger.truth.acknowledged == 3


def test_replicas_disagree_while_one_has_a_record_that_the_other_lacks(ledger: Ledger) -> None:
    found = ledger.read(replicas(_1={0: 7, 1: 8, 2: 9}, _2={0: 7, 1: 8}), 1)
    assert found.diverged == {PLACE: [2]}
    # What nobody acknowledged is under way.
    under_way = {0: 7, 1: 8, 2: 9, 3: 10}
    assert not ledger.read(replicas(_1=under_way, _2={0: 7, 1: 8, 2: 9}), 1).diverged
    assert not ledger.read(replicas(_1={0: 7, 1: 9}, _2={0: 7, 1: 9}), 1).diverged


def test_what_a_fault_deleted_is_not_held_any_more(ledger: Ledger) -> None:
    whole = replicas(_1={0: 7, 1: 8, 2: 9})
    assert ledger.settle(ledger.read(whole, 1, Removed({PLACE: 2}))) == []
    assert ledger.truth.removed == {"orders": 2}
    # A leader that starts over loses what was not deleted.
    assert [one.id for one in ledger.settle(ledger.read(replicas(_1={0: 30}), 2))] == [9]
