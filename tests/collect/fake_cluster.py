"""Three fake brokers, collection passes over them, and the events of a pass."""

from __future__ import annotations

from typing import Any

import pytest

from tests.collect.fake_broker import VERSIONS, FakeBroker, Log
from tidemark.collect.collection_pass import PassRunner
from tidemark.collect.publish.pack import EventRecord
from tidemark.core.codec import decode_batch
from tidemark.core.events import Event, Observation, Pass
from tidemark.settings import Cluster, Collect

Topics = dict[str, dict[int, tuple[int, int, list[int], list[int], int]]]


class FakeCluster:
    """Three fake brokers and the passes over them. `settings`: further ones of `collect`."""

    def __init__(self, versions: dict[int, tuple[int, int]] | None = None, **settings: Any) -> None:
        self.brokers = [FakeBroker(number, versions) for number in (1, 2, 3)]
        self.address = f"127.0.0.1:{self.brokers[0].port}"
        self.topics: Topics = {}
        for broker in self.brokers:
            broker.metadata = lambda: (self.brokers, self.topics)
        cluster = Cluster(
            name="c",
            bootstrap_servers=[self.address],
            topics_deny=["hidden"],
        )
        whole = {"broker_timeout_seconds": 1.0, "metadata_seconds": 1e-6, **settings}
        self.passes = PassRunner(cluster, Collect(collector="k", **whole), 4, 1_000)
        self.records: list[EventRecord] = []

    def topic(self, name: str, end: int, epoch: int = 0) -> None:
        """A topic with one fully replicated partition on all three brokers, led by broker 1."""
        self.topics[name] = {0: (1, epoch, [1, 2, 3], [1, 2, 3], 0)}
        self.write([(epoch, end)], end, epoch, topic=name)

    def write(
        self,
        epochs: list[tuple[int, int]],
        high_watermark: int,
        leader_epoch: int,
        *,
        leader: int = 1,
        topic: str = "t",
    ) -> None:
        """Every replica has the same log, and knows who leads."""
        for broker in self.brokers:
            leads = broker.broker == leader
            broker.logs[topic, 0] = Log(list(epochs), high_watermark, leader_epoch, leads=leads)

    def set(self, **fields: Any) -> None:
        """Sets fields of every broker."""
        for broker in self.brokers:
            vars(broker).update(fields)

    def forget_requests(self) -> None:
        for broker in self.brokers:
            broker.requests.clear()

    def run(self, passes: int = 1) -> list[Event]:
        """Runs passes. Returns the events of the last one."""

        async def work() -> None:
            for _ in range(passes):
                self.records = await self.passes.run(set())

        self.passes.loop.run(work)
        return [event for record in self.records for event in decode_batch(record.payload).events]

    def one(self, passes: int = 1) -> Observation:
        return next(event for event in self.run(passes) if isinstance(event, Observation))

    def run_until_ok(self, broker: int) -> list[Event]:
        """Runs passes until a broker answers again. Returns the events of the last one.

        Every pass tries to connect again, and none waits for it.
        """
        passes = (self.run() for _ in range(100_000))
        return next(events for events in passes if outcomes(events)[broker] == "ok")

    def close(self) -> None:
        self.passes.close()
        for broker in self.brokers:
            broker.close()


def with_versions(versions: dict[int, tuple[int, int]]) -> pytest.MarkDecorator:
    """Gives a test a cluster whose brokers offer other versions, by API key."""
    return pytest.mark.parametrize("cluster", [{**VERSIONS, **versions}], indirect=True)


def outcomes(events: list[Event]) -> dict[int, str]:
    return {
        answer.broker: answer.outcome
        for answer in next(e for e in events if isinstance(e, Pass)).brokers
    }
