"""What records change: epochs, causes, deletions, brokers, transactions, snapshots."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.collect.inventories import everything
from tests.collect.metadata_log.encoding import (
    batch_of,
    change,
    newer,
    partition,
    registration,
    topic,
    topic_id,
)
from tidemark.collect.metadata.inventory import Inventory
from tidemark.collect.sources.metadata_log.causes import Move, cause_of, neighbors
from tidemark.collect.sources.metadata_log.changes import MetadataFold, Snapshot, decode_batch
from tidemark.collect.sources.metadata_log.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    EndTransactionRecord,
    FenceBrokerRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from tidemark.core.errors import WireError
from tidemark.core.events import BrokerState, MetadataChange, PartitionDeleted
from tidemark.settings import Cluster

FENCE = BrokerRegistrationChangeRecord(3, 1, 0)
STOP = BrokerRegistrationChangeRecord(3, 0, 1)
UNFENCE = BrokerRegistrationChangeRecord(3, -1, 0)


class Log:
    """Batches one after another, and the events of each."""

    def __init__(self, watched: Inventory | None = None) -> None:
        self.fold = MetadataFold(watched or everything())
        self.offset = 0

    def append(self, *records: Any, at: float = 50.0) -> list[Any]:
        batch = batch_of(self.offset, *records, at_ms=int(at * 1000))
        self.offset += len(records)
        return list(self.fold.apply(decode_batch(batch), 99.0))


def started(partitions: int = 4, **fields: Any) -> Log:
    log = Log()
    log.append(topic(1, "t"), *(partition(number, **fields) for number in range(partitions)))
    log.append(registration(3, 9, fenced=False))
    return log


def causes(events: list[Any]) -> list[Any]:
    return [event.cause for event in events if isinstance(event, MetadataChange)]


def test_a_new_partition_is_reported_whole() -> None:
    (event,) = Log().append(topic(7, "orders"), partition(2, of=7, partition_epoch=4), at=50.0)
    assert event == MetadataChange(
        topic="orders",
        partition=2,
        observed_at=99.0,
        topic_id=topic_id(7),
        metadata_offset=1,
        record_at=50.0,
        leader=1,
        leader_epoch=0,
        partition_epoch=4,
        replicas=[1, 2, 3],
        in_sync_replicas=[1, 2, 3],
        eligible_leader_replicas=[],
        last_known_eligible_leader_replicas=[],
        cause="created",
    )


def test_each_record_adds_to_the_partition_epoch_and_a_leader_to_the_leader_epoch() -> None:
    log = started()
    seen = [
        log.append(change(0, **fields))[0]
        for fields in (
            {"isr": [1, 2]},
            {"leader": 1, "isr": [1]},
            {"leader": -1, "isr": [], "eligible_leader_replicas": [1], "last_known_elr": [1]},
            {"leader": 2, "isr": [2], "leader_recovery_state": 1, "eligible_leader_replicas": []},
            {"leader_recovery_state": 0},
        )
    ]
    assert [(e.partition_epoch, e.leader_epoch, e.leader) for e in seen] == [
        (1, 0, 1),
        (2, 1, 1),
        (3, 2, None),
        (4, 3, 2),
        (5, 3, 2),
    ]
    assert [e.in_sync_replicas for e in seen] == [[1, 2], [1], [], [2], [2]]
    assert [e.eligible_leader_replicas for e in seen] == [[], [], [1], [], []]
    assert [e.last_known_eligible_leader_replicas for e in seen][2:] == [[1]] * 3
    assert [e.recovering for e in seen] == [False, False, False, True, False]


def test_a_reassignment_changes_the_assignment() -> None:
    (event,) = started().append(
        change(0, replicas=[4, 1, 2, 3], adding_replicas=[4], removing_replicas=[3])
    )
    assert (event.replicas, event.adding, event.removing) == ([4, 1, 2, 3], [4], [3])
    assert event.cause == "reassignment"


def test_a_shrink_alone_is_of_the_leader() -> None:
    log = started()
    assert causes(log.append(change(0, isr=[1, 2]), change(1, isr=[1, 2]))) == ["leader"] * 2
    assert causes(log.append(change(0, isr=[1, 2, 3]))) == ["leader"]


SHRINK = change(0, isr=[1, 2])
MOVED = change(0, isr=[1, 2], leader=1)
LED_BY_3 = {"leader": 3}


@pytest.mark.parametrize(
    ("partitions", "records", "cause"),
    [
        # Before 3.6 a shrink by the leader names the leader again.
        ({}, [MOVED], "leader"),
        # A change of the leader alone has no known cause.
        ({}, [change(0, leader=2)], "unknown"),
        # The old record of a fencing.
        (LED_BY_3, [MOVED, FenceBrokerRecord(3)], "fenced"),
        # A fencing of another broker explains nothing.
        ({}, [SHRINK, FenceBrokerRecord(2)], "unknown"),
        (LED_BY_3, [MOVED, FenceBrokerRecord(2)], "unknown"),
        (LED_BY_3, [change(0, isr=[1], leader=1), FENCE], "unknown"),
    ],
)
def test_the_cause_of_a_change(partitions: dict[str, Any], records: list[Any], cause: str) -> None:
    assert causes(started(**partitions).append(*records)) == [cause]


def test_a_fencing_is_proven_from_the_first_leader_that_it_takes() -> None:
    """Shrinks by leaders may be right before it, in one batch (seen on real brokers)."""
    log = started(leader=3)
    log.append(change(0, leader=1), change(3, leader=1))
    moved: dict[str, Any] = {"leader": 2, "isr": [1, 2]}
    events = log.append(change(0, isr=[1, 2]), change(1, **moved), change(3, isr=[1, 2]), FENCE)
    assert causes(events) == ["unknown", "fenced", "fenced"]
    assert events[0] == BrokerState(
        broker=3, observed_at=99.0, incarnation=9, fenced=True, in_controlled_shutdown=False
    )
    assert causes(log.append(change(2, **moved))) == ["unknown"]


def test_a_controlled_shutdown_explains_what_follows_it() -> None:
    log = started(leader=3)
    moved: dict[str, Any] = {"leader": 1, "isr": [1, 2]}
    events = log.append(STOP, change(0, **moved), change(1, leader=1))
    assert causes(events) == ["controlled_shutdown"] * 2
    assert events[0].in_controlled_shutdown
    assert causes(log.append(change(2, **moved))) == ["controlled_shutdown"]
    log.append(FENCE)
    assert causes(log.append(change(3, **moved))) == ["unknown"]
    (back,) = log.append(registration(3, 20))
    assert (back.incarnation, back.fenced, back.in_controlled_shutdown) == (20, True, False)


@pytest.mark.parametrize("beside", [registration(3, 20), UnregisterBrokerRecord(3), UNFENCE, FENCE])
def test_a_shrink_beside_a_record_of_a_broker_is_not_of_the_leader(beside: Any) -> None:
    for records in ((SHRINK, beside), (beside, SHRINK)):
        assert causes(started().append(*records)) == ["unknown"]


def test_an_operation_that_may_be_cut_proves_nothing() -> None:
    move = Move(frozenset([3]), 1, 1)
    found = [
        cause_of(SHRINK, move, neighbors([SHRINK] * size)[0], stopping=frozenset(), fencing=False)
        for size in (4_999, 5_000)
    ]
    assert found == ["leader", "unknown"]


def test_brokers_are_reported_when_they_change() -> None:
    log = started()
    assert log.append(UNFENCE) == []
    assert [e.fenced for e in log.append(FenceBrokerRecord(3))] == [True]
    assert [e.fenced for e in log.append(UnfenceBrokerRecord(3))] == [False]
    assert log.append(UnregisterBrokerRecord(3), UNFENCE, FenceBrokerRecord(3)) == []
    assert log.append(registration(-1, 9)) == []


def test_a_removed_topic_is_gone() -> None:
    log = started(2)
    assert log.append(RemoveTopicRecord(topic_id(1)), RemoveTopicRecord(topic_id(1))) == [
        PartitionDeleted(topic="t", partition=number, observed_at=99.0, topic_id=topic_id(1))
        for number in (0, 1)
    ]
    assert log.append(change(0, isr=[1])) == []


def test_topics_and_shares_that_are_not_watched_are_not_kept() -> None:
    log = Log(Inventory(Cluster(name="c", topics_deny=["hidden"], shard=1, shards=2), 1))
    events = log.append(
        topic(1, "hidden"), partition(0), topic(2, "t"), *(partition(n, of=2) for n in range(20))
    )
    assert 0 < len(events) < 20
    assert len(log.fold.image.topics) == 1
    assert len(log.fold.image.topics[topic_id(2)].partitions) == len(events)


def test_clear_elr_changes_the_partitions_that_have_any() -> None:
    log = started(2)
    log.append(change(1, eligible_leader_replicas=[2], last_known_elr=[3]))
    assert log.append(ClearElrRecord("other")) == []
    (event,) = log.append(ClearElrRecord(""))
    assert (event.partition, event.partition_epoch, event.leader_epoch) == (1, 2, 0)
    assert event.eligible_leader_replicas == event.last_known_eligible_leader_replicas == []
    assert log.append(ClearElrRecord("t")) == []


def test_a_transaction_takes_effect_at_its_end() -> None:
    log = started(1)
    assert log.append(BeginTransactionRecord(), change(0, isr=[1])) == []
    assert log.append(change(0, isr=[1, 2]), AbortTransactionRecord()) == []
    assert log.append(BeginTransactionRecord(), change(0, isr=[2])) == []
    (event,) = log.append(EndTransactionRecord())
    assert (event.in_sync_replicas, event.metadata_offset, event.partition_epoch) == ([2], 8, 1)
    assert log.append(EndTransactionRecord()) == []


@pytest.mark.parametrize(
    "record",
    [
        partition(-1),
        partition(0, leader=-7),
        partition(0, leader_epoch=-1),
        partition(0, partition_epoch=-1),
        partition(0, isr=[-1]),
        partition(0, replicas=list(range(65))),
    ],
)
def test_values_that_no_controller_writes_are_refused(record: Any) -> None:
    with pytest.raises(WireError, match="no controller"):
        started().append(record)


def test_a_snapshot_reports_the_differences() -> None:
    log = started(3)
    other = Log()
    other.append(topic(1, "t"), partition(0), partition(1, isr=[1], partition_epoch=1))
    other.append(topic(2, "new"), partition(0, of=2), registration(3, 9, fenced=False))
    image = other.fold.image
    log.append(topic(5, "old"), partition(4, of=5))
    events: list[Any] = list(log.fold.replace(Snapshot(image, 60.0), 100, 99.0))
    assert [(type(e).__name__, e.topic, e.partition) for e in events] == [
        ("PartitionDeleted", "old", 4),
        ("MetadataChange", "t", 1),
        ("MetadataChange", "new", 0),
    ]
    assert {(e.metadata_offset, e.record_at, e.cause) for e in events[1:]} == {
        (99, 60.0, "unknown")
    }
    assert log.fold.image is image


changes = st.builds(
    change,
    st.integers(0, 2),
    isr=st.none() | st.lists(st.integers(1, 4), max_size=3, unique=True),
    leader=st.none() | st.integers(-1, 3),
    leader_recovery_state=st.none() | st.integers(0, 1),
    eligible_leader_replicas=st.none() | st.lists(st.integers(1, 4), max_size=2),
)
others = st.sampled_from(
    [FENCE, UNFENCE, STOP, registration(3, 30), RemoveTopicRecord(topic_id(1))]
)


@settings(max_examples=40)
@given(st.lists(changes | others, max_size=20), st.lists(st.integers(1, 5), min_size=1))
def test_batches_do_not_change_the_result_and_epochs_never_fall(
    records: list[Any], sizes: list[int]
) -> None:
    one, many = started(3), started(3)
    one.append(*records) if records else None
    events, rest, turn = [], list(records), 0
    while rest:
        size = sizes[turn % len(sizes)]
        events += many.append(*rest[:size])
        rest, turn = rest[size:], turn + 1
    assert one.fold.image.topics == many.fold.image.topics
    assert one.fold.image.brokers == many.fold.image.brokers
    known: dict[int, MetadataChange] = {}
    for event in events:
        if isinstance(event, MetadataChange):
            before = known.get(event.partition)
            if before is not None:
                assert event.partition_epoch == before.partition_epoch + 1
                assert event.metadata_offset > before.metadata_offset
                assert event.leader_epoch - before.leader_epoch in (0, 1)
                if event.leader != before.leader:
                    assert event.leader_epoch == before.leader_epoch + 1
            known[event.partition] = event


def test_without_the_records_of_brokers_no_cause_rests_on_them() -> None:
    log = started()
    log.append(STOP)
    assert causes(log.append(change(0, isr=[1, 2]))) == ["controlled_shutdown"]
    assert causes(log.append(newer(RegisterBrokerRecord), change(1, isr=[1, 2]))) == ["unknown"]
    assert log.append(registration(3, 10)) == []
    assert causes(log.append(change(2, isr=[1, 2]))) == ["leader"]


def test_without_the_records_of_partitions_brokers_are_reported() -> None:
    log = started()
    events = log.append(change(0, isr=[1, 2]), newer(PartitionRecord), change(1, isr=[1]), FENCE)
    assert [type(event) for event in events] == [BrokerState, MetadataChange]
    assert (events[0].fenced, events[1].partition) == (True, 0)
    assert log.append(RemoveTopicRecord(topic_id(1)), ClearElrRecord("")) == []


def test_a_snapshot_that_is_not_whole_deletes_nothing() -> None:
    log, other = started(), Log()
    other.append(newer(PartitionRecord), registration(4, 1))
    changes = list(log.fold.replace(Snapshot(other.fold.image, 5.0), 9, 99.0))
    assert [type(change) for change in changes] == [BrokerState]


def test_a_transaction_that_is_not_understood_stops_all() -> None:
    log = started()
    log.append(newer(BeginTransactionRecord))
    assert log.append(change(0, isr=[1, 2]), FENCE) == []
