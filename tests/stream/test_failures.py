"""A failed query is one line: what is damaged and the way out, or that a restart is enough."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.stream.failures import CONTINUES, describe_failure, spark_errors
from tidemark.stream.stopping import finish_batch

STATE = (
    "org.apache.spark.sql.execution.streaming.state.StateStoreException: "
    "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state."
)
DELTA = "file:/c/state/0/1/2.delta"


@pytest.mark.parametrize(
    ("causes", "file"),
    [
        ([STATE, f"java.io.IOException: Error reading delta file {DELTA} of Provider"], DELTA),
        ([STATE, "java.io.EOFException: Premature EOF"], "a file in /c/state"),
        (
            [
                "java.lang.IllegalStateException: Failed to read log file /c/commits/7. Incomplete",
                "JsonParseException: Unrecognized token 'garbage'",
            ],
            "/c/commits/7",
        ),
        (
            ["IllegalStateException: Failed to read log file file:/c/offsets/0."],
            "file:/c/offsets/0",
        ),
        (
            ['java.lang.IllegalArgumentException: Expected e.g. {"topicA":{"0":23}}, got {"t.'],
            "metadata, or a file in offsets or sources, in /c",
        ),
        (
            ["com.fasterxml.jackson.core.io.JsonEOFException: Unexpected end-of-input"],
            "metadata, or a file in offsets or sources, in /c",
        ),
        (["Error reading stream metadata from file:/c/metadata"], "file:/c/metadata"),
    ],
)
def test_damage_names_the_file_and_the_way_out(causes: list[str], file: str) -> None:
    text = describe_failure(causes, "/c")
    assert text.startswith(f"the checkpoint is damaged: {file}: ")
    assert "restore the whole folder /c from a copy, or set stream.checkpoint" in text
    assert CONTINUES not in text
    assert "\n" not in text


@pytest.mark.parametrize(
    "causes",
    [
        ["org.apache.kafka.common.errors.TimeoutException: Call timed out"],
        [STATE, f"java.net.ConnectException: {DELTA}: Connection refused"],
        ["java.lang.OutOfMemoryError: Java heap space"],
    ],
)
def test_what_a_restart_may_cure_is_no_damage(causes: list[str]) -> None:
    text = describe_failure(causes, "/c")
    assert text.startswith("the query failed: ")
    assert text.endswith(CONTINUES)


def test_a_batch_that_was_written_already_is_another_stream_or_damage() -> None:
    text = describe_failure(["SparkException: [CONCURRENT_STREAM_LOG_UPDATE] Concurrent"], "/c")
    assert text.startswith("another stream uses the checkpoint /c, or a file in its offsets is go")
    assert "Stop the other stream; if there is none, restore the whole folder /c" in text
    assert CONTINUES not in text


def test_a_full_disk_is_named() -> None:
    text = describe_failure([STATE, "java.io.IOException: No space left on device"], "/c")
    assert "no space is left" in text
    assert "Free space for /c" in text


class JavaException:
    """An exception in the JVM, as py4j gives it."""

    _target_id = "o1"

    def __init__(self, text: str, cause: JavaException | None = None) -> None:
        self.toString = lambda: text
        self.getCause = lambda: cause


def java_error() -> Py4JJavaError:
    stopped = JavaException("java.lang.IllegalStateException: Cannot call methods on a stopped one")
    return Py4JJavaError(
        "An error occurred", JavaException("java.lang.RuntimeException: o", stopped)
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (java_error(), "the query failed: java.lang.IllegalStateException: Cannot call methods"),
        (PySparkException("[WRONG] wrong"), "the query failed: [WRONG] wrong"),
        (Py4JError("An error occurred while calling o1.isActive"), "Spark's JVM ended"),
        (Py4JNetworkError("Answer from Java side is empty"), "Spark's JVM ended"),
        (ConnectionRefusedError(111, "Connection refused"), "Spark's JVM ended"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_spark_raises_is_one_line(error: Exception, said: str) -> None:
    with pytest.raises(TidemarkError) as caught, spark_errors("/c"):
        raise error
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)
    assert "when started again" in str(caught.value)


@pytest.mark.parametrize("error", [ConfigError("ours"), KeyError("a defect")])
def test_other_errors_pass(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, spark_errors("/c"):
        raise error
    assert caught.value is error


def test_a_query_that_does_not_stop_in_time_is_no_failure() -> None:
    """Spark raises java.util.concurrent.TimeoutException, for which PySpark has no type."""

    class Query:
        lastProgress = None  # noqa: N815 - Spark's name
        status = {"isTriggerActive": False}

        def stop(self) -> None:
            raise java_error()

    query: Any = Query()
    finish_batch(query)
