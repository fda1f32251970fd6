from __future__ import annotations

from tests.chaos.truth import Truth, compare_records, parse_truth
from tidemark_lab.brokers.load_producer import AcknowledgedRecord, StoredPartition, record_key
from tidemark_lab.faults.node_faults import FaultRecord

PLACE = ("t", 0)


def fault(name: str, end: float = 50.0) -> FaultRecord:
    return FaultRecord(name, "d", (1,), (PLACE,), end - 10, end - 5, end)


def acknowledged(offset: int, record_id: int, at: float = 10.0) -> AcknowledgedRecord:
    return AcknowledgedRecord(*PLACE, offset, record_id, at)


def lost(
    record: AcknowledgedRecord, held: dict[int, int], start: int = 0, *faults: FaultRecord
) -> list[str]:
    stored = {PLACE: StoredPartition(start, 100, held)}
    lost, removed = compare_records([record], stored, faults)
    assert removed == ({} if lost or held.get(record.offset) == record.id else {"t": 1})
    return lost


def test_a_record_at_its_offset_is_not_lost() -> None:
    assert lost(acknowledged(5, 7), {5: 7}) == []


def test_a_missing_or_replaced_record_is_lost() -> None:
    gone = "t-0: record 7 was acknowledged at offset 5, which holds"
    assert lost(acknowledged(5, 7), {}) == [f"{gone} no record"]
    assert lost(acknowledged(5, 7), {5: 8}) == [f"{gone} record 8"]


def test_only_a_fault_that_deletes_excuses_what_is_below_the_log_start() -> None:
    for name in ("delete records", "retention shrink"):
        assert lost(acknowledged(5, 7), {}, 6, fault(name)) == []
        assert len(lost(acknowledged(5, 7), {}, 5, fault(name))) == 1
        assert len(lost(acknowledged(5, 7), {5: 8}, 6, fault(name))) == 1
    assert len(lost(acknowledged(5, 7), {}, 6, fault("pause"))) == 1


def test_compaction_keeps_the_newest_record_of_a_key() -> None:
    same_key = next(i for i in range(8, 100) if record_key(i) == record_key(7))
    assert lost(acknowledged(5, 7), {6: same_key}, 0, fault("compaction")) == []
    assert len(lost(acknowledged(5, 7), {6: 8}, 0, fault("compaction"))) == 1
    assert len(lost(acknowledged(5, 7), {4: same_key}, 0, fault("compaction"))) == 1
    assert len(lost(acknowledged(5, 7), {6: same_key})) == 1


def test_a_recreated_topic_keeps_what_came_after() -> None:
    recreation = fault("topic recreation", end=50.0)
    assert lost(acknowledged(5, 7, at=49.0), {}, 0, recreation) == []
    assert len(lost(acknowledged(5, 7, at=51.0), {}, 0, recreation)) == 1


def test_the_truth_is_read_as_it_was_written() -> None:
    truth = Truth(3, 2, [fault("pause")], 10, ["a"], {"t": 4}, "e")
    assert parse_truth(truth.as_json()) == truth
