"""When a window closes, and what may share one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.export.make import NOW, alert
from tidemark_exporters.notify.gather import MAX_BATCH, Batch, Entry, Gatherer, group_of
from tidemark_exporters.notify.queue import REFUSED_SECONDS, DeliveryQueue


def entry(*arguments: str, **changes: object) -> Entry:
    return Entry(alert(*arguments, **changes), None)  # type: ignore[arg-type]


def test_a_window_closes_two_seconds_after_the_alerts_own_time() -> None:
    gatherer = Gatherer(2.0)
    gatherer.offer(entry(at=NOW - 0.5), NOW)
    gatherer.offer(entry("KafkaUnderReplicated", at=NOW + 0.4), NOW + 0.4)
    assert gatherer.next_deadline() == NOW + 1.5
    assert gatherer.due(NOW + 1.49) == []
    (batch,) = gatherer.due(NOW + 1.5)
    assert len(batch.entries) == 2
    assert gatherer.next_deadline() is None


@given(age=st.floats(-100, 1000))
def test_it_is_open_half_a_second_at_least_and_two_at_most(age: float) -> None:
    gatherer = Gatherer(2.0)
    gatherer.offer(entry(at=NOW - age), NOW)
    deadline = gatherer.next_deadline()
    assert deadline is not None
    assert NOW + 0.5 <= deadline <= NOW + 2.0


def test_loss_and_offline_wait_for_nobody() -> None:
    gatherer = Gatherer(2.0)
    gatherer.offer(entry(), NOW)
    gatherer.offer(entry("KafkaOffline", severity="critical"), NOW)
    gatherer.offer(entry("KafkaCommittedDataLoss", severity="critical", incident="a"), NOW)
    (batch,) = gatherer.due(NOW)
    assert [each.alert.labels["alertname"] for each in batch.entries] == [
        "KafkaOffline",
        "KafkaCommittedDataLoss",
    ]
    assert len(gatherer) == 1


def test_clusters_and_brokers_do_not_mix() -> None:
    gatherer = Gatherer(2.0)
    for changes in ({}, {"cluster": "west"}, {"broker": "3"}, {"broker": None}):
        gatherer.offer(entry(**changes), NOW)
    assert sorted(
        (batch.group.kafka_cluster, batch.group.broker) for batch in gatherer.due(NOW + 2)
    ) == [
        ("east", ""),
        ("east", "2"),
        ("east", "3"),
        ("west", "2"),
    ]


def test_one_alert_never_stands_twice_in_a_batch() -> None:
    gatherer = Gatherer(2.0)
    gatherer.offer(entry(), NOW)
    gatherer.offer(entry(state="resolved", at=NOW + 1), NOW + 1)
    first, *rest = gatherer.due(NOW + 1)
    assert (first.entries[0].alert.state, rest) == ("firing", [])
    (second,) = gatherer.due(NOW + 3)
    assert second.entries[0].alert.state == "resolved"


def test_a_full_window_closes() -> None:
    gatherer = Gatherer(2.0)
    for number in range(MAX_BATCH + 1):
        gatherer.offer(entry(partition=str(number)), NOW)
    (batch,) = gatherer.due(NOW)
    assert len(batch.entries) == MAX_BATCH
    assert len(gatherer) == 1


def batch_of(*entries: Entry) -> Batch:
    return Batch(group_of(entries[0].alert), list(entries))


def names(queue: DeliveryQueue) -> list[str]:
    return [each.alert.labels["partition"] for each in queue.waiting()][::-1]


def test_a_full_queue_drops_its_oldest_but_never_a_loss() -> None:
    queue = DeliveryQueue(2)
    assert queue.push(batch_of(entry("KafkaCommittedDataLoss", partition="loss"))) == []
    assert queue.push(batch_of(entry(partition="0"))) == []
    assert queue.push(batch_of(entry(broker="3", partition="1"))) == []
    dropped = queue.push(batch_of(entry(partition="2"), entry(partition="3")))
    assert [each.alert.labels["partition"] for each in dropped] == ["0", "2"]
    assert sorted(names(queue)) == ["1", "3", "loss"]
    more_losses = [
        entry("KafkaCommittedDataLoss", partition=f"loss{number}") for number in range(5)
    ]
    assert queue.push(batch_of(*more_losses)) == []
    assert len(queue) == 8


def test_the_batch_in_flight_is_not_touched() -> None:
    queue = DeliveryQueue(1)
    queue.push(batch_of(entry(partition="0")))
    taken = queue.take(NOW)
    assert taken is not None
    dropped = queue.push(batch_of(entry(partition="1")))
    assert [each.alert.labels["partition"] for each in dropped] == ["1"]
    queue.done(taken)
    assert len(queue) == 0
    assert queue.push(batch_of(entry(partition="2"))) == []


def test_a_batch_given_back_comes_again_first_and_takes_nothing_in() -> None:
    queue = DeliveryQueue(10)
    queue.push(batch_of(entry(partition="0")))
    first = queue.take(NOW)
    queue.give_back()
    queue.push(batch_of(entry(partition="1")))
    assert queue.take(NOW) is first
    assert first is not None
    assert len(first.entries) == 1


def test_what_waits_for_one_cause_becomes_one_post() -> None:
    queue = DeliveryQueue(1000)
    for number in range(5):
        queue.push(batch_of(entry(partition=str(number))))
        queue.push(batch_of(entry(broker="3", partition=str(number))))
    # The end of an alert stays behind its beginning, and what comes later behind that.
    queue.push(batch_of(entry(partition="0", state="resolved")))
    queue.push(batch_of(entry(partition="9")))
    taken = []
    while (batch := queue.take(NOW)) is not None:
        taken.append(
            [
                (each.alert.labels["broker"], each.alert.labels["partition"], each.alert.state)
                for each in batch.entries
            ]
        )
        queue.done(batch)
    assert taken == [
        [("2", str(number), "firing") for number in range(5)],
        [("3", str(number), "firing") for number in range(5)],
        [("2", "0", "resolved"), ("2", "9", "firing")],
    ]


def test_a_post_does_not_grow_without_bound() -> None:
    queue = DeliveryQueue(10_000)
    for number in range(MAX_BATCH + 1):
        queue.push(batch_of(entry(partition=str(number))))
    first = queue.take(NOW)
    assert first is not None
    assert len(first.entries) == MAX_BATCH


def test_a_loss_overtakes_what_is_not_urgent() -> None:
    queue = DeliveryQueue(10)
    queue.push(batch_of(entry(partition="0")))
    queue.push(batch_of(entry("KafkaCommittedDataLoss", partition="1")))
    taken = queue.take(NOW)
    assert taken is not None
    assert taken.entries[0].is_loss


def test_a_refused_loss_is_tried_again_each_minute_and_before_its_end() -> None:
    queue = DeliveryQueue(10)
    loss = entry("KafkaCommittedDataLoss", partition="1")
    queue.push(batch_of(loss, entry("KafkaOffline", partition="2")))
    batch = queue.take(NOW)
    assert batch is not None
    assert [each.alert.labels["partition"] for each in queue.refused(batch, NOW)] == ["2"]
    assert queue.take(NOW + REFUSED_SECONDS - 1) is None
    assert queue.next_deadline() == NOW + REFUSED_SECONDS
    again = queue.take(NOW + REFUSED_SECONDS)
    assert again is not None
    assert again.entries == [loss]
    assert queue.refused(again, NOW + REFUSED_SECONDS) == []
    queue.push(batch_of(entry("KafkaCommittedDataLoss", partition="1", state="resolved")))
    states = []
    while (batch := queue.take(NOW + REFUSED_SECONDS)) is not None:
        states.append([each.alert.state for each in batch.entries])
        queue.done(batch)
    assert states == [["firing"], ["resolved"]]
    assert len(queue) == 0


def test_a_split_batch_keeps_its_place_and_its_order() -> None:
    queue = DeliveryQueue(10)
    queue.push(batch_of(*(entry(partition=str(number)) for number in range(3))))
    queue.push(batch_of(entry(broker="3")))
    batch = queue.take(NOW)
    assert batch is not None
    queue.split(batch)
    assert names(queue) == ["0", "1", "2", "0"]
    half = queue.take(NOW)
    assert half is not None
    assert [each.alert.labels["partition"] for each in half.entries] == ["0"]
