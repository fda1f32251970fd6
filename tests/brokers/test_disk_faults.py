from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.brokers.test_faults import Recorder
from tests.brokers.test_replica_logs import PLACE, batch, folder
from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.replica_logs import (
    CHECKPOINT,
    LogReader,
    Stored,
    batches,
    read_checkpoint,
    read_log,
)
from tidemark_lab.faults.disk_faults import (
    DiskFull,
    LostCheckpoint,
    PageCacheLoss,
    PowerFailure,
    SmallDisk,
    cut_logs,
    wipe_logs,
)
from tidemark_lab.faults.fault import Fault, run_fault


class Cluster(Recorder):
    """Brokers with data folders below `root`."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        for broker in (1, 2, 3):
            self.log_directory(broker).mkdir()
            folder(self.log_directory(broker), batch(2, 0, [1, 2]) + batch(2, 2, [3, 4]))

    def log_directory(self, broker: int) -> Path:
        return self.root / f"data-{broker}"

    @property
    def local(self) -> LocalCluster:
        return cast("LocalCluster", self)

    def run(self, fault: Fault) -> list[str]:
        run_fault(fault, lambda: True)
        return [call for call in self.calls if not call.startswith("is_ready")]

    def records(self, broker: int) -> int:
        return len(read_log(self.log_directory(broker), PLACE) or {})


@pytest.mark.parametrize(
    ("make", "calls", "records"),
    [
        # The page cache of one broker is lost.
        (
            lambda cluster: PageCacheLoss(cluster, 2, [PLACE], 1, inside=True),
            ["kill_broker 2", "start_broker 2"],
            [4, 2, 4],
        ),
        # All brokers lose power at one moment.
        (
            lambda cluster: PowerFailure(cluster, [PLACE], {1: 1, 3: 3}),
            [f"{verb}_broker {n}" for verb in ("pause", "kill", "start") for n in (1, 2, 3)],
            [2, 4, 0],
        ),
    ],
)
def test_the_newest_records_are_lost_with_the_machine(
    tmp_path: Path, make: Callable[[LocalCluster], Fault], calls: list[str], records: list[int]
) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.run(make(cluster.local)) == calls
    assert [cluster.records(broker) for broker in (1, 2, 3)] == records


def test_a_checkpoint_is_lost_while_the_broker_is_stopped(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    checkpoint = cluster.log_directory(1) / CHECKPOINT
    checkpoint.write_text("0\n0\n", encoding="utf-8")
    assert cluster.run(LostCheckpoint(cluster.local, 1)) == ["stop_broker 1", "start_broker 1"]
    assert not checkpoint.exists()


def test_a_disk_is_filled_only_where_it_is_a_file_system_of_its_own(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    with pytest.raises(ClusterError, match="no file system of its own"):
        cluster.run(DiskFull(cluster.local, 1, tmp_path, limit_bytes=100))
    assert not (tmp_path / "filler").exists()


def test_a_small_disk_without_root_is_one_line_that_names_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = SimpleNamespace(
        returncode=32, stderr="mount: permission denied.\n  dmesg(1) has more.\n"
    )
    monkeypatch.setattr("tidemark_lab.faults.disk_faults.subprocess.run", lambda *_, **__: said)
    with pytest.raises(ClusterError) as raised, SmallDisk(tmp_path / "disk", 1 << 20):
        pass
    text = str(raised.value)
    assert text.endswith("mount: permission denied. Run it as root on Linux.")
    assert "\n" not in text


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
