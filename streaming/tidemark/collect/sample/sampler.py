"""One broker's part of a pass: its leaders, its followers, and its leaders again.

Brokers meet at two barriers: followers are sampled after all leaders were sampled once, and before
they are sampled again. A barrier waits only for brokers that answer in time. A failure of one
broker never affects another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from tidemark.collect.codecs.list_offsets import (
    CONSUMER,
    DEBUG_REPLICA,
    FIRST_WITH_FENCE,
    MAX_VERSION,
    NO_OFFSET,
    ListOffsetsTemplate,
)
from tidemark.collect.codecs.wire import ERROR_CODE, LIST_OFFSETS, RawResponse
from tidemark.collect.connect.connection import (
    GARBLED,
    UNSUPPORTED,
    BrokerConnection,
    NoAnswerError,
)
from tidemark.collect.connect.event_loop import Barrier
from tidemark.collect.watched.broker_answers import RequestTimes
from tidemark.collect.watched.request_plan import BrokerPlan, Subset
from tidemark.core.errors import WireError
from tidemark.core.events import OK, TIMED_OUT


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
