"""The result as text and as events."""

from __future__ import annotations

from tests.verbs.audit.logs import T
from tidemark.core.events import Audit
from tidemark.verbs.audit.comparison import Copy, Difference
from tidemark.verbs.audit.partition_audit import PartitionReport
from tidemark.verbs.audit.report import as_text, describe, events


def copy(broker: int, crc: int = 0xAB, epoch: int | None = 2, *, damaged: bool = False) -> Copy:
    return Copy(broker, 10, 14, epoch, crc, damaged)


def difference(*copies: Copy, offset: int = 12, absent: tuple[int, ...] = ()) -> Difference:
    return Difference(10, offset, copies, absent, 2, 12)


def report(*findings: Difference, number: int = 0) -> PartitionReport:
    partition = T._replace(place=("orders", number))
    return PartitionReport(partition, 0, 100, 60, 9, (1, 2, 3), findings=list(findings))


def test_replicas_that_agree_are_named_together() -> None:
    assert describe(difference(copy(1), copy(2, 0xCD), copy(3))) == (
        "offset 12: brokers 1, 3 hold batch 10–14 of epoch 2 with CRC 000000ab; "
        "broker 2 holds batch 10–14 of epoch 2 with CRC 000000cd. "
        "2 records differ, the first at 12."
    )
    unread = difference(copy(1, damaged=True), absent=(2, 3))._replace(records=None, unread="why")
    assert describe(unread) == (
        "offset 12: broker 1 holds batch 10–14 of epoch 2 with CRC 000000ab, which is not the CRC "
        "written in it; brokers 2, 3 hold no batch. Whether records differ is unknown: why."
    )


def test_reasons_are_given_once_for_all_their_partitions() -> None:
    reports = [report(number=number) for number in range(7)]
    for number, item in enumerate(reports):
        item.not_compared = {3: "refused"}
        item.changed = number // 6
    alone = PartitionReport(T._replace(place=("lone", 0), replicas=(1,)))
    names = "orders-0, orders-1, orders-2, orders-3, orders-4 and 2 more"
    assert as_text([*reports, alone], "whole") == [
        f"{names}: broker 3 is not compared: refused",
        "orders-6: the logs changed meanwhile: 1 difference not confirmed, not compared",
        "lone-0: one replica only: nothing to compare",
        "no difference in 420 of 700 offsets of 7 partitions (whole).",
    ]


def test_few_of_many_differences_are_listed() -> None:
    lines = as_text([report(*[difference(copy(1), copy(2, 1))] * 25)], "whole")
    assert len(lines) == 22
    assert lines[20] == "orders-0: 5 more differences; --json lists all"


def test_an_incident_is_one_event_with_its_lowest_offset() -> None:
    found = events(
        [
            report(
                difference(copy(1), copy(2, 0xCD), copy(3)),
                difference(copy(1, 1), copy(2, 2), copy(3, 1), offset=13),
                difference(copy(1), copy(2), copy(3, 0xCD), offset=14),
                difference(copy(1, 1, 3), copy(2, 2, 4), offset=15),
                # Equal bytes under two epochs, or one copy only: the content does not differ.
                difference(copy(1, 1, 3), copy(2, 1, 4), offset=16),
                difference(copy(1), absent=(2, 3), offset=17),
            )
        ],
        50.0,
    )
    assert [(event.offset, event.brokers, event.crcs) for event in found] == [
        (12, [1, 2, 3], [0xAB, 0xCD, 0xAB]),
        (14, [1, 2, 3], [0xAB, 0xAB, 0xCD]),
        (15, [1, 2], [1, 2]),
    ]
    assert [event.observed_at for event in found] == [50.0, 50.001, 50.002]
    assert found[0] == Audit(
        topic="orders",
        partition=0,
        observed_at=50.0,
        topic_id="id",
        brokers=[1, 2, 3],
        offset=12,
        leader_epoch=2,
        crcs=[0xAB, 0xCD, 0xAB],
        high_watermark=100,
    )
    assert (found[2].leader_epoch, found[2].leader_epochs) == (None, [3, 4])
