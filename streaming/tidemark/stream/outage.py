"""Which failures of the query are an outage of Kafka, after which it is started again."""

from __future__ import annotations

import re
from typing import Final

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


def is_outage(failure: str) -> bool:
    """Whether a query's failure, with its Java causes, names such an exception."""
    return _RETRIABLE.search(failure) is not None
