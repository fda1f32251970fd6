"""Asks who holds a last stable offset that does not move: DescribeProducers and ListTransactions.

The leader knows the producer of a transaction (ProducerStateManager), its coordinator the
transactional id. No coordinator knows a transaction that hangs (KIP-664).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from kafka.protocol.admin import DescribeProducersRequest, ListTransactionsRequest

from tidemark.collect.codecs.metadata_image import TopicPartition
from tidemark.collect.connect.connection import BrokerConnection, NoAnswerError
from tidemark.collect.connect.event_loop import EventLoop
from tidemark.collect.watched.watched_partition import WatchedPartition
from tidemark.core.events import MAX_TRANSACTIONAL_ID, OpenTransaction

# How long an offset has not moved when it is asked for first, and how often it is asked again.
STUCK_SECONDS: Final = 5.0
AGAIN_SECONDS: Final = 60.0
# At a time: an answer names all producers that wrote to the partition lately.
MAX_PARTITIONS: Final = 20
ANSWER_SECONDS: Final = 2.0
# Later than any clock shows: not the time of a record.
_MAX_MS: Final = 10**14

Live = Mapping[int, BrokerConnection]


@dataclass(slots=True)
class _Stuck:
    watched: WatchedPartition
    epoch: int | None
    offset: int
    since: float
    seen_at: float = 0.0
    asked_at: float = -math.inf
    transaction: OpenTransaction | None = None


class OpenTransactions:
    """The partitions of a cluster whose last stable offset is below what is committed.

    At most one entry for each partition that was watched in the last minute. `beside`: the
    connection to ask in place of the one for samples.
    """

    def __init__(
        self,
        loop: EventLoop,
        beside: Callable[[BrokerConnection], BrokerConnection],
        stuck_seconds: float,
    ) -> None:
        self._loop, self._beside, self._stuck_seconds = loop, beside, stuck_seconds
        self._stuck: dict[TopicPartition, _Stuck] = {}
        self._running: list[Any] = []

    def note(self, watched: WatchedPartition, offset: int, now: float) -> OpenTransaction | None:
        """The transaction that holds the leader's last stable `offset`; null: not known yet."""
        place, epoch = (watched.topic, watched.number), watched.leader_epoch
        known = self._stuck.get(place)
        # An unclean election may take the transaction away, and another one begin there.
        if known is None or (known.watched, known.epoch, known.offset) != (watched, epoch, offset):
            known = self._stuck[place] = _Stuck(watched, epoch, offset, now)
        known.seen_at = now
        return known.transaction

    def start(self, live: Live, now: float) -> None:
        """Starts to ask, those first that were asked longest ago. No pass waits for it."""
        if self._stuck and all(reading.is_done for reading in self._running):
            seen = {p: e for p, e in self._stuck.items() if now - e.seen_at < AGAIN_SECONDS}
            self._stuck = seen
            due = [
                each
                for each in seen.values()
                if now >= max(each.since + self._stuck_seconds, each.asked_at + AGAIN_SECONDS)
                and each.watched.leader in live
            ]
            due.sort(key=lambda each: (each.asked_at, each.since))
            self._running = [
                self._loop.spawn(self._ask, dict(live), each, now) for each in due[:MAX_PARTITIONS]
            ]

    async def _ask(self, live: Live, stuck: _Stuck, now: float) -> None:
        stuck.asked_at = now
        with suppress(NoAnswerError):
            leader = self._beside(live[stuck.watched.leader or 0])
            found = await _read_first(await leader.ready(ANSWER_SECONDS), stuck)
            before, stuck.transaction = stuck.transaction, found
            if found is None:
                return
            if before is not None and before.producer_id == found.producer_id:
                # A producer id never gets another one; its coordinator may be silent now.
                found.transactional_id = before.transactional_id
                found.coordinator = before.coordinator
            for broker in live if found.transactional_id is None else ():
                with suppress(NoAnswerError):
                    coordinator = await self._beside(live[broker]).ready(ANSWER_SECONDS)
                    await _read_owner(coordinator, found)


async def _read_first(leader: BrokerConnection, stuck: _Stuck) -> OpenTransaction | None:
    """The open transaction that began first; null before Kafka 2.8. Needs Read on the topic."""
    if leader.version(DescribeProducersRequest.API_KEY, 0) is None:
        return None
    topic = DescribeProducersRequest.TopicRequest(
        name=stuck.watched.topic, partition_indexes=[stuck.watched.number]
    )
    answer = await leader.ask(DescribeProducersRequest(topics=[topic]), ANSWER_SECONDS)
    producers = [p for t in answer.topics for each in t.partitions for p in each.active_producers]
    # One that began above the offset began after the one that held it had ended.
    begun = [p for p in producers if 0 <= p.current_txn_start_offset <= stuck.offset]
    if not begun:
        return None
    first = min(begun, key=lambda producer: producer.current_txn_start_offset)
    at_ms, epoch = first.last_timestamp, first.coordinator_epoch
    return OpenTransaction(
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        coordinator_epoch=epoch if epoch >= 0 else None,
        start_offset=first.current_txn_start_offset,
        last_timestamp=at_ms / 1000.0 if 0 <= at_ms < _MAX_MS else None,
    )


async def _read_owner(coordinator: BrokerConnection, held_by: OpenTransaction) -> None:
    """It is unknown before Kafka 3.0, and without Describe on the transactional id."""
    if coordinator.version(ListTransactionsRequest.API_KEY, 0) is not None:
        ids = [held_by.producer_id]
        request = ListTransactionsRequest(version=0, state_filters=[], producer_id_filters=ids)
        answer = await coordinator.ask(request, ANSWER_SECONDS)
        for state in answer.transaction_states:
            held_by.transactional_id = state.transactional_id[:MAX_TRANSACTIONAL_ID]
            held_by.coordinator = coordinator.broker
