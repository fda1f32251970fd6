"""A controller in memory, which answers Fetch and FetchSnapshot of the metadata log."""

from __future__ import annotations

import struct
from typing import Any

from tests.collect.metadata_log.encoding import encode_batch, encode_record
from tidemark.collect.codecs.wire import FETCH, RawRequest, encode_string, encode_uvarint
from tidemark.collect.sources.metadata_log.batches import read_batches
from tidemark.collect.sources.metadata_log.reader import (
    FENCED_LEADER_EPOCH,
    INVALID_REQUEST,
    NOT_LEADER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
)
from tidemark.collect.sources.metadata_log.requests import TOPIC, TOPIC_UUID, SnapshotId

SNAPSHOT_NOT_FOUND = 98
TOPIC_ID = TOPIC_UUID.bytes


def _bytes(data: bytes) -> bytes:
    return encode_uvarint(len(data) + 1) + data


def _tags(tags: dict[int, bytes]) -> bytes:
    found = encode_uvarint(len(tags))
    for tag, data in sorted(tags.items()):
        found += encode_uvarint(tag) + encode_uvarint(len(data) + 1) + data + b"\x00"
    return found


class FakeController:
    """As KafkaRaftClient validates and answers. `log`: batches; `committed`: the high watermark."""

    def __init__(self, epoch: int = 5) -> None:
        self.epoch = epoch
        self.is_leader = True
        self.log: list[bytes] = []
        self.end = 0
        self.committed = 0
        self.start = 0
        self.snapshots: dict[SnapshotId, bytes] = {}
        self.error = 0
        self.chunk = 50
        self.asked: list[str] = []

    def append(self, *records: Any, commit: bool = True) -> int:
        """Appends one batch. Its base offset."""
        base = self.end
        values = [encode_record(record) for record in records]
        self.log.append(encode_batch(base, values, epoch=self.epoch, at_ms=1000 * base))
        self.end += len(records)
        if commit:
            self.committed = self.end
        return base

    def snapshot(self, data: bytes) -> SnapshotId:
        """A snapshot of all so far; the log begins there."""
        found = SnapshotId(self.end, self.epoch)
        self.snapshots[found], self.start = data, self.end
        self.log = []
        return found

    async def ask(self, request: Any) -> bytes:
        assert isinstance(request, RawRequest)
        if request.api_key == FETCH:
            self.asked.append("fetch")
            return self._fetch(request.body)
        self.asked.append("snapshot")
        return self._fetch_snapshot(request.body)

    def _invalid(self, epoch: int) -> int:
        if self.error:
            return self.error
        if epoch < self.epoch:
            return FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return UNKNOWN_LEADER_EPOCH
        return 0 if self.is_leader else NOT_LEADER

    def _epoch_ends(self) -> dict[int, int]:
        """The end offset of each epoch; that of the newest snapshot counts too."""
        ends = {snapshot.epoch: snapshot.end_offset for snapshot in self.snapshots}
        for batch in read_batches(b"".join(self.log), check_crc=True)[0]:
            ends[batch.leader_epoch] = batch.last_offset + 1
        return ends

    def _fetch(self, body: bytes) -> bytes:
        at = body.index(TOPIC_ID) + len(TOPIC_ID) + 1
        _, epoch, offset, last_epoch, _, _ = struct.unpack_from(">iiqiqi", body, at)
        error = self._invalid(epoch) or (INVALID_REQUEST if last_epoch > epoch else 0)
        records, tags = b"", {1: struct.pack(">ii", 1, self.epoch)}
        ends = self._epoch_ends()
        if error:
            pass
        elif offset < self.start:
            tags[2] = struct.pack(">qi", *max(self.snapshots))
        elif offset and (last_epoch not in ends or offset > ends[last_epoch]):
            tags[0] = struct.pack(">iq", max(e for e in (0, *ends) if e <= last_epoch), self.start)
        elif offset > self.end:
            error = OFFSET_OUT_OF_RANGE
        else:
            records = b"".join(
                data
                for data in self.log
                if struct.unpack_from(">q", data)[0] + struct.unpack_from(">i", data, 23)[0]
                >= offset
            )
        entry = struct.pack(">ihqqq", 0, error, self.committed, -1, self.start)
        entry += b"\x01" + struct.pack(">i", -1) + _bytes(records) + _tags(tags)
        head = struct.pack(">ihi", 0, 0, 0)
        return head + b"\x02" + TOPIC_ID + b"\x02" + entry + b"\x00\x00"

    def _fetch_snapshot(self, body: bytes) -> bytes:
        name = encode_string(TOPIC, compact=True)
        at = body.index(name) + len(name) + 1
        _, epoch, end_offset, snapshot_epoch = struct.unpack_from(">iiqi", body, at)
        (position,) = struct.unpack_from(">q", body, at + 21)
        data = self.snapshots.get(SnapshotId(end_offset, snapshot_epoch))
        error = self._invalid(epoch) or (SNAPSHOT_NOT_FOUND if data is None else 0)
        chunk = b"" if data is None else data[position : position + self.chunk]
        entry = struct.pack(">ihqi", 0, error, end_offset, snapshot_epoch) + b"\x00"
        entry += struct.pack(">qq", len(data or b""), position) + _bytes(chunk)
        entry += _tags({0: struct.pack(">ii", 1, self.epoch)})
        return struct.pack(">ih", 0, 0) + b"\x02" + name + b"\x02" + entry + b"\x00\x00"
