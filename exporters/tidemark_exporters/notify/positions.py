"""How far one receiver has come in the alerts topic, to be committed to Kafka.

The committed offset is that of the oldest record not settled yet. Records beyond it that are settled already (gathering
and urgency post out of order) are listed in the commit's metadata, so that a restart does not post them again.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

# Kafka refuses commit metadata over offset.metadata.max.bytes, 4,096 by default.
MAX_METADATA_BYTES: Final = 4000
MAX_OWN: Final = 32

Position = tuple[int, int]
OwnState = tuple[str, float]


class Metadata(Struct, omit_defaults=True):
    """What stands beside a committed offset.

    `done`: ranges [from, to) of settled offsets beyond it. `own`: last state and start of alerts that have no record in
    the topic (the exporter's own), by fingerprint.
    """

    done: Annotated[list[tuple[int, int]], Meta(max_length=2000)] = []
    own: Annotated[dict[str, OwnState], Meta(max_length=MAX_OWN)] = {}


class Mark(Struct, frozen=True):
    """One partition's commit."""

    offset: int
    metadata: str = ""


def read_metadata(text: str | None) -> Metadata:
    """Metadata that cannot be read (another program's, cut off) is as good as none: records may be posted again."""
    try:
        return msgspec.json.decode(text or "{}", type=Metadata)
    except msgspec.DecodeError:
        return Metadata()


class _Partition:
    def __init__(self, start: int | None, done: Iterable[tuple[int, int]]) -> None:
        self.committed = start
        self.done_before = list(done)
        # The offset after the newest record read that was not settled by an earlier run.
        self.end = start or 0
        self.pending: set[int] = set()


class Positions:
    """Settled and pending offsets by partition. Bounded by what is pending: the delivery queue and gather windows.

    `marks` are an earlier run's commits, `partitions` all there are; `fresh` is true when there was no earlier run.
    """

    def __init__(self, marks: dict[int, Mark], partitions: Iterable[int] = ()) -> None:
        self._partitions = {number: _Partition(None, ()) for number in partitions}
        for number, mark in marks.items():
            self._partitions[number] = _Partition(mark.offset, read_metadata(mark.metadata).done)
        self.fresh = not marks

    def settled_before(self, partition: int, offset: int) -> bool:
        """Whether an earlier run settled this record."""
        known = self._partitions.get(partition)
        if known is None or known.committed is None:
            return False
        return offset < known.committed or any(
            start <= offset < end for start, end in known.done_before
        )

    def begin(self, partition: int, offset: int) -> None:
        """A record was read; it is pending until `settle`."""
        known = self._partitions.setdefault(partition, _Partition(None, ()))
        known.end = max(known.end, offset + 1)
        known.pending.add(offset)

    def settle(self, position: Position | None) -> None:
        """A record was delivered, or needs no delivery."""
        if position is not None:
            self._partitions[position[0]].pending.discard(position[1])

    def marks(self, own: dict[str, OwnState]) -> dict[int, Mark]:
        """What to commit now. `own` travels with the lowest partition."""
        result: dict[int, Mark] = {}
        for number in sorted(self._partitions):
            known = self._partitions[number]
            offset = min(known.pending, default=known.end)
            # Records that an earlier run settled are not read into `end`.
            offset = next(
                (end for start, end in known.done_before if start <= offset < end), offset
            )
            result[number] = Mark(offset, _text(_gaps(known, offset), own if not result else {}))
        return result


def _gaps(known: _Partition, offset: int) -> list[tuple[int, int]]:
    """Ranges of settled offsets at or beyond `offset`."""
    ranges = [(max(start, offset), end) for start, end in known.done_before if end > offset]
    edges = [*sorted(known.pending), known.end]
    ranges += [(left + 1, right) for left, right in pairwise(edges) if right > left + 1]
    return _merge(ranges)


def _merge(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _text(done: list[tuple[int, int]], own: dict[str, OwnState]) -> str:
    """JSON that fits. Ranges that do not are left out: their records would be posted again, which is the safe side."""
    kept = dict(list(own.items())[-MAX_OWN:])
    while True:
        text = msgspec.json.encode(Metadata(done, kept)).decode()
        if len(text) <= MAX_METADATA_BYTES:
            return "" if text == "{}" else text
        done = done[: len(done) // 2]
