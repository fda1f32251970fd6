"""Settings, frozen choices and the worker daemon, without starting Spark."""

from __future__ import annotations

import sys
import zipfile
import zipimport
from pathlib import Path

import pyspark
import pytest

from tidemark.core.errors import ConfigError
from tidemark.settings import Settings, Stream, Topics
from tidemark.stream import session
from tidemark.stream.daemon import leave_archives, without_archives
from tidemark.stream.frozen import Frozen, check_frozen, frozen_by
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
    ("checkpoint", "local"),
    [
        ("./here", True),
        ("/there", True),
        ("file:///there", True),
        ("hdfs://host/there", False),
        ("s3a://bucket/there", False),
    ],
)
def test_commits_start_no_processes_where_the_checkpoint_is_local(
    checkpoint: str, local: bool
) -> None:
    conf = session.spark_settings(
        settings(checkpoint=checkpoint), [], daemon=False, submitted=False
    )
    assert (session.LOCAL_CHECKPOINT.items() <= conf.items()) is local


def test_small_jvm_is_for_small_local_runs() -> None:
    options = [
        session.spark_settings(chosen, [], daemon=False, submitted=False)[
            "spark.driver.extraJavaOptions"
        ]
        for chosen in (settings(), settings(large=True), settings(master="spark://host:7077"))
    ]
    assert [session.SMALL_JVM in text for text in options] == [True, False, False]


def test_submitted_job_keeps_its_master_and_jars() -> None:
    conf = session.spark_settings(settings(), [], daemon=False, submitted=True)
    assert (
        not {"spark.master", "spark.jars", "spark.driver.host", "spark.python.daemon.module"}
        & conf.keys()
    )


def test_frozen_choices_cannot_be_set_past_the_configuration() -> None:
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


def test_java_options_of_the_operator_stand_beside_ours() -> None:
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


def test_daemon_is_left_out_on_a_cluster_unless_the_operator_says_so() -> None:
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
    ],
)
def test_first_line_is_the_last_cause(text: str, line: str) -> None:
    assert session.first_line(RuntimeError(text)) == line


FROZEN = frozen_by(settings())


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (
            Frozen(
                topic="tidemark.replica-state",
                partitions=16,
                shuffle_partitions=16,
                store_provider="hdfs",
            ),
            "topics.partitions",
        ),
        (
            Frozen(
                topic="other.replica-state",
                partitions=4,
                shuffle_partitions=4,
                store_provider="hdfs",
            ),
            "topics.prefix",
        ),
        (
            Frozen(
                topic="tidemark.replica-state",
                partitions=4,
                shuffle_partitions=4,
                store_provider="rocksdb",
            ),
            "stream.store_provider",
        ),
        (
            Frozen(
                v=2,
                topic="tidemark.replica-state",
                partitions=4,
                shuffle_partitions=4,
                store_provider="hdfs",
            ),
            "newer Tidemark",
        ),
    ],
)
def test_disagreement_with_the_checkpoint_names_the_setting(found: Frozen, named: str) -> None:
    with pytest.raises(ConfigError, match=named) as raised:
        check_frozen(found, FROZEN, "/there")
    assert "another stream.checkpoint" in str(raised.value) or "new stream.checkpoint" in str(
        raised.value
    )


def test_agreement_passes() -> None:
    check_frozen(FROZEN, FROZEN, "/there")


def carried(folder: Path, version: bytes) -> str:
    archive = folder / "pyspark.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("pyspark/version.py", version)
    return str(archive)


def test_archives_leave_the_path_when_the_same_pyspark_is_installed(tmp_path: Path) -> None:
    package = Path(pyspark.__file__).parent
    same = carried(tmp_path, (package / "version.py").read_bytes())
    site = str(package.parent)
    assert without_archives([same, "/x/py4j-src.zip", "/jars/a.jar", site]) == [site]


def test_archives_leave_the_finders_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = Path(pyspark.__file__).parent
    archive = carried(tmp_path, (package / "version.py").read_bytes())
    monkeypatch.setattr(sys, "path", [archive, str(package.parent)])
    monkeypatch.setattr(
        sys, "path_importer_cache", {archive: zipimport.zipimporter(archive), str(tmp_path): None}
    )
    leave_archives()
    assert sys.path == [str(package.parent)]
    assert not any(
        isinstance(finder, zipimport.zipimporter) for finder in sys.path_importer_cache.values()
    )


def test_archives_stay_when_another_pyspark_or_none_is_installed(tmp_path: Path) -> None:
    other = carried(tmp_path, b"__version__ = 'other'\n")
    path = [other, str(Path(pyspark.__file__).parent.parent)]
    assert without_archives(path) == path
    alone = [other, str(tmp_path)]
    assert without_archives(alone) == alone
