from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kafka.record import default_records, util
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from tidemark.kafka.compression import GZIP_LEVEL, set_gzip_level

GZIP = 1
GZIP_MAGIC = b"\x1f\x8b\x08"


@pytest.fixture(autouse=True)
def _library_default() -> Iterator[None]:
    before = default_records.gzip_encode
    yield
    default_records.gzip_encode = before


def batch(value: bytes) -> bytes:
    builder = MemoryRecordsBuilder(magic=2, compression_type=GZIP, batch_size=1_000_000)
    builder.append(timestamp=1, key=None, value=value)
    builder.close()
    return bytes(builder.buffer())


@pytest.mark.parametrize("level", [1, GZIP_LEVEL, 9])
def test_batches_are_compressed_at_the_level_and_can_be_read(level: int) -> None:
    value = b"".join(b'{"offset":%d},' % (n * n * n) for n in range(5_000))
    set_gzip_level(level)
    data = batch(value)
    found: Any = next(MemoryRecords(data))
    assert [record.value for record in found] == [value]
    # The header of gzip names the fastest level and the best one (RFC 1952, XFL).
    assert data[data.index(GZIP_MAGIC) + 8] == {1: 4, 9: 2}.get(level, 0)


def test_checksums_of_records_are_computed_in_c() -> None:
    assert util._crc32c is util.crc32c_c is not None
