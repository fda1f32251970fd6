"""The comparison of one window of a partition's log on several replicas. Pure.

Followers append the leader's batches byte for byte: where all logs hold the same bytes, they are
equal. Where they do not, the records are compared. The cleaner of each replica rewrites and drops
batches at its own time (LogCleaner): in a cleaned log, only records that two replicas hold are
compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tidemark.kafka.decompression import DamagedRecordsError, UnreadableRecordsError
from tidemark.record_log.batches import Batch, records


class Copy(NamedTuple):
    """The batch at an offset on one replica. `crc` is that of the bytes as they are.

    `damaged`: it is not the CRC written in the batch.
    """

    broker: int
    base_offset: int
    last_offset: int
    leader_epoch: int | None
    crc: int
    damaged: bool


class Difference(NamedTuple):
    """Replicas that differ from `offset` on, up to the next offset at which all batches begin.

    `start`: where that stretch begins. `absent`: replicas that hold no batch at `offset`.
    `records`: how many records differ or are on some replicas only, `first_record` the first of
    them; None where the records cannot be read, for the reason in `unread`.
    """

    start: int
    offset: int
    copies: tuple[Copy, ...]
    absent: tuple[int, ...]
    records: int | None
    first_record: int | None
    unread: str | None = None


class Comparison(NamedTuple):
    """What [start, end) of a window shows.

    `absent_records`: records of a cleaned log that not every replica holds. `unread`: batches of a
    cleaned log that differ and whose records cannot be read, and why.
    """

    end: int
    batches: int
    differences: list[Difference]
    absent_records: int
    unread: dict[str, int]


def compare(
    logs: Mapping[int, Sequence[Batch]], start: int, limit: int, *, cleaned: bool
) -> Comparison:
    """Compares [start, limit) as far as every log was read. `logs`: broker -> batches.

    Batches ascend, and a first one may begin below `start`. `cleaned`: the topic is compacted, or
    its cleanup policy is unknown.
    """
    end = min(_read_to(batches, start, limit) for batches in logs.values())
    kept = {
        broker: [b for b in batches if b.last_offset >= start and b.base_offset < end]
        for broker, batches in sorted(logs.items())
    }
    result = Comparison(end, sum(map(len, kept.values())), [], 0, {})
    at = dict.fromkeys(kept, 0)
    begin = start
    while True:
        current = [kept[broker][i] for broker, i in at.items() if i < len(kept[broker])]
        if not current:
            return result
        if len(current) == len(kept) and all(b.data == current[0].data for b in current):
            for broker in at:
                at[broker] += 1
            begin = current[0].last_offset + 1
            continue
        stop, after = _next_common_start(kept, at, end)
        members = {broker: kept[broker][index : after[broker]] for broker, index in at.items()}
        result = _judge(result, members, begin, stop, cleaned=cleaned)
        at, begin = after, stop


def _read_to(batches: Sequence[Batch], start: int, limit: int) -> int:
    """Up to where a log was read, at most `limit`. A batch that `limit` cuts does not count."""
    end = start
    for batch in batches:
        if batch.base_offset >= limit:
            return limit
        if batch.last_offset >= limit:
            return max(start, batch.base_offset)
        end = max(end, batch.last_offset + 1)
    return end


def _next_common_start(
    logs: Mapping[int, Sequence[Batch]], at: Mapping[int, int], end: int
) -> tuple[int, dict[int, int]]:
    """The next offset that no batch spans, at most `end`; each log's first batch from there on."""
    ahead = (logs[broker][index] for broker, index in at.items() if index < len(logs[broker]))
    first = min(ahead, key=lambda batch: batch.base_offset)
    stop, after = min(first.last_offset + 1, end), dict(at)
    moved = True
    while moved:
        moved = False
        for broker, batches in logs.items():
            index = after[broker]
            while index < len(batches) and batches[index].base_offset < stop:
                if batches[index].last_offset >= stop and stop < end:
                    stop, moved = min(batches[index].last_offset + 1, end), True
                index += 1
            after[broker] = index
    return stop, after


def _judge(
    result: Comparison, members: dict[int, list[Batch]], begin: int, stop: int, *, cleaned: bool
) -> Comparison:
    """The result with what [begin, stop) adds, where the bytes differ."""
    unread, damaged = None, False
    tables: dict[int, dict[int, tuple[bytes, int | None]]] = {}
    try:
        tables = {broker: _records(batches, begin, stop) for broker, batches in members.items()}
    except UnreadableRecordsError as error:
        unread, damaged = str(error), isinstance(error, DamagedRecordsError)
    # The cleaner does not write records that cannot be read.
    if unread is not None and cleaned and not damaged:
        result.unread[unread] = result.unread.get(unread, 0) + 1
        return result
    offsets = sorted({offset for table in tables.values() for offset in table})
    present = {o: [t[o] for t in tables.values() if o in t] for o in offsets}
    absent = [o for o in offsets if len(present[o]) < len(members)]
    unequal = [o for o in offsets if len({digest for digest, _ in present[o]}) > 1]
    other_epoch = [o for o in offsets if len({epoch for _, epoch in present[o]}) > 1]
    if cleaned:
        result = result._replace(absent_records=result.absent_records + len(absent))
        if not unequal and not other_epoch and not damaged:
            return result
    differing = sorted({*unequal, *([] if cleaned else absent)})
    places = sorted({*differing, *other_epoch})
    offset = places[0] if places else _first_difference(members, begin)
    result.differences.append(
        Difference(
            begin,
            offset,
            _copies(members, offset),
            tuple(broker for broker in members if _at(members[broker], offset) is None),
            len(differing) if unread is None else None,
            differing[0] if differing else None,
            unread,
        )
    )
    return result


def _records(
    batches: Sequence[Batch], begin: int, stop: int
) -> dict[int, tuple[bytes, int | None]]:
    """The digest and the leader epoch of each record in [begin, stop)."""
    return {
        offset: (digest, batch.leader_epoch)
        for batch in batches
        for offset, digest in record_digests(batch).items()
        if begin <= offset < stop
    }


def record_digests(batch: Batch) -> dict[int, bytes]:
    """A digest of timestamp, key, value and headers for each record of a batch, by offset.

    Raises UnreadableRecordsError.
    """
    return {record.offset: _digest(record) for record in records(batch)}


def _digest(record: Any) -> bytes:
    parts = (record.timestamp, record.key, record.value, record.headers)
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()


def _first_difference(members: dict[int, list[Batch]], begin: int) -> int:
    """The offset of the first batch that is not the same on all replicas."""
    bases = sorted({max(b.base_offset, begin) for batches in members.values() for b in batches})
    for base in bases:
        found = [_at(batches, base) for batches in members.values()]
        if len({None if batch is None else batch.data for batch in found}) > 1:
            return base
    raise AssertionError(members)


def _at(batches: Sequence[Batch], offset: int) -> Batch | None:
    return next((b for b in batches if b.base_offset <= offset <= b.last_offset), None)


def _copies(members: dict[int, list[Batch]], offset: int) -> tuple[Copy, ...]:
    copies = []
    for broker, batches in members.items():
        batch = _at(batches, offset)
        if batch is not None:
            crc = batch.actual_crc()
            copies.append(
                Copy(
                    broker,
                    batch.base_offset,
                    batch.last_offset,
                    batch.leader_epoch,
                    crc,
                    crc != batch.crc,
                )
            )
    return tuple(copies)
