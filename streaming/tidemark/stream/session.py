"""The Spark session of the job: every setting that the query's speed, bounds and restarts rest on, in one table."""

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
from tidemark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAEMON: Final = "tidemark.stream.daemon"
PROVIDERS: Final = {
    "hdfs": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
LOG_CONFIGURATION: Final = Path(__file__).with_name("log4j2.properties")
# What a driver that runs for months would otherwise gather: finished jobs, plans, progress reports, old state versions.
RETAINED: Final = {
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.streaming.ui.retainedProgressUpdates": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.sql.streaming.minBatchesToRetain": "20",
}
# For a checkpoint on this machine's disk. Hadoop's default starts `chmod` and `readlink` for each file, twice with its
# checksum file: on a busy machine 80 ms per group and batch for the commit alone, against 5 ms so. State files are
# compressed in blocks that carry their own checksums.
LOCAL_CHECKPOINT: Final = {
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager",
}
# The driver does many small things on few cores: the optimizing compiler and a parallel collector cost more than they
# give there (0.5 s of a 1.75 s batch). A large installation is another matter.
SMALL_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

log = structlog.get_logger()


def is_submitted(environ: Mapping[str, str]) -> bool:
    """Whether spark-submit (or another launcher) started the JVM already, with its own master and class path."""
    return "PYSPARK_GATEWAY_PORT" in environ


def spark_settings(
    settings: Settings, jars: Iterable[Path], daemon: bool, submitted: bool
) -> dict[str, str]:
    """Every Spark setting of the job; what `stream.spark` gives wins, but for what the checkpoint froze."""
    stream = settings.stream
    given = {key: value for key, value in stream.spark.items() if not key.startswith("kafka.")}
    conf = {
        "spark.app.name": "tidemark-stream",
        "spark.sql.session.timeZone": "UTC",
        # A record holds up to 256 KiB: this bounds what goes to Python at once.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
        # The reducer has no timers in Spark, so an empty batch has nothing to do.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        # A batch that does not heed its interruption holds up the end of the process no longer than this.
        "spark.sql.streaming.stopTimeout": "2s",
        **RETAINED,
    }
    if re.match(r"file:|(?![a-z0-9+.-]+:)", stream.checkpoint, re.IGNORECASE):
        conf |= LOCAL_CHECKPOINT
    if daemon:
        conf["spark.python.daemon.module"] = DAEMON
    if not submitted:
        conf |= {
            "spark.master": stream.master,
            "spark.jars": ",".join(path.as_uri() for path in jars),
            "spark.pyspark.python": sys.executable,
        }
        conf["spark.ui.showConsoleProgress"] = "false"
        conf["spark.driver.extraJavaOptions"] = (
            f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}"
        )
        if is_local(stream.master) and not stream.large:
            conf["spark.driver.extraJavaOptions"] += " " + SMALL_JVM
        if "spark.driver.extraJavaOptions" in given:
            conf["spark.driver.extraJavaOptions"] += " " + given.pop(
                "spark.driver.extraJavaOptions"
            )
        if is_local(stream.master):
            # Nothing of a local run listens beyond this machine.
            conf |= {
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.ui.enabled": "false",
            }
    frozen = {
        "spark.sql.shuffle.partitions": str(settings.topics.partitions),
        "spark.sql.streaming.stateStore.providerClass": PROVIDERS[stream.store_provider],
    }
    return {**conf, **given, **frozen}


def is_local(master: str) -> bool:
    return re.match(r"local(\[|$|-cluster)", master) is not None


def daemon_usable(settings: Settings, submitted: bool, environ: Mapping[str, str]) -> bool:
    """Whether the faster worker daemon can be set: Tidemark and PySpark must be installed where the executors run.

    In local mode it is asked of the interpreter itself, outside this folder; elsewhere only the operator knows and
    says so by `spark.python.daemon.module` in stream.spark.
    """
    if "spark.python.daemon.module" in settings.stream.spark:
        return settings.stream.spark["spark.python.daemon.module"] == DAEMON
    if submitted or not is_local(settings.stream.master):
        log.warning(
            "stock Python workers: batches take about a second longer",
            cure=f"where tidemark is installed on the executors, set spark.python.daemon.module: {DAEMON} in stream.spark",
        )
        return False
    question = "import importlib.util as u, sys; sys.exit(not (u.find_spec('pyspark') and u.find_spec(sys.argv[1])))"
    try:
        answer = subprocess.run(
            [sys.executable, "-c", question, DAEMON],
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
            "stock Python workers: batches take about a second longer",
            cure="install tidemark into this Python instead of running it from a folder",
        )
    return answer.returncode == 0


def start_session(settings: Settings, environ: Mapping[str, str]) -> SparkSession:
    """Starts the JVM (unless spark-submit did) and Spark in it. Raises TidemarkError, one line, when it will not start."""
    submitted = is_submitted(environ)
    jars: list[Path] = []
    if not submitted:
        jars = _prepare_java(settings)
    conf = spark_settings(settings, jars, daemon_usable(settings, submitted, environ), submitted)
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder: SparkSession.Builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except PySparkException as error:
        raise TidemarkError(
            f"Spark did not start: {first_line(error)}. Check stream.master and stream.spark."
        ) from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "py4j":
            raise
        raise TidemarkError(
            f"Spark did not start: {first_line(error)}. Check stream.master and stream.spark."
        ) from None


def _prepare_java(settings: Settings) -> list[Path]:
    """Points PySpark's launcher to a usable Java and this Python; the connector's jars."""
    from tidemark.jvm.jars import connector_jars
    from tidemark.jvm.java import find_java

    java = find_java()
    if java.passed_over:
        log.warning(
            "passed over a Java that Spark does not run on",
            using=str(java.home),
            passed_over="; ".join(java.passed_over),
        )
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Another Spark's home would put its own launcher and jars before those of the PySpark imported here.
    os.environ.pop("SPARK_HOME", None)
    if is_local(settings.stream.master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return connector_jars(Path(settings.stream.jars) if settings.stream.jars else None)


def first_line(error: BaseException) -> str:
    """What went wrong at the bottom of a Spark error: of a Python traceback or a chain of Java causes the last cause."""
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
    return chosen[:400].rstrip(".")
