"""ListOffsets by hand, versions 1 to 9 (ListOffsetsRequest.json, ListOffsetsResponse.json).

Two kinds are sent: `replica_id` −2 with timestamp −1, which any replica answers with its log end offset and the leader
epoch its broker knows; and `replica_id` −1 under the fence of a leader epoch, which only a leader answers, with its
high watermark.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from tidemark.collect.wire import (
    LIST_OFFSETS,
    Blocks,
    Patched,
    RawRequest,
    Reader,
    put_compact_string,
    put_string,
    put_uvarint,
)

MAX_VERSION: Final = 9
DEBUG_REPLICA: Final = -2
CONSUMER: Final = -1
LATEST: Final = -1
EARLIEST: Final = -2

# (partition, error code, offset, leader epoch); -1 is unknown.
Entry = tuple[int, int, int, int]

_REPLICA = Struct(">i")
_REPLICA_ISOLATION = Struct(">ib")
_INT32 = Struct(">i")
_ENTRY_EPOCH = Struct(">iiq")
_ENTRY_OLD = Struct(">iq")
_FLEXIBLE = Struct(">ih8xqix")
_EPOCH = Struct(">ih8xqi")
_OLD = Struct(">ih8xq")
_STRIDE_FROM: Final = 4


class ListOffsetsTemplate:
    """The request for one broker and one set of partitions; `request` patches the epochs in and gives the message."""

    def __init__(
        self, blocks: Blocks, version: int, replica_id: int, timestamp: int = LATEST
    ) -> None:
        if not 1 <= version <= MAX_VERSION:
            raise ValueError(f"ListOffsets v{version} is not encoded here")
        self.version = version
        self.flexible = version >= 6
        self._patched = self._encode(blocks, replica_id, timestamp)

    def _encode(self, blocks: Blocks, replica_id: int, timestamp: int) -> Patched:
        compact = self.flexible
        # read_uncommitted: the answer to replica −1 is then the high watermark, not the last stable offset.
        head = (
            _REPLICA_ISOLATION.pack(replica_id, 0)
            if self.version >= 2
            else _REPLICA.pack(replica_id)
        )
        body = bytearray(head)
        body += put_uvarint(len(blocks) + 1) if compact else _INT32.pack(len(blocks))
        positions: list[int] = []
        for topic, partitions in blocks:
            body += put_compact_string(topic) if compact else put_string(topic)
            body += put_uvarint(len(partitions) + 1) if compact else _INT32.pack(len(partitions))
            for partition in partitions:
                positions.append(len(body))
                body += (
                    _ENTRY_EPOCH.pack(partition, -1, timestamp)
                    if self.version >= 4
                    else _ENTRY_OLD.pack(partition, timestamp)
                )
                if compact:
                    body.append(0)
            if compact:
                body.append(0)
        if compact:
            body.append(0)
        return Patched(body, positions)

    def request(self, current_leader_epochs: list[int] | None = None) -> RawRequest:
        """`current_leader_epochs`: one per partition in request order, −1 for no fence; null: no fences at all.

        Below version 4 the protocol has no fence and they are left out.
        """
        if current_leader_epochs is not None and self.version >= 4:
            self._patched.patch(4, current_leader_epochs)
        return RawRequest(LIST_OFFSETS, self.version, bytes(self._patched.body), self.flexible)


def decode_list_offsets(data: bytes, version: int) -> list[tuple[str, list[Entry]]]:
    """The answer's topics with their entries, in the answer's order. Raises WireError for anything that is no such answer."""
    compact = version >= 6
    layout = _FLEXIBLE if compact else _EPOCH if version >= 4 else _OLD
    reader = Reader(data, f"ListOffsets v{version}")
    if version >= 2:
        reader.take(_INT32)
    topics: list[tuple[str, list[Entry]]] = []
    for _ in range(reader.count(3, compact)):
        topic = reader.text(compact)
        count = reader.count(layout.size, compact)
        end = reader.position + count * layout.size
        if compact and (
            count < _STRIDE_FROM
            or data[reader.position + layout.size - 1 : end : layout.size].strip(b"\x00")
        ):
            entries = [_flexible_entry(reader) for _ in range(count)]
        else:
            raw = layout.iter_unpack(memoryview(data)[reader.position : end])
            entries = [(*entry, -1) for entry in raw] if version < 4 else list(raw)
            reader.position = end
        if compact:
            reader.skip_tags()
        topics.append((topic, entries))
    if compact:
        reader.skip_tags()
    reader.finish()
    return topics


def _flexible_entry(reader: Reader) -> Entry:
    partition, code, offset, epoch = reader.take(_EPOCH)
    reader.skip_tags()
    return partition, code, offset, epoch
