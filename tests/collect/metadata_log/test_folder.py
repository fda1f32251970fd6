"""A copied folder is read to its end, whatever is cut, damaged or missing in it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tests.collect.inventories import everything
from tests.collect.metadata_log.encoding import (
    change,
    encode_batch,
    encode_record,
    encode_snapshot,
    newer,
    partition,
    registration,
    topic,
)
from tests.collect.socket_answers import serving, text
from tidemark.collect.sources.metadata_log.folder import FOLDER, MetadataFolder
from tidemark.collect.sources.metadata_log.records import RegisterBrokerRecord
from tidemark.collect.sources.metadata_log.tail import EventQueue, MetadataLogTail, QueueClosedError
from tidemark.core.errors import ConfigError
from tidemark.core.events import BrokerState, MetadataChange
from tidemark.settings import Cluster
from tidemark_lab.brokers.ports import free_ports
from tidemark_lab.brokers.wait import wait_until


def write_log(folder: Path, start: int, *batches: list[Any]) -> Path:
    """A segment of these batches."""
    data, offset = b"", start
    for records in batches:
        values = [encode_record(record) for record in records]
        data += encode_batch(offset, values, at_ms=1000 * offset)
        offset += len(records)
    path = folder / f"{start:020d}.log"
    path.write_bytes(data)
    return path


def write_snapshot(folder: Path, end: int, *records: Any) -> Path:
    path = folder / f"{end:020d}-0000000001.checkpoint"
    path.write_bytes(encode_snapshot(*records, at_ms=1000 * end))
    return path


class Read:
    """What is read of a folder, and what is reported."""

    def __init__(self, folder: Path) -> None:
        self.reports: list[str] = []
        log = MetadataFolder(folder, self.reports.append)
        events: list[Any] = list(log.read(everything()))
        self.is_whole = log.is_whole
        self.events = events
        self.offsets = [e.metadata_offset for e in events if isinstance(e, MetadataChange)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / FOLDER
    made.mkdir()
    write_log(made, 0, [topic(1, "t"), partition(0)], [change(0, isr=[1, 2])])
    write_log(made, 3, [change(0, isr=[1])], [change(0, isr=[1, 3])])
    write_snapshot(made, 3, topic(1, "t"), partition(0, isr=[1, 2], partition_epoch=1))
    return made


def test_all_segments_from_the_first_record(folder: Path) -> None:
    read = Read(folder.parent)
    assert read.offsets == [1, 2, 3, 4]
    assert [event.partition_epoch for event in read.events] == [0, 1, 2, 3]
    assert [event.observed_at for event in read.events] == [0.0, 2.0, 3.0, 4.0]
    assert len(read.reports) == 1
    assert read.is_whole
    assert read.reports[0].startswith("read offsets 0 to 4;")
    assert "may have been undone" in read.reports[0]


def test_a_log_that_begins_at_a_snapshot(folder: Path) -> None:
    (folder / f"{0:020d}.log").unlink()
    read = Read(folder)
    assert read.offsets == [2, 3, 4]
    assert [event.partition_epoch for event in read.events] == [1, 2, 3]
    assert read.events[0].record_at == 3.0


def test_after_a_gap_the_next_snapshot(folder: Path) -> None:
    (folder / f"{0:020d}.log").write_bytes((folder / f"{0:020d}.log").read_bytes()[:-1])
    read = Read(folder)
    assert read.offsets == [1, 2, 3, 4]
    assert [event.partition_epoch for event in read.events] == [0, 1, 2, 3]
    assert "the last batch is cut at byte" in read.reports[0]
    assert read.reports[1].startswith("offsets 2 to 2 are missing or damaged; continued from")


def test_after_a_gap_without_a_snapshot_what_was_known_is_left_out(folder: Path) -> None:
    next(folder.glob("*.checkpoint")).write_bytes(b"nonsense")
    (folder / f"{0:020d}.log").unlink()
    write_log(folder, 5, [topic(2, "u"), partition(0, of=2)])
    read = Read(folder)
    assert read.offsets == [6]
    assert "checkpoint: " in read.reports[0]
    assert "offsets 0 to 2 are missing, and no snapshot covers them" in "".join(read.reports)


def test_a_snapshot_above_the_log_comes_last(folder: Path) -> None:
    write_snapshot(folder, 9, topic(1, "t"), partition(0, isr=[2], partition_epoch=7))
    read = Read(folder)
    assert read.offsets == [1, 2, 3, 4, 8]
    assert read.events[-1].partition_epoch == 7


def test_a_folder_without_a_metadata_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no segment \(\*\.log\)"):
        MetadataFolder(tmp_path, print)
    with pytest.raises(ConfigError, match="cannot read"):
        MetadataFolder(tmp_path / "missing", print)


def test_a_version_that_is_not_listed_is_named_once_and_the_rest_is_read(folder: Path) -> None:
    newest = [newer(RegisterBrokerRecord)]
    write_log(folder, 5, newest, newest, [change(0, isr=[1])], [registration(1, 2)])
    read = Read(folder)
    assert read.offsets == [1, 2, 3, 4, 7]
    assert [event for event in read.events if isinstance(event, BrokerState)] == []
    assert len(read.reports) == 2
    assert read.reports[0].startswith("before offset 6: RegisterBrokerRecord version 5 ")
    assert not read.is_whole


def test_a_folder_of_which_nothing_can_be_read_is_not_whole(folder: Path) -> None:
    for path in folder.iterdir():
        path.write_bytes(b"nonsense, longer than the header of a batch" * 9)
    read = Read(folder)
    assert read.events == []
    assert not read.is_whole
    assert all("read offsets" not in line for line in read.reports)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.integers(0, 2), st.integers(0, 400), st.binary(max_size=8), st.booleans())
def test_damage_ends_nothing_and_invents_nothing(
    folder: Path, file: int, at: int, data: bytes, cut: bool
) -> None:
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    path = paths[file % len(paths)]
    whole = path.read_bytes()
    at %= len(whole)
    path.write_bytes(whole[:at] + data + (b"" if cut else whole[at + len(data) :]))
    try:
        read = Read(folder)
    finally:
        path.write_bytes(whole)
    # (leader epoch of the batch, offsets and lengths are not covered by checksums)
    known = {(0, (1, 2, 3)), (1, (1, 2)), (2, (1,)), (3, (1, 3))}
    found = {
        (event.partition_epoch, tuple(event.in_sync_replicas))
        for event in read.events
        if isinstance(event, MetadataChange)
    }
    assert found <= known


# The thread around the reader: the bound of the queue, and one line for what is wrong.


EVENT = BrokerState(broker=1, observed_at=1.0)


def test_a_full_queue_makes_the_reader_wait_and_loses_nothing() -> None:
    queue, put = EventQueue(limit=2), threading.Event()

    def work() -> None:
        for _ in range(3):
            queue.put([EVENT, EVENT])
        put.set()

    reader = threading.Thread(target=work, daemon=True)
    reader.start()
    taken: list[Any] = []
    while not put.is_set() or len(taken) < 6:
        found = queue.take()
        assert len(found) <= 2
        taken += found
    assert len(taken) == 6
    reader.join(5)


def test_a_closed_queue_ends_the_reader() -> None:
    queue, ended = EventQueue(limit=1), threading.Event()
    queue.put([EVENT])

    def work() -> None:
        with pytest.raises(QueueClosedError):
            queue.put([EVENT])
        ended.set()

    threading.Thread(target=work, daemon=True).start()
    queue.close()
    assert ended.wait(5)


def test_a_failure_is_said_once_with_each_controller_and_the_cure() -> None:
    (refused,) = free_ports(1)
    with serving(text(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as endpoint:
        port = urlsplit(endpoint.url).port
        reports: list[tuple[str, bool, int | None]] = []
        controllers = [f"127.0.0.1:{refused}", f"127.0.0.1:{port}"]
        cluster = Cluster(name="east", controllers=controllers)
        with capture_logs() as logs:
            tail = MetadataLogTail(cluster, lambda *found: reports.append(found))
            tail.start()
            wait_until(lambda: len(reports) >= 3, 20.0, "three reports")
            tail.close()
    assert not tail.is_alive()
    assert set(reports) == {("east", False, None)}
    (line,) = [line for line in logs if line["log_level"] == "warning"]
    assert line["cluster"] == "east"
    assert f"127.0.0.1:{refused} (refused): no process listens on its port" in line["reason"]
    assert f"127.0.0.1:{port} " in line["reason"]
    assert "clusters[].controllers" in line["cure"]
    assert tail.take() == []


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="host:port"):
        MetadataLogTail(Cluster(name="east", controllers=["nowhere"]), lambda *_: None)
