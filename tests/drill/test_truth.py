from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tests.drill.examples import PLACE, acknowledged, loss
from tidemark_lab.drills.pipeline import ReceivedAlert
from tidemark_lab.judge.claims import Claims
from tidemark_lab.judge.truth import Removed, Truth, establish, ranges

# Offsets 0 to 4 were acknowledged, one a second from 10.0 on; 3 and 4 hold other records now.
ACKED = [acknowledged(offset, offset, 10.0 + offset) for offset in range(5)]
AFTER = {0: 0, 1: 1, 2: 2, 3: 30, 4: 40}
LOST = [*ACKED, acknowledged(3, 30, 50.0), acknowledged(4, 40, 51.0)]


def truth(log: dict[int, int]) -> Truth:
    return establish(LOST, {1: {PLACE: log}, 2: {PLACE: log}}, {PLACE: 2})


def claims_of(*claims: ReceivedAlert, sampled: int = 5) -> Claims:
    return Claims.of([c.alert for c in claims], truth(AFTER), {PLACE: [(13.0, sampled)]})


def test_what_the_leader_does_not_hold_is_lost_and_the_rest_is_kept() -> None:
    found = truth(AFTER)
    assert [(r.offset, r.id) for r in found.lost[PLACE]] == [(3, 3), (4, 4)]
    assert found.kept[PLACE] == {0: 10.0, 1: 11.0, 2: 12.0, 3: 50.0, 4: 51.0}
    assert found.document()["lost"] == {"orders-0": [(3, 5)]}
    assert not found.diverged


def test_a_leader_without_a_log_is_unread_and_not_empty() -> None:
    found = establish(ACKED, {1: {PLACE: AFTER}}, {PLACE: 2})
    assert list(found.unread) == [PLACE]
    assert found.lost_records == 0


def test_replicas_differ_where_a_record_differs_or_is_missing() -> None:
    logs = {1: {PLACE: {5: 1, 6: 2}}, 2: {PLACE: {4: 9, 5: 1, 6: 3, 7: 4}}}
    # Offset 4 is below the log start of broker 1.
    assert establish([], logs, {PLACE: 1}).diverged == {PLACE: [6, 7]}


def test_an_exact_claim_is_true_and_complete() -> None:
    claims = claims_of(loss(3, 5, 14.5))
    assert (claims.proven, claims.untrue, list(claims.unclaimed)) == (2, {}, [])
    assert [verdict for _, verdict, _ in claims.checks()] == ["PASSED", "PASSED"]


def test_a_claim_over_a_surviving_record_is_untrue() -> None:
    claims = claims_of(loss(2, 5, 14.5))
    assert claims.untrue == {PLACE: [2]}
    assert next(claims.checks())[1] == "FAILED"


def test_a_new_record_at_a_lost_offset_does_not_refute_the_claim() -> None:
    # Offsets 3 and 4 hold records that were acknowledged after the reading.
    assert not claims_of(loss(3, 5, 14.5)).untrue


def test_a_lost_record_below_the_reading_must_be_claimed() -> None:
    claims = claims_of(loss(4, 5, 14.5))
    assert [record.offset for record in claims.unclaimed] == [3]
    assert [verdict for _, verdict, _ in claims.checks()] == ["PASSED", "FAILED"]


def test_what_was_acknowledged_after_the_last_reading_is_the_shortfall() -> None:
    claims = claims_of(loss(3, 4, 13.5), sampled=4)
    assert [record.offset for record in claims.later] == [4]
    assert claims.shortfall_ms == 500.0


def test_losses_without_a_claim_are_counted_apart() -> None:
    claims = claims_of()
    assert (len(claims.unproven), claims.proven, claims.shortfall_ms) == (2, 0, None)


@given(st.sets(st.integers(0, 60)))
def test_ranges_cover_the_offsets_and_nothing_else(offsets: set[int]) -> None:
    found = ranges(list(offsets))
    assert {offset for start, end in found for offset in range(start, end)} == offsets
    assert all(end < start for (_, end), (start, _) in itertools.pairwise(found))


def removed(log: dict[int, int], removed: Removed) -> list[int]:
    found = establish(ACKED, {1: {PLACE: log}}, {PLACE: 1}, removed)
    return [record.offset for record in found.lost.get(PLACE, [])]


def test_what_was_deleted_below_the_log_start_is_not_lost() -> None:
    assert removed({3: 3}, Removed({PLACE: 3})) == [4]


def test_what_was_acknowledged_before_the_topic_was_created_again_is_not_lost() -> None:
    assert removed({}, Removed(since=13.0)) == [3, 4]


def test_a_compacted_log_may_lack_records_whose_key_is_newer() -> None:
    # Record ids 0 and 19 have the same key.
    records = [acknowledged(0, 0, 1.0), acknowledged(1, 1, 2.0), acknowledged(2, 19, 3.0)]
    log = {2: 19}
    for compacted, lost in ((False, [0, 1]), (True, [1])):
        found = establish(records, {1: {PLACE: log}}, {PLACE: 1}, Removed(compacted=compacted))
        assert [record.offset for record in found.lost[PLACE]] == lost


def test_compacted_replicas_differ_only_where_both_have_a_record() -> None:
    logs = {1: {PLACE: {0: 1, 2: 3}}, 2: {PLACE: {0: 1, 1: 2, 2: 4}}}
    found = establish([], logs, {PLACE: 1}, Removed(compacted=True))
    assert found.diverged == {PLACE: [2]}
