"""ListOffsets, versions 1 to 9 (ListOffsetsRequest.json, ListOffsetsResponse.json).

With `replica_id` −2, every replica answers: to timestamp −1 with its log end offset and the leader
epoch that its broker knows, to timestamp −2 with its log start offset. With `replica_id` −1, only
the leader of the fencing epoch answers, with its high watermark.
"""

from __future__ import annotations

from functools import partial
from struct import Struct
from typing import Final

from tidemark.collect.codecs.wire import (
    INT32,
    INT64,
    LIST_OFFSETS,
    UNANSWERED,
    GroupedPartitions,
    RawRequest,
    RequestTemplate,
    ResponseReader,
    TopicEntries,
)

MAX_VERSION: Final = 9
# Kafka 2.1: from here on, requests have a fence and answers a leader epoch.
FIRST_WITH_FENCE: Final = 4
DEBUG_REPLICA: Final = -2
CONSUMER: Final = -1
LATEST: Final = -1
EARLIEST: Final = -2

# (partition, error code, offset, leader epoch); -1 is unknown.
OffsetEntry = tuple[int, int, int, int]
OFFSET: Final = 2
LEADER_EPOCH: Final = 3
NO_OFFSET: Final[OffsetEntry] = (-1, UNANSWERED, -1, -1)

_HEAD = Struct(">ib")
_DEFAULTS = Struct(">iq")
_EPOCH_AT: Final = 4
_ENTRY_FLEXIBLE = Struct(">ih8xqix")
_ENTRY = Struct(">ih8xqi")
_ENTRY_BEFORE_4 = Struct(">ih8xq")
_STRIDE_FROM: Final = 4


class ListOffsetsTemplate(RequestTemplate[TopicEntries[OffsetEntry]]):
    """ListOffsets to one broker for one set of partitions. `request` patches the epochs in."""

    def __init__(
        self, topics: GroupedPartitions, version: int, replica_id: int, timestamp: int = LATEST
    ) -> None:
        if not 1 <= version <= MAX_VERSION:
            raise ValueError(f"ListOffsets v{version} is not encoded here")
        self.version = version
        self.flexible = version >= 6
        # read_uncommitted (since v2): the answer to replica −1 is the high watermark, not the last
        # stable offset.
        head = _HEAD.pack(replica_id, 0) if version >= 2 else INT32.pack(replica_id)
        self.has_fence = version >= FIRST_WITH_FENCE
        defaults = _DEFAULTS.pack(-1, timestamp) if self.has_fence else INT64.pack(timestamp)
        decode = partial(decode_list_offsets, version=version)
        super().__init__(head, topics, defaults, b"", self.flexible, decode)

    def request(self, current_leader_epochs: list[int] | None = None) -> RawRequest:
        """`current_leader_epochs` fence where not −1, in request order; null: nowhere.

        Versions below 4 have no fence; the epochs are left out.
        """
        if current_leader_epochs is not None and self.has_fence:
            self.patch(_EPOCH_AT, current_leader_epochs)
        return RawRequest(LIST_OFFSETS, self.version, bytes(self.body), self.flexible)


def decode_list_offsets(data: bytes, version: int) -> TopicEntries[OffsetEntry]:
    """The topics with their entries, in order. Raises WireError for anything else."""
    compact, has_epoch = version >= 6, version >= FIRST_WITH_FENCE
    layout = _ENTRY_FLEXIBLE if compact else _ENTRY if has_epoch else _ENTRY_BEFORE_4
    reader = ResponseReader(data, f"ListOffsets v{version}")
    if version >= 2:
        reader.skip(INT32.size)

    def entries(count: int) -> list[OffsetEntry]:
        end = reader.position + count * layout.size
        if compact and (
            count < _STRIDE_FROM
            or data[reader.position + layout.size - 1 : end : layout.size].strip(b"\x00")
        ):
            return [_decode_flexible(reader) for _ in range(count)]
        raw = layout.iter_unpack(memoryview(data)[reader.position : end])
        reader.position = end
        return list(raw) if has_epoch else [(*entry, -1) for entry in raw]

    return reader.topics(layout.size, compact, entries)


def _decode_flexible(reader: ResponseReader) -> OffsetEntry:
    partition, error_code, offset, leader_epoch = reader.read(_ENTRY)
    reader.skip_tags()
    return partition, error_code, offset, leader_epoch
