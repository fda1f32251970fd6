"""Reads the leader epochs of a leader's log by OffsetForLeaderEpoch: Kafka 0.11 to 2.6.

Kafka 2.7 answers the same to a Fetch, on every replica (`lineage`). Before 2.1 no other answer has
a leader epoch, so the newest epoch of the log is searched: the log answers to all epochs between
its oldest and its newest, and from version 1 on also to those below.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import Final

from tidemark.collect.codecs.list_offsets import NO_OFFSET
from tidemark.collect.codecs.wire import UNANSWERED
from tidemark.collect.legacy.epoch_end_offset import EpochEndOffset
from tidemark.collect.watched.broker_answers import BrokerAnswers
from tidemark.collect.watched.lineage_schedule import Lineage
from tidemark.collect.watched.newest_epoch import MAX_EPOCH, NewestEpoch
from tidemark.collect.watched.watched_partition import WatchedPartition
from tidemark.core.events import MAX_LINEAGE
from tidemark.core.leader_epochs import LineageEntries

# Requests for one partition in one pass.
MAX_ROUNDS: Final = 2 * MAX_LINEAGE
# Of these, for a log of which no epoch is known.
SEARCHES_PER_PASS: Final = 2
# TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_FOR_MESSAGE_FORMAT: there is
# no lineage to be had. Any other error ends with newer metadata.
REFUSALS: Final = frozenset({29, 31, 43})


class LeaderEpochWalk:
    """One walk in one pass. `asked` is the epoch to ask for; null: it is over.

    `known` is the leader epoch that the broker reported with the log end offset `end`, -1 where it
    reports none. `is_whole`: the older epochs are read too, as after the newest one was searched.
    """

    def __init__(self, newest: NewestEpoch, known: int, end: int, *, is_whole: bool) -> None:
        if known >= 0:
            newest.epoch = known
        self.asked: int | None = None
        self.is_whole = is_whole or not newest.is_found
        self.newest, self._known, self._end = newest, known, end
        self._entries: LineageEntries = []
        self._complete_from: int | None = None
        self._has_failed = False
        self._steps = self._walk()
        self._advance(None)

    def _advance(self, answer: EpochEndOffset | None) -> None:
        try:
            self.asked = next(self._steps) if answer is None else self._steps.send(answer)
        except StopIteration:
            self.asked = None

    def take(self, answer: EpochEndOffset | None) -> None:
        """Takes the answer to `asked`; null: the broker left it out."""
        error = UNANSWERED if answer is None else answer.error_code
        if error:
            self._entries.clear()
            self._has_failed, self.asked = error not in REFUSALS, None
        else:
            self._advance(answer)

    @property
    def lineage(self) -> Lineage | None:
        """What was read, without entries where there is none. Null: to be read in the next pass."""
        if self._has_failed:
            return None
        return Lineage(self._entries[::-1], self._complete_from if self._entries else None)

    def _walk(self) -> Generator[int, EpochEndOffset, None]:
        newest = yield from self._find_newest()
        if newest is None:
            return
        if newest.end_offset < self._end:
            # The epoch is over: a newer one began meanwhile.
            self._has_failed = True
            return
        self.newest.found(newest.epoch)
        self._entries.append((newest.epoch, newest.end_offset))
        self._complete_from = newest.epoch
        while self.is_whole and self._complete_from and len(self._entries) < MAX_LINEAGE:
            asked = self._complete_from - 1
            answer = yield asked
            if answer.end_offset <= 0:
                # This log has nothing older.
                self._complete_from = 0
                return
            newer_end = self._entries[-1][1]
            if answer.end_offset > newer_end:
                # No log holds records of an epoch after those of a newer one.
                self._entries.clear()
                self._has_failed = True
                return
            no_epoch = answer.epoch < 0
            if no_epoch and len(self._entries) > 1 and newer_end == answer.end_offset:
                # The newer of the two has no record. Where answers have epochs, it is below the
                # oldest one of the cache, and so is this one: the equal ends show that.
                self._entries.pop()
            self._complete_from = _epoch(answer, asked)
            self._entries.append((self._complete_from, answer.end_offset))

    def _find_newest(self) -> Generator[int, EpochEndOffset, EpochEndOffset | None]:
        newest, searches = self.newest, self.newest.searches
        if self._end <= 0:
            # A log without a record has no epoch: a search would pass by the one that it gets.
            return None
        for _ in range(SEARCHES_PER_PASS):
            asked = newest.candidate
            if asked is None:
                return None
            answer = yield asked
            if answer.end_offset < 0:
                newest.searches += 1
                searches = newest.searches
                continue
            # Below epochs that the log did not have; but a newer one may have begun since.
            is_last = bool(searches) and asked < newest.epoch
            if asked == self._known or (
                (is_last or not self.is_whole) and answer.end_offset >= self._end
            ):
                return answer._replace(epoch=_epoch(answer, asked))
            return (yield from self._climb(answer._replace(epoch=asked)))
        return None

    def _climb(self, low: EpochEndOffset) -> Generator[int, EpochEndOffset, EpochEndOffset]:
        """The newest epoch, from one that the log has: in growing steps up, then by halves."""
        step, absent = 1, None
        while low.epoch < MAX_EPOCH and (absent is None or absent - low.epoch > 1):
            asked = min(low.epoch + step, MAX_EPOCH)
            if absent is not None:
                asked = (low.epoch + absent) // 2
            answer = yield asked
            if answer.end_offset < 0:
                absent = asked
            else:
                low = answer._replace(epoch=asked)
                self.newest.epoch, self.newest.searches = asked, 0
                step *= 2
        return low


def _epoch(answer: EpochEndOffset, asked: int) -> int:
    """Version 0 leaves the epoch out: the one asked for has no record then, or is it."""
    return answer.epoch if 0 <= answer.epoch <= asked else asked


async def read_leader_epochs(
    answers: BrokerAnswers,
    led: Iterable[tuple[int, WatchedPartition]],
    ask: Callable[[dict[int, tuple[int, int]]], Awaitable[dict[int, EpochEndOffset]]],
    seconds: float,
) -> None:
    """Adds the lineages of the partitions that the broker leads, by slot.

    `ask` sends (epoch, fence) for slots and returns the answers, or raises. No round begins after
    `seconds`.
    """
    until = time.monotonic() + seconds
    walks: dict[int, LeaderEpochWalk] = {}
    fences: dict[int, int] = {}
    for index, watched in led:
        _, error, end, known = answers.latest[index] or NO_OFFSET
        if error:
            continue
        is_due = answers.broker in watched.lineage.reads_left
        if not is_due and watched.newest_epoch.read_at == _offsets(answers, index):
            answers.lineages[index] = Lineage([], None)
            continue
        walks[index] = LeaderEpochWalk(watched.newest_epoch, known, end, is_whole=is_due)
        fences[index] = known
    for _ in range(MAX_ROUNDS):
        requests = {i: (w.asked, fences[i]) for i, w in walks.items() if w.asked is not None}
        if not requests or time.monotonic() >= until:
            break
        found = await ask(requests)
        for index in requests:
            walks[index].take(found.get(index))
    for index, walk in walks.items():
        lineage = answers.lineages[index] = walk.lineage
        if lineage is not None:
            walk.newest.read_at = _offsets(answers, index) if lineage.entries else None
        if not walk.is_whole:
            answers.newest_epoch_only.add(index)


def _offsets(answers: BrokerAnswers, index: int) -> object:
    """The leader's log end offset and high watermark: while they stay, so does its lineage."""
    return answers.latest[index], answers.committed[index]
