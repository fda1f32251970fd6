"""Reads the leader epochs of replicas' logs, newest first (LeaderEpochFileCache.endOffsetFor).

Each round sends one Fetch for all due partitions of a broker, fenced with the leader epoch that the
broker knows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import Final

from tidemark.collect.codecs.fetch import BEYOND, NO_FETCH, OFFSET_OUT_OF_RANGE, FetchEntry
from tidemark.collect.watched.broker_answers import BrokerAnswers
from tidemark.collect.watched.lineage_schedule import Lineage
from tidemark.collect.watched.watched_partition import WatchedPartition
from tidemark.core.events import MAX_LINEAGE
from tidemark.core.leader_epochs import LineageEntries

# Rounds per pass: the entries, and some epochs of which the replica never had a record.
MAX_ROUNDS: Final = 2 * MAX_LINEAGE

# slot -> last fetched epoch, fence and offset
SlotRequests = dict[int, tuple[int, int, int]]


def walk_epochs(
    newest: tuple[int, int] | None, known: int, end: int, leader_epochs: list[int]
) -> Generator[int, FetchEntry | None, Lineage | None]:
    """Yields each epoch to ask for and receives the answer. Returns null after another error.

    `newest` is the newest entry, where the sample has it. Otherwise the walk looks for it first, at
    and below the leader epoch `known` to the broker; a follower's newest epoch is likely one of
    `leader_epochs`. `end` is the log end offset.
    """
    entries: LineageEntries = []
    complete_from: int | None = None
    asked = known if end > 0 else -1
    if newest is not None:
        entries.append(newest)
        complete_from, _ = newest
        asked = complete_from - 1
    # The lowest epoch known to be absent from this log, with all above it.
    absent = known + 1
    while asked >= 0:
        _, error, *_, epoch, epoch_end = (yield asked) or NO_FETCH
        is_here = error == 0 and epoch >= 0 and epoch_end >= 0
        if not is_here and error != OFFSET_OUT_OF_RANGE:
            return None
        skipped = not entries and asked < absent - 1
        if skipped and (not is_here or epoch_end != end):
            # An epoch of the leader is below the oldest here, or skipped one that this log has: ask
            # one by one.
            asked = absent - 1
        elif is_here:
            entries.append((epoch, epoch_end))
            complete_from = epoch
            asked = epoch - 1 if len(entries) < MAX_LINEAGE else -1
        elif entries:
            # This log has nothing older.
            complete_from, asked = 0, -1
        else:
            absent = asked
            older = [e for e in leader_epochs if e < asked] if asked == known else []
            asked = max(older, default=asked - 1)
    return Lineage(entries[::-1], complete_from)


async def read_lineages(
    answers: BrokerAnswers,
    due: Iterable[WatchedPartition],
    fetch: Callable[[SlotRequests], Awaitable[dict[int, FetchEntry]]],
) -> None:
    """Adds the lineages of the due partitions. `fetch` returns the entries by slot, or raises."""
    requests: SlotRequests = {}
    walks = {}
    for watched in due:
        slot = watched.slots.get(answers.broker)
        if slot is None or answers.broker not in watched.lineage.reads_left:
            continue
        _, index = slot
        latest, fetched = answers.latest[index], answers.fetched[index]
        if latest is None or fetched is None:
            continue
        _, error, end, known = latest
        _, fetch_error, *_, epoch, epoch_end = fetched
        no_epoch = index in answers.led and index in answers.epochless
        if error or fetch_error or known < 0 or no_epoch:
            continue
        has_newest = epoch >= 0 and index not in answers.epochless
        newest = (epoch, epoch_end) if has_newest else None
        leader_epochs = [epoch for epoch, _ in watched.lineage.leader.entries]
        walks[index] = known, walk_epochs(newest, known, end, leader_epochs)

    def advance(index: int, answer: FetchEntry | None) -> None:
        fence, walk = walks[index]
        try:
            requests[index] = (walk.send(answer), fence, BEYOND)
        except StopIteration as over:
            requests.pop(index, None)
            if over.value is not None:
                answers.lineages[index] = over.value

    for index in walks:
        advance(index, None)
    for _ in range(MAX_ROUNDS):
        if not requests:
            return
        found = await fetch(requests)
        for index in list(requests):
            advance(index, found.get(index))
