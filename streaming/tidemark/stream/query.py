"""Waits for the end of a running query. After an outage of Kafka it is started again."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import structlog

from tidemark.core.errors import ClusterError, TidemarkError
from tidemark.kafka.topics import MAX_MESSAGE_BYTES
from tidemark.reduce.rows import LEAST_ROW_BYTES
from tidemark.stream.failures import describe_failure, query_causes, spark_errors
from tidemark.stream.session import first_line
from tidemark.stream.stopping import finish_batch

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from tidemark.stream.event_topic import EventTopic

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
_RETRIABLE: Final = re.compile(
    rf"org\.apache\.kafka\.common\.errors\.({'|'.join(RETRIABLE)})Exception\b"
)


def watch(
    query: StreamingQuery,
    stop: threading.Event,
    checkpoint: str,
    *,
    restart: bool = False,
    topic: EventTopic | None = None,
) -> ClusterError | None:
    """Returns when the query has ended or was stopped after its batch.

    With `restart`, it also returns the failure where that was an outage of Kafka, and where the
    event topic is another one now. Raises TidemarkError when the query or the JVM failed.
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
    """Whether a query's failure, with its Java causes, names such an exception."""
    return _RETRIABLE.search(failure) is not None
