"""Batches in bytes: every format, cut and damaged ones."""

from __future__ import annotations

import gzip
import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.verbs.audit.logs import encode, flipped, legacy, written
from tidemark.collect.sources.log_directories.files import read_segments
from tidemark.kafka import decompression as module
from tidemark.kafka.decompression import UnreadableRecordsError
from tidemark.record_log.batches import MAX_BATCH_BYTES, DamagedLogError, split_batches
from tidemark.record_log.segments import end_of
from tidemark.verbs.audit.comparison import record_digests


def test_the_batches_of_a_log_with_their_offsets_epochs_and_crcs() -> None:
    found, incomplete = split_batches(encode(written(3, 2, start=10, epoch=4)), 11)
    assert [(b.base_offset, b.last_offset, b.leader_epoch) for b in found] == [
        (10, 12, 4),
        (13, 14, 4),
    ]
    assert incomplete == 0
    assert all(batch.crc == batch.actual_crc() for batch in found)
    assert list(record_digests(found[0])) == [10, 11, 12]


def test_an_incomplete_batch_at_the_end_is_left_out_with_its_size() -> None:
    whole = encode(written(3, 5))
    first = len(encode(written(3)))
    found, incomplete = split_batches(whole[:-1], 0)
    assert [batch.base_offset for batch in found] == [0]
    assert incomplete == len(whole) - first
    assert split_batches(whole[:5], 0) == ([], 17)


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_before_leader_epochs(magic: int) -> None:
    data = legacy(magic, (7, b"a"), (8, b"b"))
    found, _ = split_batches(data, 7)
    assert [(b.base_offset, b.last_offset, b.leader_epoch) for b in found] == [
        (7, 7, None),
        (8, 8, None),
    ]
    assert all(batch.crc == batch.actual_crc() for batch in found)
    assert list(record_digests(found[1])) == [8]


def test_equal_records_have_equal_digests_under_any_compression() -> None:
    (plain,), _ = split_batches(encode(written(4)), 0)
    (packed,), _ = split_batches(encode(written(4, compression=1)), 0)
    assert plain.crc != packed.crc
    assert record_digests(plain) == record_digests(packed)


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (16, b"\x07", "magic 7 is unknown"),
        (0, b"\xff", "is negative"),
        (8, b"\x7f", "bytes"),
        (23, b"\xff", "a last offset delta of"),
    ],
)
def test_damage_at_the_start_is_an_error_and_later_ends_the_batches(
    at: int, value: bytes, reason: str
) -> None:
    good = encode(written(2))
    bad = bytearray(encode(written(2, start=2)))
    bad[at : at + 1] = value
    with pytest.raises(DamagedLogError, match=reason):
        split_batches(bytes(bad), 0)
    found, incomplete = split_batches(good + bytes(bad), 0)
    assert ([batch.base_offset for batch in found], incomplete) == ([0], 0)


def test_offsets_that_do_not_ascend_are_damage() -> None:
    with pytest.raises(DamagedLogError, match="offset 0 follows offset 8"):
        split_batches(encode(written(2)), 9)


def test_records_that_unpack_beyond_the_bound_are_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_UNPACKED_BYTES", 10_000)
    (batch,), _ = split_batches(encode(written(1, compression=1)), 0)
    bomb = batch._replace(data=batch.data[:61] + gzip.compress(bytes(4_000_000)))
    with pytest.raises(UnreadableRecordsError, match="unpack to over"):
        record_digests(bomb)


@pytest.mark.parametrize(
    ("codec", "reason"), [(5, "compression 5 is unknown"), (3, "no Python library for lz4")]
)
def test_compression_that_cannot_be_read(
    codec: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lz4.frame", None)
    monkeypatch.setattr(module, "_pyarrow", lambda: None)
    (batch,), _ = split_batches(encode(written(1)), 0)
    with pytest.raises(UnreadableRecordsError, match=reason):
        record_digests(flipped(batch, 22, codec))


@settings(max_examples=60)
@given(st.binary(max_size=300), st.integers(0, 5))
def test_any_bytes_give_batches_or_one_kind_of_error(data: bytes, start: int) -> None:
    parse_any(data, start)


def parse_any(data: bytes, start: int) -> None:
    try:
        found, _ = split_batches(data, start)
    except DamagedLogError:
        return
    for batch in found:
        try:
            record_digests(batch)
        except UnreadableRecordsError:
            continue


@settings(max_examples=60)
@given(st.data())
def test_changed_bytes_of_a_log_give_batches_or_one_kind_of_error(data: st.DataObject) -> None:
    log = bytearray(encode(written(2, 3, compression=data.draw(st.sampled_from([0, 1])))))
    for _ in range(data.draw(st.integers(1, 4))):
        log[data.draw(st.integers(0, len(log) - 1))] = data.draw(st.integers(0, 255))
    parse_any(bytes(log[: data.draw(st.integers(0, len(log)))]), 0)


def test_a_segment_beyond_2_gib_is_read_whatever_its_index_holds(tmp_path: Path) -> None:
    """Positions are found from the heads of batches; an index is never read."""
    path, batches = tmp_path / f"{0:020d}.log", 40
    with path.open("wb") as log:
        for offset in range(batches):
            log.seek(offset * MAX_BATCH_BYTES)
            # Base offset, length, leader epoch, magic; the rest of the batch is a hole.
            log.write(struct.pack(">qiib", offset, MAX_BATCH_BYTES - 12, 0, 2))
        log.truncate(batches * MAX_BATCH_BYTES)
    path.with_suffix(".index").write_bytes(b"12 bytes an entry, and no multiple of 8"[:36])
    assert path.stat().st_size > 2**31
    assert end_of(0, path) == (batches, None)
    assert read_segments(tmp_path) == (1, batches * MAX_BATCH_BYTES, 36)
