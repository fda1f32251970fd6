"""When a batch is due, which alerts share one, and which a full queue drops."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.export.make import NOW, alert
from tidemark.core.records import Alert, AlertState
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
    arrivals: list[dict[str, Any]] = [
        {"name": LOSS, "partition": "loss"},
        {"partition": "0"},
        {"broker": "3", "partition": "1"},
        {"partition": "2"},
        {"partition": "3"},
    ]
    assert [push(queue, **each) for each in arrivals] == [[], [], [], ["0"], ["2"]]
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


@pytest.mark.parametrize("was_refused", [False, True])
def test_a_loss_overtakes_alerts_that_are_not_urgent(
    queue: GroupedQueue, *, was_refused: bool
) -> None:
    push(queue, partition="0", broker="3")
    push(queue, LOSS, partition="1")
    if was_refused:
        queue.take(NOW)
        queue.refused(NOW)
    later = NOW + REFUSED_SECONDS
    assert [partitions(batch) for batch in drain(queue, later)] == [["1"], ["0"]]


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


def test_a_refused_loss_holds_back_no_other_alert_of_its_group(queue: GroupedQueue) -> None:
    push(queue, LOSS, partition="1")
    push(queue, "KafkaOffline", partition="2")
    take(queue, NOW)
    queue.failed()
    # Both ends share a batch until the loss is refused, and alerts to come share none of its.
    for name, partition in ((LOSS, "1"), ("KafkaOffline", "2")):
        push(queue, name, partition=partition, state="resolved")
    take(queue, NOW)
    queue.refused(NOW)
    assert partitions(take(queue, NOW)) == ["1"]
    queue.refused(NOW)
    push(queue, LOSS, partition="1", at=NOW + 1, now=NOW + 1)
    push(queue, partition="3", now=NOW + 1)
    found = []
    for second in range(40):
        while batch := take(queue, NOW + second):
            if partitions(batch) == ["1"]:
                assert batch[0].alert.state == "firing"
                queue.refused(NOW + second)
            else:
                queue.delivered()
                found += partitions(batch)
    assert found == ["2", "2", "3"]
    late = [e.alert.state for batch in drain(queue, NOW + 100) for e in batch]
    assert late == ["firing", "resolved", "firing"]


def test_batches_of_a_group_go_in_order_whatever_the_times_of_its_alerts(
    queue: GroupedQueue,
) -> None:
    push(queue, partition="9")
    take(queue, NOW + 2)
    queue.delivered()
    push(queue, partition="0", at=NOW + 3, now=NOW + 3)
    push(queue, partition="0", state="resolved", at=NOW + 3, now=NOW + 3)
    # Those of another topic arrive later, and are older.
    push(queue, partition="1", at=NOW, now=NOW + 3)
    push(queue, partition="1", state="resolved", at=NOW, now=NOW + 3)
    found = []
    for tenth in range(30, 60):
        found += [e for batch in drain(queue, NOW + tenth / 10) for e in batch]
    states = [(e.alert.labels["partition"], e.alert.state) for e in found]
    assert states == [("0", "firing"), ("0", "resolved"), ("1", "firing"), ("1", "resolved")]


def test_two_updates_about_an_alert_go_together_after_the_pause(queue: GroupedQueue) -> None:
    push(queue, "KafkaOffline", partition="1")
    push(queue, "KafkaOffline", partition="open")
    assert partitions(take(queue, NOW)) == ["1", "open"]
    queue.failed()
    # The pause of its end begins with the post that failed.
    push(queue, "KafkaOffline", partition="1", state="resolved", at=NOW + 1, now=NOW + 1)
    assert [partitions(batch) for batch in drain(queue, NOW + 2)] == [["1", "open"]]
    push(queue, "KafkaOffline", partition="2", at=NOW + 3, now=NOW + 3)
    push(queue, "KafkaOffline", partition="2", state="resolved", at=NOW + 9, now=NOW + 9)
    assert drain(queue, NOW + 9) == []
    assert [partitions(batch) for batch in drain(queue, NOW + 10)] == [["1", "2"], ["2"]]


# What happens (an alert comes, or the answer to a post), to which alert, after which time, and how
# old the alert is.
HAPPENINGS = st.tuples(
    st.sampled_from(["push", "push", "delivered", "failed", "refused"]),
    st.sampled_from("01"),
    st.sampled_from([LOSS, "KafkaOffline", "KafkaFollowerLag"]),
    st.sampled_from([0.0, 0.0, 1.0, 5.0, 70.0, -3.0]),
    st.sampled_from([0.0, 0.0, 3.0]),
)


@example(
    # The clock goes back between states that wait for the first post of their group.
    happenings=[
        *2 * [("push", "0", "KafkaFollowerLag", 0.0, 0.0)],
        ("push", "0", "KafkaFollowerLag", -3.0, 0.0),
        ("delivered", "0", "KafkaFollowerLag", 0.0, 0.0),
    ]
)
@settings(max_examples=300)
@given(happenings=st.lists(HAPPENINGS, max_size=25))
def test_states_of_an_alert_are_posted_in_order_whatever_is_refused_and_the_clock_does(
    happenings: list[tuple[str, str, str, float, float]],
) -> None:
    queue, now = GroupedQueue(1000), NOW
    arrived: dict[tuple[str, str], int] = {}
    posted: list[Alert] = []
    for happening, partition, name, passed, age in happenings:
        now += passed
        if happening == "push":
            number = arrived[partition, name] = arrived.get((partition, name), 0) + 1
            state: AlertState = "firing" if number % 2 else "resolved"
            about = {"partition": partition, "description": str(number)}
            push(queue, name, now, state=state, at=now - age, **about)
        elif entries := take(queue, now):
            if happening == "refused":
                given_up = [e for e in queue.refused(now) if e.alert.labels["alertname"] != LOSS]
                posted += [entry.alert for entry in given_up]
            elif happening == "delivered":
                posted += [entry.alert for entry in entries]
                queue.delivered()
            else:
                queue.failed()
    while (next_at := queue.next_at()) is not None:
        now = max(now, next_at)
        posted += [entry.alert for entry in take(queue, now)]
        queue.delivered()
    found: dict[tuple[str, str], list[str]] = {}
    for each in posted:
        mark = each.labels["partition"], each.labels["alertname"]
        found.setdefault(mark, []).append(each.annotations["description"])
    assert found == {
        mark: [str(number + 1) for number in range(count)] for mark, count in arrived.items()
    }


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
