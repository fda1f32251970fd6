"""What the stream uses of Spark that no release promises: each with its reason and a fallback.

PySpark keeps the driver's JVM behind private attributes, and Spark moves its classes between
releases. Where one of them is gone the stream runs on, and says what it cannot do.

The loggers in log4j2.properties are names of classes too; those that moved in 4.1 are there twice.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tidemark.stream.class_path import spark_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import QueryProgressEvent
    from pyspark.sql.streaming.query import StreamingQuery

LOG_CONFIGURATION: Final = Path(__file__).with_name("log4j2.properties")
# Spark's default checks that a file of the checkpoint was renamed, with a checksum file beside it.
# The class moved in Spark 4.1.
_FILE_MANAGER: Final = "FileSystemBasedCheckpointFileManager"
_FILE_MANAGER_PACKAGES: Final = (
    "org.apache.spark.sql.execution.streaming",
    "org.apache.spark.sql.execution.streaming.checkpointing",
)
# Frames of Spark's code that reads a checkpoint, and what it reads, below its folder. A failure
# with none of them is described without a place.
CHECKPOINT_READERS: Final = tuple(
    (re.compile(pattern), place)
    for pattern, place in (
        (r"\.StreamMetadata\$?\.read\(|\.StreamExecution\.<init>\(", "{}/metadata"),
        (r"\.OffsetSeq(?:Log)?\$?\.|\.validateOffsetLogAndGetPrevOffset\(", "a file in {}/offsets"),
        (r"\$anonfun\$validateOffsetLogAndGetPrevOffset\$", "a file in {}/offsets"),
        (r"\.CommitLog\.|\.CommitMetadata\$?\.", "a file in {}/commits"),
        (r"\.KafkaSourceInitialOffsetWriter\.", "a file in {}/sources/0"),
        (r"\.HDFSMetadataLog\.", "a file in offsets, commits or sources, in {}"),
        (r"\.StateSchemaCompatibilityChecker\b|\.SchemaHelper\b", "{}/state/0/0/_metadata/schema"),
        (r"\.OperatorStateMetadata", "a file in {}/state/0/_metadata"),
        (r"\.HDFSBackedStateStoreProvider\.|\.StateStoreChangelogReader", "a file in {}/state"),
        (r"\.RocksDB(?:FileManager|CheckpointMetadata)?\$?\.", "a file in {}/state"),
    )
)
# Frames of code that writes.
CHECKPOINT_WRITERS: Final = re.compile(
    r"OutputStream\.|execution\.streaming\.[\w.$]+"
    r"\.(?:write|commit|createAtomic|createSchemaFile|uploadSnapshot)\("
)


def private(owner: object, name: str) -> Any:
    """A private attribute; None where this PySpark has none."""
    return getattr(owner, name, None)


def hadoop(spark: SparkSession) -> tuple[Any, Any] | None:
    """py4j's view of the driver's JVM, and Hadoop's configuration there.

    PySpark has no public way to Hadoop's file systems. None: the checkpoint is left to Spark alone.
    """
    context = spark.sparkContext
    jvm, java_context = private(context, "_jvm"), private(context, "_jsc")
    if jvm is None or java_context is None:
        return None
    return jvm, java_context.hadoopConfiguration()


def jvm_gateway(spark: SparkSession) -> Any:
    """py4j's gateway, with the process of a JVM that PySpark started as `proc`.

    A JVM that hangs is killed by it. None: it ends by itself, once this process does.
    """
    return private(spark.sparkContext, "_gateway")


def java_exception(query: StreamingQuery) -> Any:
    """What ended a query, with its causes and frames; PySpark's own has the outermost message only.

    None: none did, or it is not known: `query.exception()` says.
    """
    java_query = private(query, "_jsq")
    failure = None if java_query is None else java_query.exception()
    return failure.get() if failure is not None and failure.isDefined() else None


def java_origin(error: Exception) -> Any:
    """The Java exception behind one of PySpark's or py4j's; None: its text is all there is."""
    return private(error, "_origin") or getattr(error, "java_exception", None)


def checkpoint_file_manager() -> str | None:
    """The class that writes a checkpoint's files without checksum files; None: Spark's default."""
    for jar in (spark_home() / "jars").glob("spark-sql_*.jar"):
        with zipfile.ZipFile(jar) as archive:
            names = set(archive.namelist())
        for package in _FILE_MANAGER_PACKAGES:
            if f"{package}.{_FILE_MANAGER}".replace(".", "/") + ".class" in names:
                return f"{package}.{_FILE_MANAGER}"
    return None


def read_progress(read: Callable[[str], QueryProgressEvent]) -> None:
    """Makes PySpark read a progress report by one call to the JVM: `read` takes it as JSON.

    PySpark asks for each field by a call, and for a class by names that py4j looks up in every jar
    on the class path: 0.15 s of CPU for each batch. It still does so where the report is another.
    """
    from pyspark.sql.streaming.listener import QueryProgressEvent

    by_calls = private(QueryProgressEvent, "fromJObject")
    if by_calls is None:
        return

    def from_java(event: Any) -> QueryProgressEvent:
        try:
            return read(event.progress().json())
        except (KeyError, TypeError, ValueError):
            # Not the form of Spark 4.
            report: QueryProgressEvent = by_calls(event)
            return report

    QueryProgressEvent.fromJObject = from_java  # type: ignore[method-assign,assignment]
