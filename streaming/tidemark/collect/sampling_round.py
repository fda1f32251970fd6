"""The samplers of a pass, one for each broker, at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tidemark.collect.broker_answers import BrokerAnswers
from tidemark.collect.connection import BrokerConnection
from tidemark.collect.event_loop import Barrier, EventLoop
from tidemark.collect.request_plan import BrokerPlan
from tidemark.collect.sampler import Sampler
from tidemark.collect.watched_partition import WatchedPartition
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
) -> dict[int, BrokerAnswers]:
    """The answers of the live brokers that have a plan, with their outcomes.

    `lineage_due`: the partitions with lineage reads left. A barrier waits `patience_seconds` for
    the samplers that have not come to it, the second one twice as long.
    """
    barriers = (
        Barrier(loop, len(live), patience_seconds),
        Barrier(loop, len(live), 2 * patience_seconds),
    )
    for plan in plans.values():
        plan.answers.clear()

    async def sample(connection: BrokerConnection, plan: BrokerPlan) -> None:
        sampler = Sampler(connection, plan, iter(barriers), lineage_due, timeout_seconds)
        try:
            await loop.within(SAMPLER_TIMEOUTS * timeout_seconds, sampler.run)
        except TimeoutError:
            plan.answers.outcome = TIMED_OUT
            connection.close()

    sampled = {b: plans[b].answers for b in live if b in plans}
    samplers = [loop.spawn(sample, live[b], plans[b]) for b in sampled]
    await loop.wait(samplers, (SAMPLER_TIMEOUTS + 1) * timeout_seconds)
    return sampled
