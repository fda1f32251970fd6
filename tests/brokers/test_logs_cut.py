from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.brokers.test_replica_logs import PLACE, batch, folder
from tidemark_lab.brokers.replica_logs import LogReader, Stored, batches, read_checkpoint
from tidemark_lab.faults.disk_faults import cut_logs, wipe_logs

SEGMENT = Path("t-0", f"{0:020}.log")
BATCHES = [batch(2, 0, [7, 8], 0), batch(2, 2, [9], 0), batch(2, 3, [10, 300, 12], 4)]


def test_every_record_is_read_with_its_epoch(tmp_path: Path) -> None:
    folder(tmp_path, b"".join(BATCHES) + batch(2, 6, [1], 4, is_control=True))
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
    reader, log = LogReader(), tmp_path / "t-0"
    folder(tmp_path, BATCHES[0] + BATCHES[1][:-3])
    assert [*reader.read(log)] == [0, 1]
    folder(tmp_path, BATCHES[0] + BATCHES[1])
    assert [*reader.read(log)] == [0, 1, 2]
    folder(tmp_path, BATCHES[0] + batch(2, 2, [50], 5))
    assert reader.read(log)[2] == Stored(50, 5)


@pytest.mark.parametrize("seed", range(8))
def test_a_cut_loses_the_end_and_nothing_that_was_flushed(tmp_path: Path, seed: int) -> None:
    whole = b"".join(BATCHES)
    folder(tmp_path, whole)
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    lost = cut_logs(tmp_path, [PLACE], 10, random.Random(seed))
    left = (tmp_path / SEGMENT).read_bytes()
    assert whole.startswith(left)
    ends = [batch.next_offset for batch in batches(left)]
    assert ends[-1] >= 2
    assert lost == 6 - ends[-1]


def test_cuts_end_at_a_boundary_and_inside_a_batch(tmp_path: Path) -> None:
    inside = set()
    for seed in range(40):
        folder(tmp_path, b"".join(BATCHES))
        if cut_logs(tmp_path, [PLACE], 10, random.Random(seed)):
            data = (tmp_path / SEGMENT).read_bytes()
            inside.add(sum(batch.end - batch.at for batch in batches(data)) < len(data))
    assert inside == {False, True}


def test_a_new_disk_has_no_log_and_no_checkpoint(tmp_path: Path) -> None:
    folder(tmp_path, BATCHES[0])
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert read_checkpoint(tmp_path / "replication-offset-checkpoint") == {PLACE: 2}
    wipe_logs(tmp_path, [PLACE])
    assert [file.name for file in tmp_path.iterdir()] == ["meta.properties"]
