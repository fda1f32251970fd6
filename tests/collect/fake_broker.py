"""A broker with a few APIs on 127.0.0.1, which hangs, lies and stops answering on demand."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.consumer import (
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from tests.collect import wire_answers
from tidemark.collect.codecs.fetch import FetchEntry
from tidemark.collect.codecs.list_offsets import OffsetEntry
from tidemark.collect.codecs.metadata_image import BrokerAddress, PartitionMetadata
from tidemark.collect.legacy.epoch_end_offset import EpochEndOffset

FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, EPOCH_END_OFFSETS, CONFIGS = 1, 2, 3, 18, 23, 32
PRODUCE, HANDSHAKE, INIT_PRODUCER, AUTHENTICATE = 0, 17, 22, 36
VERSIONS = {FETCH: (4, 12), LIST_OFFSETS: (1, 7), METADATA: (0, 12), API_VERSIONS: (0, 3)}
# The body of the answer of Kafka 4.4.0 to a request that means another node, or another cluster.
REBOOTSTRAP = "0081010000000000"
REQUESTS = {
    FETCH: FetchRequest,
    LIST_OFFSETS: ListOffsetsRequest,
    METADATA: MetadataRequest,
    API_VERSIONS: ApiVersionsRequest,
    EPOCH_END_OFFSETS: OffsetForLeaderEpochRequest,
    CONFIGS: DescribeConfigsRequest,
    PRODUCE: ProduceRequest,
    HANDSHAKE: SaslHandshakeRequest,
    INIT_PRODUCER: InitProducerIdRequest,
    AUTHENTICATE: SaslAuthenticateRequest,
}
# The first version with a header that has tagged fields.
FLEXIBLE = {FETCH: 12, LIST_OFFSETS: 6, METADATA: 9, CONFIGS: 4}


class Log:
    """A replica. `epochs` are ascending (epoch, end offset); its broker knows `leader_epoch`."""

    def __init__(
        self,
        epochs: list[tuple[int, int]],
        high_watermark: int,
        leader_epoch: int,
        leads: bool = False,
    ) -> None:
        self.epochs, self.high_watermark, self.leader_epoch, self.leads = (
            epochs,
            high_watermark,
            leader_epoch,
            leads,
        )

    @property
    def end(self) -> int:
        return self.epochs[-1][1] if self.epochs else 0

    @property
    def newest_epoch(self) -> int:
        return self.epochs[-1][0] if self.epochs else -1


class FakeBroker:
    """Answers for `logs` and with `metadata`, unless `hangs` is true for the API key."""

    mechanism = "PLAIN"

    def __init__(self, broker: int, versions: dict[int, tuple[int, int]] | None = None) -> None:
        self.broker = broker
        self.logs: dict[tuple[str, int], Log] = {}
        self.metadata: Callable[
            [],
            tuple[
                list[FakeBroker], dict[str, dict[int, tuple[int, int, list[int], list[int], int]]]
            ],
        ] = lambda: (
            [],
            {},
        )
        self.hangs: Callable[[int], bool] = lambda _: False
        # API key and body -> the body that is sent.
        self.garbles: Callable[[int, bytes], bytes] = lambda _, body: body
        self.log_start = 0
        # Error code of every partition in Fetch.
        self.fetch_error = 0
        self.versions = versions or VERSIONS
        # Metadata's error for a topic that is not there: unknown, or denied (29).
        self.absent_error = 3
        # API key -> the body of the answer to a request in a version.
        self.answers: dict[int, Callable[[Any, int], bytes]] = {
            FETCH: self._fetch,
            LIST_OFFSETS: self._list_offsets,
            METADATA: self._metadata,
            API_VERSIONS: self._api_versions,
            EPOCH_END_OFFSETS: self._epoch_end_offsets,
            CONFIGS: self._configurations,
            HANDSHAKE: self._shake_hands,
            AUTHENTICATE: self._authenticate,
        }
        self.requests: list[Any] = []
        # As it gives it to clients.
        self.host = "127.0.0.1"
        self.rack: str | None = None
        self.cluster_id = "fake"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        # A socket is closed only after no thread waits for it.
        self._open.append(self._listener)
        self.disconnect()
        for one in self._open:
            one.close()

    def disconnect(self) -> None:
        """Ends every connection."""
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def login(self, _token: bytes) -> int:
        """The error code of a login by SASL."""
        return 0

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, struct.error):
            while True:
                (size,) = struct.unpack(">i", self._exactly(connection, 4))
                self._answer(connection, self._exactly(connection, size))

    def _exactly(self, connection: socket.socket, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = connection.recv(size - len(data))
            if not chunk:
                raise OSError("closed")
            data += chunk
        return data

    def _answer(self, connection: socket.socket, data: bytes) -> None:
        if not self.hangs(struct.unpack_from(">h", data)[0]):
            connection.sendall(self.answer_to(data))

    def answer_to(self, data: bytes) -> bytes:
        """The answer to a request, with its length before it."""
        key, version, correlation = struct.unpack_from(">hhi", data)
        if (key, version) == (API_VERSIONS, 5):
            return self._node_answer(correlation, data)
        request = (
            REQUESTS[key].decode(data, version=version, header=True)
            if key != API_VERSIONS
            else None
        )
        self.requests.append(request)
        body = self.garbles(key, self.answers[key](request, version))
        is_flexible = key in FLEXIBLE and version >= FLEXIBLE[key]
        payload = struct.pack(">i", correlation) + (b"\x00" if is_flexible else b"") + body
        return struct.pack(">i", len(payload)) + payload

    def _node_answer(self, correlation: int, data: bytes) -> bytes:
        """As Kafka 4.4.0: whether the request means this broker of this cluster."""
        cluster = self.cluster_id.encode()
        meant = bytes([len(cluster) + 1]) + cluster + struct.pack(">ib", self.broker, 0)
        body = bytes.fromhex("00000100000000000000" if data.endswith(meant) else REBOOTSTRAP)
        return struct.pack(">ii", len(body) + 4, correlation) + body

    def _api_versions(self, _: Any, version: int) -> bytes:
        keys = [
            ApiVersionsResponse.ApiVersion(api_key=k, min_version=low, max_version=high)
            for k, (low, high) in self.versions.items()
        ]
        return bytes(
            ApiVersionsResponse(error_code=0, api_keys=keys, throttle_time_ms=0).encode(
                version=version
            )
        )

    def _shake_hands(self, _request: Any, version: int) -> bytes:
        answer = SaslHandshakeResponse(error_code=0, mechanisms=[self.mechanism])
        return bytes(answer.encode(version=version))

    def _authenticate(self, request: Any, version: int) -> bytes:
        code = self.login(bytes(request.auth_bytes))
        answer = SaslAuthenticateResponse(
            error_code=code,
            error_message="Invalid login" if code else None,
            auth_bytes=b"",
            session_lifetime_ms=0,
        )
        return bytes(answer.encode(version=version))

    def _configurations(self, request: Any, version: int) -> bytes:
        """No options; as ConfigHelper, those of another broker are refused (INVALID_REQUEST)."""
        results = [
            DescribeConfigsResponse.DescribeConfigsResult(
                error_code=42 if asked.resource_type == 4 and not self._is(asked) else 0,
                error_message=None,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
                configs=[],
            )
            for asked in request.resources
        ]
        answer = DescribeConfigsResponse(throttle_time_ms=0, results=results)
        return bytes(answer.encode(version=version))

    def _is(self, asked: Any) -> bool:
        return bool(asked.resource_name == str(self.broker))

    def _metadata(self, request: Any, version: int) -> bytes:
        brokers, topics = self.metadata()
        wanted = topics if request.topics is None else [t.name for t in request.topics]
        listed = [
            (
                name,
                None,
                0 if name in topics else self.absent_error,
                {
                    number: PartitionMetadata(leader, epoch, tuple(replicas), tuple(in_sync), error)
                    for number, (leader, epoch, replicas, in_sync, error) in topics.get(
                        name, {}
                    ).items()
                },
            )
            for name in wanted
        ]
        places = {b.broker: BrokerAddress(b.host, b.port, b.rack) for b in brokers}
        return wire_answers.metadata(places, self.cluster_id, 1, listed, version)

    def _list_offsets(self, request: Any, version: int) -> bytes:
        topics = [
            (
                topic.name,
                [
                    _offset_of(
                        self.logs.get((topic.name, asked.partition_index)),
                        request.replica_id,
                        asked,
                        self.log_start,
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return wire_answers.list_offsets(topics, version)

    def _log(self, topic: str, asked: Any, any_replica: bool = False) -> Log | None:
        log = self.logs.get((topic, asked.partition))
        return log if log is not None and (any_replica or log.leads) else None

    def _epoch_end_offsets(self, request: Any, version: int) -> bytes:
        topics = [
            (
                topic.topic,
                [
                    _epoch_end(self._log(topic.topic, asked), asked, version)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return wire_answers.epoch_end_offsets(topics, version)

    def _fetch(self, request: Any, version: int) -> bytes:
        any_replica = version >= 11 or request.replica_id == -2
        topics = [
            (
                topic.topic,
                [
                    _fetched(
                        self._log(topic.topic, asked, any_replica),
                        asked,
                        self.log_start,
                        self.fetch_error,
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return wire_answers.fetch(topics, version)


def _epoch_end(log: Log | None, asked: Any, version: int) -> EpochEndOffset:
    """As LeaderEpochFileCache.endOffsetFor; below the oldest epoch, version 0 has no answer."""
    if log is None:
        return EpochEndOffset(asked.partition, 6, -1, -1)
    older = [entry for entry in log.epochs if entry[0] <= asked.leader_epoch]
    epoch, end = older[-1] if older else (asked.leader_epoch, 0)
    if asked.leader_epoch > log.newest_epoch or (version == 0 and not older):
        epoch, end = -1, -1
    return EpochEndOffset(asked.partition, 0, epoch, end)


def _fence(log: Log, current_leader_epoch: int | None) -> int:
    """Null: the version has none."""
    if current_leader_epoch in (None, -1, log.leader_epoch):
        return 0
    return 74 if (current_leader_epoch or 0) < log.leader_epoch else 75


def _offset_of(log: Log | None, replica: int, asked: Any, log_start: int) -> OffsetEntry:
    """The end of a log for a debug replica, its high watermark for a consumer (-1).

    The start of the log to timestamp -2.
    """
    code, offset, epoch = 6, -1, -1
    if log is not None:
        code = _fence(log, asked.current_leader_epoch) or (
            6 if replica == -1 and not log.leads else 0
        )
        if not code:
            offset = log.high_watermark if replica == -1 else log.end
            offset = log_start if asked.timestamp == -2 else offset
            epoch = log.leader_epoch
    return asked.partition_index, code, offset, epoch


def _fetched(log: Log | None, asked: Any, log_start: int, error: int) -> FetchEntry:
    code = error or (6 if log is None else _fence(log, asked.current_leader_epoch))
    last_fetched = -1 if asked.last_fetched_epoch is None else asked.last_fetched_epoch
    epoch = end = -1
    if not code and log is not None and last_fetched >= 0:
        older = [entry for entry in log.epochs if entry[0] <= last_fetched]
        if not older or last_fetched > log.newest_epoch:
            code = 1
        else:
            epoch, end = older[-1]
    elif not code and log is not None and asked.fetch_offset > log.end:
        code = 1
    high_watermark = -1 if code or log is None else log.high_watermark
    start = -1 if code else log_start
    return asked.partition, code, high_watermark, high_watermark, start, epoch, end
