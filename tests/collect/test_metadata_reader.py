from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace as Answer
from typing import Any

import pytest

from tidemark.collect.codecs.metadata_image import (
    EligibleReplicas,
    MetadataImage,
    PartitionMetadata,
    TopicMetadata,
)
from tidemark.collect.codecs.topic_configuration import TopicConfiguration, decode_configuration
from tidemark.collect.connect.connection import BrokerConnection, Network, NoAnswerError
from tidemark.collect.metadata import metadata_reader as module
from tidemark.collect.metadata.admin_queries import (
    Configurations,
    Quorum,
    QuorumReplica,
    decode_quorum,
)
from tidemark.collect.metadata.inventory import Inventory
from tidemark.collect.metadata.metadata_reader import MetadataReader
from tidemark.collect.metadata.refusals import (
    AUTHORIZATION_ERRORS,
    QUORUM,
    RefusedError,
    check_authorized,
    denied_topics,
)
from tidemark.settings import Cluster, Collect


class Link(Answer):
    """A connection that is always there."""

    async def ready(self, _seconds: float) -> Link:
        return self


class FakeQuorum:
    """A reader whose brokers all give `answer` for the quorum."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        network, cluster = Network({}), Cluster(name="c")
        self.loop = network.loop
        self.reader = MetadataReader(network, Inventory(cluster, 1), cluster, Collect())
        self.answer: Quorum | NoAnswerError | None = Quorum(100, 7, {})
        self.at = 0.0

        async def ready(link: Any, _seconds: float) -> Any:
            return link

        async def read(_link: Any, _seconds: float) -> Quorum | None:
            if isinstance(self.answer, NoAnswerError):
                raise self.answer
            return self.answer

        async def fenced(_link: Any, _seconds: float) -> dict[int, bool]:
            return {1: False}

        monkeypatch.setattr(BrokerConnection, "ready", ready)
        monkeypatch.setattr(module, "read_quorum", read)
        monkeypatch.setattr(module, "read_fenced", fenced)
        monkeypatch.setattr(
            "tidemark.collect.metadata.metadata_reader.time", Answer(monotonic=lambda: self.at)
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
def quorum(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeQuorum]:
    made = FakeQuorum(monkeypatch)
    yield made
    made.loop.close()


def connected(*brokers: int) -> dict[int, Any]:
    return {b: Answer(broker=b, host="h", port=b, connected_at=-100.0) for b in brokers}


@pytest.mark.parametrize("silence", [NoAnswerError("timed_out"), None])
def test_a_quorum_that_gives_two_brokers_no_answer_for_a_while_has_no_leader(
    quorum: FakeQuorum, silence: NoAnswerError | None
) -> None:
    assert quorum.ask(1, 0.0) == (100, 7)
    quorum.answer = silence
    assert quorum.ask(1, 5.0) == (100, 7)
    assert quorum.ask(1, 20.0) == (100, 7), "the one broker may be cut off"
    assert quorum.ask(2, 21.0) == (None, 7)
    quorum.answer = Quorum(101, 8, {})
    assert quorum.ask(2, 25.0) == (101, 8)
    quorum.answer = silence
    assert quorum.ask(1, 26.0) == quorum.ask(2, 27.0) == (101, 8), "an election takes some seconds"


def test_a_broker_with_an_old_image_is_asked_last(quorum: FakeQuorum) -> None:
    live = connected(1, 2, 3)
    assert {link.broker for _ in range(3) for link in quorum.reader.choose(live)} == {1, 2, 3}
    replicas = {
        1: QuorumReplica(False, 5, 2_500.0),
        2: QuorumReplica(False, 9, 1_900.0),
        3: QuorumReplica(False, 9, None),
    }
    quorum.answer = Quorum(100, 7, replicas)
    quorum.ask(2, 0.0)
    assert [sorted(link.broker for link in quorum.reader.choose(live)) for _ in range(3)] == [
        [2, 3]
    ] * 3
    del live[3]
    assert [[link.broker for link in quorum.reader.choose(live)] for _ in range(2)] == [[2, 1]] * 2


def test_an_old_image_counts_no_longer_once_the_quorum_is_silent(quorum: FakeQuorum) -> None:
    """Broker 3 was behind, has caught up, and alone reaches the controllers now."""
    live = connected(1, 2, 3)
    replicas = {number: QuorumReplica(False, 9, 100.0) for number in (1, 2)}
    quorum.answer = Quorum(100, 7, {**replicas, 3: QuorumReplica(False, 5, 7_000.0)})
    quorum.ask(1, 0.0)
    quorum.answer = NoAnswerError("timed_out")
    quorum.ask(1, 5.0)
    assert {link.broker for _ in range(3) for link in quorum.reader.choose(live)} == {1, 2, 3}


def test_each_read_takes_turns_of_its_own(
    quorum: FakeQuorum, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = connected(1, 2)
    asked: list[int] = []
    monkeypatch.setattr(
        quorum.reader,
        "_start",
        lambda name, _, *given: asked.append(given[0].broker) if name == QUORUM else None,
    )
    for now in range(4):
        quorum.reader.start_images(live)
        quorum.reader.start_queries(live, float(now), images_due=True)
    assert asked == [2, 1, 2, 1]


def test_a_quorum_that_never_answered_is_unknown(quorum: FakeQuorum) -> None:
    quorum.answer = None
    assert [quorum.ask(broker, 30.0 * broker) for broker in (1, 2, 3)] == [None, None, None]


BOTH = PartitionMetadata(1, 4, (1, 2), (1, 2), 0)


class Reading:
    """A reader of a cluster with these topics, and the network that it uses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, topics: dict[str, TopicMetadata]) -> None:
        cluster, self.network = Cluster(name="c"), Network({})
        self.inventory = Inventory(cluster, 1)
        self.show(topics, 0.0)
        self.reader = MetadataReader(self.network, self.inventory, cluster, Collect())
        monkeypatch.setattr(self.reader, "list_reassignments", lambda *_: None)

    def show(self, topics: dict[str, TopicMetadata], at: float) -> None:
        self.inventory.apply([MetadataImage(1, at, "c", 1, {}, topics)])


def test_eligible_replicas_are_read_again_only_where_they_may_have_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topics = {name: TopicMetadata(None, 0, {0: BOTH}) for name in ("same", "elected", "shrunk")}
    reading = Reading(monkeypatch, topics)
    eligible = {(name, 0): EligibleReplicas([], [], 4, (2, 1)) for name in topics}
    reading.inventory.set_eligible(eligible)
    reader = reading.reader
    asked: list[set[str]] = []
    monkeypatch.setattr(reader, "choose", lambda *_: [None])
    monkeypatch.setattr(
        reader, "_query", lambda name, *given: asked.append(given[-1]) if name == "eligible" else 0
    )
    monkeypatch.setattr(reader, "_start", lambda *_: None)
    live: Any = {1: None}
    reader.start_queries(live, 100.0, images_due=False)
    assert asked == []
    topics["elected"] = TopicMetadata(None, 0, {0: BOTH._replace(leader=2, leader_epoch=5)})
    topics["shrunk"] = TopicMetadata(None, 0, {0: BOTH._replace(in_sync=(1,))})
    reading.show(topics, 1.0)
    reader.start_queries(live, 200.0, images_due=False)
    assert asked == [{"elected", "shrunk"}]
    reader.close()


def test_a_configuration_that_was_not_answered_is_read_again_in_the_next_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading = Reading(monkeypatch, {"orders": TopicMetadata(None, 0, {0: BOTH})})
    reader, network = reading.reader, reading.network
    asked: list[int] = []
    is_silent = True

    async def read(link: Any, _topics: list[str], _seconds: float) -> Configurations:
        asked.append(link.broker)
        if is_silent:
            raise NoAnswerError("timed_out")
        return Configurations({"orders": TopicConfiguration(2, False, None)}, set())

    monkeypatch.setattr(reader, "choose", lambda live, _: [live[1 + len(asked) % 2]])
    monkeypatch.setattr(module, "read_configurations", read)
    live: Any = {number: Link(broker=number) for number in (1, 2)}

    def start_pass(now: float) -> None:
        reader.start_queries(live, now, images_due=False)
        network.loop.run(network.loop.wait, [reader._running["configurations"]], 1.0)

    start_pass(100.0)
    start_pass(101.0)
    is_silent = False
    start_pass(102.0)
    start_pass(103.0)
    assert asked == [1, 2, 1], "again at once, from another broker, until one answers"
    reader.close()


def quorum_answer(leader: int, epoch: int, error: int = 0) -> Any:
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


def test_a_quorum_without_a_leader_has_its_epoch() -> None:
    led, leaderless = decode_quorum(quorum_answer(100, 7)), decode_quorum(quorum_answer(-1, 7))
    assert led is not None and leaderless is not None
    assert (led.leader, led.epoch, leaderless.leader, leaderless.epoch) == (100, 7, None, 7)
    assert led.replicas == {100: (True, 5, 0.0), 1: (False, None, 600.0)}
    assert decode_quorum(quorum_answer(100, 7, error=6)) is None


def test_a_configuration_that_is_not_reported_is_unknown() -> None:
    assert decode_configuration(
        {"min.insync.replicas": "2", "cleanup.policy": "delete"}
    ) == TopicConfiguration(2, compacted=False)
    assert decode_configuration(
        {"min.insync.replicas": "x", "cleanup.policy": "compact,delete"}
    ) == TopicConfiguration(None, compacted=True)
    assert decode_configuration({"min.insync.replicas": None}) == TopicConfiguration(None, None)


def test_a_missing_right_is_no_unsupported_question() -> None:
    for error in (0, 6, 35):
        check_authorized(error)
    for error, name in AUTHORIZATION_ERRORS.items():
        with pytest.raises(RefusedError, match=name):
            check_authorized(error)
    assert denied_topics(set()) is None
    assert denied_topics({"b", "a"}) == "TOPIC_AUTHORIZATION_FAILED (a, b)"
