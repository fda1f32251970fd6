"""Records that wait to be published: in memory, and during an outage of Kafka in a spool."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tidemark.collect.publish.pack import EventRecord
from tidemark.collect.publish.spool import Position, Spool

# A record, and its place in the spool: null where it is in memory only.
Taken = tuple[EventRecord, Position | None]


class WaitingRecords:
    """First in, first out. While the spool holds anything, what is put goes there.

    Not thread-safe: the publisher holds its lock. What a method returns is lost.
    """

    def __init__(self, memory_bytes: int, spool: Spool | None) -> None:
        self.spool = spool
        self._memory_bytes = memory_bytes
        self._queue: deque[EventRecord] = deque()
        self._queued = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits, or is taken from the spool and not settled."""
        return not self._queue and not self.is_spooled

    @property
    def is_spooled(self) -> bool:
        return self.spool is not None and not self.spool.is_empty

    def put(self, records: Iterable[EventRecord]) -> list[EventRecord]:
        if self.spool is not None and not self.spool.is_empty:
            return self.spool.append(records)
        for record in records:
            self._queue.append(record)
            self._queued += size_of(record)
        return self._bound()

    def take(self) -> Taken | None:
        """The next record to publish; None when there is none."""
        if self._queue:
            record = self._queue.popleft()
            self._queued -= size_of(record)
            return record, None
        found = None if self.spool is None else self.spool.next()
        return None if found is None else (found[1], found[0])

    def settle(self, position: Position | None) -> None:
        """What `take` gave was published or refused."""
        if self.spool is not None and position is not None:
            self.spool.settle(position)

    def give_back(self, taken: Iterable[Taken]) -> list[EventRecord]:
        """What was taken and is not settled comes first again, in this order."""
        in_memory = [record for record, position in taken if position is None]
        self._queue.extendleft(reversed(in_memory))
        self._queued += sum(map(size_of, in_memory))
        if self.spool is None:
            return self._bound()
        return self.spill()

    def spill(self) -> list[EventRecord]:
        """Moves what is in memory to the spool, if there is one."""
        if self.spool is None:
            return []
        moved, self._queue, self._queued = list(self._queue), deque(), 0
        lost = self.spool.prepend(moved) if moved else []
        self.spool.rewind()
        return lost

    def _bound(self) -> list[EventRecord]:
        """Drops the oldest observations first; pass records only when no observation is left."""
        if self._queued > self._memory_bytes and self.spool is not None:
            return self.spill()
        lost: list[EventRecord] = []
        for only_droppable in (True, False):
            if self._queued <= self._memory_bytes:
                return lost
            kept: deque[EventRecord] = deque()
            for record in self._queue:
                if self._queued > self._memory_bytes and (record.droppable or not only_droppable):
                    self._queued -= size_of(record)
                    lost.append(record)
                else:
                    kept.append(record)
            self._queue = kept
        return lost


def size_of(record: EventRecord) -> int:
    """The payload, and the size of the record around it."""
    return len(record.payload) + 64 * (len(record.partitions) + 8)
