"""Samples of a broker by the zero-byte Fetch, version 12: since Kafka 2.7."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.collect.codecs.fetch import OFFSET_OUT_OF_RANGE, FetchEntry, FetchTemplate
from tidemark.collect.codecs.list_offsets import LEADER_EPOCH, NO_OFFSET, OFFSET
from tidemark.collect.sample.lineage import SlotRequests, read_lineages
from tidemark.collect.watched.broker_answers import RequestTimes
from tidemark.collect.watched.request_plan import Ask, BrokerPlan, Subset
from tidemark.collect.watched.watched_partition import WatchedPartition


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
