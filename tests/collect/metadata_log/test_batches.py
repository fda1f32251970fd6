"""Batches are whole or refused, wherever a file or an answer is cut or damaged."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.collect.inventories import everything
from tests.collect.metadata_log.encoding import (
    encode_batch,
    encode_leader_change,
    encode_snapshot,
    topic,
)
from tidemark.collect.sources.metadata_log.batches import DamageError, RawRecord, read_batches
from tidemark.collect.sources.metadata_log.snapshots import SnapshotReader
from tidemark.core.errors import WireError

LOG = encode_leader_change(0, 1) + encode_batch(1, [b"a", b"bc"]) + encode_batch(3, [b"d"], epoch=2)


def test_batches_have_their_offsets_epochs_and_records() -> None:
    batches, size = read_batches(LOG, check_crc=True)
    assert size == len(LOG)
    assert [(b.base_offset, b.last_offset, b.leader_epoch, b.is_control) for b in batches] == [
        (0, 0, 1, True),
        (1, 2, 1, False),
        (3, 3, 2, False),
    ]
    assert batches[1].records == [RawRecord(1, 1000, None, b"a"), RawRecord(2, 1000, None, b"bc")]
    assert list(batches[0].control_types()) == [2]
    assert list(batches[1].control_types()) == []


@given(st.integers(0, len(LOG)))
def test_a_cut_batch_is_left_for_later(cut: int) -> None:
    batches, size = read_batches(LOG[:cut], check_crc=True)
    assert read_batches(LOG[:size], check_crc=True) == (batches, size)
    assert size <= cut


@given(st.integers(0, len(LOG) - 1), st.integers(1, 255))
def test_damage_is_found_by_the_checksum_or_is_outside_of_it(at: int, change: int) -> None:
    data = bytearray(LOG)
    data[at] ^= change
    try:
        batches, _ = read_batches(bytes(data), check_crc=True)
    except DamageError as error:
        batches = error.batches
    # Offset, length and leader epoch are not covered by the checksum.
    whole, _ = read_batches(LOG, check_crc=True)
    assert [b.records and b.records[0].value for b in batches] == [
        b.records and b.records[0].value for b in whole[: len(batches)]
    ]


@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_are_batches_or_a_wire_error(data: bytes, check_crc: bool) -> None:
    head = struct.pack(">qiib", 0, 49 + len(data), 1, 2) + bytes(44)
    for found in (data, head + data, LOG + data):
        try:
            read_batches(found, check_crc=check_crc)
        except WireError:
            pass


def test_compressed_and_old_batches_are_refused() -> None:
    data = bytearray(encode_batch(0, [b"a"]))
    data[22] = 1
    with pytest.raises(WireError, match="compressed"):
        read_batches(bytes(data), check_crc=False)
    data[16] = 1
    with pytest.raises(WireError, match="magic 1"):
        read_batches(bytes(data), check_crc=False)


SNAPSHOT = encode_snapshot(topic(1, "a"), topic(2, "b"), at_ms=7000)


@given(st.lists(st.integers(1, 40), min_size=1))
def test_a_snapshot_is_read_in_chunks_of_any_size(sizes: list[int]) -> None:
    reader, position, turn = SnapshotReader(everything(), check_crc=True), 0, 0
    while position < len(SNAPSHOT):
        step = sizes[turn % len(sizes)]
        reader.add(SNAPSHOT[position : position + step])
        position, turn = position + step, turn + 1
    snapshot = reader.close()
    assert snapshot.record_at == 7.0
    assert sorted(topic.name for topic in snapshot.image.topics.values()) == ["a", "b"]


@given(st.integers(0, len(SNAPSHOT) - 1))
def test_a_cut_snapshot_is_refused(cut: int) -> None:
    reader = SnapshotReader(everything())
    reader.add(SNAPSHOT[:cut])
    with pytest.raises(WireError, match="cut"):
        reader.close()


def test_a_snapshot_begins_and_ends_with_its_control_records() -> None:
    with pytest.raises(WireError, match="header"):
        SnapshotReader(everything()).add(encode_batch(0, [b"a"]))
    with pytest.raises(WireError, match="goes on"):
        SnapshotReader(everything()).add(SNAPSHOT + encode_batch(9, [b"a"]))
