"""The log through one controller after another: only committed records, each once, none missing."""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.collect.inventories import everything
from tests.collect.metadata_log.controller import FakeController
from tests.collect.metadata_log.encoding import (
    change,
    encode_batch,
    encode_snapshot,
    newer,
    partition,
    registration,
    topic,
    topic_id,
)
from tidemark.collect.sources.metadata_log.reader import (
    UNKNOWN_TOPIC_OR_PARTITION,
    MetadataLogReader,
    Outcome,
    Result,
)
from tidemark.collect.sources.metadata_log.records import (
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tidemark.collect.sources.metadata_log.requests import TOPIC_UUID, Fetched, decode_fetch
from tidemark.core.errors import WireError
from tidemark.core.events import BrokerState, MetadataChange, PartitionDeleted

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        return cast(T, done.value)
    raise AssertionError("it waits")


class Reading:
    """A reader, and the events that it has handed over."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.reader = MetadataLogReader(everything(), self.events.extend, lambda: 99.0)

    def read(self, controller: FakeController, times: int = 8) -> Result:
        """The result of the last fetch; none follows one that names another controller."""

        async def work() -> Result:
            for _ in range(times):
                result = await self.reader.read(controller.ask)
                if result.outcome is Outcome.NEXT_CONTROLLER:
                    break
            return result

        return run(work())

    def take(self) -> list[Any]:
        taken, self.events[:] = list(self.events), []
        return taken


def offsets(events: list[Any]) -> list[int]:
    return [event.metadata_offset for event in events if isinstance(event, MetadataChange)]


@pytest.fixture
def reading() -> Reading:
    return Reading()


@pytest.fixture
def live(controller: FakeController, reading: Reading) -> Reading:
    """It has read and handed over all that the controller has."""
    reading.read(controller)
    reading.take()
    return reading


@pytest.fixture
def controller() -> FakeController:
    made = FakeController()
    made.append(registration(1, 0, fenced=False))
    made.append(topic(1, "t"), partition(0), partition(1))
    made.append(change(0, isr=[1, 2]))
    return made


def test_the_log_from_its_start_and_then_what_is_new(
    reading: Reading, controller: FakeController
) -> None:
    reading.read(controller)
    events = reading.take()
    assert offsets(events) == [2, 3, 4]
    assert [e.broker for e in events if isinstance(e, BrokerState)] == [1]
    assert reading.reader.is_live
    assert reading.reader.applied_offset == 4
    controller.append(change(0, isr=[1]))
    reading.read(controller)
    assert offsets(reading.take()) == [5]


def test_records_above_the_high_watermark_wait(live: Reading, controller: FakeController) -> None:
    controller.append(change(0, isr=[1]), commit=False)
    assert live.read(controller).outcome is Outcome.WAIT
    assert live.take() == []
    controller.committed = controller.end
    live.read(controller)
    assert offsets(live.take()) == [5]


def test_a_new_controller_without_the_uncommitted_records(
    live: Reading, controller: FakeController
) -> None:
    controller.append(change(0, isr=[1]), commit=False)
    live.read(controller)
    live.take()
    follower = FakeController(epoch=6)
    follower.log, follower.end = controller.log[:-1], controller.end - 1
    follower.append(change(0, isr=[1, 2, 3]))
    controller.is_leader = False
    assert live.read(controller).reason == "is not the active controller"
    live.read(follower)
    (event,) = live.take()
    assert (event.metadata_offset, event.in_sync_replicas) == (5, [1, 2, 3])
    assert event.partition_epoch == 2
    controller.is_leader = True
    assert live.read(controller).reason == "is behind the other controllers"


def test_a_snapshot_and_then_the_log(controller: FakeController, reading: Reading) -> None:
    snapshot = encode_snapshot(
        registration(1, 0, fenced=False), topic(1, "t"), partition(0, partition_epoch=1)
    )
    controller.snapshot(snapshot)
    controller.append(change(0, isr=[1]))
    reading.read(controller)
    assert [(e.metadata_offset, e.partition_epoch) for e in reading.take()[:2]] == [(4, 1), (5, 2)]
    assert controller.asked.count("snapshot") > 2


def test_the_history_of_a_deleted_topic_is_no_news(
    controller: FakeController, reading: Reading
) -> None:
    controller.append(topic(2, "gone"), partition(0, of=2), change(0, of=2, isr=[1]))
    controller.append(RemoveTopicRecord(topic_id(2)))
    reading.read(controller)
    events = reading.take()
    assert offsets(events) == [2, 3, 4]
    assert [e.topic for e in events if isinstance(e, PartitionDeleted)] == ["gone"]
    controller.append(RemoveTopicRecord(topic_id(1)))
    reading.read(controller)
    assert [(e.topic, e.partition) for e in reading.take()] == [("t", 0), ("t", 1)]


def test_a_log_that_moved_on_is_read_from_its_snapshot(
    live: Reading, controller: FakeController
) -> None:
    controller.append(RemoveTopicRecord(topic_id(1)), topic(2, "u"), partition(0, of=2))
    controller.snapshot(encode_snapshot(topic(2, "u"), partition(0, of=2)))
    live.read(controller)
    events = live.take()
    assert [(type(e).__name__, e.topic) for e in events] == [
        ("MetadataChange", "u"),
        ("PartitionDeleted", "t"),
        ("PartitionDeleted", "t"),
    ]
    controller.append(change(0, of=2, isr=[1]))
    live.read(controller)
    assert offsets(live.take()) == [8]


def test_a_snapshot_that_is_replaced_meanwhile(
    controller: FakeController, reading: Reading
) -> None:
    first = controller.snapshot(encode_snapshot(topic(1, "t"), partition(0)))
    reading.read(controller, times=2)
    controller.append(change(0, isr=[1]))
    controller.snapshot(encode_snapshot(topic(1, "t"), partition(0, isr=[1], partition_epoch=1)))
    del controller.snapshots[first]
    while not reading.reader.is_live:
        reading.read(controller)
    assert [e.partition_epoch for e in reading.take()] == [1]


def test_a_log_that_lost_what_was_applied_is_read_again(
    live: Reading, controller: FakeController
) -> None:
    other = FakeController(epoch=9)
    other.append(topic(3, "new"), partition(0, of=3))
    assert "without the records" in (live.read(other).reason or "")
    live.take()
    live.read(other)
    assert [(type(e).__name__, e.topic) for e in live.take()] == [
        ("MetadataChange", "new"),
        ("PartitionDeleted", "t"),
        ("PartitionDeleted", "t"),
    ]


def test_another_quorum_with_lower_epochs(live: Reading, controller: FakeController) -> None:
    controller.error = 42
    live.read(controller)
    other = FakeController(epoch=1)
    other.append(topic(3, "new"), partition(0, of=3))
    live.read(other)
    assert live.reader.is_live


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (31, "denies ClusterAction"),
        (100, "a broker's listener"),
        (3, "not a controller's listener"),
        (-1, "gave error -1"),
    ],
)
def test_what_is_wrong_is_named(controller: FakeController, error: int, reason: str) -> None:
    controller.error = error
    assert reason in (Reading().read(controller).reason or "")


def test_a_damaged_batch_is_not_applied_in_part(live: Reading, controller: FakeController) -> None:
    controller.log.append(encode_batch(controller.end, [b"\x01\x05\x00"], epoch=5))
    controller.end = controller.committed = controller.end + 1
    for _ in range(2):
        with pytest.raises(WireError, match="truncated"):
            live.read(controller)
    assert live.reader.applied_offset == 4
    assert live.take() == []


def test_a_version_that_is_not_listed_stops_what_rests_on_it_and_no_more(
    live: Reading, controller: FakeController
) -> None:
    controller.append(newer(PartitionChangeRecord))
    controller.append(change(0, isr=[1]), registration(1, 7, fenced=False))
    live.read(controller)
    assert [event.incarnation for event in live.take()] == [7]
    assert live.reader.applied_offset == 7
    assert [record.name for record in live.reader.unlisted] == ["PartitionChangeRecord"]
    # Another log, in which topic t may or may not be: nothing is known of partitions.
    other = FakeController(epoch=6)
    other.append(registration(1, 8, fenced=False), newer(TopicRecord))
    live.read(other)
    live.read(other)
    assert live.reader.is_live
    assert [event.incarnation for event in live.take()] == [8]


def test_a_broker_that_may_have_changed_is_not_reported(
    reading: Reading, controller: FakeController
) -> None:
    controller.append(newer(RegisterBrokerRecord))
    controller.append(change(0, isr=[1]))
    reading.read(controller)
    assert [type(event) for event in reading.take()] == [MetadataChange] * 4


def test_a_null_array_is_no_partition() -> None:
    head = bytes(10) + b"\x02" + TOPIC_UUID.bytes
    for answer in (bytes(10) + b"\x00\x00", head + b"\x00\x00\x00"):
        assert decode_fetch(answer) == Fetched(UNKNOWN_TOPIC_OR_PARTITION)


@settings(max_examples=50)
@given(st.data())
def test_hostile_answers_are_wire_errors(data: st.DataObject) -> None:
    controller = FakeController()
    controller.append(topic(1, "t"), partition(0))
    controller.snapshot(encode_snapshot(topic(1, "t"), partition(0)))
    controller.append(change(0, isr=[1]))
    reading = Reading()

    async def ask(request: Any) -> bytes:
        answer = bytearray(await controller.ask(request))
        kind = data.draw(st.sampled_from(["same", "random", "cut", "changed"]))
        if kind == "random":
            return data.draw(st.binary(max_size=60))
        if kind == "cut":
            return bytes(answer[: data.draw(st.integers(0, len(answer)))])
        if kind == "changed":
            answer[data.draw(st.integers(0, len(answer) - 1))] = data.draw(st.integers(0, 255))
        return bytes(answer)

    async def work() -> None:
        for _ in range(12):
            with contextlib.suppress(WireError):
                await reading.reader.read(ask)

    run(work())


records = st.lists(
    st.builds(change, st.integers(0, 1), isr=st.lists(st.integers(1, 3), max_size=3)),
    min_size=1,
    max_size=4,
)


@settings(max_examples=40)
@given(st.lists(st.tuples(records, st.sampled_from(["commit", "hold", "fail"])), max_size=8))
def test_each_committed_record_is_reported_once_through_failovers(
    steps: list[tuple[list[Any], str]],
) -> None:
    controller, reading = FakeController(), Reading()
    controller.append(topic(1, "t"), partition(0), partition(1))
    reading.read(controller)
    expected = offsets(reading.take())
    for written, step in steps:
        base = controller.append(*written, commit=step != "hold")
        if step == "hold":
            reading.read(controller)
            follower = FakeController(controller.epoch + 1)
            follower.log, follower.end = controller.log[:-1], base
            follower.start, follower.committed = controller.start, controller.committed
            follower.snapshots = controller.snapshots
            controller = follower
        else:
            expected += range(base, controller.end)
        if step == "fail":
            controller.epoch += 1
        reading.read(controller)
    assert offsets(reading.events) == expected[2:]
