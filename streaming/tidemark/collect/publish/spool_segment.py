"""The files of a spool: frames of one record each, as `kafka.common.record.LegacyRecord` has them.

A frame is a length and a CRC-32 of its body (4 bytes each, big endian), and the body: MessagePack
of an EventRecord. A file that ends within a frame or is damaged gives the other frames.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

import msgspec

from tidemark.collect.publish.pack import EventRecord

_HEAD: Final = struct.Struct(">II")
# A record has up to 256 KiB and 256 names of partitions; no frame of ours is longer.
MAX_FRAME_BYTES: Final = 2 * 1024 * 1024
_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(EventRecord)


def to_frame(record: EventRecord) -> bytes:
    """The bytes of a record in a segment."""
    body = _encoder.encode(record)
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def read_frames(data: bytes) -> Iterator[tuple[int, EventRecord | None]]:
    """Where each frame of a segment begins, and its record; null: it is damaged.

    Reading goes on behind a damaged body. A length that cannot be right ends it: what follows is
    one damaged frame, however many there were.
    """
    at = 0
    while at < len(data):
        start = at + _HEAD.size
        length, checksum = _HEAD.unpack_from(data, at) if start <= len(data) else (0, 0)
        body = data[start : start + length]
        is_whole = len(body) == length and 0 < length <= MAX_FRAME_BYTES
        yield at, _decoded(body, checksum) if is_whole else None
        at = start + length if is_whole else len(data)


def _decoded(body: bytes, checksum: int) -> EventRecord | None:
    if zlib.crc32(body) != checksum:
        return None
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
