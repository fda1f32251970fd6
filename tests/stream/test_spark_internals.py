"""What Spark does not promise: it is used where it is there, and nothing fails where it is not."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.stream.conftest import StreamProcess
from tests.stream.synthetic import SyntheticPasses
from tests.stream.topics import publish_passes
from tidemark.jvm.jars import connector_jars
from tidemark.settings import Settings
from tidemark.stream import spark_internals
from tidemark.stream.checkpoint import open_checkpoint
from tidemark.stream.class_path import spark_home
from tidemark.stream.failures import Cause, error_causes, query_causes
from tidemark.stream.session import PROVIDERS
from tidemark.stream.spark_internals import (
    CHECKPOINT_READERS,
    CHECKPOINT_WRITERS,
    LOG_CONFIGURATION,
    checkpoint_file_manager,
)

BEFORE_4_1 = "org/apache/spark/sql/execution/streaming/FileSystemBasedCheckpointFileManager"
SINCE_4_1 = BEFORE_4_1.replace("/streaming/", "/streaming/checkpointing/")
# The verb where PySpark and Spark have none of it.
WITHOUT = """
from tidemark.stream import spark_internals
spark_internals.private = lambda owner, name: None
spark_internals.checkpoint_file_manager.__globals__["_FILE_MANAGER_PACKAGES"] = ()
from tidemark.stream.command import main
main()
"""


@pytest.fixture(scope="module")
def classes() -> dict[str, bytes]:
    """The classes that this Spark and its connector have; with their bytes, those of streaming."""
    jars = spark_home() / "jars"
    found = {}
    for jar in (*connector_jars(), *jars.glob("spark-*.jar"), *jars.glob("hadoop-client-api-*")):
        with zipfile.ZipFile(jar) as archive:
            for path in archive.namelist():
                if path.endswith(".class"):
                    name = path.removesuffix(".class").replace("/", ".")
                    found[name] = archive.read(path) if ".execution.streaming." in name else b""
    return found


@pytest.mark.spark
def test_each_logger_is_a_class_or_a_package_of_this_spark(classes: dict[str, bytes]) -> None:
    """Of a class that moved, one of its names is: log4j says nothing of the other."""
    text = LOG_CONFIGURATION.read_text()
    names = re.findall(r"^logger\.\w+\.name = (\S+)$", text, flags=re.MULTILINE)
    packages = {name.rpartition(".")[0] for name in classes}
    known = {*classes, *packages, *(name.rpartition(".")[0] for name in packages)}
    there = {name.rpartition(".")[2] for name in names if name in known}
    assert {name.rpartition(".")[2] for name in names} == there
    assert set(PROVIDERS.values()) <= known


@pytest.mark.spark
def test_each_class_and_function_of_a_frame_is_one_of_this_spark(
    classes: dict[str, bytes],
) -> None:
    frames = " ".join(reader.pattern for reader, _ in CHECKPOINT_READERS)
    words = {part for name in classes for part in re.split(r"[.$]", name)}
    named = set(re.findall(r"\b[A-Z]\w{3,}", frames))
    assert len(named) > 10
    # An end of a name is one of its alternatives in the pattern.
    assert [end for end in named if not any(word.endswith(end) for word in words)] == []
    functions = set(re.findall(r"\b[a-z]+[A-Z]\w+", frames + CHECKPOINT_WRITERS.pattern))
    assert len(functions) > 3
    code = b"".join(classes.values())
    assert [name for name in functions if name.encode() not in code] == []


@pytest.mark.parametrize(
    ("classes_there", "found"),
    [
        ((BEFORE_4_1,), BEFORE_4_1.replace("/", ".")),
        ((SINCE_4_1,), SINCE_4_1.replace("/", ".")),
        ((), None),
    ],
)
def test_the_checkpoint_file_manager_is_the_one_of_the_jars(
    classes_there: tuple[str, ...],
    found: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "jars").mkdir()
    with zipfile.ZipFile(tmp_path / "jars" / "spark-sql_2.13-4.9.jar", "w") as jar:
        for name in (*classes_there, "org/apache/spark/sql/Dataset"):
            jar.writestr(f"{name}.class", b"")
    monkeypatch.setattr(spark_internals, "spark_home", lambda: tmp_path)
    assert checkpoint_file_manager() == found


def test_this_spark_has_one() -> None:
    assert list((spark_home() / "jars").glob("spark-sql_*.jar"))
    assert checkpoint_file_manager() is not None


def test_without_private_attributes_there_are_texts_and_defaults() -> None:
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace())
    assert open_checkpoint(spark, Settings()) is None
    assert spark_internals.jvm_gateway(spark) is None
    failed: Any = SimpleNamespace(exception=lambda: RuntimeError("org.apache.x.YException: z"))
    assert query_causes(failed) == [Cause("org.apache.x.YException: z")]
    stopped: Any = SimpleNamespace(exception=lambda: None)
    assert query_causes(stopped) == []
    assert error_causes(RuntimeError("z")) == [Cause("z")]


@pytest.mark.spark
@pytest.mark.slow
def test_the_stream_runs_and_ends_without_any_of_it(
    settings: Settings, stream: Callable[..., StreamProcess]
) -> None:
    publish_passes(settings, SyntheticPasses(partitions=8, groups=4), [0])
    running = stream(settings, command=[sys.executable, "-c", WITHOUT])
    running.wait_for(lambda: bool(running.lines("batch")), "a batch", 240)
    assert running.lines(
        "the checkpoint is not checked: this PySpark gives no way to Hadoop's file systems"
    )
    code, seconds = running.terminate()
    assert (code, seconds < 15) == (0, True), running.log_tail()
    assert "Traceback" not in running.log.read_text()
