from __future__ import annotations

import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    rule,
    run_state_machine_as_test,
)
from structlog.testing import capture_logs

from tidemark.collect.publish.pack import EventRecord
from tidemark.collect.publish.spool import Spool
from tidemark.collect.publish.spool_segment import read_frames, to_frame
from tidemark.collect.publish.waiting import Taken, WaitingRecords
from tidemark.core.errors import ConfigError

BOUND = 10_000_000
SEGMENT = 500


def record(number: int, droppable: bool = True) -> EventRecord:
    places = (("topic", number),) if droppable else ()
    return EventRecord(number % 4, f"{number:60}".encode(), "c", places, droppable)


def numbers(records: list[EventRecord]) -> list[int]:
    return [int(each.payload) for each in records]


def read(spool: Spool) -> Iterator[EventRecord]:
    """What is read and settled."""
    while (found := spool.next()) is not None:
        yield found[1]
        spool.settle(found[0])


def test_records_are_read_in_order_and_their_files_deleted(tmp_path: Path) -> None:
    spool = Spool(tmp_path, BOUND, SEGMENT)
    sent = [record(number, number % 5 > 0) for number in range(40)]
    assert spool.append(sent) == []
    assert len(list(tmp_path.glob("*.spool"))) > 5
    assert spool.size == sum(path.stat().st_size for path in tmp_path.glob("*.spool"))
    assert list(read(spool)) == sent
    assert (spool.is_empty, spool.size, list(tmp_path.glob("*.spool"))) == (True, 0, [])


def test_a_restart_finds_them_and_only_one_process_may_use_them(tmp_path: Path) -> None:
    first = Spool(tmp_path, BOUND, SEGMENT)
    first.append([record(number) for number in range(10)])
    with pytest.raises(ConfigError, match="used by another collector"):
        Spool(tmp_path, BOUND)
    first.close()
    second = Spool(tmp_path, BOUND, SEGMENT)
    second.append([record(10)])
    assert numbers(list(read(second))) == list(range(11))


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"collect.spool_directory: .*/file/spool cannot be used"):
        Spool(tmp_path / "file" / "spool", BOUND)


def test_records_of_another_topic_or_number_of_partitions_are_refused(tmp_path: Path) -> None:
    first = Spool(tmp_path, BOUND, destination="events (16 partitions)")
    first.append([record(1)])
    first.close()
    with pytest.raises(ConfigError, match=r"for events \(16 partitions\), and .* events-32 \(32"):
        Spool(tmp_path, BOUND, destination="events-32 (32 partitions)")
    # The refusal lets the folder go, and changes nothing.
    again = Spool(tmp_path, BOUND, destination="events (16 partitions)")
    assert numbers(list(read(again))) == [1]
    again.close()
    # Nothing waits any more.
    Spool(tmp_path, BOUND, destination="events-32 (32 partitions)").close()
    assert (tmp_path / "destination").read_text() == "events-32 (32 partitions)"


def test_the_oldest_observations_are_dropped_first_and_passes_last(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 3_000, SEGMENT)
    lost = spool.append([record(number, number % 5 > 0) for number in range(40)])
    assert spool.size <= 3_000
    dropped = numbers(lost)
    assert dropped == sorted(dropped)
    assert all(number % 5 for number in dropped)
    kept = numbers(list(read(spool)))
    assert sorted(kept + dropped) == list(range(40))
    assert kept == sorted(kept)
    assert kept[-10:] == list(range(30, 40))


def test_passes_are_dropped_where_nothing_else_is_left(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 3_000, SEGMENT)
    lost = numbers(spool.append([record(number, droppable=False) for number in range(100)]))
    assert lost == list(range(len(lost)))
    assert numbers(list(read(spool))) == list(range(len(lost), 100))


def test_a_full_disk_loses_the_newest_and_what_is_there_stays(tmp_path: Path) -> None:
    spool = Spool(tmp_path, BOUND)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        lost = numbers(spool.append([record(number) for number in range(20)]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    # The next file takes what the one that is full does not.
    assert lost
    assert spool.append([record(20)]) == []
    found = numbers(list(read(spool)))
    assert sorted(found + lost) == list(range(21))
    assert found == sorted(found)


@given(st.binary(max_size=200))
def test_any_bytes_give_records_or_damaged_frames(data: bytes) -> None:
    found = list(read_frames(data))
    assert all(record is None or isinstance(record, EventRecord) for _, record in found)
    assert bool(found) == bool(data)


@given(st.integers(0, 3), st.data())
def test_what_is_not_damaged_is_read(number: int, data: st.DataObject) -> None:
    frames = [to_frame(record(each)) for each in range(4)]
    whole = bytearray(b"".join(frames))
    start = sum(map(len, frames[:number]))
    place = data.draw(st.integers(0, len(frames[number]) - 1))
    whole[start + place] ^= data.draw(st.integers(1, 255))
    found = list(read_frames(bytes(whole)))
    assert (start, None) in found
    others = [each for each in range(4) if each != number]
    known = numbers([record for _, record in found if record is not None])
    # Behind a wrong length nothing is found but by chance.
    assert known == others if place >= 4 else known[:number] == others[:number]
    assert set(known) <= set(others)


def test_records_that_are_damaged_are_counted_once_and_logged(tmp_path: Path) -> None:
    spool = Spool(tmp_path, BOUND)
    spool.append([record(number) for number in range(5)])
    spool.close()
    (path,) = tmp_path.glob("*.spool")
    whole = bytearray(path.read_bytes())
    size = len(to_frame(record(0)))
    for number in (1, 3):
        whole[number * size + 20] ^= 1
    path.write_bytes(whole)
    again, lost = Spool(tmp_path, BOUND), list[int]()
    again.on_lost = lost.append
    with capture_logs() as logs:
        assert again.next() is not None
        again.rewind()
        assert numbers(list(read(again))) == [0, 2, 4]
    assert lost == [2]
    (line,) = logs
    assert (line["file"], line["records"]) == (str(path), "at least 2")
    assert line["first_at_byte"] == size
    assert again.is_empty


def test_a_file_that_a_kill_cut_short_gives_what_is_whole(tmp_path: Path) -> None:
    spool = Spool(tmp_path, BOUND)
    spool.append([record(number) for number in range(5)])
    spool.close()
    (path,) = tmp_path.glob("*.spool")
    path.write_bytes(path.read_bytes()[:-3])
    again = Spool(tmp_path, BOUND)
    again.append([record(9)])
    assert numbers(list(read(again))) == [0, 1, 2, 3, 9]
    assert again.is_empty


class AnyOrderOfFailures(RuleBasedStateMachine):
    """Against a list: only a kill loses anything, and that only from memory."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.open()
        self.put_count = 0
        self.published: set[int] = set()
        self.may_miss: set[int] = set()

    def open(self) -> None:
        self.waiting = WaitingRecords(1_500, Spool(Path(self.folder.name), BOUND, SEGMENT))
        self.taken: list[Taken] = []
        self.newest = -1

    def publish(self, taken: Taken) -> None:
        self.published.add(int(taken[0].payload))
        self.waiting.settle(taken[1])

    @rule(count=st.integers(1, 8))
    def put(self, count: int) -> None:
        added = [record(self.put_count + each) for each in range(count)]
        assert self.waiting.put(added) == []
        self.put_count += count

    @rule(count=st.integers(1, 8))
    def take(self, count: int) -> None:
        for _ in range(count):
            if (taken := self.waiting.take()) is None:
                break
            number = int(taken[0].payload)
            assert number > self.newest
            self.newest = number
            self.taken.append(taken)

    @rule(which=st.integers(0, 100))
    def settle(self, which: int) -> None:
        if self.taken:
            self.publish(self.taken.pop(which % len(self.taken)))

    @rule()
    def fail(self) -> None:
        assert self.waiting.give_back(self.taken) == []
        self.taken, self.newest = [], -1

    @rule()
    def restart(self) -> None:
        self.fail()
        self.kill()

    @rule()
    def kill(self) -> None:
        in_memory = set(range(self.put_count)) - self.published - self.on_disk()
        self.may_miss |= in_memory
        assert self.waiting.spool is not None
        self.waiting.spool.close()
        self.open()

    def on_disk(self) -> set[int]:
        files = Path(self.folder.name).glob("*.spool")
        found = [each for file in files for _, each in read_frames(file.read_bytes()) if each]
        return set(numbers(found))

    def teardown(self) -> None:
        self.fail()
        self.take(10_000)
        for taken in self.taken:
            self.publish(taken)
        assert self.waiting.is_empty
        assert set(range(self.put_count)) - self.may_miss == self.published - self.may_miss
        assert not self.on_disk()
        self.folder.cleanup()


def test_nothing_is_lost_and_the_order_is_kept_whatever_fails() -> None:
    run_state_machine_as_test(
        AnyOrderOfFailures,
        settings=settings(deadline=None, max_examples=20, stateful_step_count=40),
    )
