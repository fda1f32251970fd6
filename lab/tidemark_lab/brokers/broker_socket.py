"""A blocking connection to one broker, for readiness checks and for the independent probe.

It shares no code with the collector: a bug there cannot hide here.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import Any, Final, Self

from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)

CONSUMER: Final = -1
DEBUGGING_REPLICA: Final = -2
_LATEST: Final = -1
_ANSWER_MS: Final = 300
_CLIENT_ID: Final = "tidemark-probe"
_MAX_RESPONSE_BYTES: Final = 64 * 1024 * 1024


class BrokerSocket:
    """Negotiates API versions when it connects. Every failure is an OSError."""

    def __init__(self, address: tuple[str, int], timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._deadline = time.monotonic() + timeout_seconds
        self._socket = socket.create_connection(address, timeout_seconds)
        self._correlation_id = 0
        try:
            keys = self._exchange(ApiVersionsRequest(), ApiVersionsResponse, 0).api_keys
        except BaseException:
            self.close()
            raise
        self.versions = {key.api_key: key.max_version for key in keys}

    def send(self, request: Any, response: type[Any], version: int | None = None) -> Any:
        """The decoded response, by default at the highest version that both sides support.

        Raises TimeoutError after the time-out.
        """
        self._deadline = time.monotonic() + self._timeout_seconds
        if version is None:
            version = min(request.max_version, self.versions[request.API_KEY])
        return self._exchange(request, response, version)

    def _exchange(self, request: Any, response: type[Any], version: int) -> Any:
        self._correlation_id += 1
        request.API_VERSION = version
        request.with_header(correlation_id=self._correlation_id, client_id=_CLIENT_ID)
        self._set_timeout()
        self._socket.sendall(request.encode(header=True, framed=True))
        (length,) = struct.unpack(">i", self._read(4))
        if not 0 < length <= _MAX_RESPONSE_BYTES:
            raise ConnectionError(f"a response of {length} bytes")
        return response.decode(self._read(length), version=version, header=True)

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            self._set_timeout()
            part = self._socket.recv(count - len(data))
            if not part:
                raise ConnectionResetError("the broker closed the connection")
            data += part
        return bytes(data)

    def _set_timeout(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def fetch_metadata(
    address: tuple[str, int], topics: list[str] | None = None, timeout_seconds: float = 2.0
) -> Any:
    """One broker's metadata of these topics, by default of none. Never creates a topic."""
    with BrokerSocket(address, timeout_seconds) as broker:
        return broker.send(metadata_request(topics or []), MetadataResponse)


def metadata_request(topics: list[str]) -> Any:
    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
    )


def latest_offset(
    broker: BrokerSocket, topic: str, partition: int, replica: int, leader_epoch: int = -1
) -> int | None:
    """The broker's log end to the DEBUGGING_REPLICA, the leader's high watermark to a CONSUMER.

    The latter may be fenced by the leader epoch. None: the broker refuses.
    """
    wanted = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
        partition_index=partition, current_leader_epoch=leader_epoch, timestamp=_LATEST
    )
    topics = [ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[wanted])]
    request = ListOffsetsRequest(
        replica_id=replica, isolation_level=0, topics=topics, timeout_ms=_ANSWER_MS
    )
    found = broker.send(request, ListOffsetsResponse).topics[0].partitions[0]
    return int(found.offset) if found.error_code == 0 and found.offset >= 0 else None
