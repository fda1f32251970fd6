"""One request to one broker over a plain socket, with its own time-out: for readiness and for the independent probe.

It shares no code with the collector, so that a mistake there cannot hide here.
"""

from __future__ import annotations

import socket
import struct
import time
from types import TracebackType
from typing import Any, Final, Self

from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)

_CLIENT: Final = "tidemark-probe"
_MAX_ANSWER: Final = 64 * 1024 * 1024


class BrokerSocket:
    """A blocking connection to one broker that knows which versions it speaks. Every failure is an OSError."""

    def __init__(self, address: tuple[str, int], timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._deadline = time.monotonic() + timeout_seconds
        self._socket = socket.create_connection(address, timeout_seconds)
        self._correlation = 0
        try:
            keys = self._exchange(ApiVersionsRequest(), ApiVersionsResponse, 0).api_keys
        except BaseException:
            self.close()
            raise
        self._versions = {key.api_key: key.max_version for key in keys}

    def ask(self, request: Any, response: type[Any], version: int | None = None) -> Any:
        """The decoded answer, at `version` or at the highest that both sides know. TimeoutError after the time-out."""
        self._deadline = time.monotonic() + self._timeout_seconds
        if version is None:
            version = min(request.max_version, self._versions[request.API_KEY])
        return self._exchange(request, response, version)

    def _exchange(self, request: Any, response: type[Any], version: int) -> Any:
        self._correlation += 1
        request.API_VERSION = version
        request.with_header(correlation_id=self._correlation, client_id=_CLIENT)
        self._limit()
        self._socket.sendall(request.encode(header=True, framed=True))
        (length,) = struct.unpack(">i", self._read(4))
        if not 0 < length <= _MAX_ANSWER:
            raise ConnectionError(f"an answer of {length} bytes")
        data = self._read(length)
        return response.decode(data, version=version, header=True)

    def _read(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            self._limit()
            part = self._socket.recv(count - len(parts))
            if not part:
                raise ConnectionResetError("the broker closed the connection")
            parts += part
        return bytes(parts)

    def _limit(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def metadata_of(
    address: tuple[str, int], topics: list[str] | None = None, timeout_seconds: float = 2.0
) -> Any:
    """One broker's metadata of these topics (of no topic by default), never creating any."""
    with BrokerSocket(address, timeout_seconds) as broker:
        return broker.ask(metadata_request(topics or []), MetadataResponse)


def metadata_request(topics: list[str]) -> Any:
    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
    )
