"""The zero-byte Fetch, version 12 (FetchRequest.json, FetchResponse.json).

Sent to any replica with an offset beyond every log and `last_fetched_epoch` E. The replica answers
from memory with its high watermark, last stable offset, log start offset, and the end offset of its
largest epoch ≤ E. If E is its newest epoch, that end is its log end offset. One answer is one
instant, and no record is read.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from tidemark.collect.codecs.wire import (
    FETCH,
    INT32,
    INT64,
    UNANSWERED,
    GroupedPartitions,
    RawRequest,
    RequestTemplate,
    ResponseReader,
    TopicEntries,
)

VERSION: Final = 12
OFFSET_OUT_OF_RANGE: Final = 1
# The user may describe the topic and not read it.
TOPIC_AUTHORIZATION_FAILED: Final = 29
# No log ends here: the answer never carries records, and no broker redirects to a nearer replica.
BEYOND: Final = 2**62

# (partition, error code, high watermark, last stable offset, log start offset, epoch, its end
# offset); -1 is unknown.
FetchEntry = tuple[int, int, int, int, int, int, int]
NO_FETCH: Final[FetchEntry] = (-1, UNANSWERED, -1, -1, -1, -1, -1)

# Replica −1 (a consumer), no wait, no minimum, at most one byte, read_uncommitted, no session.
_HEAD = Struct(">iiiibii").pack(-1, 0, 0, 1, 0, 0, -1)
# No forgotten topics, no rack.
_TAIL = b"\x01\x01"
_DEFAULTS = Struct(">iqiqi").pack(-1, BEYOND, -1, -1, 0)
_EPOCH_AT: Final = 4
_OFFSET_AT: Final = 8
_LAST_FETCHED_AT: Final = 16

_RESPONSE_HEAD = Struct(">ihi")
_FIXED = Struct(">ihqqq")
_STRIDE = Struct(">ihqqq9xiqx")
_ABORTED = Struct(">qq")
_EPOCH_END = Struct(">iq")
_STRIDE_FROM: Final = 4
_SMALLEST: Final = 37
# One tagged field, `diverging_epoch`, of 13 bytes.
_ONLY_EPOCH_END: Final = b"\x01\x00\x0d"


class FetchTemplate(RequestTemplate[tuple[int, TopicEntries[FetchEntry]]]):
    """Fetch to one broker for one set of partitions. `request` patches epochs and offsets in."""

    def __init__(self, topics: GroupedPartitions) -> None:
        super().__init__(_HEAD, topics, _DEFAULTS, _TAIL, flexible=True, decode=decode_fetch)

    def request(
        self,
        last_fetched_epochs: list[int],
        current_leader_epochs: list[int],
        fetch_offsets: list[int],
    ) -> RawRequest:
        """Columns in request order. `current_leader_epochs` fence where not −1.

        `fetch_offsets` are BEYOND. A replica with an unknown newest epoch is fetched at its own log
        end offset, with `last_fetched_epoch` −1.
        """
        self.patch(_LAST_FETCHED_AT, last_fetched_epochs)
        self.patch(_OFFSET_AT, fetch_offsets, INT64)
        self.patch(_EPOCH_AT, current_leader_epochs)
        return RawRequest(FETCH, VERSION, bytes(self.body), flexible=True)


def decode_fetch(data: bytes) -> tuple[int, TopicEntries[FetchEntry]]:
    """The error code of the response, and its topics with their entries, in order.

    A broker may name a topic more than once. Raises WireError for anything else.
    """
    reader = ResponseReader(data, "Fetch v12")
    _, error_code, _ = reader.read(_RESPONSE_HEAD)

    def entries(count: int) -> list[FetchEntry]:
        start, end = reader.position, reader.position + count * _STRIDE.size
        if count < _STRIDE_FROM or not _is_strided(data, start, end):
            return [_decode_short_entry(reader) for _ in range(count)]
        reader.position = end
        return list(_STRIDE.iter_unpack(memoryview(data)[start:end]))

    return error_code, reader.topics(_SMALLEST, True, entries)


def _is_strided(data: bytes, start: int, end: int) -> bool:
    """Whether each entry has 52 bytes: no aborted transactions or records, only `diverging_epoch`.

    The first entry of another size begins at a multiple of the stride, so its own bytes give it
    away.
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


def _decode_short_entry(reader: ResponseReader) -> FetchEntry:
    """One of 37 bytes, as of an empty log, or of 52; else as `_decode_entry`."""
    data, at = reader.data, reader.position
    # No aborted transactions and no records.
    if at + _SMALLEST <= reader.end and data[at + 30] < 2 and data[at + 35] < 2:
        if not data[at + 36]:
            reader.position = at + _SMALLEST
            return (*_FIXED.unpack_from(data, at), -1, -1)
        end = at + _STRIDE.size
        if data[at + 36 : at + 39] == _ONLY_EPOCH_END and end <= reader.end and not data[end - 1]:
            reader.position = end
            return _STRIDE.unpack_from(data, at)
    return _decode_entry(reader)


def _decode_entry(reader: ResponseReader) -> FetchEntry:
    partition, error_code, high_watermark, last_stable_offset, log_start_offset = reader.read(
        _FIXED
    )
    for _ in range(reader.count(_ABORTED.size + 1, compact=True, nullable=True)):
        reader.skip(_ABORTED.size)
        reader.skip_tags()
    # preferred_read_replica, then the records.
    reader.skip(INT32.size)
    reader.skip(max(reader.uvarint() - 1, 0))
    epoch = end_offset = -1
    for _ in range(reader.count_tags()):
        tag, size = reader.uvarint(), reader.uvarint()
        stop = reader.position + size
        if tag == 0:
            epoch, end_offset = reader.read(_EPOCH_END)
            reader.skip_tags()
            if reader.position != stop:
                raise reader.fail("a diverging epoch of another size")
        else:
            reader.skip(size)
    return (
        partition,
        error_code,
        high_watermark,
        last_stable_offset,
        log_start_offset,
        epoch,
        end_offset,
    )
