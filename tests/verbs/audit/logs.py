"""Logs of batches, replicas that serve them as brokers do, and differences to plant."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from tidemark.record_log.batches import Batch, split_batches
from tidemark.record_log.segments import Place
from tidemark.verbs.audit.source import Partition, Position

T = Partition(("orders", 0), (1, 2, 3), "id", compacted=False)


@dataclass(frozen=True)
class Written:
    """A batch to encode: values by offset, from `base` to `last`."""

    base: int
    values: tuple[tuple[int, bytes], ...]
    epoch: int = 0
    last: int | None = None
    compression: int = 0

    @property
    def last_offset(self) -> int:
        return self.values[-1][0] if self.last is None else self.last

    def encode(self) -> bytes:
        builder = DefaultRecordBatchBuilder(2, self.compression, False, -1, -1, -1, 2**20)
        for offset, value in self.values:
            builder.append(offset - self.base, 1_000 + offset, b"k", value, [])
        data = bytearray(builder.build())
        data[23:27] = (self.last_offset - self.base).to_bytes(4, "big")
        return sealed(self.base, self.epoch, bytes(data))

    def with_value(self, offset: int, value: bytes) -> Written:
        return replace(self, values=tuple((o, value if o == offset else v) for o, v in self.values))

    def without(self, *offsets: int) -> Written:
        """As the cleaner leaves it: the batch keeps its first and last offset."""
        kept = tuple((o, v) for o, v in self.values if o not in offsets)
        return replace(self, values=kept, last=self.last_offset)


def sealed(base: int, epoch: int, data: bytes) -> bytes:
    """With offset, size, epoch and CRC."""
    found = bytearray(data)
    found[:8] = base.to_bytes(8, "big")
    found[8:12] = (len(found) - 12).to_bytes(4, "big")
    found[12:16] = epoch.to_bytes(4, "big", signed=True)
    found[17:21] = Batch(0, 0, None, 0, 2, bytes(found)).actual_crc().to_bytes(4, "big")
    return bytes(found)


def flipped(batch: Batch, at: int, bits: int) -> Batch:
    """The batch with other bits in one of its bytes."""
    data = bytearray(batch.data)
    data[at] ^= bits
    return batch._replace(data=bytes(data))


def written(*sizes: int, start: int = 0, epoch: int = 0, compression: int = 0) -> list[Written]:
    """Batches of so many records each."""
    found = []
    for size in sizes:
        values = tuple((o, b"%d " % o * 20) for o in range(start, start + size))
        found.append(Written(start, values, epoch, None, compression))
        start += size
    return found


def encode(log: Sequence[Written]) -> bytes:
    return b"".join(batch.encode() for batch in log)


def read(log: Sequence[Written], start: int = 0) -> list[Batch]:
    """What a broker answers for `start`."""
    return split_batches(encode([b for b in log if b.last_offset >= start]), start)[0]


def legacy(magic: int, *values: tuple[int, bytes]) -> bytes:
    builder = LegacyRecordBatchBuilder(magic, 0, 2**20)
    for offset, value in values:
        builder.append(offset, 1_000, b"k", value)
    return bytes(builder.build())


@dataclass
class Replica:
    """A broker's copy. `segment`: no answer goes beyond a multiple of so many batches."""

    log: list[Written]
    log_start: int = 0
    high_watermark: int | None = None
    epoch: int = 0
    segment: int = 100
    reason: str | None = None

    @property
    def log_end(self) -> int:
        return self.log[-1].last_offset + 1 if self.log else self.log_start

    def position(self) -> Position | str:
        if self.reason is not None:
            return self.reason
        mark = self.log_end if self.high_watermark is None else self.high_watermark
        return Position(self.log_start, self.log_start, mark, self.log_end, self.epoch)

    def read(self, offset: int, size: int) -> bytes | str:
        if self.reason is not None:
            return self.reason
        if not self.log_start <= offset <= self.log_end:
            return "OFFSET_OUT_OF_RANGE"
        first = next((i for i, b in enumerate(self.log) if b.last_offset >= offset), None)
        if first is None:
            return b""
        stop = (first // self.segment + 1) * self.segment
        data = encode(self.log[first:stop])
        return data[: max(size, len(self.log[first].encode()))]


@dataclass
class Replicas:
    """A Source. `before(read number)` may change the replicas, `answer` what a broker answers."""

    of: dict[int, Replica]
    before: Callable[[int], None] = lambda _: None
    answer: Callable[[int, bytes | str], bytes | str] = lambda _, data: data
    reads: int = 0
    retry_seconds: float = 0.3
    asked: list[tuple[int, int]] = field(default_factory=list)

    def positions(self, place: Place, brokers: Collection[int]) -> dict[int, Position | str]:
        return {broker: self.of[broker].position() for broker in brokers if broker in self.of}

    def read(
        self, place: Place, brokers: Collection[int], offset: int, size: int
    ) -> dict[int, bytes | str]:
        self.reads += 1
        self.before(self.reads)
        self.asked.append((offset, size))
        return {
            broker: self.answer(broker, self.of[broker].read(offset, size)) for broker in brokers
        }

    def close(self) -> None:
        pass
