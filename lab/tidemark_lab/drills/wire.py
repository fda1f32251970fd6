"""Fetch and ListOffsets by hand: as a consumer, and as a follower that the drill plays itself."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Self

from kafka.protocol.consumer import FetchRequest, FetchResponse

from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.broker_socket import (
    CONSUMER,
    DEBUGGING_REPLICA,
    BrokerSocket,
    latest_offset,
)
from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.replica_logs import batches
from tidemark_lab.drills.stage import Stage

# The last version with topic names.
_FETCH_VERSION: Final = 12
_MAX_BYTES: Final = 1 << 20
# Longer than any Fetch waits.
_SECONDS: Final = 60.0


class Fetched(NamedTuple):
    """An answer to a Fetch. `end`: the offset behind its last record; None: it has no record."""

    end: int | None
    high_watermark: int
    last_stable_offset: int
    preferred_read_replica: int


class Wire:
    """A connection to one broker, for one partition. A context manager; failures are OSErrors."""

    def __init__(self, stage: Stage, broker: int, place: Place) -> None:
        self._topic, self._partition = place
        self._socket = BrokerSocket(stage.cluster.address(broker), _SECONDS)

    def fetch(
        self,
        offset: int,
        replica: int = CONSUMER,
        *,
        wait_ms: int = 0,
        committed_only: bool = False,
        rack: str = "",
    ) -> Fetched:
        """One Fetch. With the number of a `replica`, it reports that replica's log end offset."""
        partition = FetchRequest.FetchTopic.FetchPartition(
            partition=self._partition, fetch_offset=offset, partition_max_bytes=_MAX_BYTES
        )
        request = FetchRequest(
            replica_id=replica,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=_MAX_BYTES,
            isolation_level=int(committed_only),
            rack_id=rack,
            topics=[FetchRequest.FetchTopic(topic=self._topic, partitions=[partition])],
        )
        answer = self._socket.send(request, FetchResponse, _FETCH_VERSION)
        found: Any = answer.responses[0].partitions[0]
        if found.error_code != 0:
            raise ClusterError(f"a Fetch of {self._topic} was answered with {found.error_code}.")
        ends = [batch.next_offset for batch in batches(found.records or b"")]
        return Fetched(
            ends[-1] if ends else None,
            found.high_watermark,
            found.last_stable_offset,
            found.preferred_read_replica,
        )

    def log_end_offset(self) -> int:
        return self._latest(DEBUGGING_REPLICA)

    def high_watermark(self) -> int:
        return self._latest(CONSUMER)

    def _latest(self, replica: int) -> int:
        found = latest_offset(self._socket, self._topic, self._partition, replica)
        if found is None:
            raise ClusterError(f"ListOffsets of {self._topic} was refused.")
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
