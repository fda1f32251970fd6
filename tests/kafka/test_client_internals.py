from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaConnectionError, KafkaTimeoutError
from kafka.record import default_records, memory_records, util
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder
from structlog.testing import capture_logs

from tidemark.core.events import REFUSED, TIMED_OUT, UNREACHABLE
from tidemark.kafka import client_internals
from tidemark.kafka.client import Producer, close_producer, outcome_of
from tidemark.kafka.client_internals import GZIP_LEVEL, bound_batches, set_gzip_level

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


def parts_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library without what `client_internals` uses of it."""
    monkeypatch.delattr(default_records, "gzip_encode")
    monkeypatch.setattr(memory_records, "DefaultRecordBatch", object)


def test_another_version_of_the_library_costs_the_bound_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    value = bytes(2_000_000)
    data = batch(value)
    monkeypatch.setattr(client_internals, "MAX_BATCH_BYTES", 1_000)
    with monkeypatch.context() as other:
        parts_of_another_version(other)
        with capture_logs() as lines:
            bound_batches()
            set_gzip_level()
    assert [line["event"] for line in lines] == ["record batches are unpacked without a bound"]
    found: Any = next(MemoryRecords(data))
    assert [record.value for record in found] == [value]


def test_another_text_of_an_error_costs_the_cause() -> None:
    errors = {
        "111 ECONNREFUSED": REFUSED,
        "Connection timed out": TIMED_OUT,
        "Handshake failed: [SSL]": "tls_handshake_failed",
        "Verbindung abgelehnt": UNREACHABLE,
    }
    assert {text: outcome_of(KafkaConnectionError(text)) for text in errors} == errors


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
