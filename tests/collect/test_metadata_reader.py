from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace as Answer
from typing import Any

import pytest

from tidemark.collect import metadata_reader as module
from tidemark.collect.admin_queries import (
    Quorum,
    QuorumReplica,
    TopicConfiguration,
    decode_configuration,
    decode_quorum,
)
from tidemark.collect.connection import NoAnswerError
from tidemark.collect.event_loop import EventLoop
from tidemark.collect.inventory import Inventory
from tidemark.collect.metadata_reader import MetadataReader
from tidemark.settings import Cluster, Collect


def quorum(leader: int, epoch: int, error: int = 0) -> Any:
    state = Answer(replica_id=100, log_end_offset=5, last_caught_up_timestamp=1_000)
    late = Answer(replica_id=1, log_end_offset=-1, last_caught_up_timestamp=400)
    partition = Answer(
        error_code=error,
        leader_id=leader,
        leader_epoch=epoch,
        high_watermark=5,
        current_voters=[state],
        observers=[late],
    )
    return Answer(error_code=0, topics=[Answer(partitions=[partition])])


def test_a_quorum_without_a_leader_keeps_its_epoch() -> None:
    led, leaderless = decode_quorum(quorum(100, 7)), decode_quorum(quorum(-1, 7))
    assert led is not None and leaderless is not None
    assert (led.leader, led.epoch, leaderless.leader, leaderless.epoch) == (100, 7, None, 7)
    assert led.replicas == {100: (True, 5, 0.0), 1: (False, None, 600.0)}
    assert decode_quorum(quorum(100, 7, error=6)) is None


def test_a_configuration_that_is_not_told_is_not_known() -> None:
    assert decode_configuration(
        {"min.insync.replicas": "2", "cleanup.policy": "delete"}
    ) == TopicConfiguration(2, compacted=False)
    assert decode_configuration(
        {"min.insync.replicas": "x", "cleanup.policy": "compact,delete"}
    ) == TopicConfiguration(None, compacted=True)
    assert decode_configuration({"min.insync.replicas": None}) == TopicConfiguration(None, None)


class Asked:
    """A control whose brokers answer as `answers` says, at the times that `clock` says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.loop = EventLoop()
        cluster = Cluster(name="c")
        self.reader = MetadataReader(self.loop, {}, Inventory(cluster, 1), cluster, Collect())
        self.answer: Quorum | NoAnswerError | None = Quorum(100, 7, {})
        self.at = 0.0

        async def ready(link: Any) -> Any:
            return link

        async def read(_link: Any, _seconds: float) -> Quorum | None:
            if isinstance(self.answer, NoAnswerError):
                raise self.answer
            return self.answer

        async def fenced(_link: Any, _seconds: float) -> dict[int, bool]:
            return {1: False}

        monkeypatch.setattr(self.reader, "_ready", ready)
        monkeypatch.setattr(module, "read_quorum", read)
        monkeypatch.setattr(module, "read_fenced", fenced)
        monkeypatch.setattr(
            "tidemark.collect.metadata_reader.time", Answer(monotonic=lambda: self.at)
        )

    def ask(self, broker: int, at: float) -> tuple[int | None, int | None] | None:
        self.at = at
        future = self.reader._read_quorum(Answer(broker=broker, host="h", port=broker))  # type: ignore[arg-type]
        try:
            future.send(None)
        except (StopIteration, NoAnswerError):
            pass
        return (
            None
            if self.reader.quorum is None
            else (self.reader.quorum.leader, self.reader.quorum.epoch)
        )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    made = Asked(monkeypatch)
    yield made
    made.loop.close()


@pytest.mark.parametrize("silence", [NoAnswerError("timed_out"), None])
def test_a_quorum_that_gives_two_brokers_no_answer_for_long_has_no_leader(
    asked: Asked, silence: NoAnswerError | None
) -> None:
    assert asked.ask(1, 0.0) == (100, 7)
    asked.answer = silence
    assert asked.ask(1, 5.0) == (100, 7)
    assert asked.ask(1, 20.0) == (100, 7), "one broker alone may be what is cut off"
    assert asked.ask(2, 21.0) == (None, 7)
    asked.answer = Quorum(101, 8, {})
    assert asked.ask(2, 25.0) == (101, 8)
    asked.answer = silence
    assert asked.ask(1, 26.0) == asked.ask(2, 27.0) == (101, 8), "an election takes some seconds"


def test_a_broker_whose_image_is_old_is_asked_last(asked: Asked) -> None:
    live: dict[int, Any] = {
        number: Answer(broker=number, host="h", port=number, connected_at=-100.0)
        for number in (1, 2, 3)
    }
    assert {link.broker for _ in range(3) for link in asked.reader.choose(live)} == {1, 2, 3}
    replicas = {
        1: QuorumReplica(False, 5, 2_500.0),
        2: QuorumReplica(False, 9, 1_900.0),
        3: QuorumReplica(False, 9, None),
    }
    asked.answer = Quorum(100, 7, replicas)
    asked.ask(2, 0.0)
    assert [sorted(link.broker for link in asked.reader.choose(live)) for _ in range(3)] == [
        [2, 3]
    ] * 3
    del live[3]
    assert [[link.broker for link in asked.reader.choose(live)] for _ in range(2)] == [[2, 1]] * 2


def test_a_quorum_that_never_answered_is_not_known(asked: Asked) -> None:
    asked.answer = None
    assert [asked.ask(broker, 30.0 * broker) for broker in (1, 2, 3)] == [None, None, None]
