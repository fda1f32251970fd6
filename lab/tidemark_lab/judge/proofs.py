"""The losses that the observations prove, worked out without the product's code.

The leader of epoch E reported the high watermark h, and its log's epochs ended where its lineage
said. A leader of a later epoch proves a loss in three ways:

* its log ends below h;
* its records of epochs up to E end below h, and above its log start;
* an older epoch ends later in its log than it ended in the log of E's leader, so that from the
  older end on it holds other records; not where it has a record of a later epoch that E's leader
  had at the same offset: a deletion moves the ends of the epochs below. Nor does the first epoch of
  a lineage count, or one that ends where that does: a broker answers so for all epochs below the
  oldest one that it knows.

Two observations of one leadership must show it. Nothing below a log start that was ever sampled is
demanded.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemark.core.events import MetadataChange, Observation

# The reducer keeps the committed offsets of this many epochs.
EPOCHS = 8


@dataclass(slots=True)
class Entry:
    """What the leader of one epoch had committed, and the ends of the epochs before in its log."""

    high_watermark: int = 0
    lineage: list[tuple[int, int]] = field(default_factory=list)
    complete_from: int = -1


Range = tuple[int, int, int]


@dataclass(slots=True)
class Oracle:
    """`proven`: (epoch E, from, to) of each proof that two observations show."""

    entries: dict[int, Entry] = field(default_factory=dict)
    start: int = 0
    proven: set[tuple[int, Range]] = field(default_factory=set)
    # Of the newest leadership: the ranges of the first read, by E.
    first: dict[int, tuple[int, int]] = field(default_factory=dict)
    under: int = -1
    topic_id: str | None = None
    # The newest epoch of a record of the metadata log. An older leadership is over then: what its
    # leader counts is not committed, and its log claims nothing, as no leader serves.
    recorded: int = -1

    def hear(self, change: MetadataChange) -> None:
        """A record of the metadata log. One of another topic id counts for nothing."""
        if change.topic_id == self.topic_id and change.leader_epoch is not None:
            self.recorded = max(self.recorded, change.leader_epoch)

    def observe(self, shown: Observation) -> None:
        if shown.topic_id != self.topic_id and shown.topic_id is not None:
            self.forget()
            self.topic_id = shown.topic_id
        epoch, leader = shown.leader_epoch, shown.leader
        starts = [s.log_start_offset for s in shown.samples if s.log_start_offset is not None]
        self.start = max([self.start, *starts])
        self._read_fast(shown)
        if epoch is None or leader is None:
            return
        if shown.committed is not None and epoch >= self.recorded:
            entry = self.entries.setdefault(epoch, Entry())
            entry.high_watermark = max(entry.high_watermark, shown.committed)
            while len(self.entries) > EPOCHS:
                del self.entries[min(self.entries)]
        if epoch < max(self.under, self.recorded):
            return
        if epoch > self.under:
            self.under, self.first = epoch, {}
        sample = next((s for s in shown.samples if s.broker == leader), None)
        if sample is None or sample.error or not sample.leads or sample.leader_epoch != epoch:
            return
        lineage, complete_from = shown.lineage, shown.lineage_complete_from
        known = self.entries.get(epoch)
        if known is not None and lineage and complete_from is not None and len(lineage) > 1:
            known.lineage, known.complete_from = lineage, complete_from
        end, start = sample.log_end_offset, sample.log_start_offset
        if end is None or start is None:
            return
        self._prove(epoch, lineage or [], complete_from, end, start)

    def _read_fast(self, shown: Observation) -> None:
        """High watermarks between passes, of an epoch that a pass has shown.

        Another collector or the metadata log may have shown a later one before; then nothing is
        demanded.
        """
        read = shown.fast_high_watermarks
        entry = None if read is None else self.entries.get(read.leader_epoch)
        if read is not None and entry is not None and read.leader_epoch == self.under:
            high = max(offset for _, offset in read.samples)
            entry.high_watermark = max(entry.high_watermark, high)

    def forget(self) -> None:
        self.entries, self.start, self.first, self.under = {}, 0, {}, -1
        self.recorded = -1

    def _prove(
        self,
        epoch: int,
        lineage: list[tuple[int, int]],
        complete_from: int | None,
        end: int,
        start: int,
    ) -> None:
        for old, entry in self.entries.items():
            if old >= epoch:
                continue
            found = [end] if start <= end < entry.high_watermark else []
            if complete_from is not None:
                answer = _end_of(lineage, complete_from, old)
                if answer is not None and answer[1] > start:
                    found.append(answer[1])
                found += _later_ends(entry, lineage, complete_from, max(start, 0))
            if not found:
                continue
            begin, high = max(min(found), start, self.start), entry.high_watermark
            if begin >= high:
                continue
            first = self.first.get(old)
            if first is None:
                self.first[old] = (begin, high)
            else:
                both = (old, max(first[0], begin), min(first[1], high))
                if both[1] < both[2]:
                    self.proven.add((epoch, both))


def _end_of(
    lineage: list[tuple[int, int]], complete_from: int, epoch: int
) -> tuple[int, int] | None:
    """(floor epoch, end offset); null where the lineage does not reach, or has nothing so old."""
    if epoch < complete_from:
        return None
    older = [entry for entry in lineage if entry[0] <= epoch]
    return older[-1] if older else None


def _later_ends(
    entry: Entry, lineage: list[tuple[int, int]], complete_from: int, start: int
) -> list[int]:
    """Where closed epochs ended in the old leader's log that end later in the new one's."""
    known = entry.lineage
    if known:
        # The leader went on after its lineage was read.
        known = [*known[:-1], (known[-1][0], max(known[-1][1], entry.high_watermark))]
    shared = _shared_to(_ranges(known, entry.complete_from), _ranges(lineage, complete_from))
    found = []
    for epoch, end in entry.lineage[:-1]:
        answer = _end_of(lineage, complete_from, epoch)
        if answer is not None and answer[1] == lineage[0][1] > 0 and not _is_first(lineage, answer):
            continue
        if answer is not None and answer[0] == epoch and answer[1] > end > start and end >= shared:
            found.append(end)
    return found


def _is_first(lineage: list[tuple[int, int]], answer: tuple[int, int]) -> bool:
    """Whether the log holds the first epoch: it also answered for an epoch after it."""
    return len(lineage) == 1 or (answer == lineage[0] and lineage[1][0] > answer[0] + 1)


def _ranges(lineage: list[tuple[int, int]], complete_from: int) -> dict[int, tuple[int, int]]:
    """Epoch -> first and last offset of its records, where the lineage shows both."""
    starts = [0 if complete_from == 0 else None, *(end for _, end in lineage)]
    return {
        epoch: (start, end - 1)
        for start, (epoch, end) in zip(starts, lineage, strict=False)
        if start is not None and start < end
    }


def _shared_to(one: dict[int, tuple[int, int]], other: dict[int, tuple[int, int]]) -> int:
    """The end of the newest records of one epoch that two logs have at the same offsets."""
    shared = 0
    for epoch in one.keys() & other.keys():
        first = max(one[epoch][0], other[epoch][0])
        last = min(one[epoch][1], other[epoch][1])
        if first <= last:
            shared = max(shared, last + 1)
    return shared
