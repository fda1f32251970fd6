"""Answers of brokers, also those that nobody expects."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.settings import Cluster
from tidemark.verbs.audit.brokers import BrokerSource
from tidemark.verbs.audit.source import Position

PLACE = ("orders", 0)


@pytest.fixture
def source() -> Iterator[BrokerSource]:
    found = BrokerSource(Cluster(name="main", bootstrap_servers=["127.0.0.1:1"]))
    yield found
    found.close()


class Connection:
    """Answers Fetch and ListOffsets with one partition of these fields."""

    def __init__(self, fetch: int | None = 12, partitions: int = 1, **fields: Any) -> None:
        self._fetch = fetch
        known = {
            "error_code": 0,
            "high_watermark": 90,
            "records": None,
            "preferred_read_replica": -1,
            "offset": 100,
            "leader_epoch": 4,
        }
        one = SimpleNamespace(partitions=[SimpleNamespace(**{**known, **fields})] * partitions)
        self._answer = SimpleNamespace(topics=[one], responses=[one], error_code=0)
        self.asked: list[Any] = []

    def version(self, api_key: int, highest: int) -> int | None:
        return min(highest, 12 if api_key != 1 or self._fetch is None else self._fetch) or None

    async def ask(self, request: Any, seconds: float) -> Any:
        self.asked.append(request)
        return self._answer


def test_a_position_asks_the_replica_itself(source: BrokerSource) -> None:
    connection = Connection()
    found = source._loop.run(source._position, PLACE, connection)
    assert found == Position(100, 100, 90, 100, 4)
    assert {request.replica_id for request in connection.asked} == {-2}
    # Latest, earliest and earliest local offset; then the high watermark at the log end offset.
    asked = [request.topics[0].partitions[0] for request in connection.asked]
    assert [p.timestamp for p in asked[:3]] == [-1, -2, -4]
    assert asked[3].fetch_offset == 100


@pytest.mark.parametrize(
    ("connection", "reason"),
    [
        (Connection(error_code=29), "TOPIC_AUTHORIZATION_FAILED"),
        (
            Connection(fetch=10, error_code=6),
            "NOT_LEADER_OR_FOLLOWER; followers of its version do not answer Fetch 10",
        ),
        (Connection(fetch=12, error_code=6), "NOT_LEADER_OR_FOLLOWER"),
        (Connection(high_watermark=-1), "no high watermark"),
        (Connection(partitions=2), "an answer without the partition"),
        (Connection(preferred_read_replica=3), "its replica selector sends readers to broker 3"),
    ],
)
def test_why_a_replica_has_no_records(
    source: BrokerSource, connection: Connection, reason: str
) -> None:
    assert source._loop.run(source._records, PLACE, 5, 100, connection) == reason


def test_a_broker_that_is_not_known_or_answers_nonsense_is_named(source: BrokerSource) -> None:
    assert source.positions(PLACE, [7]) == {7: "its broker is not registered"}

    async def nonsense(broker: int, ask: Any) -> Any:
        raise AttributeError("no such field")

    source._answer = nonsense  # type: ignore[method-assign]
    assert source.positions(PLACE, [7]) == {7: "an answer that is not Kafka's (AttributeError)"}
