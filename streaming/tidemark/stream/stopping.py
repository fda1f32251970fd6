"""Ends the process in time, after a signal or a failure, with nothing left running."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import structlog

from tidemark.stream.session import first_line
from tidemark.stream.spark_internals import jvm_gateway

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# After SIGTERM: the batch in flight, spark.sql.streaming.stopTimeout, Spark, its JVM.
FINISH_SECONDS: Final = 4.0
JVM_SECONDS: Final = 2.0
EXIT_SECONDS: Final = 9.0

log = structlog.get_logger()


def finish_batch(query: StreamingQuery) -> None:
    """Stops the query between two batches, or inside a long one, which the next start repeats."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    progress = query.lastProgress
    deadline = time.monotonic() + FINISH_SECONDS
    while (
        query.status["isTriggerActive"]
        and time.monotonic() < deadline
        and query.lastProgress == progress
    ):
        time.sleep(0.02)
    try:
        query.stop()
    except (PySparkException, Py4JJavaError) as error:
        # It did not end within spark.sql.streaming.stopTimeout; Spark stops next and ends it.
        log.warning("a batch was cut short; the next start repeats it", error=first_line(error))


class Stop:
    """A request to stop: `EXIT_SECONDS` later the process exits anyway."""

    def __init__(self) -> None:
        self.requested = threading.Event()
        # The JVM that this process started; None before, and under spark-submit.
        self.jvm: subprocess.Popen[bytes] | None = None

    def request(self) -> None:
        """Called by SIGTERM and SIGINT."""
        if not self.requested.is_set():
            self.requested.set()
            threading.Thread(target=self._force_exit, daemon=True).start()

    def _force_exit(self) -> None:
        time.sleep(EXIT_SECONDS)
        log.warning(
            "Spark did not stop in time and was killed; the checkpoint holds every finished batch"
        )
        if self.jvm is not None:
            self.jvm.kill()
        os._exit(0)


@contextmanager
def ended(spark: SparkSession, stop: Stop) -> Iterator[None]:
    """Stops Spark and its JVM at the end, whatever happened."""
    gateway = jvm_gateway(spark)
    stop.jvm = getattr(gateway, "proc", None)
    try:
        yield
    finally:
        try:
            spark.stop()
        except Exception as error:
            log.warning("Spark did not stop cleanly", error=f"{type(error).__name__}: {error}")
        if stop.jvm is not None:
            with suppress(Exception):
                gateway.shutdown()
            assert stop.jvm.stdin is not None
            # The JVM ends when its standard input does.
            stop.jvm.stdin.close()
            try:
                stop.jvm.wait(JVM_SECONDS)
            except subprocess.TimeoutExpired:
                stop.jvm.kill()
