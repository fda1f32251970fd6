"""A damaged checkpoint and a full disk: one line with the file and the way out, or it goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
from msgspec import structs

from tests.stream.conftest import StreamProcess
from tests.stream.synthetic import SyntheticPasses, reduce_all
from tests.stream.test_stream import error_line, newest
from tests.stream.topics import publish_passes, read_all
from tidemark.core.errors import TidemarkError
from tidemark.reduce.rows import RawRecord
from tidemark.settings import Connection, Settings, Stream
from tidemark.settings import Topics as TopicSettings
from tidemark.stream.checkpoint import CheckpointFolder, fix_settings, fixed_settings
from tidemark.stream.failures import spark_errors
from tidemark.stream.job import start_query
from tidemark.stream.query import watch
from tidemark.stream.session import start_session
from tidemark_lab.brokers.cluster import LocalCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]
Start = Callable[..., StreamProcess]
Damage = Callable[[Path], None]
LOAD = SyntheticPasses(partitions=60, groups=4, offline_every=5)


class Topics:
    """The topics of a test, and all events in them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._sent: list[RawRecord] = []

    def send(self, passes: range) -> None:
        self._sent += publish_passes(self.settings, LOAD, passes)

    def alerts(self) -> dict[str, bytes]:
        """By id. One id never has two contents."""
        found: dict[str, bytes] = {}
        for record in read_all(self.settings, self.settings.topics.alerts, 1):
            value = record.value
            assert found.setdefault(msgspec.json.decode(value)["id"], value) == value
        return found

    def check(self) -> None:
        """They hold what one fold over all events gives."""
        topics, rows = self.settings.topics, reduce_all(self._sent, LOAD.groups)
        assert self.alerts() == {
            msgspec.json.decode(row.value)["id"]: row.value
            for row in rows
            if row.destination == "alerts" and row.value is not None
        }
        views = [(row.key, row.value) for row in rows if row.destination == "partition_views"]
        shown = read_all(self.settings, topics.partition_views, LOAD.groups)
        assert newest([(record.key, record.value) for record in shown]) == newest(views)
        assert not read_all(self.settings, topics.dead_letters, 1)


class Query(NamedTuple):
    """The query in this process, its checkpoint after two batches, and the events of a third."""

    spark: SparkSession
    topics: Topics
    # Batches 0 and 1.
    checkpoint: Path

    def at(self, checkpoint: Path) -> Settings:
        return at(self.topics.settings, checkpoint)

    def copy(self, folder: Path) -> Path:
        return shutil.copytree(self.checkpoint, folder)

    def run(self, checkpoint: Path) -> None:
        """As the verb runs it, to the end of the topic. Raises TidemarkError."""
        settings, name = self.at(checkpoint), str(checkpoint)
        with spark_errors(name):
            context: Any = self.spark.sparkContext
            folder = CheckpointFolder(context._jvm, context._jsc.hadoopConfiguration(), name)
            fix_settings(folder, fixed_settings(settings))
            watch(start_query(self.spark, settings, once=True), threading.Event(), name)


def at(settings: Settings, checkpoint: Path) -> Settings:
    stream = structs.replace(settings.stream, checkpoint=str(checkpoint))
    return structs.replace(settings, stream=stream)


@pytest.fixture(scope="module")
def query(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Query]:
    """One JVM for all damages: a process of its own for each takes 15 s."""
    checkpoint = tmp_path_factory.mktemp("whole") / "checkpoint"
    settings = Settings(
        kafka=Connection(bootstrap_servers=cluster.bootstrap_servers),
        topics=TopicSettings(
            prefix="damaged", partitions=4, replication_factor=1, min_in_sync_replicas=1
        ),
        stream=Stream(checkpoint=str(checkpoint)),
    )
    with pytest.MonkeyPatch.context() as patch:
        # The session sets variables of this process.
        patch.setattr(os, "environ", os.environ.copy())
        spark = start_session(settings, os.environ)
        query = Query(spark, Topics(settings), checkpoint)
        for passes in (range(5), range(5, 9)):
            query.topics.send(passes)
            query.run(checkpoint)
        query.topics.send(range(9, 13))
        yield query
        spark.stop()


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def cut(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def gone(path: Path) -> None:
    path.unlink()


def gone_with_metadata(path: Path) -> None:
    path.unlink()
    (path.parent / "metadata").unlink()


@pytest.mark.parametrize(
    ("damage", "file"),
    [
        (gone, "commits/1"),
        (gone, "metadata"),
        (gone, "sources/0/0"),
        (cut, "state/0/_metadata/metadata"),
        (gone, "state/0/0/_metadata/schema"),
    ],
)
def test_what_spark_does_not_need_any_more_loses_and_doubles_nothing(
    query: Query, tmp_path: Path, damage: Damage, file: str
) -> None:
    folder = query.copy(tmp_path / "damaged")
    damage(folder / file)
    query.run(folder)
    query.topics.check()


@pytest.mark.parametrize(
    ("damage", "file", "said"),
    [
        # Spark's exception of a state file that does not decode names none.
        (flipped, "state/0/1/2.delta", "damaged: a file in {}/state: "),
        (cut, "state/0/1/2.delta", "damaged: a file in {}/state: "),
        (gone, "state/0/1/2.delta", "damaged: file:{}/state/0/1/2.delta: "),
        (flipped, "state/0/0/_metadata/schema", "damaged: {}/state/0/0/_metadata/schema: "),
        (cut, "state/0/0/_metadata/schema", "damaged: {}/state/0/0/_metadata/schema: "),
        (flipped, "commits/1", "damaged: a file in {}/commits: "),
        (cut, "commits/1", "damaged: a file in {}/commits: "),
        (emptied, "commits/1", "damaged: file:{}/commits/1: "),
        (flipped, "offsets/1", "damaged: a file in {}/offsets: "),
        (cut, "offsets/1", "damaged: a file in {}/offsets: "),
        (gone, "offsets/0", "damaged: a file in {}/offsets: "),
        (flipped, "metadata", "damaged: {}/metadata: "),
        (cut, "metadata", "damaged: {}/metadata: "),
        (cut, "sources/0/0", "damaged: a file in {}/sources/0: "),
        (emptied, "sources/0/0", "damaged: a file in {}/sources/0: "),
        (cut, "tidemark.json", "{}/tidemark.json cannot be read: "),
        (gone, "tidemark.json", "the checkpoint {} has no tidemark.json: "),
        (gone_with_metadata, "tidemark.json", "the checkpoint {} has no tidemark.json: "),
        # The last: it writes an older batch again before it fails, and older views with it.
        (gone, "offsets/1", "another stream uses the checkpoint {}, or a file in its offsets is "),
    ],
)
def test_damage_names_the_place_and_the_way_out(
    query: Query, tmp_path: Path, damage: Damage, file: str, said: str
) -> None:
    folder, before = query.copy(tmp_path / "damaged"), query.topics.alerts()
    damage(folder / file)
    with pytest.raises(TidemarkError) as caught:
        query.run(folder)
    check_line(str(caught.value), said.format(folder))
    assert query.topics.alerts().items() >= before.items()


def check_line(line: str, said: str) -> None:
    print(line)
    assert said in line
    assert "from a copy" in line
    assert "set stream.checkpoint to a new folder" in line
    assert "when started again" not in line
    assert "\n" not in line


@pytest.mark.parametrize("way_out", ["new", "copy"])
def test_both_ways_out_lose_and_double_nothing(query: Query, tmp_path: Path, way_out: str) -> None:
    """A new folder, which reads the retained events again, and a copy."""
    folder = tmp_path / way_out
    query.run(folder if way_out == "new" else query.copy(folder))
    query.topics.check()


@pytest.mark.parametrize(
    ("damage", "file", "code", "said"),
    [
        # Found by the query, at its start, and before it.
        (cut, "state/0/0/_metadata/schema", 1, "damaged: {}/state/0/0/_metadata/schema: "),
        (flipped, "metadata", 1, "damaged: {}/metadata: "),
        (gone, "tidemark.json", 2, "the checkpoint {} has no tidemark.json: "),
    ],
)
def test_the_verb_ends_with_one_line(
    query: Query, stream: Start, tmp_path: Path, damage: Damage, file: str, code: int, said: str
) -> None:
    folder = query.copy(tmp_path / "damaged")
    damage(folder / file)
    process = stream(query.at(folder))
    process.ends_with(code)
    check_line(error_line(process), said.format(folder))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root mounts a small file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_named_and_nothing_is_lost_or_doubled_once_it_is_not(
    settings: Settings, stream: Start, disk: Path
) -> None:
    topics, checkpoint = Topics(settings), disk / "checkpoint"
    topics.send(range(6))
    stream(at(settings, checkpoint), "--once").ends_with(0)
    free = shutil.disk_usage(disk).free
    (disk / "other").write_bytes(bytes(free - 16_384))
    topics.send(range(6, 12))
    full = stream(at(settings, checkpoint), "--once")
    full.ends_with(1)
    line = error_line(full)
    print(line)
    assert "no space is left" in line
    assert f"Free space for {checkpoint}" in line
    (disk / "other").unlink()
    stream(at(settings, checkpoint), "--once").ends_with(0)
    topics.check()
