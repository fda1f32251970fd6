"""What the keeper reads, stores and deletes, without brokers: leaders and topics are made up."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent import futures
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.future import Future

from tests.assess.test_leader_death import led
from tests.verbs.salvage.logs import batch, sent
from tidemark.core.errors import ClusterError
from tidemark.core.records import View
from tidemark.escrow import copies
from tidemark.escrow.copies import Copies, Failures
from tidemark.escrow.keeper import Keeper
from tidemark.escrow.leader_reads import Read
from tidemark.escrow.sealed import Key, Seal, read_label
from tidemark.kafka.client import RIGHTS_CURE
from tidemark.kafka.topic_reader import Message
from tidemark.record_log.batches import Batch, split_batches
from tidemark.settings import Escrow, Settings

KEY: Key = ("main", "orders", 0)
ALONE: dict[str, Any] = {"in_sync_replicas": [1]}
LOG: list[Batch] = split_batches(
    b"".join(batch(base, [sent(base + n) for n in range(5)]) for base in range(0, 100, 5)), 0
)[0]


class Leader:
    """Gives LOG in pieces of four batches, up to its high watermark."""

    def __init__(self) -> None:
        self.log, self.has_others = LOG, True
        self.error: str | None = None
        self.asked: list[int] = []
        self.found: list[Read] = []

    def read(self, wanted: Mapping[int, Mapping[Any, tuple[int, bool]]]) -> None:
        for places in wanted.values():
            for place, (offset, is_ending) in places.items():
                self.asked.append(offset)
                batches = [b for b in self.log if b.last_offset >= offset and not self.error][:4]
                is_doubled = is_ending and self.has_others
                self.found.append(Read(place, offset, batches, 100, self.error, is_doubled))

    def answers(self, _seconds: float) -> list[Read]:
        found, self.found = self.found, []
        return found


class Topics:
    """The Kafka of Tidemark's own topics: its topics, and a producer and administrator of them."""

    def __init__(self) -> None:
        self.records: list[Message] = []
        self.start = 0
        self.error: Exception | None = None
        self.refusal = ""

    def flush(self, _seconds: float = 0.0) -> None:
        pass

    close = flush

    def delete_records(self, offsets: Mapping[TopicPartition, int]) -> None:
        for place, offset in offsets.items():
            assert place == ("tidemark.escrow.main.orders", 0)
            self.start = max(self.start, offset)

    def send(self, _topic: str, value: bytes, key: bytes | None, *, partition: int) -> Future:
        message = Message(partition, len(self.records), key, value, 5_000)
        if self.error is not None:
            return Future().failure(self.error)
        self.records += [] if key is None else [message]
        return Future().success(message)


class CopiesTo(Copies):
    """Copies to made-up topics."""

    topics: Topics

    def _connect(self) -> None:
        self._admin = self._producer = self.topics

    def _prepare(self, wanted: Mapping[str, int]) -> None:
        if wanted and self.topics.refusal:
            raise ClusterError(self.topics.refusal)
        self._sizes |= wanted


class Rig:
    def __init__(self, topics: Topics | None = None, **options: Any) -> None:
        self.now = 10.0
        self.leader, self.topics = Leader(), topics or Topics()
        settings = Settings(escrow=Escrow(topics=["orders"], margin_records=10, **options))
        self.failures = Failures()
        self.copies = CopiesTo(settings, Seal(None), self.failures)
        self.copies.topics = self.topics
        reads: Any = {"main": self.leader}
        self.keeper = Keeper(settings, reads, self.copies, self.failures, lambda: self.now)

    def see(self, view: View | None) -> None:
        self.keeper.see(KEY, view)

    def steps(self, count: int = 8) -> None:
        for _ in range(count):
            self.now += 1.0
            self.keeper.step(0.0)
            futures.wait([self.copies._round])

    @property
    def ranges(self) -> list[tuple[int, int, int | None]]:
        return [*self.keeper.held[KEY].ranges] if KEY in self.keeper.held else []


BEHIND = {2: {"log_end_offset": 60, "lag_ms": 9e3}, 3: {"log_end_offset": 40, "lag_ms": 9e3}}


@pytest.fixture
def rig() -> Rig:
    found = Rig()
    found.see(led(BEHIND, **ALONE))
    found.steps()
    return found


def test_what_lies_on_one_disk_is_read_once_with_the_margin(rig: Rig) -> None:
    assert rig.ranges == [(50, 100, 4)]
    assert [message.value for message in rig.topics.records] == [b.data for b in LOG[10:]]
    assert rig.leader.asked == [50, 70, 90, *[100] * 5]


def test_it_is_deleted_once_the_leader_says_that_another_replica_is_in_sync(rig: Rig) -> None:
    rig.leader.has_others = False
    rig.see(led())
    rig.steps()
    assert rig.ranges == [(50, 100, 4)]
    rig.leader.has_others = True
    rig.steps()
    # From then on it is healthy, and not read.
    rig.see(led())
    rig.steps()
    assert (rig.ranges, rig.topics.start, rig.keeper.held) == ([], 10, {})
    assert rig.leader.asked == [50, 70, 90, *[100] * 14]
    assert +rig.keeper.counted == {"read": sum(len(each.data) for each in LOG[10:])}


@pytest.mark.parametrize(
    ("view", "start"),
    [
        # An unclean leader, whose log ended at 60 and goes on with another epoch.
        (led(leader=2, leader_epoch=6, lineage=[(4, 60), (6, 80)], lineage_complete_from=4), 60),
        # No leader, nothing seen, and no knowledge of the lineage.
        (led(leader=None), 50),
        (led(missed_passes=3), 50),
        (led(leader=2, leader_epoch=6), 50),
    ],
)
def test_it_is_kept_where_the_leader_may_lack_it(rig: Rig, view: View, start: int) -> None:
    rig.see(view)
    rig.steps()
    assert rig.ranges == [(start, 100, 4)]
    rig.now += 24 * 3600
    rig.steps()
    assert rig.ranges == []
    assert rig.keeper.counted["expired"] == (100 - start) // 5


@pytest.mark.parametrize(
    ("view", "count"),
    [(led(missed_passes=3), 8), (led(leader=None), 8), (led({1: {"error": "timed_out"}}), 1)],
)
def test_reading_ends_only_where_another_replica_is_seen_in_sync(
    rig: Rig, view: View, count: int
) -> None:
    rig.see(view)
    rig.steps()
    assert rig.leader.asked[8:] == [100] * count


def test_what_was_deleted_is_deleted_there_too(rig: Rig) -> None:
    """A batch that still has a record stays, as it does in Kafka."""
    rig.see(led(BEHIND, **ALONE, log_start_offset=62))
    rig.steps()
    assert (rig.ranges, rig.topics.start) == ([(60, 100, 4)], 2)
    rig.see(None)
    rig.steps()
    assert (rig.ranges, rig.topics.start) == ([], 10)


def test_a_topic_created_again_has_none_of_the_old_one() -> None:
    rig = Rig()
    rig.see(led(BEHIND, **ALONE, topic_id="a"))
    rig.steps()
    rig.see(led(BEHIND, **ALONE))
    assert rig.ranges == [(50, 100, 4)], "an unknown id is no other one"
    rig.see(led(topic_id="b"))
    assert rig.ranges == []


def test_the_oldest_goes_above_the_bound() -> None:
    rig = Rig(bytes_per_topic=1024 * 1024)
    large = [batch(base, [sent(1)._replace(value=b"x" * 300_000)]) for base in range(95, 100)]
    rig.leader.log = split_batches(b"".join(large), 0)[0]
    rig.see(led(BEHIND, **ALONE))
    rig.steps()
    assert (rig.ranges, rig.topics.start) == ([(97, 100, 4)], 2)
    assert rig.keeper.counted["bytes"] == 2


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_new_process_goes_on_behind_the_newest_copy(rig: Rig, is_deleted: bool) -> None:
    """It reads before it knows all that is held, and deletes only then."""
    later = Rig(rig.topics)
    held = [
        (label, len(each.value or b""), 5.0, each.offset)
        for each in rig.topics.records
        if (label := read_label(each.key)) is not None
    ]
    later.keeper.recover([held[-1][0]])
    later.leader.log = [*LOG, *split_batches(batch(100, [sent(100)]), 0)[0]]
    later.see(led(BEHIND, **ALONE))
    later.steps()
    assert later.leader.asked == [100, *[101] * 7]
    if is_deleted:
        later.see(None)
    assert (later.ranges, later.topics.start) == ([], 0)
    later.keeper.take_over(held)
    later.steps()
    assert later.ranges == ([] if is_deleted else [(50, 101, 4)])
    assert later.topics.start == (11 if is_deleted else 0)


def test_what_was_read_is_written_once_kafka_takes_it_also_without_the_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copies, "PAUSE_SECONDS", 0.0)
    rig = Rig()
    rig.leader.error, rig.topics.refusal = "TOPIC_AUTHORIZATION_FAILED", "no right to create"
    rig.see(led(BEHIND, **ALONE))
    rig.steps(3)
    assert rig.failures == {
        "read from leaders": "TOPIC_AUTHORIZATION_FAILED from broker 1 of main (orders-0)"
        + RIGHTS_CURE
    }
    rig.leader.error = None
    rig.steps(3)
    assert (rig.ranges, list(rig.failures.values())) == ([], ["no right to create"])
    rig.leader.log = []
    rig.topics.error, rig.topics.refusal = ClusterError("below min ISR"), ""
    rig.steps(3)
    assert (rig.ranges, list(rig.failures.values())) == ([], ["below min ISR"])
    rig.topics.error = None
    rig.steps()
    assert (rig.ranges, list(rig.failures.values())) == ([(50, 100, 4)], [])
