from __future__ import annotations

import gzip
import socket
import struct
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka import codec as kafka_codec
from kafka.errors import KafkaConnectionError, KafkaTimeoutError
from kafka.record import default_records, memory_records, util
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder
from structlog.testing import capture_logs

from tidemark.core.errors import WireError
from tidemark.core.events import REFUSED, TIMED_OUT, UNREACHABLE
from tidemark.core.records import decode_record
from tidemark.kafka import client_internals, decompression
from tidemark.kafka.client import Producer, close_producer, outcome_of
from tidemark.kafka.client_internals import (
    GZIP_LEVEL,
    UnreadableBatch,
    bound_batches,
    set_gzip_level,
)
from tidemark.kafka.decompression import (
    MAX_MEMBERS,
    DamagedRecordsError,
    UnreadableRecordsError,
    unpack,
)

GZIP_MAGIC = b"\x1f\x8b\x08"


@pytest.fixture(autouse=True)
def _library_default() -> Iterator[None]:
    before = default_records.gzip_encode
    yield
    default_records.gzip_encode = before


@pytest.mark.parametrize("level", [1, GZIP_LEVEL, 9])
def test_batches_are_compressed_at_the_level_and_can_be_read(level: int) -> None:
    value = b"".join(b'{"offset":%d},' % (n * n * n) for n in range(5_000))
    set_gzip_level(level)
    data = batch([value], 0)
    found: Any = next(MemoryRecords(data))
    assert [record.value for record in found] == [value]
    # The header of gzip names the fastest level and the best one (RFC 1952, XFL).
    assert data[data.index(GZIP_MAGIC) + 8] == {1: 4, 9: 2}.get(level, 0)


def test_checksums_of_records_are_computed_in_c() -> None:
    assert util._crc32c is util.crc32c_c is not None


def parts_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library without what `client_internals` uses of it."""
    monkeypatch.delattr(default_records, "gzip_encode")
    monkeypatch.setattr(memory_records, "DefaultRecordBatch", object)


def test_another_version_of_the_library_costs_the_bound_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    value = bytes(2_000_000)
    data = batch([value], 0)
    monkeypatch.setattr(client_internals, "MAX_BATCH_BYTES", 1_000)
    with monkeypatch.context() as other:
        parts_of_another_version(other)
        with capture_logs() as lines:
            bound_batches()
            set_gzip_level()
    assert [line["event"] for line in lines] == ["record batches are unpacked without a bound"]
    found: Any = next(MemoryRecords(data))
    assert [record.value for record in found] == [value]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ConnectionError("111 ECONNREFUSED"), REFUSED),
        (TimeoutError("timed out"), TIMED_OUT),
        (OSError("No route to host"), UNREACHABLE),
        (KafkaConnectionError("111 ECONNREFUSED"), REFUSED),
        (KafkaConnectionError("Connection timed out"), TIMED_OUT),
        (KafkaConnectionError("Handshake failed: [SSL]"), "tls_handshake_failed"),
        # Another text costs the cause.
        (KafkaConnectionError("Verbindung abgelehnt"), UNREACHABLE),
    ],
)
def test_outcomes_of_errors(error: Exception, outcome: str) -> None:
    assert outcome_of(error) == outcome


def test_a_producer_that_cannot_deliver_ends_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def flush(_producer: Any, timeout: float | None = None) -> None:
        raise KafkaTimeoutError(f"records are left after {timeout} s")

    monkeypatch.setattr(KafkaProducer, "flush", flush)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        options = {"bootstrap_servers": [address], "bootstrap_timeout_ms": 0, "max_block_ms": 1}
        before = set(threading.enumerate())
        producer = Producer(**options, api_version=(2, 6))
        started = set(threading.enumerate()) - before
        close_producer(producer, 0.01)
    assert started
    for thread in started:
        thread.join(10)
    assert not any(thread.is_alive() for thread in started)


# A batch that unpacks beyond the bound costs a record that is not readable, and no memory.


NONE, GZIP = 0, 1


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_records, "DefaultRecordBatch", memory_records.DefaultRecordBatch)
    bound_batches()


def batch(values: list[bytes], offset: int, codec: int = GZIP) -> bytes:
    builder = MemoryRecordsBuilder(2, codec, 1 << 30)
    for value in values:
        assert builder.append(1_000, b"key", value, []) is not None
    builder.close()
    # The broker assigns offsets; no checksum covers them.
    return struct.pack(">q", offset) + bytes(builder.buffer())[8:]


def records(data: bytes) -> list[Any]:
    found, all_records = [], MemoryRecords(data)
    while (each := all_records.next_batch()) is not None:
        assert each.validate_crc()
        found += list(each)
    return found


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_batches_within_the_bound_are_read_as_before(codec: int) -> None:
    found = records(batch([b"a", b"b"], 5, codec) + batch([b"c"], 7, codec))
    assert [(each.offset, each.key, each.value) for each in found] == [
        *((5, b"key", b"a"), (6, b"key", b"b"), (7, b"key", b"c"))
    ]


@pytest.mark.usefixtures("bounded")
def test_a_batch_beyond_it_is_one_record_and_the_next_ones_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_internals, "MAX_BATCH_BYTES", 1_000_000)
    bomb = batch([bytes(50_000_000)], 5)
    data = bomb + batch([b"c"], 6)
    tracemalloc.start()
    found = records(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(bomb) < 60_000
    assert peak < 10_000_000
    assert [each.offset for each in found] == [5, 6]
    value = found[0].value
    assert isinstance(value, UnreadableBatch)
    assert (value.base_offset, value.last_offset) == (5, 5)
    assert value.reason == "its records unpack to over 1000000 bytes"
    with pytest.raises(WireError):
        decode_record(value)


@pytest.mark.usefixtures("bounded")
def test_only_what_unpacks_beyond_it_is_oversized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_internals, "MAX_BATCH_BYTES", 1_000)
    (large,) = records(batch([bytes(5_000)], 5))
    monkeypatch.setattr(default_records, "gzip_encode", lambda *_: b"not gzip")
    (damaged,) = records(batch([bytes(600)], 5))
    assert (large.value.is_oversized, damaged.value.is_oversized) == (True, False)


@pytest.mark.usefixtures("bounded")
def test_it_stands_for_all_records_of_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_internals, "MAX_BATCH_BYTES", 1_000)
    found = records(batch([bytes(600), bytes(600)], 10) + batch([b"c"], 12))
    assert [(each.offset, bytes(each.value)) for each in found] == [
        (11, b"\0batch of offsets 10 to 11: its records unpack to over 1000 bytes"),
        (12, b"c"),
    ]


def test_a_gzip_stream_of_many_members_is_refused() -> None:
    """Each copies what follows it: 52,000 empty ones, 1 MB, took 5.6 s."""
    assert unpack(gzip.compress(b"") * MAX_MEMBERS, 1) == b""
    with pytest.raises(DamagedRecordsError, match="more than 64 gzip members"):
        unpack(gzip.compress(b"") * (MAX_MEMBERS + 1), 1)


def test_every_member_of_a_gzip_stream_counts() -> None:
    data = gzip.compress(b"a" * 900) + gzip.compress(b"b" * 900)
    assert unpack(data, GZIP) == b"a" * 900 + b"b" * 900
    with pytest.raises(UnreadableRecordsError, match="over 1000 bytes"):
        unpack(data, GZIP, 1_000)


CODECS = {2: "snappy", 3: "lz4", 4: "zstd"}


@pytest.fixture(params=["with pyarrow", "without pyarrow"])
def _libraries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without pyarrow":
        monkeypatch.setattr(decompression, "_pyarrow", lambda: None)


@pytest.mark.usefixtures("_libraries")
@pytest.mark.parametrize("codec", CODECS, ids=CODECS.get)
def test_every_codec_is_unpacked_within_the_bound(codec: int) -> None:
    packed = getattr(kafka_codec, f"{CODECS[codec]}_encode")(bytes(50_000_000))
    tracemalloc.start()
    with pytest.raises(UnreadableRecordsError, match="over 1000000 bytes"):
        unpack(packed, codec, 1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000
    small = getattr(kafka_codec, f"{CODECS[codec]}_encode")(b"a" * 900)
    assert unpack(small, codec, 1_000) == b"a" * 900
    with pytest.raises(DamagedRecordsError):
        unpack(b"\x00 nothing of the kind", codec, 1_000)


@pytest.mark.parametrize("codec", CODECS, ids=CODECS.get)
def test_a_missing_library_is_named(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompression, "_pyarrow", lambda: None)
    for name in ("snappy", "lz4.frame", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnreadableRecordsError, match=f"no Python library for {CODECS[codec]} is"):
        unpack(b"any", codec, 1_000)
