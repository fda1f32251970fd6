"""One broker's part of a pass: its leaders, its followers, and its leaders again.

Brokers meet at two barriers: followers are sampled after all leaders were sampled once, and before
they are sampled again. A barrier waits only for brokers that answer in time. A failure of one
broker never affects another.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tidemark.collect.codecs.fetch import (
    OFFSET_OUT_OF_RANGE,
    TOPIC_AUTHORIZATION_FAILED,
    VERSION,
    FetchEntry,
    FetchTemplate,
)
from tidemark.collect.codecs.list_offsets import (
    CONSUMER,
    DEBUG_REPLICA,
    EARLIEST,
    LEADER_EPOCH,
    MAX_VERSION,
    NO_OFFSET,
    OFFSET,
    ListOffsetsTemplate,
)
from tidemark.collect.codecs.wire import ERROR_CODE, FETCH, LIST_OFFSETS, UNANSWERED, RawResponse
from tidemark.collect.connect.connection import BrokerConnection, NoAnswerError
from tidemark.collect.connect.event_loop import Barrier
from tidemark.collect.legacy import epoch_end_offset, legacy_fetch
from tidemark.collect.legacy.epoch_end_offset import OFFSET_FOR_LEADER_EPOCH, EpochEndOffset
from tidemark.collect.legacy.leader_epoch_walk import read_leader_epochs
from tidemark.collect.sample.lineage import SlotRequests, read_lineages
from tidemark.collect.sample.request_plan import BrokerPlan, Subset, without_error
from tidemark.collect.watched.broker_answers import RequestTimes
from tidemark.collect.watched.watched_partition import WatchedPartition
from tidemark.core.errors import WireError
from tidemark.core.events import OK, TIMED_OUT, UNREACHABLE

UNSUPPORTED: Final = "unsupported"
GARBLED: Final = "garbled"


@dataclass(slots=True)
class Sampler:
    """Fills the answers of one broker. `lineage_due`: the partitions with lineage reads left."""

    connection: BrokerConnection
    plan: BrokerPlan
    barriers: Iterator[Barrier]
    lineage_due: list[WatchedPartition]
    timeout_seconds: float
    # Whether the pass goes on without it: what is answered from then on is dropped.
    is_late: bool = field(default=False, init=False)

    async def run(self) -> None:
        """Sets the answers and their outcome. Never raises."""
        plan, answers = self.plan, self.plan.answers
        try:
            version = self.connection.version(LIST_OFFSETS, MAX_VERSION)
            if not version:
                raise NoAnswerError(UNSUPPORTED if self.connection.connected else self._failure())
            await self._list_offsets(version)
            await self._meet()
            answers.followers_times = await self._fetch(plan.followed, plan.fetch_followed)
            await self._list_followers_again(version)
            await self._meet()
            answers.leaders_times = await self._fetch(plan.led, plan.fetch_led)
            if answers.fenced:
                await self._ask_suspected_leaders(version)
            if self.connection.version(FETCH, VERSION) == VERSION:
                await read_lineages(answers, self.lineage_due, self._fetch_slots)
            elif self._has_epoch_end_offsets():
                led = [(i, plan.slots[i]) for i in plan.led.indices]
                await read_leader_epochs(
                    answers, led, self._epoch_end_offsets, self.timeout_seconds
                )
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

    def _failure(self) -> str:
        return self.connection.outcome if self.connection.failures else UNREACHABLE

    def leave(self) -> None:
        """The pass goes on without the rest of the answers. Replicas without one have `no_answer`.

        The time for it is longer than a time-out, so the request under way was sent after the
        other brokers had ended: this broker has answered since, slowly. That request ends by
        itself. If it fails, so does the connection, and the next pass shows it.
        """
        self.is_late = True
        self.plan.answers.outcome, self.plan.answers.is_late = OK, True

    def _has_epoch_end_offsets(self) -> bool:
        """Whether OffsetForLeaderEpoch shows lineages, because Fetch does not."""
        version = self.connection.version
        return (
            version(FETCH, VERSION) != VERSION
            and version(OFFSET_FOR_LEADER_EPOCH, epoch_end_offset.MAX_VERSION) is not None
        )

    async def _meet(self) -> None:
        barrier = next(self.barriers)
        barrier.arrive()
        await barrier.wait()

    async def _ask(self, request: Any) -> tuple[Any, RequestTimes]:
        sent = time.monotonic()
        answer = await self.connection.ask(request, self.timeout_seconds)
        if self.is_late:
            raise NoAnswerError(TIMED_OUT)
        read = answer.answered_at if isinstance(answer, RawResponse) else time.monotonic()
        return answer, RequestTimes(sent, read)

    async def _list_offsets(self, version: int) -> None:
        """High watermarks of leaders, then log end offsets and leader epochs of all replicas."""
        plan, answers = self.plan, self.plan.answers
        answers.fenced = version >= 4
        if plan.led.indices:
            template = plan.list_offsets(CONSUMER, version)
            response, _ = await self._ask(template.request(plan.fences))
            plan.led.place(template.decode(response.body), answers.committed, "committed")
        template = plan.list_offsets(DEBUG_REPLICA, version)
        response, answers.latest_times = await self._ask(template.request())
        plan.all.place(template.decode(response.body), answers.latest, "latest")

    async def _list_followers_again(self, version: int) -> None:
        """Log end offsets of followers, again, where Fetch gives none.

        That is before Kafka 2.7, or without the right to read. Those of the first ListOffsets may
        be older than the leader's: they show no lag.
        """
        plan, answers = self.plan, self.plan.answers
        indices = plan.followed.indices
        if self.connection.version(FETCH, VERSION) == VERSION:
            indices = [i for i in indices if i in answers.unreadable] if answers.unreadable else []
        if not indices:
            return
        subset, template = plan.list_again(indices, version)
        response, answers.asked_again_times = await self._ask(template.request())
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
        response, _ = await self._ask(template.request([epoch for *_, epoch in latest]))
        found = subset.by_slot(template.decode(response.body))
        answers.claims = {index: entry[ERROR_CODE] for index, entry in found.items()}

    async def _fetch(self, subset: Subset, template: FetchTemplate) -> RequestTimes | None:
        """High watermark, last stable offset, log start and epoch end of each replica, at once."""
        answers = self.plan.answers
        if not subset.indices:
            return None
        if self.connection.version(FETCH, VERSION) != VERSION:
            return await self._fetch_legacy(subset)
        response, times = await self._ask(template.request(*self.plan.fetch_columns(subset)))
        error, topics = template.decode(response.body)
        if error:
            return times
        subset.place(topics, answers.fetched, "fetched")
        errors = self._note_unreadable(subset)
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
                self.plan.without_newest_epoch[index] = (epoch, end)
        return times

    def _note_unreadable(self, subset: Subset) -> dict[int, int]:
        """The error codes of Fetch by slot."""
        entries = subset.pick(self.plan.answers.fetched)
        if without_error(entries):
            return {}
        errors = {
            i: error
            for i, entry in zip(subset.indices, entries, strict=True)
            if (error := UNANSWERED if entry is None else entry[ERROR_CODE])
        }
        denied = (i for i, error in errors.items() if error == TOPIC_AUTHORIZATION_FAILED)
        self.plan.answers.unreadable.update(denied)
        return errors

    async def _fetch_slots(self, requests: SlotRequests) -> dict[int, FetchEntry]:
        subset = Subset(self.plan.slots, list(requests))
        columns = [
            list(column) for column in zip(*(requests[i] for i in subset.indices), strict=True)
        ]
        template = FetchTemplate(subset.topics)
        response, _ = await self._ask(template.request(*columns))
        error, topics = template.decode(response.body)
        return {} if error else subset.by_slot(topics)

    async def _epoch_end_offsets(
        self, requests: dict[int, tuple[int, int]]
    ) -> dict[int, EpochEndOffset]:
        """The answers to (epoch, fence) by slot."""
        version = self.connection.version(OFFSET_FOR_LEADER_EPOCH, epoch_end_offset.MAX_VERSION)
        subset = Subset(self.plan.slots, list(requests))
        epochs = [requests[i][0] for i in subset.indices]
        fences = [requests[i][1] for i in subset.indices]
        request = epoch_end_offset.encode_epoch_end_offsets(
            subset.topics, epochs, fences, version or 0
        )
        response, _ = await self._ask(request)
        return subset.by_slot(epoch_end_offset.decode_epoch_end_offsets(response))

    async def _fetch_legacy(self, subset: Subset) -> RequestTimes:
        """At the log end offset that each replica just reported: brokers before Kafka 2.7."""
        answers = self.plan.answers
        version = self.connection.version(FETCH, legacy_fetch.MAX_VERSION)
        if version is None:
            raise NoAnswerError(UNSUPPORTED)
        latest = (answers.latest[i] or NO_OFFSET for i in subset.indices)
        ends = [0 if error else max(end, 0) for _, error, end, _ in latest]
        request = legacy_fetch.encode_legacy_fetch(subset.topics, ends, version)
        response, times = await self._ask(request)
        subset.place(legacy_fetch.decode_legacy_fetch(response), answers.fetched)
        answers.epochless.update(subset.indices)
        if self._has_epoch_end_offsets():
            answers.lineages.update(dict.fromkeys(answers.led))
        self._note_unreadable(subset)
        if version < legacy_fetch.FIRST_WITH_LOG_START:
            await self._add_log_starts(subset)
        return times

    async def _add_log_starts(self, subset: Subset) -> None:
        """By ListOffsets: Fetch reports the log start offset since Kafka 0.11."""
        fetched = self.plan.answers.fetched
        version = self.connection.version(LIST_OFFSETS, MAX_VERSION)
        template = ListOffsetsTemplate(subset.topics, version or 1, DEBUG_REPLICA, EARLIEST)
        response, _ = await self._ask(template.request())
        for index, (_, error, offset, _) in subset.by_slot(template.decode(response.body)).items():
            entry = fetched[index]
            if entry is not None and not error:
                number, code, high_watermark, last_stable_offset, _, epoch, end = entry
                fetched[index] = (
                    *(number, code, high_watermark, last_stable_offset),
                    *(offset, epoch, end),
                )
