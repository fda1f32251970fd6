"""The samplers of a pass, one for each broker, at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tidemark.collect.codecs.fetch import VERSION
from tidemark.collect.codecs.wire import FETCH
from tidemark.collect.connect.connection import BrokerConnection
from tidemark.collect.connect.event_loop import Barrier, EventLoop
from tidemark.collect.legacy.legacy_reads import LegacyReads
from tidemark.collect.sample.current_reads import CurrentReads
from tidemark.collect.sample.sampler import ReplicaReads, Sampler
from tidemark.collect.watched.broker_answers import BrokerAnswers
from tidemark.collect.watched.request_plan import BrokerPlan
from tidemark.collect.watched.watched_partition import WatchedPartition
from tidemark.core.events import TIMED_OUT

# A sampler has this many time-outs in all; then it is cancelled.
SAMPLER_TIMEOUTS: Final = 4


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
