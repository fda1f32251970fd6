"""`collect --log-dirs`: one broker's files as records, without a pass."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.collect.log_directories.make import (
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    offsets,
    replace,
    write_directory,
    write_partition,
)
from tests.verbs.run import tidemark
from tidemark.collect import command
from tidemark.collect.health import CollectHealth
from tidemark.collect.metrics import CollectMetrics
from tidemark.collect.publish.pack import EventRecord
from tidemark.collect.publish.publisher import Publisher
from tidemark.collect.sources.log_directories.sidecar import LogDirectoriesReader, run_sidecar
from tidemark.core.codec import decode_batch
from tidemark.core.errors import ConfigError
from tidemark.core.events import BrokerState, Checkpoint
from tidemark.core.identity import group_of
from tidemark.settings import Cluster, Settings
from tidemark.web.health import Health

GROUPS = 16


class KeptRecords(Publisher):
    """Keeps the records."""

    def __init__(self) -> None:
        super().__init__(GROUPS)
        self.records: list[EventRecord] = []

    def put(self, records: list[EventRecord]) -> None:
        self.records += records
        self.published += len(records)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_directory(tmp_path / "data")


def reader_of(*paths: Path) -> LogDirectoriesReader:
    cluster = Cluster(name="east", topics_deny=["hidden"])
    return LogDirectoriesReader(paths, cluster, "host-3", GROUPS, 1)


def test_a_partition_goes_to_its_group_and_the_broker_to_all(tmp_path: Path) -> None:
    one, other = write_directory(tmp_path / "a"), write_directory(tmp_path / "b")
    (other / "t-0").rename(other / "t-1")
    write_partition(other, "hidden", 0)
    replace(other / HIGH_WATERMARKS, offsets({("t", 1): 7, ("t", 0): 1, ("hidden", 0): 5}))
    found = {
        record.group: decode_batch(record.payload)
        for record in reader_of(one, other).records(100.0, 0.0)
    }
    assert found.keys() == set(range(GROUPS))
    for number, high_watermark in ((0, 42), (1, 7)):
        batch = found[group_of("east", "t", number, GROUPS)]
        events = [e for e in batch.events if isinstance(e, Checkpoint) and e.partition == number]
        assert [(e.broker, e.high_watermark) for e in events] == [(3, high_watermark)]
    assert sum(len(batch.events) for batch in found.values()) == GROUPS + 2, "not of hidden"
    for batch in found.values():
        assert (batch.cluster, batch.collector, batch.pass_number) == ("east", "host-3", 1)
        assert sum(isinstance(event, BrokerState) for event in batch.events) == 1
        assert all(isinstance(event, Checkpoint | BrokerState) for event in batch.events)


def test_an_error_is_logged_once_and_its_end_too(directory: Path) -> None:
    reader = reader_of(directory)
    (directory / RECOVERY_POINTS).write_text("7\n")
    with capture_logs() as lines:
        for _ in range(3):
            reader.records(100.0, 0.0)
        assert reader.errors == 1
        replace(directory / RECOVERY_POINTS, offsets({}))
        reader.records(101.0, 0.0)
    assert [line["event"] for line in lines] == [
        "cannot use a file",
        "every file is readable again",
    ]
    assert "unknown version '7'" in lines[0]["reason"]


def test_the_sidecar_reads_as_often_as_it_is_told(directory: Path) -> None:
    publisher, metrics = KeptRecords(), CollectMetrics()
    (directory / RECOVERY_POINTS).write_text("7\n")
    with capture_logs():
        run_sidecar(
            reader_of(directory),
            publisher,
            metrics.read_log_directories,
            threading.Event(),
            0.01,
            3,
        )
    assert len(publisher.records) == 3 * GROUPS
    labels = {"kafka_cluster": "east", "broker": "3"}
    value_of = metrics.registry.get_sample_value
    assert value_of("tidemark_collect_log_directory_errors", labels) == 1
    assert value_of("tidemark_collect_records_published_total") == 3 * GROUPS
    stopped = threading.Event()
    stopped.set()
    run_sidecar(reader_of(directory), publisher, metrics.read_log_directories, stopped, 5.0, None)
    assert len(publisher.records) == 3 * GROUPS


def test_a_reading_that_hangs_is_not_healthy(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a network file system that does not answer."""
    health, publisher, hangs = CollectHealth(), KeptRecords(), threading.Event()
    reader, entered = reader_of(directory), threading.Event()
    stop, began = threading.Event(), time.monotonic()
    health.watch([], publisher)

    def records(_now: float, _ahead: float) -> list[EventRecord]:
        entered.set()
        hangs.wait(10)
        return []

    monkeypatch.setattr(reader, "records", records)
    count = CollectMetrics().read_log_directories
    arguments = (reader, publisher, count, stop, 3600.0, None, health)
    thread = threading.Thread(target=run_sidecar, args=arguments)
    thread.start()
    try:
        assert entered.wait(10)
        assert health.stuck() == []
        with monkeypatch.context() as later:
            later.setattr("time.monotonic", lambda: began + 700)
            assert health.stuck() == ["reading the log directories has not ended for 700 s"]
    finally:
        hangs.set()
        stop.set()
        thread.join(10)
    # Between two readings, however long.
    monkeypatch.setattr("time.monotonic", lambda: began + 5000)
    assert health.stuck() == []


def test_a_first_reading_that_hangs_is_not_healthy(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probes have an answer before anything is read."""
    seen: list[list[str]] = []
    make_metrics, began = command._make_metrics, time.monotonic()
    served: list[Health] = []

    def metrics_of(settings: Settings, to: str, health: Health) -> Any:
        served.append(health)
        return make_metrics(settings, to, health)

    def read(*_: object) -> Any:
        monkeypatch.setattr("time.monotonic", lambda: began + 700)
        seen.append(served[0].stuck())
        raise ConfigError("it ends")

    monkeypatch.setattr(command, "_make_metrics", metrics_of)
    monkeypatch.setattr(command, "LogDirectoriesReader", read)
    settings = Settings(clusters=[Cluster(name="east")])
    with pytest.raises(ConfigError, match="it ends"):
        command._read_log_directories(settings, [directory], None, "-", 1, 1)
    assert seen == [["the start has not ended for 700 s"]]


def test_a_copy_is_read_without_kafka(directory: Path) -> None:
    arguments = ["collect", "--to", "-", "--passes", "1", "--cluster", "east"]
    (line,) = tidemark(*arguments, "--log-dirs", str(directory)).out.splitlines()
    checkpoint, broker = decode_batch(line.encode()).events
    assert isinstance(checkpoint, Checkpoint)
    assert isinstance(broker, BrokerState)
    assert (checkpoint.high_watermark, checkpoint.recovery_point) == (42, 20)
    assert (broker.broker, broker.cluster_id) == (3, "abc")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--log-dirs", "{data}"], "give --cluster NAME, the name of the cluster"),
        (["--log-dirs", "{data}", "--cluster", "a/b"], "--cluster `a/b` is no name"),
        (["--log-dirs", "{data}", "--config", "{config}", "--cluster", "b"], "configuration has a"),
        (["--log-dirs", ",", "--cluster", "a"], "--log-dirs is empty"),
        (["--log-dirs", "{none}", "--cluster", "a"], "is not a folder"),
        (["--log-dirs", "{parent}", "--cluster", "a"], "no readable meta.properties"),
        (["--log-dirs", "{data},{other}", "--cluster", "a"], "Give the folders of one broker"),
        (["--log-dirs", "{data}", "--bootstrap", "x:1"], "give one of them"),
    ],
)
def test_wrong_options_are_one_line_and_exit_2(
    arguments: list[str], message: str, directory: Path
) -> None:
    config = directory.parent / "t.yaml"
    config.write_text("clusters: [{name: a}]\n")
    other = write_directory(directory.parent / "other", broker=4)
    names = {"data": directory, "other": other, "none": directory / "none", "config": config}
    given = [word.format(**names, parent=directory.parent) for word in arguments]
    shown = tidemark("collect", "--to", "-", "--passes", "1", *given, code=2)
    (line,) = shown.err.splitlines()
    assert message in line


def test_inspect_prints_what_a_broker_would_start_from(directory: Path) -> None:
    write_partition(directory, "u", 1)
    heading, *lines = tidemark("inspect", "--log-dirs", str(directory)).out.splitlines()
    assert heading.startswith(f"{directory}: broker 3, high watermarks written 20")
    assert heading.endswith("no mark of a clean shutdown: a start from it recovers the logs")
    assert [line.split() for line in lines[1:3]] == [
        ["t-0", "42", "20", "2", "500", "32", "0@0", "1@18"],
        ["u-1", "0", "0", "2", "500", "32", "0@0", "1@18"],
    ]
    (directory / RECOVERY_POINTS).write_text("7\n")
    shown = tidemark("inspect", "t", "0", "--json", "--log-dirs", str(directory), code=3)
    assert '"high_watermark":42' in shown.out
    assert '"segments":2,"log_bytes":500,"index_bytes":32' in shown.out
    assert '"recovery_point"' not in shown.out
    assert "unknown version '7'" in shown.err
    tidemark("inspect", "none", "--log-dirs", str(directory), code=1)
