"""Waits for the end of a running query. After an outage of Kafka it is started again."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Final

from tidemark.core.errors import ClusterError, TidemarkError
from tidemark.stream.failures import describe_failure, spark_errors
from tidemark.stream.java_errors import query_causes
from tidemark.stream.session import first_line
from tidemark.stream.stopping import finish_batch

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

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
_RETRIABLE: Final = re.compile(
    rf"org\.apache\.kafka\.common\.errors\.({'|'.join(RETRIABLE)})Exception\b"
)


def watch(
    query: StreamingQuery, stop: threading.Event, checkpoint: str, *, restart: bool = False
) -> ClusterError | None:
    """Returns when the query has ended or was stopped after its batch.

    With `restart`, it also returns the failure where that was an outage of Kafka. Raises
    TidemarkError when the query or the JVM failed.
    """
    with spark_errors(checkpoint):
        while query.isActive and not stop.wait(POLL_SECONDS):
            pass
        if query.isActive:
            finish_batch(query)
            return None
        causes = query_causes(query)
    if not causes:
        return None
    if restart and is_outage("\n".join(cause.text for cause in causes)):
        return ClusterError(f"the query failed: {first_line(RuntimeError(causes[-1].text))}")
    raise TidemarkError(describe_failure(causes, checkpoint))


def is_outage(failure: str) -> bool:
    """Whether a query's failure, with its Java causes, names such an exception."""
    return _RETRIABLE.search(failure) is not None
