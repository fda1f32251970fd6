"""The targets of events on their way: their codec, the spool, the stream and its state."""

from __future__ import annotations

import struct
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import version_1
from tests.fuzz.target import Target
from tests.verbs.recordings import trace
from tidemark.core.errors import TidemarkError, WireError


@contextmanager
def events() -> Iterator[Target]:
    """Records of the event topic, as the stream folds them: nothing may be raised at all."""
    from tidemark.core.codec import decode_batch
    from tidemark.detect.default_thresholds import Detection
    from tidemark.reduce.group import fold_group
    from tidemark.reduce.rows import RawRecord

    lines = trace("unclean")
    first = [RawRecord(0, number, 1e9, line) for number, line in enumerate(lines[:20])]
    begun = fold_group(None, first, Detection(), 0, 1)

    def call(data: bytes) -> None:
        new = [RawRecord(0, 100, 1e9 + 30, data), RawRecord(0, 101, 1e9 + 31, lines[21])]
        state, _ = fold_group(begun[0], new, Detection(), 0, 1)
        # What it left behind is read again in the next batch.
        fold_group(state, [RawRecord(0, 102, 1e9 + 32, lines[22])], Detection(), 0, 1)

    old = [version_1.encode_batch(decode_batch(line)) for line in lines]
    yield Target([*lines, *old], call, ())


@contextmanager
def event_codec() -> Iterator[Target]:
    """Records of the event topic: what is decoded is encoded to the same."""
    from tidemark.core.codec import decode_batch, encode_batch

    def call(data: bytes) -> None:
        found = decode_batch(data)
        again = decode_batch(encode_batch(found))
        assert again.events == found.events, "another batch"

    yield Target(trace("unclean"), call, (WireError,))


@contextmanager
def spool() -> Iterator[Target]:
    """The files of a collector's spool: nothing may be raised, and it takes new records."""
    from tidemark.collect.publish.pack import EventRecord
    from tidemark.collect.publish.spool import Spool
    from tidemark.collect.publish.spool_segment import to_frame

    records = [EventRecord(n, b"x" * 50, "c", (("orders", n),), n % 2 > 0) for n in range(4)]
    frames = [to_frame(record) for record in records]
    # Bytes as they lie in a file, and a body that gets a right checksum.
    seeds = [b"F" + b"".join(frames), *(b"B" + frame[8:] for frame in frames)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def call(data: bytes) -> None:
            body = data[1:]
            framed = struct.pack(">II", len(body), zlib.crc32(body)) + body + frames[0]
            segment = body if data[:1] == b"F" else framed
            (folder / "001000000000.spool").write_bytes(segment)
            spooled = Spool(folder, 1_000_000, 500)
            try:
                assert spooled.append(records) == []
                found = []
                while (read := spooled.next()) is not None:
                    found.append(read[1])
                    spooled.settle(read[0])
                assert found[-len(records) :] == records and spooled.is_empty
            finally:
                spooled.close()

        yield Target(seeds, call, ())


@contextmanager
def state() -> Iterator[Target]:
    """The stream's state in a checkpoint."""
    from tidemark.core.partition import decode_state
    from tidemark.detect.default_thresholds import Detection
    from tidemark.reduce.group import fold_group
    from tidemark.reduce.group_state import decode_group
    from tidemark.reduce.rows import RawRecord

    def call(data: bytes) -> None:
        if data[:1] == b"G":
            for each in decode_group(data[1:]).partitions.values():
                decode_state(each)
        else:
            decode_state(data[1:])

    groups = []
    for name in ("unclean", "kip101_modern"):
        records = [RawRecord(0, place, 1e9, line) for place, line in enumerate(trace(name))]
        groups.append(fold_group(None, records, Detection(), 0, 1)[0])
    partitions = [each for blob in groups for each in decode_group(blob).partitions.values()]
    seeds = [*(b"G" + blob for blob in groups), *(b"P" + blob for blob in partitions)]
    yield Target(seeds, call, (TidemarkError,))
