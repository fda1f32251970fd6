"""What counts as a difference between the logs of replicas, and what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.verbs.audit.logs import Written, flipped, read, written
from tidemark.verbs.audit.comparison import Comparison, compare

LOG = written(3, 1, 4, 2)


def against(
    other: list[Written],
    log: list[Written] | None = None,
    *,
    start: int = 0,
    limit: int = 10,
    cleaned: bool = False,
) -> Comparison:
    logs = {1: read(log or LOG, start), 2: read(other, start), 3: read(log or LOG, start)}
    return compare(logs, start, limit, cleaned=cleaned)


def test_equal_logs_have_no_difference() -> None:
    assert against(LOG) == Comparison(10, 12, [], 0, {})


def test_another_value_is_a_difference_of_its_batch_and_record() -> None:
    other = [*LOG[:2], LOG[2].with_value(5, b"other"), LOG[3]]
    for cleaned in (False, True):
        (found,) = against(other, cleaned=cleaned).differences
        assert (found.start, found.offset, found.records, found.first_record) == (4, 5, 1, 5)
        assert [(copy.broker, copy.base_offset) for copy in found.copies] == [
            (1, 4),
            (2, 4),
            (3, 4),
        ]
        assert found.copies[0].crc == found.copies[2].crc != found.copies[1].crc


def test_another_leader_epoch_is_a_difference_although_the_records_are_equal() -> None:
    other = [*LOG[:2], replace(LOG[2], epoch=7), LOG[3]]
    (found,) = against(other).differences
    assert (found.offset, found.records, found.first_record) == (4, 0, None)
    assert [copy.leader_epoch for copy in found.copies] == [0, 7, 0]


def test_bytes_that_do_not_have_their_crc_are_called_damaged() -> None:
    logs = {1: read(LOG), 2: read(LOG)}
    logs[2][0] = flipped(logs[2][0], -2, 1)
    (found,) = compare(logs, 0, 10, cleaned=False).differences
    assert [copy.damaged for copy in found.copies] == [False, True]


def test_other_batches_with_the_same_records_differ_up_to_the_next_common_start() -> None:
    other = [*written(2, 2), *LOG[2:]]
    (found,) = against(other).differences
    assert (found.start, found.offset, found.records) == (0, 0, 0)
    assert not against(other, cleaned=True).differences


@pytest.mark.parametrize(
    ("other", "offset", "absent", "copies", "records"),
    [
        ([*LOG[:2], LOG[2].without(5, 6), LOG[3]], 5, (), 3, 2),
        ([LOG[0], *LOG[2:]], 3, (2,), 2, 1),
    ],
    ids=["records", "batch"],
)
def test_what_one_log_lacks_counts_unless_the_log_is_cleaned(
    other: list[Written], offset: int, absent: tuple[int, ...], copies: int, records: int
) -> None:
    (found,) = against(other).differences
    assert (found.offset, found.absent, len(found.copies)) == (offset, absent, copies)
    assert found.records == records
    result = against(other, cleaned=True)
    assert (result.differences, result.absent_records) == ([], records)


def test_a_cleaned_log_is_compared_record_by_record() -> None:
    other = [*LOG[:2], LOG[2].without(5).with_value(6, b"other"), LOG[3]]
    (found,) = against(other, cleaned=True).differences
    assert (found.offset, found.records) == (6, 1)


def test_batches_of_a_cleaned_log_that_cannot_be_read_are_counted() -> None:
    logs = {1: read(LOG), 2: read(LOG)}
    logs[2][1] = flipped(logs[2][1], 22, 5)
    assert compare(logs, 0, 10, cleaned=True).unread == {"compression 5 is unknown": 1}
    (found,) = compare(logs, 0, 10, cleaned=False).differences
    assert (found.offset, found.records, found.unread) == (3, None, "compression 5 is unknown")


def test_damaged_records_are_a_difference_also_of_a_cleaned_log() -> None:
    packed = written(3, compression=1)
    logs = {1: read(packed), 2: read(packed)}
    logs[2][0] = flipped(logs[2][0], -3, 1)
    (found,) = compare(logs, 0, 3, cleaned=True).differences
    assert (found.offset, found.records) == (0, None)
    assert found.unread is not None
    assert found.unread.startswith("its records are damaged")


def test_what_is_above_the_limit_or_not_read_by_all_is_left_for_later() -> None:
    other = [*LOG[:3], LOG[3].with_value(9, b"other")]
    assert against(other, limit=8) == Comparison(8, 9, [], 0, {})
    logs = {1: read(LOG), 2: read(LOG)[:2]}
    assert compare(logs, 0, 10, cleaned=False).end == 4
    # The limit is within a batch.
    assert against(LOG, limit=6).end == 4
    assert against(LOG, start=5, limit=6).end == 5


def test_a_gap_of_a_cleaned_log_up_to_the_limit_is_read() -> None:
    logs = {1: read(LOG), 2: read([LOG[0], *written(1, start=20)])}
    result = compare(logs, 0, 10, cleaned=True)
    assert (result.end, result.absent_records) == (10, 7)


sizes = st.lists(st.integers(1, 4), min_size=1, max_size=8)


@settings(max_examples=50)
@given(sizes, st.data())
def test_a_planted_difference_is_found_and_named(shape: list[int], data: st.DataObject) -> None:
    log = written(*shape)
    end = sum(shape)
    offset = data.draw(st.integers(0, end - 1))
    broker = data.draw(st.sampled_from([1, 2, 3]))
    logs = {number: read(log) for number in (1, 2, 3)}
    logs[broker] = read([batch.with_value(offset, b"other") for batch in log])
    cleaned = data.draw(st.booleans())
    result = compare(logs, 0, end, cleaned=cleaned)
    assert [d.first_record for d in result.differences] == [offset]
    crcs = {copy.broker: copy.crc for copy in result.differences[0].copies}
    assert len({crc for number, crc in crcs.items() if number != broker}) == 1
    assert crcs[broker] not in [crc for number, crc in crcs.items() if number != broker]


@settings(max_examples=50)
@given(sizes, st.data())
def test_cleaned_copies_of_one_log_never_differ(shape: list[int], data: st.DataObject) -> None:
    log = written(*shape)
    logs = {}
    for broker in (1, 2):
        # The newest record of a key always survives.
        gone = data.draw(st.sets(st.integers(0, sum(shape)))) - {sum(shape) - 1}
        kept = [batch.without(*gone) for batch in log]
        logs[broker] = read([batch for batch in kept if batch.values])
    result = compare(logs, 0, sum(shape), cleaned=True)
    assert (result.end, result.differences) == (sum(shape), [])
