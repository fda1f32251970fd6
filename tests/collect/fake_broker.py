"""A broker with a few APIs on 127.0.0.1, which hangs, lies and stops answering on demand."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)

FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, EPOCH_END_OFFSETS = 1, 2, 3, 18, 23
VERSIONS = {FETCH: (4, 12), LIST_OFFSETS: (1, 7), METADATA: (0, 12), API_VERSIONS: (0, 3)}
REQUESTS = {
    FETCH: FetchRequest,
    LIST_OFFSETS: ListOffsetsRequest,
    METADATA: MetadataRequest,
    API_VERSIONS: ApiVersionsRequest,
    EPOCH_END_OFFSETS: OffsetForLeaderEpochRequest,
}


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
        self.requests: list[Any] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        # A socket is closed only after no thread waits for it.
        for one in [self._listener, *self._open]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

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
        key, version, correlation = struct.unpack_from(">hhi", data)
        if self.hangs(key):
            return
        request = (
            REQUESTS[key].decode(data, version=version, header=True)
            if key != API_VERSIONS
            else None
        )
        self.requests.append(request)
        body = {
            FETCH: self._fetch,
            LIST_OFFSETS: self._list_offsets,
            METADATA: self._metadata,
            API_VERSIONS: self._api_versions,
            EPOCH_END_OFFSETS: self._epoch_end_offsets,
        }[key](request, version)
        body = self.garbles(key, body)
        flexible = {
            FETCH: version >= 12,
            LIST_OFFSETS: version >= 6,
            METADATA: version >= 9,
            API_VERSIONS: False,
            EPOCH_END_OFFSETS: False,
        }[key]
        payload = struct.pack(">i", correlation) + (b"\x00" if flexible else b"") + body
        connection.sendall(struct.pack(">i", len(payload)) + payload)

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

    def _metadata(self, request: Any, version: int) -> bytes:
        brokers, topics = self.metadata()
        topic_class = MetadataResponse.MetadataResponseTopic
        wanted = topics if request.topics is None else [t.name for t in request.topics]
        listed = [
            topic_class(
                error_code=0 if name in topics else self.absent_error,
                name=name,
                is_internal=False,
                partitions=[
                    topic_class.MetadataResponsePartition(
                        error_code=error,
                        partition_index=number,
                        leader_id=leader,
                        leader_epoch=epoch,
                        replica_nodes=replicas,
                        isr_nodes=in_sync,
                        offline_replicas=[],
                    )
                    for number, (leader, epoch, replicas, in_sync, error) in topics.get(
                        name, {}
                    ).items()
                ],
            )
            for name in wanted
        ]
        nodes = [
            MetadataResponse.MetadataResponseBroker(
                node_id=b.broker, host="127.0.0.1", port=b.port, rack=None
            )
            for b in brokers
        ]
        answer = MetadataResponse(
            throttle_time_ms=0, brokers=nodes, cluster_id="fake", controller_id=1, topics=listed
        )
        return bytes(answer.encode(version=version))

    def _list_offsets(self, request: Any, version: int) -> bytes:
        topic_class = ListOffsetsResponse.ListOffsetsTopicResponse
        topics = [
            topic_class(
                name=topic.name,
                partitions=[
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
        return bytes(ListOffsetsResponse(throttle_time_ms=0, topics=topics).encode(version=version))

    def _log(self, topic: str, asked: Any, any_replica: bool = False) -> Log | None:
        log = self.logs.get((topic, asked.partition))
        return log if log is not None and (any_replica or log.leads) else None

    def _epoch_end_offsets(self, request: Any, version: int) -> bytes:
        topic_class = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
        topics = [
            topic_class(
                topic=topic.topic,
                partitions=[
                    _epoch_end(self._log(topic.topic, asked), asked, version)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        answer = OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=topics)
        return bytes(answer.encode(version=version))

    def _fetch(self, request: Any, version: int) -> bytes:
        topic_class = FetchResponse.FetchableTopicResponse
        any_replica = version >= 11 or request.replica_id == -2
        topics = [
            topic_class(
                topic=topic.topic,
                partitions=[
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
        answer = FetchResponse(
            throttle_time_ms=0, error_code=0, session_id=0, responses=topics, node_endpoints=[]
        )
        return bytes(answer.encode(version=version))


def _epoch_end(log: Log | None, asked: Any, version: int) -> Any:
    """As LeaderEpochFileCache.endOffsetFor; below the oldest epoch, version 0 has no answer."""
    result = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult.EpochEndOffset
    if log is None:
        return result(error_code=6, partition=asked.partition)
    older = [entry for entry in log.epochs if entry[0] <= asked.leader_epoch]
    epoch, end = older[-1] if older else (asked.leader_epoch, 0)
    if asked.leader_epoch > log.newest_epoch or (version == 0 and not older):
        epoch, end = -1, -1
    return result(error_code=0, partition=asked.partition, leader_epoch=epoch, end_offset=end)


def _fence(log: Log, current_leader_epoch: int) -> int:
    if current_leader_epoch < 0 or current_leader_epoch == log.leader_epoch:
        return 0
    return 74 if current_leader_epoch < log.leader_epoch else 75


def _offset_of(log: Log | None, replica: int, asked: Any, log_start: int) -> Any:
    """The end of a log for a debug replica, its high watermark for a consumer (-1).

    The start of the log to timestamp -2.
    """
    fence = -1 if asked.current_leader_epoch is None else asked.current_leader_epoch
    code, offset, epoch = 6, -1, -1
    if log is not None:
        code = _fence(log, fence) or (6 if replica == -1 and not log.leads else 0)
        if not code:
            offset = log.high_watermark if replica == -1 else log.end
            offset = log_start if asked.timestamp == -2 else offset
            epoch = log.leader_epoch
    return ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=code,
        timestamp=-1,
        offset=offset,
        leader_epoch=epoch,
    )


def _fetched(log: Log | None, asked: Any, log_start: int, error: int) -> Any:
    part_class = FetchResponse.FetchableTopicResponse.PartitionData
    fence = -1 if asked.current_leader_epoch is None else asked.current_leader_epoch
    code = error or (6 if log is None else _fence(log, fence))
    extra: dict[str, Any] = {}
    last_fetched = -1 if asked.last_fetched_epoch is None else asked.last_fetched_epoch
    if not code and log is not None and last_fetched >= 0:
        older = [(epoch, end) for epoch, end in log.epochs if epoch <= asked.last_fetched_epoch]
        if not log.epochs or asked.last_fetched_epoch > log.epochs[-1][0] or not older:
            code = 1
        else:
            extra["diverging_epoch"] = part_class.EpochEndOffset(
                epoch=older[-1][0], end_offset=older[-1][1]
            )
    elif not code and log is not None and asked.fetch_offset > log.end:
        code = 1
    high_watermark = -1 if code or log is None else log.high_watermark
    return part_class(
        partition_index=asked.partition,
        error_code=code,
        high_watermark=high_watermark,
        last_stable_offset=high_watermark,
        log_start_offset=-1 if code else log_start,
        aborted_transactions=None,
        preferred_read_replica=-1,
        records=b"",
        **extra,
    )
