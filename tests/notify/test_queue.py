"""When a batch is due, which alerts share one, and which a full queue drops."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.export.make import NOW, alert
from tidemark_exporters.notify.groups import Groups
from tidemark_exporters.notify.queue import MAX_BATCH, REFUSED_SECONDS, AlertBatch, Entry, Queue

LOSS = "KafkaCommittedDataLoss"


class GroupedQueue(Queue):
    """A queue and the groups of its alerts, as a webhook keeps them."""

    def __init__(self, limit: int = 10, gather_seconds: float = 2.0) -> None:
        super().__init__(limit, gather_seconds)
        self.groups = Groups()


@pytest.fixture
def queue() -> GroupedQueue:
    return GroupedQueue()


def push(
    queue: GroupedQueue, name: str = "KafkaFollowerLag", now: float = NOW, **labels: Any
) -> list[str]:
    """The partitions of the alerts that are dropped for it."""
    fired = alert(name, **{"at": NOW, **labels})
    if fired.state == "firing":
        queue.groups.fire(fired)
    else:
        queue.groups.end(fired.fingerprint)
    group = queue.group_of(fired.fingerprint) or queue.groups.of(fired)
    return partitions(queue.push(Entry(fired, None, now), group, now))


def partitions(entries: list[Entry]) -> list[str]:
    return [entry.alert.labels["partition"] for entry in entries]


def take(queue: Queue, now: float) -> list[Entry]:
    """The alerts of the batch that is due."""
    batch = queue.take(now)
    return [] if batch is None else list(batch.entries.values())


def drain(queue: Queue, now: float = NOW + 2) -> list[list[Entry]]:
    taken = []
    while entries := take(queue, now):
        queue.delivered()
        taken.append(entries)
    return taken


def test_a_batch_is_due_two_seconds_after_the_time_of_its_first_alert(queue: GroupedQueue) -> None:
    push(queue, at=NOW - 0.5)
    push(queue, "KafkaUnderReplicated", at=NOW + 0.4, now=NOW + 0.4)
    assert queue.next_at() == NOW + 1.5
    assert queue.take(NOW + 1.49) is None
    assert queue.waiting(NOW + 1.49) == (2, None)
    assert queue.waiting(NOW + 1.5) == (2, NOW)
    assert len(take(queue, NOW + 1.5)) == 2
    queue.delivered()
    assert queue.next_at() is None


@given(age=st.floats(-100, 1000))
def test_it_waits_half_a_second_at_least_and_two_at_most(age: float) -> None:
    queue = GroupedQueue(10, 2.0)
    push(queue, at=NOW - age)
    due_at = queue.next_at()
    assert due_at is not None
    assert NOW + 0.5 <= due_at <= NOW + 2.0


def test_loss_and_offline_are_due_at_once(queue: GroupedQueue) -> None:
    push(queue, broker="3", partition="7")
    push(queue, "KafkaOffline")
    push(queue, LOSS)
    (batch,) = drain(queue, NOW)
    assert [entry.alert.labels["alertname"] for entry in batch] == ["KafkaOffline", LOSS]
    assert queue.waiting(NOW)[0] == 1


def test_clusters_and_brokers_do_not_mix(queue: GroupedQueue) -> None:
    options: list[dict[str, Any]] = [{}, {"cluster": "west"}, {"broker": "3"}, {"broker": None}]
    for labels in options:
        push(queue, **labels)
    found = []
    while (batch := queue.take(NOW + 2)) is not None:
        found.append(batch.group.labels)
        queue.delivered()
    assert found == [
        {"kafka_cluster": "east", "broker": "2"},
        {"kafka_cluster": "west", "broker": "2"},
        {"kafka_cluster": "east", "broker": "3"},
        {"kafka_cluster": "east"},
    ]


def test_an_alert_is_once_in_a_batch(queue: GroupedQueue) -> None:
    push(queue)
    push(queue, state="resolved", at=NOW + 1, now=NOW + 1)
    assert [[e.alert.state for e in batch] for batch in drain(queue, NOW + 1)] == [["firing"]]
    assert [[e.alert.state for e in batch] for batch in drain(queue, NOW + 3)] == [["resolved"]]


def test_a_full_batch_is_due() -> None:
    queue = GroupedQueue(10_000, 2.0)
    for number in range(MAX_BATCH + 1):
        push(queue, partition=str(number))
    (batch,) = drain(queue, NOW)
    assert len(batch) == MAX_BATCH
    assert queue.waiting(NOW)[0] == 1


def test_a_full_queue_drops_its_oldest_but_never_a_loss() -> None:
    queue = GroupedQueue(2, 2.0)
    assert push(queue, LOSS, partition="loss") == []
    assert push(queue, partition="0") == []
    assert push(queue, broker="3", partition="1") == []
    assert push(queue, partition="2") == ["0"]
    assert push(queue, partition="3") == ["2"]
    for number in range(5):
        assert push(queue, LOSS, partition=f"loss{number}") == []
    assert queue.waiting(NOW)[0] == 8
    losses = ["loss", *(f"loss{number}" for number in range(5))]
    assert [sorted(partitions(batch)) for batch in drain(queue)] == [["3", *losses], ["1"]]


def test_urgent_alerts_are_dropped_last() -> None:
    queue = GroupedQueue(1, 2.0)
    push(queue, "KafkaOffline", partition="0")
    assert push(queue, partition="1") == ["1"]


def test_the_batch_in_flight_is_not_changed() -> None:
    queue = GroupedQueue(1, 2.0)
    push(queue, partition="0")
    assert partitions(take(queue, NOW + 2)) == ["0"]
    assert push(queue, partition="1") == ["1"]
    assert partitions(queue.delivered()) == ["0"]
    assert queue.waiting(NOW)[0] == 0
    assert push(queue, partition="2") == []


def test_a_batch_that_failed_comes_again_first_and_takes_nothing_in(queue: GroupedQueue) -> None:
    push(queue, partition="0")
    first = queue.take(NOW + 2)
    queue.failed()
    push(queue, partition="1")
    assert isinstance(first, AlertBatch)
    assert queue.take(NOW + 4) is first
    assert partitions(list(first.entries.values())) == ["0"]


def test_waiting_alerts_of_one_cause_become_one_post() -> None:
    queue = GroupedQueue(1000, 2.0)
    for number in range(5):
        push(queue, partition=str(number))
        push(queue, broker="3", partition=str(number))
    # The end of an alert stays behind its beginning, and what comes later behind that.
    push(queue, partition="0", state="resolved")
    push(queue, partition="9")
    assert [
        [(e.alert.labels["broker"], e.alert.labels["partition"], e.alert.state) for e in batch]
        for batch in drain(queue)
    ] == [
        [("2", str(number), "firing") for number in range(5)],
        [("3", str(number), "firing") for number in range(5)],
        [("2", "0", "resolved"), ("2", "9", "firing")],
    ]


def test_a_loss_overtakes_alerts_that_are_not_urgent(queue: GroupedQueue) -> None:
    push(queue, partition="0", broker="3")
    push(queue, LOSS, partition="1")
    assert [partitions(batch) for batch in drain(queue)] == [["1"], ["0"]]


def test_a_refused_loss_is_posted_again_each_minute_and_before_its_end(queue: GroupedQueue) -> None:
    push(queue, LOSS, partition="1")
    push(queue, "KafkaOffline", partition="2")
    assert len(take(queue, NOW)) == 2
    assert queue.refused(NOW) == []
    assert len(take(queue, NOW)) == 1
    assert partitions(queue.refused(NOW)) == ["1"]
    assert len(take(queue, NOW)) == 1
    assert partitions(queue.refused(NOW)) == ["2"]
    retry_at = NOW + REFUSED_SECONDS
    assert queue.take(retry_at - 1) is None
    assert queue.next_at() == retry_at
    assert partitions(take(queue, retry_at)) == ["1"]
    queue.refused(retry_at)
    push(queue, LOSS, partition="1", state="resolved", now=retry_at)
    states = [[entry.alert.state for entry in batch] for batch in drain(queue, retry_at + 10)]
    assert states == [["firing"], ["resolved"]]
    assert queue.waiting(NOW)[0] == 0


def test_a_split_batch_keeps_its_place_and_its_order(queue: GroupedQueue) -> None:
    for number in range(3):
        push(queue, partition=str(number))
    push(queue, broker="3")
    assert len(take(queue, NOW + 2)) == 3
    assert queue.refused(NOW + 2) == []
    assert [partitions(batch) for batch in drain(queue)] == [["0"], ["1", "2"], ["0"]]


def test_a_later_loss_of_a_cause_goes_before_what_is_not_urgent(queue: GroupedQueue) -> None:
    push(queue, LOSS, partition="1")
    queue.take(NOW)
    queue.delivered()
    push(queue, partition="0", broker="3")
    push(queue, LOSS, partition="2")
    assert [partitions(batch) for batch in drain(queue, NOW + 9)] == [["0"]]
    push(queue, partition="4", broker="3", at=NOW + 9)
    assert [partitions(batch) for batch in drain(queue, NOW + 60)] == [["2"], ["4"]]
