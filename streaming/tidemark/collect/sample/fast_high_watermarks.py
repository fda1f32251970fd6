"""High watermarks of chosen topics between passes (`collect.fast_high_watermark_topics`).

Every 100 ms, each broker gets one ListOffsets request for the partitions that it leads, over the
connection of the passes. The leader answers under the fence of its epoch, so each answer is what a
pass at that moment would have read. The next observation of a partition carries them.

A slow broker delays no pass: it has one such request at a time, and none that it would probably
answer only after the pass has begun. One that hangs is left to the time-outs of the pass.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidemark.collect.codecs.errors import STALE_CODES
from tidemark.collect.codecs.list_offsets import (
    CONSUMER,
    FIRST_WITH_FENCE,
    MAX_VERSION,
    OFFSET,
    ListOffsetsTemplate,
    OffsetEntry,
)
from tidemark.collect.codecs.wire import ERROR_CODE, LIST_OFFSETS, RawResponse
from tidemark.collect.connect.connection import BrokerConnection, NoAnswerError
from tidemark.collect.connect.event_loop import EventLoop, complete
from tidemark.collect.watched.request_plan import BrokerPlan, Subset
from tidemark.collect.watched.watched_partition import WatchedPartition
from tidemark.core.errors import WireError

INTERVAL_SECONDS: Final = 0.1
# A pass waits shorter for a broker that hangs, and closes its connection.
HANG_SECONDS: Final = 60.0


class _BrokerReads:
    """The request to one broker for the chosen partitions that it leads."""

    def __init__(self, plan: BrokerPlan, led: list[int]) -> None:
        self.broker = plan.broker
        self.watched: list[WatchedPartition] = [plan.slots[i] for i in led]
        self._plan, self._led = plan, led
        self._subset = Subset(self.watched, list(range(len(led))))
        self._fences = [w.leader_epoch or 0 for w in self.watched]
        # What passes and earlier requests showed.
        self._highest = [-1] * len(led)
        self._template: ListOffsetsTemplate | None = None
        # Since the last pass.
        self.has_answered = False

    def note_pass(self) -> None:
        """The pass that just ended has read them too: only what is higher is news."""
        self.has_answered = False
        committed = self._plan.answers.committed
        for place, index in enumerate(self._led):
            entry = committed[index]
            if entry is not None and not entry[ERROR_CODE]:
                self._highest[place] = max(self._highest[place], entry[OFFSET])

    def template(self, version: int) -> ListOffsetsTemplate:
        """Encoded once."""
        if self._template is None or self._template.version != version:
            self._template = ListOffsetsTemplate(self._subset.topics, version, CONSUMER)
            self._template.request(self._fences)
        return self._template

    def take(self, template: ListOffsetsTemplate, body: bytes, at: float) -> bool:
        """Adds what moved to the partitions. Returns whether a leader denied to lead.

        An answer under a fence that is not that of the newest metadata any more is dropped.
        """
        entries: list[OffsetEntry | None] = [None] * len(self.watched)
        self._subset.place(template.decode(body), entries)
        denied = False
        for place, entry in enumerate(entries):
            if entry is None:
                continue
            if entry[ERROR_CODE]:
                denied |= entry[ERROR_CODE] in STALE_CODES
            elif entry[OFFSET] > self._highest[place]:
                self._highest[place] = entry[OFFSET]
                watched = self.watched[place]
                if (watched.leader, watched.leader_epoch) == (self.broker, self._fences[place]):
                    watched.add_fast_high_watermark(at, entry[OFFSET])
        return denied


@dataclass(slots=True)
class _Pace:
    """Of one broker: how long its last answer took, and when it may be asked again."""

    took_seconds: float = 0.0
    due_at: float = 0.0
    is_asked: bool = False


class FastHighWatermarks:
    """Reads between passes. `wall`: Unix seconds of a monotonic time."""

    def __init__(
        self, loop: EventLoop, patterns: Iterable[str], wall: Callable[[float], float]
    ) -> None:
        self._loop = loop
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self._wall = wall
        self._reads: list[_BrokerReads] = []
        # By broker, for those of the plan.
        self._paces: dict[int, _Pace] = {}
        # The rest under way, where it may end early.
        self._over: Any = None
        self._is_early = False
        # Partitions that were read in the last rest, and answers by broker since `take_answers`.
        self.partitions = 0
        self._answers = Counter[int]()

    def plan(self, plans: Iterable[BrokerPlan]) -> None:
        """Takes the partitions of new request plans."""
        self._reads = []
        if not self._patterns:
            return
        for plan in plans:
            led = [i for i in plan.led.indices if self._is_chosen(plan.slots[i])]
            if led:
                self._reads.append(_BrokerReads(plan, led))
        self._paces = {r.broker: self._paces.get(r.broker, _Pace()) for r in self._reads}

    def _is_chosen(self, watched: WatchedPartition) -> bool:
        return watched.leader_epoch is not None and any(
            pattern.fullmatch(watched.topic) for pattern in self._patterns
        )

    def take_answers(self) -> Counter[int]:
        """Answers by broker since the last call."""
        taken, self._answers = self._answers, Counter()
        return taken

    async def rest(
        self,
        connections: Mapping[int, BrokerConnection],
        over: Any,
        seconds: float,
        *,
        may_end_early: bool,
    ) -> bool:
        """Reads until `seconds` are over or the Future `over` is completed.

        True: it ended early, because a leader closed its connection or denied to lead.
        """
        until = time.monotonic() + seconds
        reads = [r for r in self._reads if r.broker in connections]
        reads = [r for r in reads if connections[r.broker].connected]
        for read in reads:
            read.note_pass()
        self.partitions = 0
        self._over, self._is_early = over if may_end_early else None, False
        while not over.is_done and (left := until - time.monotonic()) > 0:
            begun = time.monotonic()
            for read in reads:
                self._ask_if_due(read, connections[read.broker], until)
            pause = begun + INTERVAL_SECONDS - time.monotonic() if reads else left
            await self._loop.wait([over], min(left, max(pause, 0.0)))
        self._over = None
        return self._is_early

    def _ask_if_due(self, read: _BrokerReads, connection: BrokerConnection, until: float) -> None:
        pace, now = self._paces.get(read.broker), time.monotonic()
        if not connection.connected:
            self._end_early()
        elif pace is not None and not pace.is_asked and not connection.is_held_back:
            version = connection.version(LIST_OFFSETS, MAX_VERSION) or 0
            if version >= FIRST_WITH_FENCE and pace.due_at <= now < until - pace.took_seconds:
                pace.is_asked = True
                self._loop.spawn(self._ask, read, connection, pace, version)

    async def _ask(
        self, read: _BrokerReads, connection: BrokerConnection, pace: _Pace, version: int
    ) -> None:
        begun, template = time.monotonic(), read.template(version)
        try:
            answer = await connection.ask(template.request(), HANG_SECONDS)
            assert isinstance(answer, RawResponse)
            denied = read.take(template, answer.body, self._wall(answer.answered_at))
            if denied and read in self._reads:
                self._end_early()
            self._note_answer(read)
        except NoAnswerError:
            if not connection.connected:
                self._end_early()
        except WireError:
            connection.close()
            self._end_early()
        finally:
            ended = time.monotonic()
            pace.is_asked, pace.took_seconds = False, ended - begun
            # At most half of the time, however long it takes.
            pace.due_at = ended + pace.took_seconds

    def _note_answer(self, read: _BrokerReads) -> None:
        self._answers[read.broker] += 1
        if not read.has_answered:
            read.has_answered = True
            self.partitions += len(read.watched)

    def _end_early(self) -> None:
        if self._over is not None:
            self._is_early = True
            complete(self._over, result=True)
