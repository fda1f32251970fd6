"""What brokers are asked since Kafka 2.7, which answer by leader epoch: offsets, and lineages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Final

from tidemark.collect.codecs.fetch import (
    BEYOND,
    NO_FETCH,
    OFFSET_OUT_OF_RANGE,
    FetchEntry,
    FetchTemplate,
)
from tidemark.collect.codecs.list_offsets import LEADER_EPOCH, NO_OFFSET, OFFSET
from tidemark.collect.watched.broker_answers import BrokerAnswers, RequestTimes
from tidemark.collect.watched.lineage_schedule import Lineage
from tidemark.collect.watched.request_plan import Ask, BrokerPlan, Subset
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


@dataclass(slots=True)
class CurrentReads:
    """`lineage_due`: the partitions with lineage reads left."""

    plan: BrokerPlan
    ask: Ask
    lineage_due: list[WatchedPartition]

    async def fetch(self, subset: Subset) -> RequestTimes | None:
        """High watermark, last stable offset, log start and epoch end of each replica, at once."""
        plan, answers = self.plan, self.plan.answers
        if not subset.indices:
            return None
        template = plan.fetch_led if subset is plan.led else plan.fetch_followed
        response, times = await self.ask(template.request(*plan.fetch_columns(subset)))
        error, topics = template.decode(response.body)
        if error:
            return times
        subset.place(topics, answers.fetched, "fetched")
        errors = plan.note_unreadable(subset)
        refused = [
            i
            for i, error in errors.items()
            if error == OFFSET_OUT_OF_RANGE and i not in answers.epochless
        ]
        # They have no record of their newest epoch, or of any: fetched again at their end offset.
        at_end = {
            i: (-1, latest[LEADER_EPOCH], latest[OFFSET])
            for i in refused
            if (latest := answers.latest[i] or NO_OFFSET)[OFFSET] >= 0
        }
        if at_end:
            for index, entry in (await self._fetch_slots(at_end)).items():
                _, epoch, end = at_end[index]
                answers.fetched[index] = entry
                answers.epochless.add(index)
                plan.without_newest_epoch[index] = (epoch, end)
        return times

    def followers_without_end(self) -> list[int]:
        """Those that may not be read."""
        unreadable = self.plan.answers.unreadable
        return [i for i in self.plan.followed.indices if i in unreadable] if unreadable else []

    async def read_lineages(self) -> None:
        await read_lineages(self.plan.answers, self.lineage_due, self._fetch_slots)

    async def _fetch_slots(self, requests: SlotRequests) -> dict[int, FetchEntry]:
        subset = Subset(self.plan.slots, list(requests))
        columns = [
            list(column) for column in zip(*(requests[i] for i in subset.indices), strict=True)
        ]
        template = FetchTemplate(subset.topics)
        response, _ = await self.ask(template.request(*columns))
        error, topics = template.decode(response.body)
        return {} if error else subset.by_slot(topics)
