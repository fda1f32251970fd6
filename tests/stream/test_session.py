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


def settings(**stream: object) -> Settings:
    return Settings(topics=Topics(partitions=4), stream=Stream(**stream))  # type: ignore[arg-type]


def test_local_mode_binds_to_loopback_and_shows_no_ui() -> None:
    conf = session.spark_settings(
        settings(), [Path("/jars/a.jar"), Path("/jars/b c.jar")], daemon=True, submitted=False
    )
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert conf["spark.ui.enabled"] == "false"
    assert conf["spark.jars"] == "file:///jars/a.jar,file:///jars/b%20c.jar"
    assert conf["spark.python.daemon.module"] == "tidemark.stream.daemon"


@pytest.mark.parametrize(
    ("master", "submitted", "given", "authenticate"),
    [
        ("local", False, {}, "true"),
        ("local[2]", False, {}, "true"),
        ("local[2]", False, {"spark.authenticate": "false"}, "false"),
        # They need a secret of the operator's.
        ("local-cluster[2,1,1024]", False, {}, None),
        ("spark://host:7077", False, {}, None),
        ("local[2]", True, {}, None),
    ],
)
def test_a_local_run_answers_only_who_has_the_secret_that_spark_makes(
    master: str, submitted: bool, given: dict[str, str], authenticate: str | None
) -> None:
    conf = session.spark_settings(
        settings(master=master, spark=given), [], daemon=False, submitted=submitted
    )
    assert conf.get("spark.authenticate") == authenticate
    assert not any("secret" in key for key in conf)


@pytest.mark.parametrize(
    ("checkpoint", "local"),
    [
        ("./here", True),
        ("/there", True),
        ("file:///there", True),
        ("hdfs://host/there", False),
        ("s3a://bucket/there", False),
    ],
)
def test_local_checkpoints_need_no_processes(checkpoint: str, local: bool) -> None:
    conf = session.spark_settings(
        settings(checkpoint=checkpoint), [], daemon=False, submitted=False
    )
    assert (session.LOCAL_CHECKPOINT.items() <= conf.items()) is local
    assert ("spark.sql.streaming.checkpointFileManagerClass" in conf) is local


def test_rocksdb_has_hadoops_own_local_files() -> None:
    """FileSystem.getLocal casts them to LocalFileSystem."""
    conf = session.spark_settings(
        settings(store_provider="rocksdb"), [], daemon=False, submitted=False
    )
    assert "spark.hadoop.fs.file.impl" not in conf
    assert session.LOCAL_ROCKSDB.items() <= conf.items()


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


def test_a_local_run_has_a_jvm_for_small_tasks() -> None:
    options = [
        session.spark_settings(chosen, [], daemon=False, submitted=False)[
            "spark.driver.extraJavaOptions"
        ]
        for chosen in (settings(), settings(large=True), settings(master="spark://host:7077"))
    ]
    assert [session.LOCAL_JVM in text for text in options] == [True, True, False]


def test_a_local_run_finds_most_classes_in_the_first_jars() -> None:
    front = [str(path) for path in jars_in_front()]
    assert len(front) == len(FRONT)
    own = settings(spark={"spark.driver.extraClassPath": "/mine/*"})
    paths = [
        session.spark_settings(chosen, [], daemon=False, submitted=False).get(
            "spark.driver.extraClassPath"
        )
        for chosen in (settings(), own, settings(master="spark://host:7077"))
    ]
    assert paths == [":".join(front), ":".join(["/mine/*", *front]), None]


@pytest.mark.parametrize(
    ("master", "submitted", "partitions"),
    [
        ("local[2]", False, "2"),
        ("local[2,3]", False, "2"),
        ("local", False, "1"),
        ("local[64]", False, "4"),
        ("local-cluster[2,1,1024]", False, "4"),
        ("spark://host:7077", False, "4"),
        # The launcher's master counts, which is not known here.
        ("local[2]", True, "4"),
    ],
)
def test_a_local_run_shuffles_into_as_many_tasks_as_run_at_once(
    master: str, submitted: bool, partitions: str
) -> None:
    conf = session.spark_settings(settings(master=master), [], daemon=False, submitted=submitted)
    assert conf["spark.sql.shuffle.partitions"] == partitions


def test_all_cores_are_as_many_tasks() -> None:
    assert session.tasks_at_once("local[*]") == os.cpu_count()


def test_the_checkpoint_does_not_fix_the_number_of_tasks() -> None:
    # Spark keeps the number of a checkpoint that exists.
    one, four = (fixed_settings(settings(master=f"local[{n}]")) for n in (1, 4))
    assert one == four


def test_submitted_job_keeps_its_master_and_jars() -> None:
    conf = session.spark_settings(settings(), [], daemon=False, submitted=True)
    assert (
        not {"spark.master", "spark.jars", "spark.driver.host", "spark.python.daemon.module"}
        & conf.keys()
    )


def test_spark_settings_cannot_override_the_fixed_settings_of_the_checkpoint() -> None:
    given = {"spark.sql.shuffle.partitions": "99", "spark.app.name": "mine", "kafka.acks": "all"}
    conf = session.spark_settings(
        settings(spark=given, store_provider="rocksdb"), [], daemon=False, submitted=False
    )
    assert conf["spark.sql.shuffle.partitions"] == "4"
    assert conf["spark.sql.streaming.stateStore.providerClass"].endswith(
        ".RocksDBStateStoreProvider"
    )
    assert conf["spark.app.name"] == "mine"
    assert "kafka.acks" not in conf


def test_the_operators_java_options_follow_ours() -> None:
    conf = session.spark_settings(
        settings(spark={"spark.driver.extraJavaOptions": "-Xss1m"}),
        [],
        daemon=False,
        submitted=False,
    )
    assert conf["spark.driver.extraJavaOptions"].startswith("-Dlog4j2.configurationFile=file:")
    assert conf["spark.driver.extraJavaOptions"].endswith(" -Xss1m")


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


def archived(folder: Path, version: bytes) -> str:
    archive = folder / "pyspark.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("pyspark/version.py", version)
    return str(archive)


def test_archives_are_removed_when_the_same_pyspark_is_installed(tmp_path: Path) -> None:
    package = Path(pyspark.__file__).parent
    same = archived(tmp_path, (package / "version.py").read_bytes())
    site = str(package.parent)
    assert without_archives([same, "/x/py4j-src.zip", "/jars/a.jar", site]) == [site]


def test_archives_are_removed_from_the_finders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(pyspark.__file__).parent
    archive = archived(tmp_path, (package / "version.py").read_bytes())
    monkeypatch.setattr(sys, "path", [archive, str(package.parent)])
    monkeypatch.setattr(
        sys, "path_importer_cache", {archive: zipimport.zipimporter(archive), str(tmp_path): None}
    )
    remove_archives()
    assert sys.path == [str(package.parent)]
    assert not any(
        isinstance(finder, zipimport.zipimporter) for finder in sys.path_importer_cache.values()
    )


def test_archives_remain_when_another_pyspark_or_none_is_installed(tmp_path: Path) -> None:
    other = archived(tmp_path, b"__version__ = 'other'\n")
    path = [other, str(Path(pyspark.__file__).parent.parent)]
    assert without_archives(path) == path
    alone = [other, str(tmp_path)]
    assert without_archives(alone) == alone
