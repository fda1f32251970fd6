"""The zero-byte Fetch probe by hand, version 12 (FetchRequest.json, FetchResponse.json).

Sent straight to any replica with an offset no log reaches and `last_fetched_epoch` E, it is answered from memory with
that replica's high watermark, last stable offset, log start offset and the end offset of the largest epoch ≤ E; with E
its newest epoch that end is its log end offset. One answer is one instant, and no record is read.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from tidemark.collect.wire import (
    FETCH,
    Blocks,
    Patched,
    RawRequest,
    Reader,
    put_compact_string,
    put_uvarint,
)

VERSION: Final = 12
# No log ends here, so the answer never carries records and no broker redirects to a nearer replica.
BEYOND: Final = 2**62

# (partition, error code, high watermark, last stable offset, log start offset, epoch, its end offset); -1 is unknown.
Entry = tuple[int, int, int, int, int, int, int]

# replica −1 (a consumer), no wait, no minimum, one byte at most, read_uncommitted, no session.
_HEAD = Struct(">iiiibii").pack(-1, 0, 0, 1, 0, 0, -1)
_REQUEST_ENTRY = Struct(">iiqiqiB")
_EPOCH_AT: Final = 4
_OFFSET_AT: Final = 8
_LAST_FETCHED_AT: Final = 16

_ANSWER_HEAD = Struct(">ihi")
_FIXED = Struct(">ihqqq")
_STRIDE = Struct(">ihqqq9xiqx")
_ABORTED = Struct(">qq")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_EPOCH_END = Struct(">iq")
_STRIDE_FROM: Final = 4
_SMALLEST: Final = 37


class FetchTemplate:
    """The probe for one broker and one set of partitions; `request` patches the epochs in and gives the message."""

    version = VERSION

    def __init__(self, blocks: Blocks) -> None:
        body = bytearray(_HEAD)
        body += put_uvarint(len(blocks) + 1)
        positions: list[int] = []
        for topic, partitions in blocks:
            body += put_compact_string(topic)
            body += put_uvarint(len(partitions) + 1)
            for partition in partitions:
                positions.append(len(body))
                body += _REQUEST_ENTRY.pack(partition, -1, BEYOND, -1, -1, 0, 0)
            body.append(0)
        # No forgotten topics, no rack, no tagged fields.
        body += b"\x01\x01\x00"
        self._patched = Patched(body, positions)

    def request(
        self,
        last_fetched_epochs: list[int],
        current_leader_epochs: list[int] | None = None,
        fetch_offsets: list[int] | None = None,
    ) -> RawRequest:
        """Columns in request order. `current_leader_epochs` fence where not −1; `fetch_offsets` are BEYOND by default.

        A replica whose newest epoch is unknown is asked with `last_fetched_epoch` −1 at its own log end offset.
        """
        self._patched.patch(_LAST_FETCHED_AT, last_fetched_epochs)
        if fetch_offsets is not None:
            self._patched.patch(_OFFSET_AT, fetch_offsets, _INT64)
        if current_leader_epochs is not None:
            self._patched.patch(_EPOCH_AT, current_leader_epochs)
        return RawRequest(FETCH, VERSION, bytes(self._patched.body), flexible=True)


def decode_fetch(data: bytes) -> tuple[int, list[tuple[str, list[Entry]]]]:
    """The answer's own error code, and its topics with their entries in the answer's order.

    A broker may name a topic more than once. Raises WireError for anything that is no such answer.
    """
    reader = Reader(data, "Fetch v12")
    _, code, _ = reader.take(_ANSWER_HEAD)
    topics: list[tuple[str, list[Entry]]] = []
    for _ in range(reader.count(3, compact=True)):
        topic = reader.text(compact=True)
        count = reader.count(_SMALLEST, compact=True)
        end = reader.position + count * _STRIDE.size
        if count >= _STRIDE_FROM and _fits(data, reader.position, end):
            entries: list[Entry] = list(
                _STRIDE.iter_unpack(memoryview(data)[reader.position : end])
            )
            reader.position = end
        else:
            entries = [_entry(reader) for _ in range(count)]
        reader.skip_tags()
        topics.append((topic, entries))
    reader.skip_tags()
    reader.finish()
    return code, topics


def _fits(data: bytes, start: int, end: int) -> bool:
    """Whether entries lie in strides of 52 bytes: nothing aborted, no records, and `diverging_epoch` as the only tag.

    The first entry that differs stands where the stride expects it, so its own bytes betray it.
    """
    if end > len(data):
        return False
    step = _STRIDE.size
    return not (
        data[start + 30 : end : step].strip(b"\x00\x01")
        or data[start + 35 : end : step].strip(b"\x00\x01")
        or data[start + 36 : end : step].strip(b"\x01")
        or data[start + 37 : end : step].strip(b"\x00")
        or data[start + 38 : end : step].strip(b"\x0d")
        or data[start + 51 : end : step].strip(b"\x00")
    )


def _entry(reader: Reader) -> Entry:
    partition, code, high_watermark, last_stable_offset, log_start_offset = reader.take(_FIXED)
    for _ in range(reader.count(_ABORTED.size + 1, compact=True, nullable=True)):
        reader.skip(_ABORTED.size)
        reader.skip_tags()
    reader.take(_INT32)
    reader.skip(max(reader.uvarint() - 1, 0))
    epoch = end_offset = -1
    for _ in range(reader.count_tags()):
        tag, size = reader.uvarint(), reader.uvarint()
        stop = reader.position + size
        if tag == 0:
            epoch, end_offset = reader.take(_EPOCH_END)
            reader.skip_tags()
            if reader.position != stop:
                raise reader.fail("a diverging epoch of another size")
        else:
            reader.skip(size)
    return partition, code, high_watermark, last_stable_offset, log_start_offset, epoch, end_offset
