"""Walks the leader epochs of a replica's log over the wire, newest first (LeaderEpochFileCache.endOffsetFor).

Each round asks one Fetch for all partitions due on a broker, fenced with the leader epoch that the broker knows.
"""

from __future__ import annotations

from typing import Final

from tidemark.collect.codec_fetch import BEYOND, Entry, FetchTemplate, decode_fetch
from tidemark.collect.links import Link
from tidemark.collect.plan import BrokerPlan, Subset
from tidemark.collect.wire import RawAnswer
from tidemark.core.events import MAX_LINEAGE

OFFSET_OUT_OF_RANGE: Final = 1
# Rounds per pass: the entries, and some epochs that the replica never had a record of.
MAX_ROUNDS: Final = 2 * MAX_LINEAGE


class Walk:
    """One replica's walk: entries found, newest first, and the epoch to ask next (null: it is over).

    `tip` is the probe's answer when it named the newest epoch in this log; else the walk looks for that epoch first, at
    and below the leader epoch `known` to the broker. `end` is the log end offset.
    """

    __slots__ = ("_end", "_refused", "complete_from", "entries", "failed", "fence", "next_epoch")

    def __init__(self, tip: Entry | None, known: int, end: int) -> None:
        self.fence = known
        self.entries: list[tuple[int, int]] = []
        self.complete_from: int | None = None
        self.failed = False
        self.next_epoch: int | None = known if end > 0 or tip is not None else None
        self._end = end
        # The lowest epoch that this log has nothing of, nor of any above it.
        self._refused = known + 1
        if tip is not None:
            self._found(tip[5], tip[6])

    def _found(self, epoch: int, end: int) -> None:
        self.entries.append((epoch, end))
        self.complete_from = epoch
        self.next_epoch = epoch - 1 if epoch > 0 and len(self.entries) < MAX_LINEAGE else None

    def take(self, entry: Entry | None, hints: list[int]) -> None:
        """`hints`: epochs of the leader's log, where an older newest epoch of a follower most likely is."""
        asked = self.next_epoch
        assert asked is not None
        if entry is not None and entry[1] == 0 and entry[5] >= 0 and entry[6] >= 0:
            if not self.entries and asked < self._refused - 1 and entry[6] != self._end:
                # A hint was passed over an epoch that this log does have: look one by one.
                self.next_epoch = self._refused - 1
            else:
                self._found(entry[5], entry[6])
        elif entry is not None and entry[1] == OFFSET_OUT_OF_RANGE:
            self._nothing_at(asked, hints)
        else:
            self.failed, self.next_epoch = True, None

    def _nothing_at(self, asked: int, hints: list[int]) -> None:
        if self.entries:
            # Nothing older is in this log at all.
            self.complete_from, self.next_epoch = 0, None
            return
        if asked < self._refused - 1:
            # A hint below the oldest epoch here is refused like one above the newest: it told nothing.
            following = self._refused - 1
        else:
            self._refused = asked
            older = [epoch for epoch in hints if epoch < asked] if asked == self.fence else []
            following = max(older) if older else asked - 1
        self.next_epoch = following if following >= 0 else None


async def walk(link: Link, plan: BrokerPlan, seconds: float) -> None:
    """Fills `plan.walked` for partitions whose lineage may have changed. Raises LinkError or WireError."""
    walks: dict[int, Walk] = {}
    for index, watched in enumerate(plan.slots):
        if plan.broker not in watched.walks:
            continue
        latest, fetched = plan.latest[index], plan.fetched[index]
        if latest is None or latest[1] or latest[3] < 0 or fetched is None or fetched[1]:
            continue
        newest_known = index not in plan.plain and fetched[5] >= 0
        walks[index] = Walk(fetched if newest_known else None, latest[3], latest[2])
    for _ in range(MAX_ROUNDS):
        due = [index for index, one in walks.items() if one.next_epoch is not None]
        if not due:
            break
        await _round(link, plan, walks, Subset(plan.slots, due), seconds)
    for index, one in walks.items():
        if not one.failed and one.next_epoch is None:
            plan.walked[index] = (one.entries[::-1], one.complete_from)


async def _round(
    link: Link, plan: BrokerPlan, walks: dict[int, Walk], subset: Subset, seconds: float
) -> None:
    epochs = [walks[i].next_epoch for i in subset.indices]
    fences = [walks[i].fence for i in subset.indices]
    request = FetchTemplate(subset.blocks).request(
        [e for e in epochs if e is not None], fences, [BEYOND] * len(fences)
    )
    answer: RawAnswer = await link.ask(request, seconds)
    code, topics = decode_fetch(answer.body)
    found: list[Entry | None] = [None] * len(plan.slots)
    if not code:
        subset.lay(topics, found)
    for index in subset.indices:
        hints = [epoch for epoch, _ in plan.slots[index].lineage]
        walks[index].take(found[index], hints)
