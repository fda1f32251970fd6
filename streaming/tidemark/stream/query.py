"""Waits for the end of a running query, which is started again after an outage of Kafka.

At the end the process ends in time, after a signal or a failure, with nothing left running.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import structlog

from tidemark.core.errors import ClusterError, TidemarkError
from tidemark.kafka.topics import MAX_MESSAGE_BYTES
from tidemark.reduce.rows import LEAST_ROW_BYTES
from tidemark.stream.failures import describe_failure, query_causes, spark_errors
from tidemark.stream.session import first_line
from tidemark.stream.spark_internals import jvm_gateway

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tidemark.stream.event_topic import EventTopic

# After SIGTERM: the batch in flight, spark.sql.streaming.stopTimeout, Spark, its JVM.
FINISH_SECONDS: Final = 4.0
JVM_SECONDS: Final = 2.0
EXIT_SECONDS: Final = 9.0
# Between two checks of the query and of the request to stop.
POLL_SECONDS: Final = 0.2
# Kafka's Java exceptions that extend RetriableException, as far as its clients give up on them.
RETRIABLE: Final = (
    "BrokerNotAvailable",
    "CoordinatorLoadInProgress",
    "CoordinatorNotAvailable",
    "Disconnect",
    "FencedLeaderEpoch",
    "KafkaStorage",
    "LeaderNotAvailable",
    "ListenerNotFound",
    "Network",
    "NotController",
    "NotCoordinator",
    "NotEnoughReplicas",
    "NotEnoughReplicasAfterAppend",
    "NotLeaderOrFollower",
    "OffsetNotAvailable",
    "ReplicaNotAvailable",
    "Timeout",
    "UnknownLeaderEpoch",
    "UnknownTopicOrPartition",
)
_TOO_LARGE: Final = "org.apache.kafka.common.errors.RecordTooLargeException"
log = structlog.get_logger()
# PySpark 4.1 ends so once, after a batch that a start has carried out again (SPARK-55271).
_NO_METRICS: Final = r"NullPointerException: .*IterableOps\.map.*scala\.Option\.get"
_RETRIABLE: Final = re.compile(
    rf"org\.apache\.kafka\.common\.errors\.({'|'.join(RETRIABLE)})Exception\b|{_NO_METRICS}"
)


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


def watch(
    query: StreamingQuery,
    stop: threading.Event,
    checkpoint: str,
    *,
    restart: bool = False,
    topic: EventTopic | None = None,
) -> ClusterError | None:
    """Returns when the query has ended or was stopped after its batch.

    With `restart`, it also returns the failure where another start may not meet it (`is_outage`),
    and where the event topic is another one now. Raises TidemarkError when the query or the JVM
    failed.
    """
    with spark_errors(checkpoint):
        while query.isActive and not stop.wait(POLL_SECONDS):
            if topic is not None and topic.is_another:
                finish_batch(query)
                return ClusterError("the event topic was deleted and created again")
        if query.isActive:
            finish_batch(query)
            return None
        causes = query_causes(query)
    if not causes:
        return None
    if restart and is_outage("\n".join(cause.text for cause in causes)):
        return ClusterError(f"the query failed: {first_line(RuntimeError(causes[-1].text))}")
    raise TidemarkError(describe_failure(causes, checkpoint))


def recover(
    failure: TidemarkError, max_row_bytes: int, step_over: Callable[[], bool | None]
) -> int:
    """The bound of rows for the next query, which passes what ended the last one.

    `step_over` says whether there were records that Spark cannot carry. Raises the failure where
    the next query would end in the same way.
    """
    if _TOO_LARGE in str(failure) and max_row_bytes > LEAST_ROW_BYTES:
        log.error(
            "Kafka takes no rows as large as those of the stream: larger ones are cut from now on",
            bytes=max_row_bytes // 2,
            reason=str(failure),
            cure=f"set max.message.bytes of Tidemark's topics to {MAX_MESSAGE_BYTES}",
        )
        return max_row_bytes // 2
    if not step_over():
        raise failure
    return max_row_bytes


def is_outage(failure: str) -> bool:
    """Whether a query's failure, with its Java causes, names what another start may not meet."""
    return _RETRIABLE.search(failure) is not None
