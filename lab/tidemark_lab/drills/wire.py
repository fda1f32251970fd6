"""Fetch and ListOffsets by hand: as a consumer, and as a follower that the drill plays itself."""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple, Self

from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)

from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.broker_socket import BrokerSocket
from tidemark_lab.brokers.cluster import Place
from tidemark_lab.drills.stage import Stage

CONSUMER: Final = -1
_DEBUGGING_REPLICA: Final = -2
_LATEST: Final = -1
# The last version with topic names.
_FETCH_VERSION: Final = 12
_MAX_BYTES: Final = 1 << 20
# Longer than any Fetch waits.
_SECONDS: Final = 60.0
# Base offset, length, partition leader epoch, magic, CRC, attributes, last offset delta.
_BATCH: Final = struct.Struct(">qiibIhi")


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
        return Fetched(
            _end_of(found.records or b""),
            found.high_watermark,
            found.last_stable_offset,
            found.preferred_read_replica,
        )

    def log_end_offset(self) -> int:
        return self._latest(_DEBUGGING_REPLICA)

    def high_watermark(self) -> int:
        return self._latest(CONSUMER)

    def _latest(self, replica: int) -> int:
        partition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
            partition_index=self._partition, current_leader_epoch=-1, timestamp=_LATEST
        )
        topic = ListOffsetsRequest.ListOffsetsTopic(name=self._topic, partitions=[partition])
        request = ListOffsetsRequest(
            replica_id=replica, isolation_level=0, topics=[topic], timeout_ms=1_000
        )
        found = self._socket.send(request, ListOffsetsResponse).topics[0].partitions[0]
        if found.error_code != 0:
            raise ClusterError(f"ListOffsets was answered with {found.error_code}.")
        return int(found.offset)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def _end_of(records: bytes) -> int | None:
    """The offset behind the last whole batch."""
    at, end = 0, None
    while at + _BATCH.size <= len(records):
        base, size, _, _, _, _, delta = _BATCH.unpack_from(records, at)
        if at + 12 + size > len(records):
            break
        at, end = at + 12 + size, base + delta + 1
    return end
