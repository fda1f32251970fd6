"""Samples of a broker before Kafka 2.7, which lacks Fetch version 12.

Its Fetch has no log end offset and no epoch: the log ends come by a second ListOffsets, a leader's
lineage by OffsetForLeaderEpoch, since Kafka 0.11.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tidemark.collect.codecs.fetch import FetchEntry
from tidemark.collect.codecs.list_offsets import (
    DEBUG_REPLICA,
    EARLIEST,
    MAX_VERSION,
    NO_OFFSET,
    ListOffsetsTemplate,
)
from tidemark.collect.codecs.record_fetch import record_request
from tidemark.collect.codecs.wire import (
    FETCH,
    LIST_OFFSETS,
    GroupedPartitions,
    TopicEntries,
    elements,
)
from tidemark.collect.connect.connection import UNSUPPORTED, NoAnswerError
from tidemark.collect.legacy import epoch_end_offset
from tidemark.collect.legacy.epoch_end_offset import OFFSET_FOR_LEADER_EPOCH, EpochEndOffset
from tidemark.collect.legacy.leader_epoch_walk import read_leader_epochs
from tidemark.collect.watched.broker_answers import RequestTimes
from tidemark.collect.watched.request_plan import Ask, BrokerPlan, Subset

MAX_FETCH_VERSION: Final = 11
FIRST_WITH_LOG_START: Final = 5


@dataclass(slots=True)
class LegacyReads:
    """`version`: the broker's newest one of an API up to a highest; null without the API."""

    plan: BrokerPlan
    ask: Ask
    version: Callable[[int, int], int | None]
    timeout_seconds: float

    async def fetch(self, subset: Subset) -> RequestTimes | None:
        """At the log end offset that each replica just reported."""
        answers = self.plan.answers
        if not subset.indices:
            return None
        version = self.version(FETCH, MAX_FETCH_VERSION)
        if version is None:
            raise NoAnswerError(UNSUPPORTED)
        latest = (answers.latest[i] or NO_OFFSET for i in subset.indices)
        ends = [0 if error else max(end, 0) for _, error, end, _ in latest]
        request = encode_legacy_fetch(subset.topics, ends, version)
        response, times = await self.ask(request)
        subset.place(decode_legacy_fetch(response), answers.fetched)
        answers.epochless.update(subset.indices)
        if self._lineage_version() is not None:
            answers.lineages.update(dict.fromkeys(answers.led))
        self.plan.note_unreadable(subset)
        if version < FIRST_WITH_LOG_START:
            await self._add_log_starts(subset)
        return times

    def followers_without_end(self) -> list[int]:
        """All."""
        return self.plan.followed.indices

    async def read_lineages(self) -> None:
        """Of leaders, where OffsetForLeaderEpoch shows them."""
        if self._lineage_version() is not None:
            plan, led = self.plan, [(i, self.plan.slots[i]) for i in self.plan.led.indices]
            await read_leader_epochs(
                plan.answers, led, self._epoch_end_offsets, self.timeout_seconds
            )

    def _lineage_version(self) -> int | None:
        return self.version(OFFSET_FOR_LEADER_EPOCH, epoch_end_offset.MAX_VERSION)

    async def _epoch_end_offsets(
        self, requests: dict[int, tuple[int, int]]
    ) -> dict[int, EpochEndOffset]:
        """The answers to (epoch, fence) by slot."""
        version = self._lineage_version()
        subset = Subset(self.plan.slots, list(requests))
        epochs = [requests[i][0] for i in subset.indices]
        fences = [requests[i][1] for i in subset.indices]
        request = epoch_end_offset.encode_epoch_end_offsets(
            subset.topics, epochs, fences, version or 0
        )
        response, _ = await self.ask(request)
        return subset.by_slot(epoch_end_offset.decode_epoch_end_offsets(response))

    async def _add_log_starts(self, subset: Subset) -> None:
        """By ListOffsets: Fetch reports the log start offset since Kafka 0.11."""
        fetched = self.plan.answers.fetched
        version = self.version(LIST_OFFSETS, MAX_VERSION)
        template = ListOffsetsTemplate(subset.topics, version or 1, DEBUG_REPLICA, EARLIEST)
        response, _ = await self.ask(template.request())
        for index, (_, error, offset, _) in subset.by_slot(template.decode(response.body)).items():
            entry = fetched[index]
            if entry is not None and not error:
                number, code, high_watermark, last_stable_offset, _, epoch, end = entry
                fetched[index] = (
                    *(number, code, high_watermark, last_stable_offset),
                    *(offset, epoch, end),
                )


def encode_legacy_fetch(topics: GroupedPartitions, offsets: list[int], version: int) -> Any:
    """A Fetch of no bytes at the offset given for each partition, for versions 0 to 11.

    Followers answer replica −2 before version 11, and any replica from it on (Kafka 2.3).
    """
    places = ((topic, number) for topic, numbers in topics for number in numbers)
    wanted = ((*place, offset) for place, offset in zip(places, offsets, strict=True))
    return record_request(version, wanted, 1, 1, -2 if version < MAX_FETCH_VERSION else -1)


def decode_legacy_fetch(response: Any) -> TopicEntries[FetchEntry]:
    """kafka-python's response as entries without epochs, before version 5 without log starts.

    Raises WireError for a null array.
    """
    return [
        (topic.topic, [_entry(p) for p in elements(topic.partitions, "Fetch")])
        for topic in elements(response.responses, "Fetch")
    ]


def _entry(p: Any) -> FetchEntry:
    last_stable_offset, log_start_offset = (
        -1 if value is None else value for value in (p.last_stable_offset, p.log_start_offset)
    )
    return (
        p.partition_index,
        p.error_code,
        p.high_watermark,
        last_stable_offset,
        log_start_offset,
        -1,
        -1,
    )
