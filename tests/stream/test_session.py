"""Settings, the checkpoint's fixed settings and the worker daemon, without Spark."""

from __future__ import annotations

import os
import sys
import zipfile
import zipimport
from pathlib import Path
from typing import Any

import pyspark
import pytest
from msgspec import structs

from tidemark.core.errors import ConfigError
from tidemark.settings import Settings, Stream, Topics
from tidemark.stream import session
from tidemark.stream.checkpoint import FixedSettings, check_fixed_settings, fixed_settings
from tidemark.stream.class_path import FRONT, jars_in_front
from tidemark.stream.daemon import remove_archives, without_archives
from tidemark.stream.job import trigger_ms
from tidemark.stream.spark_internals import checkpoint_file_manager


def settings(**stream: object) -> Settings:
    return Settings(topics=Topics(partitions=4), stream=Stream(**stream))  # type: ignore[arg-type]


LOCAL, CLUSTER = {"master": "local[2]"}, {"master": "spark://host:7077"}
SHUFFLED, AUTHENTICATED = "spark.sql.shuffle.partitions", "spark.authenticate"
LOCAL_FILES = {
    **session.LOCAL_CHECKPOINT,
    "spark.sql.streaming.checkpointFileManagerClass": checkpoint_file_manager(),
}
PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
CLASS_PATH = "spark.driver.extraClassPath"
FRONT_JARS = [str(path) for path in jars_in_front()]
ROCKSDB = {"store_provider": "rocksdb"}
GIVEN = {"spark.sql.shuffle.partitions": "99", "spark.app.name": "mine", "kafka.acks": "all"}


@pytest.mark.parametrize(
    ("stream", "submitted", "expected"),
    [
        # A local run binds to loopback, shows no user interface, and finds our jars.
        (
            {},
            False,
            {
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.ui.enabled": "false",
                "spark.jars": "file:///jars/a.jar,file:///jars/b%20c.jar",
                "spark.python.daemon.module": "tidemark.stream.daemon",
            },
        ),
        # A submitted job keeps its master and jars.
        (
            {},
            True,
            {
                "spark.master": None,
                "spark.jars": None,
                "spark.driver.host": None,
                "spark.python.daemon.module": None,
            },
        ),
        # A local run answers only who has the secret that Spark makes; others need the operator's.
        ({"master": "local"}, False, {AUTHENTICATED: "true"}),
        (LOCAL, False, {AUTHENTICATED: "true"}),
        ({**LOCAL, "spark": {AUTHENTICATED: "false"}}, False, {AUTHENTICATED: "false"}),
        ({"master": "local-cluster[2,1,1024]"}, False, {AUTHENTICATED: None}),
        (CLUSTER, False, {AUTHENTICATED: None}),
        (LOCAL, True, {AUTHENTICATED: None}),
        # Local checkpoints need no processes.
        ({"checkpoint": "./here"}, False, LOCAL_FILES),
        ({"checkpoint": "/there"}, False, LOCAL_FILES),
        ({"checkpoint": "file:///there"}, False, LOCAL_FILES),
        ({"checkpoint": "hdfs://host/there"}, False, dict.fromkeys(LOCAL_FILES)),
        ({"checkpoint": "s3a://bucket/there"}, False, dict.fromkeys(LOCAL_FILES)),
        # RocksDB has Hadoop's own local files: FileSystem.getLocal casts them to LocalFileSystem.
        (ROCKSDB, False, {**session.LOCAL_ROCKSDB, "spark.hadoop.fs.file.impl": None}),
        # It finds most classes in the first jars.
        ({}, False, {CLASS_PATH: ":".join(FRONT_JARS)}),
        (
            {"spark": {CLASS_PATH: "/mine/*"}},
            False,
            {CLASS_PATH: ":".join(["/mine/*", *FRONT_JARS])},
        ),
        (CLUSTER, False, {CLASS_PATH: None}),
        # It shuffles into as many tasks as run at once.
        (LOCAL, False, {SHUFFLED: "2"}),
        ({"master": "local[2,3]"}, False, {SHUFFLED: "2"}),
        ({"master": "local"}, False, {SHUFFLED: "1"}),
        ({"master": "local[64]"}, False, {SHUFFLED: "4"}),
        ({"master": "local-cluster[2,1,1024]"}, False, {SHUFFLED: "4"}),
        (CLUSTER, False, {SHUFFLED: "4"}),
        # The launcher's master counts, which is not known here.
        (LOCAL, True, {SHUFFLED: "4"}),
        # A batch of a small cluster has one task, and that of a large one as many as before.
        ({}, False, {"spark.master": "local[1]", SHUFFLED: "1"}),
        ({"large": True}, False, {"spark.master": "local[4]", SHUFFLED: "4"}),
        # Nothing overrides the settings that a checkpoint fixes.
        (
            {"spark": GIVEN, **ROCKSDB},
            False,
            {
                SHUFFLED: "1",
                "spark.sql.streaming.stateStore.providerClass": PROVIDER,
                "spark.app.name": "mine",
                "kafka.acks": None,
            },
        ),
    ],
)
def test_the_settings_of_a_session(
    stream: dict[str, Any], submitted: bool, expected: dict[str, str | None]
) -> None:
    jars = [Path("/jars/a.jar"), Path("/jars/b c.jar")]
    conf = session.spark_settings(
        settings(**stream), jars, daemon=not submitted, submitted=submitted
    )
    assert {name: conf.get(name) for name in expected} == expected
    assert not any("secret" in key for key in conf)


@pytest.mark.parametrize(
    ("checkpoint", "folder"),
    [
        ("here/c", "here/c"),
        ("/there", "/there"),
        ("file:/there", "/there"),
        ("FILE:///there", "/there"),
        ("hdfs://host/there", None),
    ],
)
def test_the_folder_of_a_local_checkpoint(checkpoint: str, folder: str | None) -> None:
    assert session.local_folder(checkpoint) == (None if folder is None else Path(folder))


def test_each_of_the_first_jars_is_there() -> None:
    assert len(FRONT_JARS) == len(FRONT)


@pytest.mark.parametrize(
    ("stream", "small", "end"),
    [
        ({}, True, ""),
        ({"large": True}, True, ""),
        (CLUSTER, False, ""),
        # The operator's follow ours.
        ({"spark": {JAVA_OPTIONS: "-Xss1m"}}, True, " -Xss1m"),
    ],
)
def test_the_options_of_the_jvm(stream: dict[str, Any], small: bool, end: str) -> None:
    conf = session.spark_settings(settings(**stream), [], daemon=False, submitted=False)
    assert (session.LOCAL_JVM in conf[JAVA_OPTIONS]) is small
    assert conf[JAVA_OPTIONS].startswith("-Dlog4j2.configurationFile=file:")
    assert conf[JAVA_OPTIONS].endswith(end)


def test_all_cores_are_as_many_tasks() -> None:
    assert session.tasks_at_once("local[*]") == os.cpu_count()


def test_the_checkpoint_does_not_fix_the_number_of_tasks() -> None:
    # Spark keeps the number of a checkpoint that exists.
    one, four = (fixed_settings(settings(master=f"local[{n}]")) for n in (1, 4))
    assert one == four


@pytest.mark.parametrize(
    ("stream", "milliseconds"),
    [(Stream(), 500), (Stream(large=True), 5000), (Stream(large=True, trigger_ms=0), 0)],
)
def test_trigger(stream: Stream, milliseconds: int) -> None:
    assert trigger_ms(Settings(stream=stream)) == milliseconds


def test_the_daemon_needs_the_operators_setting_on_a_cluster() -> None:
    assert not session.daemon_usable(settings(master="spark://host:7077"), False, {})
    assert session.daemon_usable(
        settings(master="spark://host:7077", spark={"spark.python.daemon.module": session.DAEMON}),
        False,
        {},
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one: two\n  at x", "one: two"),
        (
            "a\nCaused by: b\n  at x\nCaused by: java.net.ConnectException: refused.\n at y",
            "java.net.ConnectException: refused",
        ),
        (
            "[X] failed\nTraceback (most recent call last):\n  File x\nValueError: bad blob\n",
            "ValueError: bad blob",
        ),
        ("", "RuntimeError"),
        # Of a damaged file, which Java's message repeats.
        ("java.lang.X: got \x1b[2J\x00{", "java.lang.X: got ?[2J?{"),
    ],
)
def test_first_line_is_the_last_cause(text: str, line: str) -> None:
    assert session.first_line(RuntimeError(text)) == line


FIXED = fixed_settings(settings())


@pytest.mark.parametrize(
    ("changes", "named", "cure"),
    [
        ({"partitions": 16}, "topics.partitions", "Change the number of groups"),
        ({"topic": "other.replica-state"}, "topics.prefix", "give a new stream.checkpoint"),
        ({"store_provider": "rocksdb"}, "store_provider", "give a new stream.checkpoint"),
        ({"v": 3}, "has version 3", "give a new stream.checkpoint"),
    ],
)
def test_disagreement_with_the_checkpoint_names_the_setting_and_the_cure(
    changes: dict[str, Any], named: str, cure: str
) -> None:
    found: FixedSettings = structs.replace(FIXED, **changes)
    with pytest.raises(ConfigError) as caught:
        check_fixed_settings(found, FIXED, "/there")
    assert named in str(caught.value)
    assert cure in str(caught.value)


def test_agreement_with_the_checkpoint_passes() -> None:
    check_fixed_settings(FIXED, FIXED, "/there")


PACKAGE = Path(pyspark.__file__).parent


def archived(folder: Path, version: bytes) -> str:
    archive = folder / "pyspark.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("pyspark/version.py", version)
    return str(archive)


def test_archives_are_removed_when_the_same_pyspark_is_installed(tmp_path: Path) -> None:
    same = archived(tmp_path, (PACKAGE / "version.py").read_bytes())
    site = str(PACKAGE.parent)
    assert without_archives([same, "/x/py4j-src.zip", "/jars/a.jar", site]) == [site]


def test_archives_are_removed_from_the_finders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = archived(tmp_path, (PACKAGE / "version.py").read_bytes())
    monkeypatch.setattr(sys, "path", [archive, str(PACKAGE.parent)])
    monkeypatch.setattr(
        sys, "path_importer_cache", {archive: zipimport.zipimporter(archive), str(tmp_path): None}
    )
    remove_archives()
    assert sys.path == [str(PACKAGE.parent)]
    assert not any(
        isinstance(finder, zipimport.zipimporter) for finder in sys.path_importer_cache.values()
    )


def test_archives_remain_when_another_pyspark_or_none_is_installed(tmp_path: Path) -> None:
    other = archived(tmp_path, b"__version__ = 'other'\n")
    path = [other, str(PACKAGE.parent)]
    assert without_archives(path) == path
    alone = [other, str(tmp_path)]
    assert without_archives(alone) == alone
