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
        # Records of passes that were older than what was dropped, and what came after them.
        self._first: deque[EventRecord] = deque()
        self._queue: deque[EventRecord] = deque()
        # Bytes of both.
        self._queued = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits, or is taken from the spool and not settled."""
        return not self._first and not self._queue and not self.is_spooled

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
        if queue := self._first or self._queue:
            record = queue.popleft()
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
        self._queue = deque((*in_memory, *self._first, *self._queue))
        self._first.clear()
        self._queued += sum(map(size_of, in_memory))
        if self.spool is None:
            return self._bound()
        return self.spill()

    def spill(self) -> list[EventRecord]:
        """Moves what is in memory to the spool, if there is one."""
        if self.spool is None:
            return []
        moved = [*self._first, *self._queue]
        self._first.clear()
        self._queue.clear()
        self._queued = 0
        lost = self.spool.prepend(moved) if moved else []
        self.spool.rewind()
        return lost

    def _bound(self) -> list[EventRecord]:
        """Drops the oldest observations first; pass records only when no observation is left."""
        if self._queued > self._memory_bytes and self.spool is not None:
            return self.spill()
        lost: list[EventRecord] = []
        while self._queued > self._memory_bytes and self._queue:
            record = self._queue.popleft()
            if record.droppable:
                lost.append(record)
                self._queued -= size_of(record)
            else:
                self._first.append(record)
        while self._queued > self._memory_bytes:
            lost.append(self._first.popleft())
            self._queued -= size_of(lost[-1])
        return lost


def size_of(record: EventRecord) -> int:
    """The payload, and the size of the record around it."""
    return len(record.payload) + 64 * (len(record.partitions) + 8)
