"""Who holds a last stable offset: what is asked, and what the answers prove."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

from kafka.protocol.admin import DescribeProducersRequest

from tidemark.collect.connect.connection import Network, NoAnswerError
from tidemark.collect.metadata.open_transactions import (
    AGAIN_SECONDS,
    MAX_PARTITIONS,
    OpenTransactions,
)


class Broker:
    """Answers with `producers` (start offset, producer id), and lists producer 7 as `x`."""

    def __init__(self, broker: int) -> None:
        self.broker, self.producers, self.asked = broker, [(-1, 1), (40, 7), (60, 9)], 0
        self.is_silent = False

    def version(self, _key: int, highest: int) -> int:
        return highest

    async def ready(self, _seconds: float) -> Broker:
        return self

    async def ask(self, request: Any, _seconds: float) -> Any:
        if self.is_silent:
            raise NoAnswerError("timed_out")
        named = [Answer(transactional_id="x", producer_id=7)] * (self.broker == 2)
        fields = {"producer_epoch": 3, "coordinator_epoch": -1, "last_timestamp": 5000}
        states = [
            Answer(producer_id=producer, current_txn_start_offset=start, **fields)
            for start, producer in self.producers
        ]
        self.asked += isinstance(request, DescribeProducersRequest)
        topic = Answer(partitions=[Answer(active_producers=states)])
        return Answer(transaction_states=named, topics=[topic])


def test_the_first_open_transaction_holds_the_offset_until_it_ends() -> None:
    loop, brokers = Network({}).loop, {1: Broker(1), 2: Broker(2)}
    live: Any = brokers
    found = OpenTransactions(loop, lambda connection: connection, 5.0)
    watched: Any = [
        Answer(topic="t", number=n, leader=1, leader_epoch=0) for n in range(MAX_PARTITIONS + 1)
    ]

    def known(now: float) -> set[Any]:
        """Of all partitions, after what is due at `now` was asked."""
        for _ in range(2):
            held = [found.note(each, 40, now) for each in watched]
            found.start(live, now)
            loop.run(loop.wait, found._running, 1.0)
        return {h and (h.producer_id, h.transactional_id, h.coordinator) for h in held}

    assert known(0.0) == {None} and brokers[1].asked == 0
    # The leader is asked about a bounded number at a time.
    assert known(5.0) == {(7, "x", 2), None} and brokers[1].asked == MAX_PARTITIONS + 1
    assert known(6.0) == {(7, "x", 2)} and brokers[1].asked == MAX_PARTITIONS + 1
    # A coordinator that does not answer takes no name away, a leader no transaction.
    for broker in (2, 1):
        brokers[broker].is_silent = True
        assert known(5.0 + broker * AGAIN_SECONDS) == {(7, "x", 2)}
    brokers[1].is_silent = brokers[2].is_silent = False
    brokers[1].producers = [(60, 9)]
    assert known(5.0 + 4 * AGAIN_SECONDS) == {(7, "x", 2), None}
    assert known(6.0 + 4 * AGAIN_SECONDS) == {None}
    loop.close()
