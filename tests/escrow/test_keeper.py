"""What the keeper reads, stores and deletes, without brokers: leaders and topics are made up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import wait
from typing import Any

import pytest

from tests.assess.test_leader_death import led
from tests.verbs.salvage.logs import batch, sent
from tidemark.core.errors import ClusterError
from tidemark.core.records import View
from tidemark.escrow.keeper import Keeper, Key
from tidemark.escrow.leader_reads import Read
from tidemark.escrow.sealed import Seal
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
        self.log, self.error, self.has_others = LOG, "", True
        self.asked: list[int] = []

    def read(self, wanted: Mapping[int, Mapping[Any, int]], _seconds: float) -> list[Read]:
        found = []
        for offsets in wanted.values():
            for place, offset in offsets.items():
                self.asked.append(offset)
                batches = [b for b in self.log if b.last_offset >= offset][:4]
                error = self.error or None
                found.append(Read(place, offset, [] if error else batches, 100, error))
        return found

    def has_other_member(self, _place: Any, _leader: int) -> bool:
        return self.has_others

    def close(self) -> None:
        pass


class Future:
    def __init__(self, offset: int, error: Exception | None) -> None:
        self.value, self.exception, self.is_done = self, error, True
        self.offset = offset

    def failed(self) -> bool:
        return self.exception is not None


class Topics:
    """The Kafka of Tidemark's own topics: its topics, and a producer for them."""

    def __init__(self) -> None:
        self.records: list[Message] = []
        self.start = 0
        self.error: Exception | None = None
        self.refusal = ""
        self.deleted: list[str] = []

    def name_for(self, cluster: str, topic: str) -> str:
        return f"tidemark.escrow.{cluster}.{topic}"

    def names(self) -> list[str]:
        return ["tidemark.escrow.main.orders"] if self.records else []

    def ensure(self, _name: str, _partitions: int) -> None:
        if self.refusal:
            raise ClusterError(self.refusal)

    def read(self, _name: str) -> Iterator[Message]:
        yield from self.records[self.start :]

    def delete_before(self, offsets: Mapping[tuple[str, int], int]) -> None:
        for place, offset in offsets.items():
            assert place == ("tidemark.escrow.main.orders", 0)
            self.start = max(self.start, offset)

    def delete(self, name: str) -> None:
        self.deleted.append(name)

    def send(self, topic: str, value: bytes, partition: int, key: bytes | None = None) -> Future:
        if key is None:
            return Future(0, None)
        if self.error is None:
            self.records.append(Message(partition, len(self.records), key, value, 5_000))
        return Future(len(self.records) - 1, self.error)

    def flush(self, _seconds: float) -> None:
        pass

    def close(self, timeout: float = 0) -> None:
        pass


class Rig:
    def __init__(self, topics: Topics | None = None, **options: Any) -> None:
        self.now = 10.0
        self.leader, self.topics = Leader(), topics or Topics()
        settings = Settings(escrow=Escrow(topics=["orders"], margin_records=10, **options))
        topics_of: Any = self.topics
        self.keeper = Keeper(settings, Seal(None), topics_of, clock=lambda: self.now)
        reads: Any = {"main": self.leader}
        self.keeper._reads = reads
        self.keeper._producer = self.topics

    def see(self, view: View | None) -> None:
        self.keeper.see(KEY, view)

    def steps(self, count: int = 8) -> None:
        for _ in range(count):
            self.now += 1.0
            self.keeper._refused_at = -100.0
            self.keeper._producer = self.topics
            wait([preparation for preparation, _, _ in self.keeper._unsent])
            self.keeper.step(0.0)

    @property
    def ranges(self) -> list[tuple[int, int, int | None]]:
        held = self.keeper.held.get(KEY)
        return [] if held is None else held.ranges()


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
    assert (rig.ranges, rig.topics.start, rig.keeper.held) == ([], 10, {})
    assert +rig.keeper.dropped == {}


@pytest.mark.parametrize(
    "view",
    [
        # An unclean leader, whose log ended at 60 and goes on with another epoch.
        led(leader=2, leader_epoch=6, lineage=[(4, 60), (6, 80)], lineage_complete_from=4),
        # No leader, nothing seen, and no knowledge of the lineage.
        led(leader=None),
        led(missed_passes=3),
        led(leader=2, leader_epoch=6),
    ],
)
def test_it_is_kept_where_the_leader_may_lack_it(rig: Rig, view: View) -> None:
    rig.see(view)
    rig.steps()
    assert rig.ranges == [(50, 100, 4)]
    rig.now += 24 * 3600
    rig.steps()
    assert rig.ranges == []
    assert rig.keeper.dropped["expired"] == 10


def test_what_was_deleted_is_deleted_there_too(rig: Rig) -> None:
    """A batch that still has a record stays, as it does in Kafka."""
    rig.see(led(BEHIND, **ALONE, log_start_offset=62))
    rig.steps()
    assert (rig.ranges, rig.topics.start) == ([(60, 100, 4)], 2)
    rig.see(None)
    assert (rig.ranges, rig.topics.deleted) == ([], ["tidemark.escrow.main.orders"])


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
    assert rig.keeper.dropped["bytes"] == 2


def test_a_new_process_goes_on_behind_what_is_held(rig: Rig) -> None:
    later = Rig(rig.topics)
    later.topics.records.append(Message(0, 10, b"of another writer", b"", None))
    later.keeper.recover()
    later.see(led(BEHIND, **ALONE))
    later.steps()
    assert later.ranges == [(50, 100, 4)]
    assert later.leader.asked == [100] * 8


def test_a_failed_write_is_said_and_read_again() -> None:
    rig = Rig()
    rig.topics.refusal = "no right to create"
    rig.see(led(BEHIND, **ALONE))
    rig.steps(3)
    assert (rig.ranges, rig.keeper.waits_for()) == ([], ["no right to create"])
    rig.topics.error, rig.topics.refusal = ClusterError("below min ISR"), ""
    rig.steps(3)
    assert (rig.ranges, rig.keeper.waits_for()) == ([], ["below min ISR"])
    rig.topics.error = None
    rig.steps()
    assert (rig.ranges, rig.keeper.waits_for()) == ([(50, 100, 4)], [])


def test_a_leader_without_an_answer_is_asked_again() -> None:
    rig = Rig()
    rig.leader.error = "timed_out"
    rig.see(led(BEHIND, **ALONE))
    rig.steps(3)
    assert rig.keeper.waits_for() == ["timed_out"]
    rig.leader.error = ""
    rig.steps()
    assert (rig.ranges, rig.keeper.waits_for()) == ([(50, 100, 4)], [])
