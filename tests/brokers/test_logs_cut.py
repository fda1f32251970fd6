from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from tidemark_lab.brokers.replica_logs import LogReader, Stored, batches, read_checkpoint
from tidemark_lab.faults.disk_faults import cut_logs, wipe_logs

PLACE = ("t", 0)


def varint(value: int) -> bytes:
    value, out = (value << 1) ^ (value >> 63), bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def batch(base: int, ids: list[int], epoch: int, attributes: int = 0) -> bytes:
    records = b""
    for delta, record_id in enumerate(ids):
        key, value = b"k", f"{record_id} ...".encode()
        body = b"\0" + varint(0) + varint(delta) + varint(len(key)) + key
        body += varint(len(value)) + value + varint(0)
        records += varint(len(body)) + body
    head = struct.pack(">ibIhi", epoch, 2, 0, attributes, len(ids) - 1)
    head += struct.pack(">qqqhii", 0, 0, -1, -1, -1, len(ids))
    return struct.pack(">qi", base, len(head) + len(records)) + head + records


def write(folder: Path, data: bytes) -> Path:
    log = folder / "t-0"
    log.mkdir(exist_ok=True)
    file = log / f"{0:020}.log"
    file.write_bytes(data)
    return file


BATCHES = [batch(0, [7, 8], 0), batch(2, [9], 0), batch(3, [10, 300, 12], 4)]


def test_every_record_is_read_with_its_epoch(tmp_path: Path) -> None:
    write(tmp_path, b"".join(BATCHES) + batch(6, [1], 4, attributes=0x20))
    assert LogReader().read(tmp_path / "t-0") == {
        0: Stored(7, 0),
        1: Stored(8, 0),
        2: Stored(9, 0),
        3: Stored(10, 4),
        4: Stored(300, 4),
        5: Stored(12, 4),
    }
    assert LogReader().read(tmp_path / "none-0") == {}


def test_a_reader_follows_a_log_that_grows_and_one_that_was_cut(tmp_path: Path) -> None:
    reader, folder = LogReader(), tmp_path / "t-0"
    write(tmp_path, BATCHES[0] + BATCHES[1][:-3])
    assert [*reader.read(folder)] == [0, 1]
    write(tmp_path, BATCHES[0] + BATCHES[1])
    assert [*reader.read(folder)] == [0, 1, 2]
    write(tmp_path, BATCHES[0] + batch(2, [50], 5))
    assert reader.read(folder)[2] == Stored(50, 5)


@pytest.mark.parametrize("seed", range(8))
def test_a_cut_loses_the_end_and_nothing_that_was_flushed(tmp_path: Path, seed: int) -> None:
    file, whole = write(tmp_path, b"".join(BATCHES)), b"".join(BATCHES)
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    lost = cut_logs(tmp_path, [PLACE], 10, random.Random(seed))
    left = file.read_bytes()
    assert whole.startswith(left)
    ends = [batch.next_offset for batch in batches(left)]
    assert ends[-1] >= 2
    assert lost == 6 - ends[-1]


def test_cuts_end_at_a_boundary_and_inside_a_batch(tmp_path: Path) -> None:
    inside = set()
    for seed in range(40):
        file = write(tmp_path, b"".join(BATCHES))
        if cut_logs(tmp_path, [PLACE], 10, random.Random(seed)):
            data = file.read_bytes()
            inside.add(sum(batch.end - batch.at for batch in batches(data)) < len(data))
    assert inside == {False, True}


def test_a_new_disk_has_no_log_and_no_checkpoint(tmp_path: Path) -> None:
    write(tmp_path, BATCHES[0])
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert read_checkpoint(tmp_path / "replication-offset-checkpoint") == {PLACE: 2}
    wipe_logs(tmp_path, [PLACE])
    assert [file.name for file in tmp_path.iterdir()] == ["meta.properties"]
