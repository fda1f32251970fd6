"""A failed query is one line: what is damaged and the way out, or that a restart is enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.stream.checkpoint import checkpoint_errors
from tidemark.stream.failures import (
    CONTINUES,
    JVM_ENDED,
    MAX_FRAMES,
    Cause,
    describe_failure,
    error_causes,
    spark_errors,
)
from tidemark.stream.query import finish_batch

STATE = (
    "org.apache.spark.sql.execution.streaming.state.StateStoreException: "
    "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state."
)
DELTA = "file:/c/state/0/1/2.delta"
STREAMING = "org.apache.spark.sql.execution.streaming"
# The plan that Spark adds to the first exception.
PLAN = (
    "org.apache.spark.sql.streaming.StreamingQueryException: failed\n=== Streaming Query ===\n"
    "checkpointLocation=s3://bucket/metadata, read from the state store"
)


def described(*causes: str) -> str:
    """Of exceptions without frames."""
    return describe_failure([Cause(text) for text in causes], "/c")


def thrown(text: str, *frames: str) -> str:
    """Of a query that failed by an exception with these frames, innermost first."""
    inner = Cause(text, (*frames, f"{STREAMING}.MicroBatchExecution.runBatch(MicroBatch.scala:9)"))
    return describe_failure([Cause(PLAN, (f"{STREAMING}.StreamExecution.run(S:1)",)), inner], "/c")


@pytest.mark.parametrize(
    ("causes", "file"),
    [
        ([STATE, f"java.io.IOException: Error reading delta file {DELTA} of Provider"], DELTA),
        ([STATE, "java.io.EOFException: Premature EOF"], "a file in /c/state"),
        (
            [STATE, "java.io.EOFException\n at java.security.AccessController.doPrivileged(N)"],
            "a file in /c/state",
        ),
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
            "metadata, or a file in offsets, commits or sources, in /c",
        ),
        (
            ["com.fasterxml.jackson.core.io.JsonEOFException: Unexpected end-of-input"],
            "metadata, or a file in offsets, commits or sources, in /c",
        ),
        (["Error reading stream metadata from file:/c/metadata"], "file:/c/metadata"),
        (
            ["java.io.FileNotFoundException: File /c/state/0/0/_metadata/schema does not exist"],
            "/c/state/0/0/_metadata/schema",
        ),
    ],
)
def test_damage_names_the_file_and_the_way_out(causes: list[str], file: str) -> None:
    text = described(*causes)
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
        [STATE, "java.lang.OutOfMemoryError: Java heap space"],
        [STATE, f"java.io.FileNotFoundException: {DELTA} (Too many open files)"],
        ["SparkException: [CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] Error writing state store"],
        [PLAN, "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized"],
    ],
)
def test_what_a_restart_may_cure_is_no_damage(causes: list[str]) -> None:
    text = described(*causes)
    assert text.startswith("the query failed: ")
    assert text.endswith(CONTINUES)


READ_UTF = "java.base/java.io.DataInputStream.readUTF(DataInputStream.java:570)"


@pytest.mark.parametrize(
    ("text", "frames", "place"),
    [
        (
            "java.io.EOFException",
            (
                READ_UTF,
                f"{STREAMING}.state.SchemaHelper$SchemaV2Reader.read(SchemaHelper.scala:99)",
                f"{STREAMING}.state.StateSchemaCompatibilityChecker$.readSchemaFile(State.scala:3)",
            ),
            "/c/state/0/0/_metadata/schema",
        ),
        (
            "java.io.EOFException",
            (f"{STREAMING}.state.HDFSBackedStateStoreProvider.updateFromDeltaFile(H.scala:609)",),
            "a file in /c/state",
        ),
        (
            "java.lang.NumberFormatException: Error at index 1",
            (
                "java.base/java.util.UUID.fromString(UUID.java:258)",
                f"{STREAMING}.StreamExecution.<init>(StreamExecution.scala:175)",
            ),
            "/c/metadata",
        ),
        (
            "java.nio.charset.MalformedInputException: Input length = 1",
            (
                "java.base/sun.nio.cs.StreamDecoder.read(StreamDecoder.java:188)",
                f"{STREAMING}.CommitLog.deserialize(CommitLog.scala:49)",
                f"{STREAMING}.HDFSMetadataLog.getLatest(HDFSMetadataLog.scala:268)",
            ),
            "a file in /c/commits",
        ),
        (
            "com.fasterxml.jackson.core.io.JsonEOFException: Unexpected end-of-input",
            (f"{STREAMING}.OffsetSeq$.fill(OffsetSeq.scala:9)",),
            "a file in /c/offsets",
        ),
        (
            "java.lang.IllegalStateException: batch 0 doesn't exist",
            (f"{STREAMING}.MicroBatchExecution.$anonfun$validateOffsetLogAndGetPrevOffset$1(M:9)",),
            "a file in /c/offsets",
        ),
        (
            "java.lang.IllegalArgumentException: requirement failed",
            (
                "scala.Predef$.require(Predef.scala:324)",
                "org.apache.spark.sql.kafka010.KafkaSourceInitialOffsetWriter.deserialize(K:29)",
            ),
            "a file in /c/sources/0",
        ),
        (
            # In the folder that RocksDB's files are copied to.
            "java.nio.file.NoSuchFileException: /tmp/spark-1/workingDir-2/metadata",
            (f"{STREAMING}.state.RocksDBCheckpointMetadata$.readFromFile(RocksDBFile.scala:9)",),
            "a file in /c/state",
        ),
        (
            # Of a name node: the file is gone.
            "java.io.FileNotFoundException: File does not exist",
            (
                "org.apache.hadoop.ipc.RemoteException.unwrapRemoteException(RemoteException:88)",
                f"{STREAMING}.state.HDFSBackedStateStoreProvider.updateFromDeltaFile(H.scala:609)",
            ),
            "a file in /c/state",
        ),
    ],
)
def test_what_spark_was_reading_when_it_failed_is_damaged(
    text: str, frames: tuple[str, ...], place: str
) -> None:
    said = thrown(text, *frames)
    assert said.startswith(f"the checkpoint is damaged: {place}: {text}")
    assert CONTINUES not in said


LOAD_MAP = f"{STREAMING}.state.HDFSBackedStateStoreProvider.loadMap(HDFSBacked.scala:530)"


@pytest.mark.parametrize(
    ("text", "frames"),
    [
        # A broker, a name node or an object store closed the connection.
        (
            "java.io.EOFException",
            (
                "java.base/java.io.DataInputStream.readInt(DataInputStream.java:381)",
                "org.apache.kafka.common.network.NetworkReceive.readFrom(NetworkReceive.java:9)",
            ),
        ),
        (
            "java.io.EOFException: End of File Exception between local host",
            ("org.apache.hadoop.ipc.Client$Connection.receiveRpcResponse(Client.java:9)", LOAD_MAP),
        ),
        (
            "java.io.IOException: Connection reset",
            ("java.base/sun.nio.ch.SocketChannelImpl.read(SocketChannelImpl.java:9)", LOAD_MAP),
        ),
        ("com.amazonaws.SdkClientException: x", ("com.amazonaws.http.Client.do(C.java)", LOAD_MAP)),
        # A write.
        (
            "java.io.IOException: Could not rename",
            (
                f"{STREAMING}.CheckpointFileManager$RenameBasedFSDataOutputStream.close(C:9)",
                f"{STREAMING}.HDFSMetadataLog.write(HDFSMetadataLog.scala:9)",
            ),
        ),
        (
            "java.io.IOException: x",
            (f"{STREAMING}.state.HDFSBackedStateStoreProvider$HDFSBackedStateStore.commit(H:9)",),
        ),
        # The state's task, in another's code.
        (
            "java.io.EOFException",
            (READ_UTF, f"{STREAMING}.state.StateStoreRDD.compute(StateStoreRDD.scala:138)"),
        ),
    ],
)
def test_a_connection_that_was_closed_and_a_write_are_no_damage(
    text: str, frames: tuple[str, ...]
) -> None:
    assert thrown(text, *frames).endswith(CONTINUES)


def test_a_batch_that_was_written_already_is_another_stream_or_damage() -> None:
    text = described("SparkException: [CONCURRENT_STREAM_LOG_UPDATE] Concurrent")
    assert text.startswith("another stream uses the checkpoint /c, or a file in its offsets is go")
    assert "Stop the other stream; if there is none, restore the whole folder /c" in text
    assert CONTINUES not in text


def test_a_full_disk_is_named() -> None:
    text = described(STATE, "java.io.IOException: No space left on device")
    assert "no space is left" in text
    assert "Free space for /c" in text


class JavaException:
    """An exception in the JVM, as py4j gives it."""

    _target_id = "o1"

    def __init__(
        self, text: str, cause: JavaException | None = None, frames: Sequence[str] = ()
    ) -> None:
        self.toString = lambda: text
        self.getCause = lambda: cause
        self.getStackTrace = lambda: [JavaException(frame) for frame in frames]


def java_error() -> Py4JJavaError:
    stopped = JavaException("java.lang.IllegalStateException: Cannot call methods on a stopped one")
    return Py4JJavaError(
        "An error occurred", JavaException("java.lang.RuntimeException: o", stopped)
    )


def test_causes_are_read_with_a_bounded_number_of_frames() -> None:
    deep = JavaException("java.lang.StackOverflowError", frames=["a.B.c(B.java:1)"] * 1024)
    causes = error_causes(Py4JJavaError("An error occurred", JavaException("o", deep)))
    assert [cause.text for cause in causes] == ["o", "java.lang.StackOverflowError"]
    assert causes[0].frames == ()
    assert causes[1].frames == ("a.B.c(B.java:1)",) * MAX_FRAMES


def test_a_jvm_that_ends_while_its_exception_is_read_is_one_line() -> None:
    def gone() -> str:
        raise Py4JNetworkError("Answer from Java side is empty")

    unreadable = JavaException("")
    unreadable.toString = gone
    with pytest.raises(TidemarkError) as caught, spark_errors("/c"):
        raise Py4JJavaError("An error occurred", unreadable)
    assert str(caught.value) == JVM_ENDED


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


@pytest.mark.parametrize(
    ("error", "context"),
    [
        (ConfigError("ours"), spark_errors),
        (KeyError("a defect"), spark_errors),
        # A lost JVM says nothing of the checkpoint.
        (Py4JError("org does not exist in the JVM"), lambda at: checkpoint_errors("read", at)),
        (ConnectionRefusedError(111, "refused"), lambda at: checkpoint_errors("read", at)),
    ],
)
def test_other_errors_pass(error: Exception, context: Callable[[str], Any]) -> None:
    with pytest.raises(type(error)) as caught, context("/c"):
        raise error
    assert caught.value is error


def test_a_query_that_does_not_stop_in_time_is_no_failure() -> None:
    """Spark raises java.util.concurrent.TimeoutException, for which PySpark has no type."""

    class Query:
        lastProgress = None  # noqa: N815 - Spark's name
        status = {"isTriggerActive": False}

        def stop(self) -> None:
            raise java_error()

    finish_batch(cast(Any, Query()))
