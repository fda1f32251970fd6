from __future__ import annotations

import msgspec
import pytest

from tidemark.collect.publish.pack import EventRecord, Packer, missed_ranges
from tidemark.core.codec import decode_batch, encode_batch
from tidemark.core.events import MAX_BYTES, MAX_EVENTS, Batch, Observation, PartitionDeleted, Pass

END = Pass(number=3, started_at=1.0, ended_at=2.0, monotonic=9.5, period_ms=1000.0)


def packed(
    events: list[tuple[int, Observation | PartitionDeleted]],
    groups: int = 2,
    missed: list[tuple[int, tuple[str, int]]] | None = None,
) -> list[EventRecord]:
    packer = Packer("c", "k", 5, 3, groups)
    for group, event in events:
        packer.add(group, event)
    return packer.finish(END, missed or [])


def observation(number: int, text: str = "t") -> Observation:
    return Observation(topic=text, partition=number, observed_at=1.0)


def test_a_record_is_what_encode_batch_writes() -> None:
    record = packed([(1, observation(4))])[-2]
    batch = Batch(
        v=2, cluster="c", collector="k", collector_epoch=5, pass_number=3, events=[observation(4)]
    )
    assert record.payload == encode_batch(batch)
    assert (record.group, record.cluster, record.partitions, record.droppable) == (
        1,
        "c",
        (("t", 4),),
        True,
    )


def test_the_pass_record_ends_every_group_with_its_own_missed_partitions() -> None:
    records = packed(
        [(0, observation(1))], groups=3, missed=[(2, ("t", 7)), (0, ("u", 1)), (2, ("t", 8))]
    )
    last = {record.group: decode_batch(record.payload).events[-1] for record in records}
    assert {group: event.missed for group, event in last.items() if isinstance(event, Pass)} == {
        0: {"u": [(1, 1)]},
        1: {},
        2: {"t": [(7, 8)]},
    }
    assert not any(
        record.droppable
        for record in records
        if isinstance(decode_batch(record.payload).events[-1], Pass)
    )


def test_batches_keep_to_256_events_and_256_kib() -> None:
    many = packed([(0, observation(n)) for n in range(1_000)], groups=1)
    assert [len(decode_batch(r.payload).events) for r in many] == [MAX_EVENTS] * 3 + [
        1_000 - 3 * MAX_EVENTS,
        1,
    ]
    long_name = "x" * 249
    wide = [
        msgspec.structs.replace(
            observation(n, long_name), metadata_from=list(range(64)), replicas=list(range(64))
        )
        for n in range(900)
    ]
    records = packed([(0, event) for event in wide], groups=1)
    assert max(len(record.payload) for record in records) <= MAX_BYTES
    seen = [
        e.partition
        for r in records
        for e in decode_batch(r.payload).events
        if isinstance(e, Observation)
    ]
    assert seen == list(range(900))


def test_a_deletion_is_never_dropped() -> None:
    records = packed([(0, PartitionDeleted(topic="t", partition=0, observed_at=1.0))], groups=1)
    assert [record.droppable for record in records] == [False, False]


@pytest.mark.parametrize(
    ("places", "ranges"),
    [
        ([], {}),
        ([("t", 3), ("t", 1), ("t", 2), ("u", 9), ("t", 3)], {"t": [(1, 3)], "u": [(9, 9)]}),
        ([("t", 0), ("t", 2)], {"t": [(0, 0), (2, 2)]}),
    ],
)
def test_missed_ranges(places: list[tuple[str, int]], ranges: object) -> None:
    assert missed_ranges(places) == ranges


def test_too_many_missed_ranges_become_all() -> None:
    assert missed_ranges([("t", n) for n in range(0, 2_000, 2)]) != "all"
    assert missed_ranges([(f"topic-{n}", 0) for n in range(10_000)]) == "all"
