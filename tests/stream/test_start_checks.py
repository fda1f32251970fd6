"""What a start refuses before Kafka is asked and Java starts."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from tidemark.core.errors import ConfigError
from tidemark.settings import Connection, Settings, Stream
from tidemark.stream import command
from tidemark.stream.start_checks import check_arrow, check_start


def settings(checkpoint: str, **stream: object) -> Settings:
    return Settings(stream=Stream(checkpoint=checkpoint, **stream))  # type: ignore[arg-type]


def test_a_new_folder_and_one_that_is_there_are_taken(tmp_path: Path) -> None:
    for checkpoint in (tmp_path, tmp_path / "new" / "one"):
        check_start(settings(str(checkpoint)), {})
        check_start(settings(checkpoint.as_uri()), {})


def test_a_user_without_a_name_is_refused_before_java_would_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 2_000_123_456)
    with pytest.raises(ConfigError, match=r"the user id 2000123456 has no name.*/etc/passwd"):
        check_start(settings(str(tmp_path)), {})
    # Its Java runs already.
    check_start(settings(str(tmp_path)), {"PYSPARK_GATEWAY_PORT": "1"})


@pytest.mark.parametrize(
    ("spark", "arrow", "taken"),
    [("4.1.1", "26.0.1", False), ("4.0.0", "25.0.1", True), ("4.2.0", "26.0.1", True)],
)
def test_a_pyarrow_that_is_too_new_for_pyspark_is_refused(
    spark: str, arrow: str, taken: bool
) -> None:
    with nullcontext() if taken else pytest.raises(ConfigError, match=r"'pyarrow<26'"):
        check_arrow({"pyspark": spark, "pyarrow": arrow}.__getitem__)


@pytest.mark.parametrize("inner", ["", "/a/b"])
def test_a_file_is_no_checkpoint(tmp_path: Path, inner: str) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for checkpoint in (f"{file}{inner}", f"{file.as_uri()}{inner}"):
        with pytest.raises(ConfigError, match=r"stream\.checkpoint: .*/file is a file; give"):
            check_start(settings(checkpoint), {})


@pytest.mark.parametrize(
    ("environ", "stream"),
    [
        ({"PYSPARK_GATEWAY_PORT": "1"}, {}),
        ({"HADOOP_CONF_DIR": "/etc/hadoop"}, {}),
        ({}, {"master": "yarn"}),
        ({}, {"spark": {"spark.hadoop.fs.defaultFS": "hdfs://name:8020"}}),
    ],
)
def test_a_path_that_may_be_on_another_file_system_is_left_to_hadoop(
    tmp_path: Path, environ: dict[str, str], stream: dict[str, object]
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    check_start(settings(str(file), **stream), environ)
    check_start(settings("hdfs://name:8020/a", **stream), environ)
    with pytest.raises(ConfigError, match="is a file"):
        check_start(settings(file.as_uri(), **stream), environ)


def test_the_checks_come_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unexpected(*_arguments: object) -> None:
        pytest.fail("asked or started something")

    for name in ("Stop", "import_packages", "ensure_topics", "start_session"):
        monkeypatch.setattr(command, name, unexpected)
    wrong = settings(str(tmp_path))
    wrong.kafka = Connection(client={"proxy_url": "http://p:1"})
    with pytest.raises(ConfigError, match=r"kafka\.client\.proxy_url"):
        command.run(wrong)
