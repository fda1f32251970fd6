from __future__ import annotations

from tests.chaos.disk import Log, Stored
from tests.chaos.harm_truth import (
    Deletion,
    HarmRecord,
    HarmTruth,
    Ledger,
    LostRecord,
    parse_harm_truth,
)
from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.load_producer import AcknowledgedRecord

PLACE = ("t", 0)


def acknowledged(offset: int, record_id: int, at: float = 10.0) -> AcknowledgedRecord:
    return AcknowledgedRecord(*PLACE, offset, record_id, at)


def log(*ids: int, epoch: int = 0) -> Log:
    return {offset: Stored(record_id, epoch) for offset, record_id in enumerate(ids)}


def logs(first: Log, second: Log) -> dict[Place, dict[int, Log]]:
    return {PLACE: {1: first, 2: second}}


def test_what_no_replica_has_is_lost_once_with_the_epoch_that_it_had() -> None:
    truth = HarmTruth(1)
    ledger = Ledger(truth)
    ledger.take([acknowledged(0, 7), acknowledged(1, 8)])
    assert ledger.settle(logs(log(7, 8), log(7, 8)), -1) == []
    ledger.take([acknowledged(0, 7), acknowledged(1, 8), acknowledged(2, 9)])
    after = logs(log(7, 20, epoch=2), log(7, 20, epoch=2))
    lost = [
        LostRecord(0, "t", 0, 1, 8, 10.0, epoch=0),
        LostRecord(0, "t", 0, 2, 9, 10.0, epoch=None),
    ]
    assert ledger.settle(after, 0) == lost
    assert ledger.settle(after, 1) == []
    assert truth.lost == lost


def test_replicas_disagree_while_one_has_a_record_that_the_other_lacks() -> None:
    ledger = Ledger(HarmTruth(1))
    ledger.take([acknowledged(0, 7), acknowledged(1, 8)])
    assert ledger.disagreements(logs(log(7, 8), log(7))) == [
        "t-0: record 8 at offset 1 is on [1] of [1, 2]"
    ]
    assert ledger.disagreements(logs(log(7, 9), log(7, 9))) == []


def test_what_was_deleted_is_not_lost() -> None:
    truth = HarmTruth(1, deletions=[Deletion(50.0, *PLACE, 1)])
    ledger = Ledger(truth)
    ledger.take([acknowledged(0, 7), acknowledged(1, 8), acknowledged(0, 30, at=60.0)])
    assert [one.id for one in ledger.settle(logs({}, {}), 0)] == [8, 30]


def test_the_truth_is_read_as_it_was_written() -> None:
    truth = HarmTruth(
        3,
        [HarmRecord("crash", "d", 1.0, 2.0, (1.0, 1.5))],
        [LostRecord(0, "t", 0, 1, 8, 10.0, 4)],
        [Deletion(1.0, "t", 0, 5)],
        10,
        "e",
    )
    assert parse_harm_truth(truth.as_json()) == truth
