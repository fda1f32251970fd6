"""The files of a spool: frames of one record each, as `kafka.common.record.LegacyRecord` has them.

A frame is a length and a CRC-32 of its body (4 bytes each, big endian), and the body: MessagePack
of an EventRecord. A file that ends within a frame or is damaged gives the frames before.
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


class DamagedFrameError(Exception):
    """What follows the last good frame is not one; `offset` is where it begins."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"no frame at byte {offset}")
        self.offset = offset


def to_frame(record: EventRecord) -> bytes:
    """The bytes of a record in a segment."""
    body = _encoder.encode(record)
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def read_frames(data: bytes) -> Iterator[EventRecord]:
    """The records of a segment, in order. Raises DamagedFrameError after the last good one."""
    at = 0
    while at < len(data):
        start = at + _HEAD.size
        if start > len(data):
            raise DamagedFrameError(at)
        length, checksum = _HEAD.unpack_from(data, at)
        body = data[start : start + length]
        if length > MAX_FRAME_BYTES or len(body) < length or zlib.crc32(body) != checksum:
            raise DamagedFrameError(at)
        try:
            found = _decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise DamagedFrameError(at) from None
        yield found
        at = start + length
