"""The Spark session of the job: every setting that the query depends on, in one table."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from tidemark.core.errors import TidemarkError
from tidemark.settings import Settings, Stream
from tidemark.stream.class_path import jars_in_front, spark_home
from tidemark.stream.launch import REDACTED, private_folder, settings_in_file
from tidemark.stream.spark_internals import LOG_CONFIGURATION, checkpoint_file_manager

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
DAEMON: Final = "tidemark.stream.daemon"
PROVIDERS: Final = {
    "hdfs": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
# Bounds for a driver that runs for months: finished jobs, plans, progress reports, old state.
RETAINED: Final = {
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.streaming.ui.retainedProgressUpdates": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.sql.streaming.minBatchesToRetain": "20",
}
# For a checkpoint on a local disk. Hadoop's default starts `chmod` and `readlink` for each file and
# its checksum file: on a busy machine a commit takes 80 ms per group and batch instead of 5 ms.
# State files are compressed in blocks with checksums of their own.
LOCAL_CHECKPOINT: Final = {
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}
# RocksDB's files are copied by FileSystem.getLocal, which takes Hadoop's default of
# fs.file.impl only. The log files still get no checksum files.
LOCAL_ROCKSDB: Final = {
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs"
}
# In local mode the JVM does small tasks on few cores. There the optimizing compiler and a parallel
# collector cost more than they save: 0.8 of 3.3 CPU seconds a batch, also with 100,000 partitions.
LOCAL_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Of a cluster that is not large: a batch has little garbage, and a heap that follows what is used
# takes 90 MB less.
SMALL_HEAP: Final = "-Xmn48m -XX:MinHeapFreeRatio=15 -XX:MaxHeapFreeRatio=30"

log = structlog.get_logger()


def is_submitted(environ: Mapping[str, str]) -> bool:
    """Whether spark-submit or another launcher started the JVM, with its master and class path."""
    return "PYSPARK_GATEWAY_PORT" in environ


def master_of(stream: Stream) -> str:
    return stream.master or ("local[4]" if stream.large else "local[1]")


def spark_settings(
    settings: Settings, jars: Iterable[Path], daemon: bool, submitted: bool
) -> dict[str, str]:
    """All Spark settings of the job. `stream.spark` wins, except over what the checkpoint fixes."""
    stream, master = settings.stream, master_of(settings.stream)
    given = {key: value for key, value in stream.spark.items() if not key.startswith("kafka.")}
    conf = {
        "spark.app.name": "tidemark-stream",
        "spark.sql.session.timeZone": "UTC",
        # A value has up to 1 MiB (`batch_bounds.MAX_VALUE_BYTES`): this bounds the data sent to
        # Python at once.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "200",
        # The reducer has no timers in Spark: an empty batch has nothing to do.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        # How long a batch that ignores its interruption may delay the end of the process.
        "spark.sql.streaming.stopTimeout": "2s",
        "spark.redaction.regex": REDACTED,
        **RETAINED,
    }
    if local_folder(stream.checkpoint) is not None:
        if stream.store_provider == "rocksdb":
            conf |= LOCAL_ROCKSDB
        else:
            conf |= LOCAL_CHECKPOINT
            manager = checkpoint_file_manager()
            if manager is not None:
                conf["spark.sql.streaming.checkpointFileManagerClass"] = manager
    if daemon:
        conf["spark.python.daemon.module"] = DAEMON
    if not submitted:
        conf |= {
            "spark.master": master,
            "spark.jars": ",".join(path.as_uri() for path in jars),
            "spark.pyspark.python": sys.executable,
        }
        conf["spark.ui.showConsoleProgress"] = "false"
        java = [
            f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}",
            LOCAL_JVM if is_local(master) else "",
            SMALL_HEAP if is_local(master) and not stream.large else "",
            given.pop(JAVA_OPTIONS, ""),
        ]
        conf[JAVA_OPTIONS] = " ".join(filter(None, java))
        if is_local(master):
            before = given.pop("spark.driver.extraClassPath", "")
            conf["spark.driver.extraClassPath"] = os.pathsep.join(
                filter(None, [before, *map(str, jars_in_front())])
            )
            # A local run listens on this machine only.
            conf |= {
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.ui.enabled": "false",
            }
    groups, tasks = settings.topics.partitions, None if submitted else tasks_at_once(master)
    if tasks is not None:
        # Or any user of this machine reads blocks, which hold Kafka's secrets. Within one process
        # Spark makes the secret itself: it is in no setting and no argument.
        conf["spark.authenticate"] = "true"
    fixed = {
        # More tasks than run at once only add their fixed cost. Of a checkpoint that exists, Spark
        # keeps the number that it was started with.
        "spark.sql.shuffle.partitions": str(groups if tasks is None else min(groups, tasks)),
        "spark.sql.streaming.stateStore.providerClass": PROVIDERS[stream.store_provider],
    }
    return {**conf, **given, **fixed}


def local_folder(checkpoint: str) -> Path | None:
    """The folder of a checkpoint on a local disk; None: it is on another file system."""
    path = re.match(r"(?:file:(?://(?=/))?|(?![a-z0-9+.-]+:))(.*)", checkpoint, re.IGNORECASE)
    return None if path is None else Path(path[1])


def is_local(master: str) -> bool:
    return re.match(r"local(\[|$|-cluster)", master) is not None


def tasks_at_once(master: str) -> int | None:
    """How many tasks a master runs at once in the driver's process; None: in other processes."""
    if master == "local":
        return 1
    threads = re.match(r"local\[(\d+|\*)", master)
    if threads is None:
        return None
    return (os.cpu_count() or 1) if threads[1] == "*" else max(1, int(threads[1]))


def daemon_usable(settings: Settings, submitted: bool, environ: Mapping[str, str]) -> bool:
    """Whether the executors have Tidemark and PySpark, which the faster worker daemon needs.

    In local mode the interpreter answers, outside this folder. Elsewhere the operator states it:
    `spark.python.daemon.module` in stream.spark.
    """
    if "spark.python.daemon.module" in settings.stream.spark:
        return settings.stream.spark["spark.python.daemon.module"] == DAEMON
    if submitted or not is_local(master_of(settings.stream)):
        log.warning(
            "default Python worker daemon: batches take about a second longer",
            cure="where tidemark is installed on the executors, set "
            f"spark.python.daemon.module: {DAEMON} in stream.spark",
        )
        return False
    program = (
        "import importlib.util as u, sys; "
        "sys.exit(not (u.find_spec('pyspark') and u.find_spec(sys.argv[1])))"
    )
    try:
        answer = subprocess.run(
            [sys.executable, "-c", program, DAEMON],
            cwd="/",
            env=dict(environ),
            capture_output=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    if answer.returncode != 0:
        log.warning(
            "default Python worker daemon: batches take about a second longer",
            cure="install tidemark into this Python instead of running it from a folder",
        )
    return answer.returncode == 0


def start_session(settings: Settings, environ: Mapping[str, str]) -> SparkSession:
    """Starts the JVM, unless spark-submit did, and Spark in it. Raises TidemarkError, one line."""
    submitted = is_submitted(environ)
    jars = [] if submitted else prepare_java(settings)
    daemon = daemon_usable(settings, submitted, environ)
    conf = spark_settings(settings, jars, daemon, submitted)
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder: SparkSession.Builder = SparkSession.builder
    try:
        if not submitted:
            folder = private_folder(settings.stream.checkpoint)
            # Also the default of spark.local.dir.
            conf[JAVA_OPTIONS] = f'"-Djava.io.tmpdir={folder}" {conf[JAVA_OPTIONS]}'
            with settings_in_file(conf, folder=folder):
                return builder.getOrCreate()
        for key, value in conf.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    except Exception as error:
        is_py4j = type(error).__module__.partition(".")[0] == "py4j"
        if not is_py4j and not isinstance(error, PySparkException):
            raise
        raise TidemarkError(
            f"Spark did not start: {first_line(error)}. Check stream.master and stream.spark."
        ) from None


def prepare_java(settings: Settings) -> list[Path]:
    """Points PySpark's launcher to a usable Java and this Python; returns the connector's jars."""
    from tidemark.jvm.jars import connector_jars
    from tidemark.jvm.java import find_java

    java = find_java()
    if java.rejected:
        log.warning(
            "ignored a Java that Spark does not support",
            using=str(java.home),
            ignored="; ".join(java.rejected),
        )
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Another Spark's home would put its launcher and jars before those of this PySpark. Without one
    # the launcher starts Python to find it.
    os.environ["SPARK_HOME"] = str(spark_home())
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", LOCAL_JVM)
    # Of glibc, which else keeps memory for each of the JVM's many threads.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    if is_local(master_of(settings.stream)):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return connector_jars(Path(settings.stream.jars) if settings.stream.jars else None)


def first_line(error: BaseException) -> str:
    """The last cause in a Spark error's Python traceback or chain of Java causes."""
    java = getattr(error, "java_exception", None)
    text = str(java.toString()) if java is not None else str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    python = [
        line
        for line in lines
        if re.match(r"[\w.]+(Error|Exception|Interrupt|Warning|Exit)\b", line)
    ]
    chosen = (causes or python or lines or [type(error).__name__])[-1 if causes or python else 0]
    shown = "".join(c if c.isprintable() else "?" for c in chosen[:400])
    return shown.rstrip(".")
