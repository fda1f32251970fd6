"""The samplers of a pass, one for each broker, at once: its leaders, its followers, and its leaders
again.

Brokers meet at two barriers: followers are sampled after all leaders were sampled once, and before
they are sampled again. A barrier waits only for brokers that answer in time. A failure of one
broker never affects another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tidemark.collect.codecs.fetch import VERSION
from tidemark.collect.codecs.list_offsets import (
    CONSUMER,
    DEBUG_REPLICA,
    FIRST_WITH_FENCE,
    MAX_VERSION,
    NO_OFFSET,
    ListOffsetsTemplate,
)
from tidemark.collect.codecs.wire import ERROR_CODE, FETCH, LIST_OFFSETS, RawResponse
from tidemark.collect.connect.connection import (
    GARBLED,
    UNSUPPORTED,
    BrokerConnection,
    NoAnswerError,
)
from tidemark.collect.connect.event_loop import Barrier, EventLoop
from tidemark.collect.legacy.legacy_reads import LegacyReads
from tidemark.collect.sample.current_reads import CurrentReads
from tidemark.collect.watched.broker_answers import BrokerAnswers, RequestTimes
from tidemark.collect.watched.request_plan import BrokerPlan, Subset
from tidemark.collect.watched.watched_partition import WatchedPartition
from tidemark.core.errors import WireError
from tidemark.core.events import OK, TIMED_OUT

# A sampler has this many time-outs in all; then it is cancelled.
SAMPLER_TIMEOUTS: Final = 4


class ReplicaReads(Protocol):
    """What is asked otherwise of brokers of other versions."""

    async def fetch(self, subset: Subset) -> RequestTimes | None:
        """High watermark, last stable offset, log start and log end of each replica, at once."""

    def followers_without_end(self) -> list[int]:
        """Slots of followers to which Fetch gave no log end offset."""

    async def read_lineages(self) -> None:
        """Those that are due."""


@dataclass(slots=True)
class Sampler:
    """Fills the answers of one broker. `choose_reads`: once it is connected."""

    connection: BrokerConnection
    plan: BrokerPlan
    barriers: Iterator[Barrier]
    choose_reads: Callable[[Sampler], ReplicaReads]
    timeout_seconds: float
    # Whether the pass goes on without it: what is answered from then on is dropped.
    is_late: bool = field(default=False, init=False)

    async def run(self) -> None:
        """Sets the answers and their outcome. Never raises."""
        plan, answers = self.plan, self.plan.answers
        try:
            version = self.connection.version(LIST_OFFSETS, MAX_VERSION)
            if not version:
                raise NoAnswerError(
                    UNSUPPORTED if self.connection.connected else self.connection.failure
                )
            reads = self.choose_reads(self)
            await self._list_offsets(version)
            await self._meet()
            answers.followers_times = await reads.fetch(plan.followed)
            await self._list_again(reads.followers_without_end(), version)
            await self._meet()
            answers.leaders_times = await reads.fetch(plan.led)
            await self._ask_suspected_leaders(version)
            await reads.read_lineages()
            answers.outcome = OK
        except NoAnswerError as error:
            if not self.is_late:
                answers.outcome = error.outcome
        except WireError:
            # The answers of such a broker may not belong to the requests.
            answers.outcome = GARBLED
            self.connection.close()
        finally:
            for barrier in self.barriers:
                barrier.arrive()

    def leave(self) -> None:
        """The pass goes on without the rest of the answers. Replicas without one have `no_answer`.

        The time for it is longer than a time-out, so the request under way was sent after the
        other brokers had ended: this broker has answered since, slowly. That request ends by
        itself. If it fails, so does the connection, and the next pass shows it.
        """
        self.is_late = True
        self.plan.answers.outcome, self.plan.answers.is_late = OK, True

    async def _meet(self) -> None:
        barrier = next(self.barriers)
        barrier.arrive()
        await barrier.wait()

    async def ask(self, request: Any) -> tuple[Any, RequestTimes]:
        sent = time.monotonic()
        answer = await self.connection.ask(request, self.timeout_seconds)
        if self.is_late:
            raise NoAnswerError(TIMED_OUT)
        read = answer.answered_at if isinstance(answer, RawResponse) else time.monotonic()
        return answer, RequestTimes(sent, read)

    async def _list_offsets(self, version: int) -> None:
        """High watermarks of leaders, then log end offsets and leader epochs of all replicas."""
        plan, answers = self.plan, self.plan.answers
        answers.fenced = version >= FIRST_WITH_FENCE
        if plan.led.indices:
            template = plan.list_offsets(CONSUMER, version)
            response, _ = await self.ask(template.request(plan.fences))
            plan.led.place(template.decode(response.body), answers.committed, "committed")
        template = plan.list_offsets(DEBUG_REPLICA, version)
        response, answers.latest_times = await self.ask(template.request())
        plan.all.place(template.decode(response.body), answers.latest, "latest")

    async def _list_again(self, indices: list[int], version: int) -> None:
        """Log end offsets of followers, again, where Fetch gives none.

        Those of the first ListOffsets may be older than the leader's: they show no lag.
        """
        plan, answers = self.plan, self.plan.answers
        if not indices:
            return
        subset, template = plan.list_again(indices, version)
        response, answers.asked_again_times = await self.ask(template.request())
        found = subset.by_slot(template.decode(response.body))
        for index, entry in found.items():
            answers.latest[index] = entry
        answers.asked_again.update(found)

    async def _ask_suspected_leaders(self, version: int) -> None:
        """Whether replicas that should not lead consider themselves leader.

        Under the fence of the epoch that each one just reported, error 0 means that it leads under
        that epoch.
        """
        plan, answers = self.plan, self.plan.answers
        suspected = plan.suspected_leaders()
        if not suspected:
            return
        subset = Subset(plan.slots, suspected)
        latest = [answers.latest[i] or NO_OFFSET for i in subset.indices]
        template = ListOffsetsTemplate(subset.topics, version, CONSUMER)
        response, _ = await self.ask(template.request([epoch for *_, epoch in latest]))
        found = subset.by_slot(template.decode(response.body))
        answers.claims = {index: entry[ERROR_CODE] for index, entry in found.items()}


async def sample_brokers(
    loop: EventLoop,
    live: Mapping[int, BrokerConnection],
    plans: Mapping[int, BrokerPlan],
    lineage_due: list[WatchedPartition],
    timeout_seconds: float,
    patience_seconds: float,
    late_seconds: float,
) -> dict[int, BrokerAnswers]:
    """The answers of the live brokers that have a plan, with their outcomes.

    `lineage_due`: the partitions with lineage reads left. A barrier waits `patience_seconds` for
    the samplers that have not come to it, the second one twice as long. `late_seconds` after half
    of the brokers have ended, the pass goes on without the others.
    """

    def choose_reads(sampler: Sampler) -> ReplicaReads:
        """The one place that asks how old a broker is."""
        version, plan = sampler.connection.version, sampler.plan
        if version(FETCH, VERSION) == VERSION:
            return CurrentReads(plan, sampler.ask, lineage_due)
        return LegacyReads(plan, sampler.ask, version, timeout_seconds)

    barriers = (
        Barrier(loop, len(live), patience_seconds),
        Barrier(loop, len(live), 2 * patience_seconds),
    )
    for plan in plans.values():
        plan.answers.clear()
    samplers = [
        Sampler(live[b], plans[b], iter(barriers), choose_reads, timeout_seconds)
        for b in live
        if b in plans
    ]
    whole_seconds = (SAMPLER_TIMEOUTS + 1) * timeout_seconds
    half_ended = Barrier(loop, (len(samplers) + 1) // 2, whole_seconds)

    async def sample(sampler: Sampler) -> None:
        under_way = sampler.plan.under_way
        if under_way is not None:
            # Of an earlier pass: time-outs begin once the broker can answer this one.
            await loop.wait([under_way], timeout_seconds)
        try:
            await loop.within(SAMPLER_TIMEOUTS * timeout_seconds, sampler.run)
        except TimeoutError:
            if not sampler.is_late:
                sampler.plan.answers.outcome = TIMED_OUT
            sampler.connection.close()
        half_ended.arrive()

    running = [loop.spawn(sample, sampler) for sampler in samplers]
    if running:
        await half_ended.wait()
        await loop.wait(running, min(late_seconds, whole_seconds))
    for sampler, future in zip(samplers, running, strict=True):
        if not future.is_done:
            sampler.leave()
        sampler.plan.under_way = None if future.is_done else future
    return {sampler.plan.broker: sampler.plan.answers for sampler in samplers}
