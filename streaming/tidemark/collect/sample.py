"""One broker's part of a pass: its leaders before, its followers, its leaders after, each asked once for all partitions.

Brokers meet at two gates, so that followers are read after all leaders were read once and before they are read again;
a gate waits only for brokers that answer in time. No broker's failure reaches another.
"""

from __future__ import annotations

import time
from typing import Final

from tidemark.collect import old
from tidemark.collect.codec_fetch import BEYOND, VERSION, Entry, FetchTemplate, decode_fetch
from tidemark.collect.codec_list_offsets import (
    CONSUMER,
    MAX_VERSION,
    ListOffsetsTemplate,
    decode_list_offsets,
)
from tidemark.collect.codec_list_offsets import Entry as Offsets
from tidemark.collect.lineage import walk
from tidemark.collect.links import Link, LinkError
from tidemark.collect.loop import Gate
from tidemark.collect.plan import Asked, BrokerPlan, Subset
from tidemark.collect.wire import FETCH, LIST_OFFSETS, RawAnswer, RawRequest
from tidemark.core.errors import WireError
from tidemark.core.events import OK

OFFSET_OUT_OF_RANGE: Final = 1
UNSUPPORTED: Final = "unsupported"
GARBLED: Final = "garbled"


class Sampler:
    """Samples one broker; `gates` are passed after the first look at leaders and after the followers."""

    def __init__(
        self, link: Link, plan: BrokerPlan, gates: tuple[Gate, Gate], seconds: float
    ) -> None:
        self._link = link
        self._plan = plan
        self._gates = gates
        self._seconds = seconds
        self._at_gate = 0

    async def run(self) -> None:
        """Fills the plan's answers and its outcome; never raises."""
        plan = self._plan
        try:
            await self._look_first()
            await self._next_gate()
            plan.followers_asked = await self._probe(plan.followed, leaders=False)
            await self._next_gate()
            plan.leaders_asked = await self._probe(plan.led, leaders=True)
            await self._ask_doubtful()
            if self._link.version(FETCH, VERSION) == VERSION:
                await walk(self._link, plan, self._seconds)
            plan.outcome = OK
        except LinkError as error:
            plan.outcome = error.outcome
        except WireError:
            # What such a broker says cannot be trusted to belong to the question.
            plan.outcome = GARBLED
            self._link.close()
        finally:
            for gate in self._gates[self._at_gate :]:
                gate.arrive()

    async def _next_gate(self) -> None:
        gate = self._gates[self._at_gate]
        self._at_gate += 1
        gate.arrive()
        await gate.passed()

    async def _ask(self, request: RawRequest) -> tuple[bytes, Asked]:
        sent = time.monotonic()
        answer: RawAnswer = await self._link.ask(request, self._seconds)
        return answer.body, Asked(sent, answer.answered_at)

    async def _look_first(self) -> None:
        """Log end offsets and leader epochs of all replicas, and the high watermarks of leaders under their fence."""
        plan = self._plan
        version = self._link.version(LIST_OFFSETS, MAX_VERSION)
        if not version:
            raise LinkError(UNSUPPORTED)
        plan.fenced = version >= 4

        def decode(answer: bytes) -> list[tuple[str, list[Offsets]]]:
            return decode_list_offsets(answer, version)

        if plan.led.indices:
            fences = [
                -1 if (e := plan.slots[i].leader_epoch) is None else e for i in plan.led.indices
            ]
            body, _ = await self._ask(plan.committed_template(version).request(fences))
            plan.led.lay(plan.decoded("committed", body, decode), plan.committed)
        body, plan.latest_asked = await self._ask(plan.latest_template(version).request())
        plan.everything.lay(plan.decoded("latest", body, decode), plan.latest)

    async def _ask_doubtful(self) -> None:
        """Whether replicas that should not lead believe that they do; the offsets they name are not looked at.

        Fenced with the epoch that each named a moment ago, error 0 means that it leads under that one.
        """
        plan = self._plan
        version = self._link.version(LIST_OFFSETS, MAX_VERSION) or 0
        doubtful = plan.doubtful() if plan.fenced else []
        if not doubtful:
            return
        subset = Subset(plan.slots, doubtful)
        fences = [entry[3] for i in subset.indices if (entry := plan.latest[i]) is not None]
        body, _ = await self._ask(
            ListOffsetsTemplate(subset.blocks, version, CONSUMER).request(fences)
        )
        found: list[Offsets | None] = [None] * len(plan.slots)
        subset.lay(decode_list_offsets(body, version), found)
        plan.believing = {i: entry[1] for i in doubtful if (entry := found[i]) is not None}

    async def _probe(self, subset: Subset, leaders: bool) -> Asked | None:
        """Fetch: high watermark, last stable offset, log start offset and epoch end of each replica in one instant."""
        plan = self._plan
        if not subset.indices:
            return None
        if self._link.version(FETCH, VERSION) != VERSION:
            return await old.probe(self._link, plan, subset, self._seconds)
        columns = self._columns(subset)
        request = plan.probe_template(leaders).request(columns[0], columns[1], columns[2])
        body, asked = await self._ask(request)
        code, answer = plan.decoded("leaders" if leaders else "followers", body, decode_fetch)
        if code:
            return asked
        subset.lay(answer, plan.fetched)
        missing = [i for i in subset.indices if self._lacks_epoch(i)]
        if missing:
            await self._probe_plainly(missing)
        return asked

    def _columns(self, subset: Subset) -> tuple[list[int], list[int], list[int]]:
        """last_fetched_epoch, current_leader_epoch and fetch_offset for each slot.

        Asked and fenced with the epoch that the broker itself named a moment ago, error 0 means that this is the newest
        epoch in its log, so the end offset is the log end offset.
        """
        plan = self._plan
        last, fence, offset = [], [], []
        for index in subset.indices:
            entry = plan.latest[index]
            epoch = entry[3] if entry is not None and entry[1] == 0 else -1
            end = entry[2] if entry is not None and entry[1] == 0 else -1
            fence.append(epoch)
            if end >= 0 and (epoch < 0 or plan.without_epoch.get(index) == (epoch, end)):
                plan.plain.add(index)
                last.append(-1)
                offset.append(end)
            else:
                last.append(max(epoch, 0))
                offset.append(BEYOND)
        return last, fence, offset

    def _lacks_epoch(self, index: int) -> bool:
        entry, latest = self._plan.fetched[index], self._plan.latest[index]
        return (
            entry is not None
            and entry[1] == OFFSET_OUT_OF_RANGE
            and index not in self._plan.plain
            and latest is not None
            and latest[2] >= 0
        )

    async def _probe_plainly(self, indices: list[int]) -> None:
        """Replicas without a batch of their newest epoch (or of any): asked at the log end offset they just named."""
        plan = self._plan
        subset = Subset(plan.slots, indices)
        latest = [plan.latest[i] for i in subset.indices]
        ends = [entry[2] for entry in latest if entry is not None]
        fences = [entry[3] for entry in latest if entry is not None]
        body, _ = await self._ask(
            FetchTemplate(subset.blocks).request([-1] * len(ends), fences, ends)
        )
        code, answer = decode_fetch(body)
        if code:
            return
        again: list[Entry | None] = [None] * len(plan.slots)
        subset.lay(answer, again)
        for index, epoch, end in zip(subset.indices, fences, ends, strict=True):
            if again[index] is not None:
                plan.fetched[index] = again[index]
                plan.plain.add(index)
                plan.without_epoch[index] = (epoch, end)
