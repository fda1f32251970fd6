from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.replica_logs import (
    cut_log,
    log_start_offset,
    read_epochs,
    read_log,
    read_replicas,
)

PLACE = ("t", 0)


def batch(
    magic: int, first: int, ids: list[int], epoch: int = -1, *, is_control: bool = False
) -> bytes:
    """Records at offsets from `first` on; of Kafka before 0.11 one message each."""
    if magic < 2:
        return b"".join(_message(magic, first + n, one) for n, one in enumerate(ids))
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)
    for number, record in enumerate(ids):
        builder.append(number, 1000 + number, b"k", f"{record} ...".encode(), [("h", b"v")])
    data = bytearray(bytes(builder.build()))
    data[:8], data[12:16] = first.to_bytes(8, "big"), epoch.to_bytes(4, "big", signed=True)
    data[22] |= 0x20 * is_control
    return bytes(data)


def _message(magic: int, offset: int, record: int) -> bytes:
    builder: Any = LegacyRecordBatchBuilder(magic, 0, 1 << 20)
    builder.append(0, timestamp=1000, key=None, value=f"{record} ...".encode())
    data = bytearray(bytes(builder.build()))
    data[:8] = offset.to_bytes(8, "big")
    return bytes(data)


def folder(root: Path, data: bytes) -> Path:
    log = root / "t-0"
    log.mkdir(exist_ok=True)
    (log / "00000000000000000000.log").write_bytes(data)
    return root


def ids_of(root: Path) -> dict[int, int]:
    return {offset: stored.id for offset, stored in (read_log(root, PLACE) or {}).items()}


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_ids_are_those_that_were_written(magic: int, tmp_path: Path) -> None:
    data = batch(magic, 0, [7, 8]) + batch(magic, 2, [20])
    assert ids_of(folder(tmp_path, data)) == {0: 7, 1: 8, 2: 20}
    assert read_replicas(tmp_path, [PLACE]) == {PLACE: (3, None)}


def test_a_log_that_is_not_there_is_none_and_an_empty_one_has_no_records(tmp_path: Path) -> None:
    assert read_log(tmp_path, PLACE) is None
    assert read_log(folder(tmp_path, b""), PLACE) == {}


def test_records_of_another_producer_have_no_id(tmp_path: Path) -> None:
    data = batch(2, 0, [1]).replace(b"1 ...", b"x ...")
    assert read_log(folder(tmp_path, data), PLACE) == {}


@pytest.mark.parametrize("magic", [1, 2])
@given(cut=st.integers(0, 400))
def test_a_log_cut_anywhere_shows_its_whole_batches(
    magic: int, cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    parts = [batch(magic, 0, [1, 2]), batch(magic, 2, [3]), batch(magic, 3, [4, 5])]
    found = ids_of(folder(tmp_path_factory.mktemp("log"), b"".join(parts)[:cut]))
    assert list(found.items()) == list({0: 1, 1: 2, 2: 3, 3: 4, 4: 5}.items())[: len(found)]


@pytest.mark.parametrize(("inside", "rest"), [(False, b""), (True, b"x")])
def test_a_cut_leaves_whole_batches_or_a_part_of_the_next(
    inside: bool, rest: bytes, tmp_path: Path
) -> None:
    kept, gone = batch(2, 0, [1, 2]), batch(2, 2, [3, 4, 5])
    log = folder(tmp_path, kept + gone) / "t-0"
    # Two records are wanted; they are in a batch of three.
    assert cut_log(log, 2, inside=inside) == 2
    data = (log / "00000000000000000000.log").read_bytes()
    assert len(data) == len(kept) + (len(gone) // 2 if rest else 0)
    assert ids_of(tmp_path) == {0: 1, 1: 2}


def test_a_log_with_too_few_records_is_not_cut(tmp_path: Path) -> None:
    log = folder(tmp_path, batch(2, 0, [1])) / "t-0"
    with pytest.raises(ClusterError, match="fewer than 2 records"):
        cut_log(log, 2)


def test_the_log_start_is_the_first_offset_of_the_oldest_segment(tmp_path: Path) -> None:
    log = folder(tmp_path, batch(2, 0, [1])) / "t-0"
    assert log_start_offset(tmp_path, PLACE) == 0
    (log / "00000000000000000000.log").rename(log / "00000000000000000007.log")
    assert log_start_offset(tmp_path, PLACE) == 7
    assert log_start_offset(tmp_path, ("other", 0)) is None


def test_epochs_are_read_from_their_file(tmp_path: Path) -> None:
    log = folder(tmp_path, batch(2, 0, [1])) / "t-0"
    assert read_epochs(tmp_path, PLACE) == []
    (log / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n3 120\n", encoding="utf-8")
    assert read_epochs(tmp_path, PLACE) == [(0, 0), (3, 120)]
