"""A log directory is read while a broker writes it, and whatever else is in it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.collect.log_directories.make import (
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    TOPIC_ID,
    offsets,
    replace,
    write_directory,
    write_partition,
)
from tidemark.collect.sources.log_directories import files
from tidemark.collect.sources.log_directories.directory import LogDirectoryReader, PartitionFiles


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_directory(tmp_path / "data")


@pytest.fixture
def reader(directory: Path) -> LogDirectoryReader:
    return LogDirectoryReader(directory)


def test_everything_that_the_files_hold(directory: Path) -> None:
    (directory / "__cluster_metadata-0").mkdir()
    (directory / "t-1.77-delete").mkdir()
    write_partition(directory, "u", 7)
    replace(directory / HIGH_WATERMARKS, offsets({("t", 0): 42, ("gone", 0): 9, ("u", 7): 5}))
    replace(directory / "log-start-offset-checkpoint", offsets({("u", 7): 3}))
    replace(directory / "cleaner-offset-checkpoint", offsets({("t", 0): 11}))
    os.utime(directory / HIGH_WATERMARKS, (1000.0, 1000.0))
    found = LogDirectoryReader(directory).read()
    assert (found.broker, found.cluster_id, found.modified_at) == (3, "abc", 1000.0)
    starts = [(0, 0), (1, 18)]
    assert found.partitions == {
        ("t", 0): PartitionFiles(TOPIC_ID, 42, 20, None, 11, starts),
        ("u", 7): PartitionFiles(TOPIC_ID, 5, 0, 3, None, starts),
    }
    assert found.errors == []


def test_a_damaged_file_is_named_and_the_rest_is_read(
    directory: Path, reader: LogDirectoryReader
) -> None:
    (directory / RECOVERY_POINTS).write_text("0\n9\nt 0 1\n")
    (directory / "t-0" / "leader-epoch-checkpoint").write_bytes(os.urandom(100))
    for _ in range(2):
        found = reader.read()
        assert found.partitions == {("t", 0): PartitionFiles(TOPIC_ID, 42)}
        first, second = sorted(map(str, found.errors))
        assert first == (
            f"{directory}/{RECOVERY_POINTS} is damaged: it announces 9 entries and has 1. "
            "What it holds is unknown."
        )
        assert second.startswith(f"{directory}/t-0/leader-epoch-checkpoint is damaged: ")


def test_the_file_of_a_directory_without_replicas_has_no_age(directory: Path) -> None:
    """Kafka does not write it again: every replica moved to another directory."""
    (directory / "t-0").rename(directory / "t-0.1-delete")
    found = LogDirectoryReader(directory).read()
    assert (found.partitions, found.modified_at) == ({}, None)


def test_hostile_files_do_not_stop_the_reader(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "RETRY_SECONDS", 0.0)
    (directory / HIGH_WATERMARKS).unlink()
    os.mkfifo(directory / HIGH_WATERMARKS)
    (directory / RECOVERY_POINTS).unlink()
    (directory / RECOVERY_POINTS).mkdir()
    with (directory / ".kafka_cleanshutdown").open("wb") as big:
        big.truncate(100 * 1024 * 1024)
    (directory / "u-1").write_text("a file with the name of a partition")
    found = LogDirectoryReader(directory).read()
    reasons = sorted(str(error) for error in found.errors)
    assert len(reasons) == 3
    assert "has 104857600 bytes, more than the 1048576 of such a file" in reasons[0]
    assert reasons[1].startswith(f"{directory}/{RECOVERY_POINTS} is not a file")
    assert reasons[2].startswith(f"{directory}/{HIGH_WATERMARKS} is not a file")
    assert found.partitions.keys() == {("t", 0)}


def test_a_folder_that_is_gone_is_one_error(directory: Path, reader: LogDirectoryReader) -> None:
    directory.rename(directory.with_name("unmounted"))
    found = reader.read()
    assert [str(error) for error in found.errors] == [
        f"cannot read {directory}: No such file or directory. Check the disk."
    ]
    assert found.broker is None


def test_the_files_of_a_partition_are_read_again_when_they_change(
    directory: Path, reader: LogDirectoryReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.read()
    path = directory / "t-0" / "leader-epoch-checkpoint"
    replace(path, "0\n1\n5 60\n")
    os.utime(path, (2000.0, 2000.0))
    assert reader.read().partitions["t", 0].lineage_starts == [(5, 60)]
    read: list[Path] = []

    def noted(path: Path, limit: int, tries: int) -> files.FileContent | None:
        read.append(path)
        return files.read_file(path, limit, tries)

    monkeypatch.setattr("tidemark.collect.sources.log_directories.directory.read_file", noted)
    assert reader.read().partitions["t", 0].lineage_starts == [(5, 60)]
    assert [path for path in read if path.parent != directory] == []


def test_a_reader_sees_the_old_file_or_the_new_one(
    directory: Path, reader: LogDirectoryReader
) -> None:
    """A thread replaces the files and renames a folder; another system's rename leaves gaps."""
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            entries = {("t", index): number for index in range(1 + number % 300)}
            replace(directory / HIGH_WATERMARKS, offsets(entries))
            (directory / "t-1").mkdir(exist_ok=True)
            (directory / "t-1").rename(directory / f"t-1.{number}-delete")
            (directory / f"t-1.{number}-delete").rmdir()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        newest = 0
        for _ in range(40):
            found = reader.read()
            assert found.errors == []
            high_watermark = found.partitions["t", 0].high_watermark
            assert high_watermark is not None
            assert high_watermark >= newest or newest == 42
            newest = high_watermark
    finally:
        stop.set()
        writer.join()


def test_a_file_that_is_missing_for_a_moment_is_read_again(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, hidden = directory / HIGH_WATERMARKS, directory / "hidden"
    path.rename(hidden)
    # Of this module alone: threads that earlier tests left behind sleep, too.
    monkeypatch.setattr(files, "time", SimpleNamespace(sleep=lambda _: hidden.rename(path)))
    assert (files.read_file(path, 100) or [None])[0] == b"0\n1\nt 0 42\n"
    assert files.read_file(directory / "none", 100, tries=1) is None
    with pytest.raises(files.LogDirectoryError, match="has 11 bytes, more than the 3"):
        files.read_file(path, 3)


def test_the_mark_of_a_clean_shutdown(directory: Path) -> None:
    mark = directory / ".kafka_cleanshutdown"
    mark.write_text('{"version":0,"brokerEpoch":12}')
    os.utime(mark, (3000.0, 3000.0))
    assert LogDirectoryReader(directory).read().clean_shutdown_at == 3000.0


HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the lock's holder is asked of Linux")
def test_the_lock_of_a_running_broker(directory: Path, reader: LogDirectoryReader) -> None:
    assert reader.read().locked is False, "a broker that stopped in order deletes the file"
    command = [sys.executable, "-c", HOLD, str(directory / ".lock")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as broker:  # type: ignore[call-overload]
        broker.stdout.readline()
        assert reader.read().locked is True
        broker.kill()
    assert reader.read().locked is False
