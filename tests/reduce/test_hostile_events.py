"""Events that no collector writes: the query goes on, and the event is a dead letter."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemark.core.records import DeadLetter, decode_record
from tidemark.detect.default_thresholds import Detection
from tidemark.reduce import group, partition_fold
from tidemark.reduce.group import fold_group
from tidemark.reduce.group_state import decode_group
from tidemark.reduce.rows import RawRecord, Row

SAMPLES = [{"broker": broker, "log_end_offset": 7, "high_watermark": 7} for broker in (1, 2)]
OBSERVATION = {
    "kind": "observation",
    "topic": "orders",
    "partition": 0,
    "observed_at": 1.0,
    "leader": 1,
    "leader_epoch": 0,
    "replicas": [1, 2],
    "in_sync_replicas": [1, 2],
    "samples": SAMPLES,
}
PASS = {
    "kind": "pass",
    "number": 1,
    "started_at": 0.0,
    "ended_at": 2.0,
    "monotonic": 2.0,
    "period_ms": 1000.0,
    "brokers": [{"broker": 1, "outcome": "ok"}],
}
HEAD = {"v": 1, "cluster": "east", "collector": "c", "collector_epoch": 1, "pass": 1}


def fold(
    *events: dict[str, Any], blob: bytes | None = None, number: int = 1
) -> tuple[bytes, list[Row]]:
    head = {"v": 1, "cluster": "east", "collector": "c", "collector_epoch": 1, "pass": number}
    record = RawRecord(0, 0, 0.0, json.dumps({**head, "events": events}).encode())
    return fold_group(blob, [record], Detection(), 0, 1)


def at(stored_at: float, number: int, *events: dict[str, Any]) -> RawRecord:
    """A record of the same collector as Kafka stored it at a time."""
    head = {"v": 1, "cluster": "east", "collector": "c", "collector_epoch": 1, "pass": number}
    return RawRecord(0, int(stored_at), stored_at, json.dumps({**head, "events": events}).encode())


def letters(rows: list[Row]) -> list[DeadLetter]:
    decoded = [decode_record(row.value) for row in rows if row.value is not None]
    return [record for record in decoded if isinstance(record, DeadLetter)]


@pytest.mark.parametrize(
    ("event", "field"),
    [
        ({**OBSERVATION, "samples": SAMPLES * 2}, "$.events[1].samples"),
        ({**PASS, "brokers": PASS["brokers"] * 2}, "$.events[1].brokers"),  # type: ignore[operator]
        (
            {**PASS, "brokers": [{"broker": 1, "outcome": "ok", "preferred": 2**64}]},
            "$.events[1].brokers[0].preferred",
        ),
        ({**PASS, "monotonic": 1e308}, "$.events[1].monotonic"),
        (
            {"kind": "broker", "broker": 1, "observed_at": 1.0, "incarnation": 2**70},
            "$.events[1].incarnation",
        ),
    ],
)
def test_an_event_that_no_state_can_hold_is_a_dead_letter(
    event: dict[str, Any], field: str
) -> None:
    blob, rows = fold(OBSERVATION, event, PASS)
    assert [letter.field for letter in letters(rows)] == [field]
    assert (blob, [row for row in rows if row.destination != "dead_letters"]) == fold(
        OBSERVATION, PASS
    )


def test_an_event_on_which_the_reducer_fails_is_a_dead_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise TypeError("unhashable")

    monkeypatch.setattr(group, "apply_broker", fail)
    _, rows = fold({"kind": "broker", "broker": 1, "observed_at": 1.0}, OBSERVATION, PASS)
    (letter,) = letters(rows)
    assert "the reducer failed: TypeError('unhashable')" in letter.reason
    assert [row.key for row in rows if row.destination == "partition_views"] == [
        b"east/orders/0",
        b"east",
        b"east/1",
    ]


@pytest.mark.parametrize(
    "forged",
    [
        at(102.0, 2**63 - 1, {**OBSERVATION, "observed_at": 3.0}),
        at(102.0, 2, {**PASS, "number": 2**63 - 1}),
        at(102.0, 1 + 121, {**OBSERVATION, "observed_at": 9e10}),
    ],
    ids=["observation", "pass", "a little too far"],
)
def test_a_pass_that_its_collector_cannot_have_reached_hides_nothing(forged: RawRecord) -> None:
    first = at(100.0, 1, OBSERVATION, PASS)
    moved = {**OBSERVATION, "observed_at": 30.0, "leader": 2, "leader_epoch": 1}
    next_pass = {**PASS, "number": 2, "ended_at": 31.0, "monotonic": 31.0}
    records = [first, forged, at(130.0, 2, moved, next_pass)]
    _, rows = fold_group(None, records, Detection(), 0, 1)
    (letter,) = letters(rows)
    assert (letter.offset, letter.field) == (102, "$.pass")
    assert "is beyond what collector c can have reached: its newest pass is 1" in letter.reason
    newest = [row.value for row in rows if row.key == b"east/orders/0"][-1]
    assert newest is not None
    assert json.loads(newest)["leader"] == 2


def test_passes_that_were_lost_on_the_way_are_no_reason_to_refuse_the_next() -> None:
    records = [at(100.0, 1, OBSERVATION, PASS)]
    for stored_at, number in ((101.0, 90), (1000.0, 9000), (1001.0, 9100)):
        later = {"observed_at": stored_at, "partition": number}
        end = {**PASS, "number": number, "ended_at": stored_at, "monotonic": stored_at}
        records.append(at(stored_at, number, {**OBSERVATION, **later}, end))
    assert letters(fold_group(None, records, Detection(), 0, 1)[1]) == []


def test_made_up_clusters_and_partitions_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "MAX_CLUSTERS", 2)
    monkeypatch.setattr(partition_fold, "MAX_PARTITIONS", 20)
    clusters = [
        RawRecord(0, n, 0.0, json.dumps({**HEAD, "cluster": f"c{n}", "events": [PASS]}).encode())
        for n in range(4)
    ]
    blob, rows = fold_group(None, clusters, Detection(), 0, 2)
    reasons = {letter.reason for letter in letters(rows)}
    assert (reasons, len(letters(rows))) == ({"a group holds 2 clusters at most"}, 2)

    made_up = [{**OBSERVATION, "partition": number} for number in range(30)]
    events = RawRecord(0, 9, 0.0, json.dumps({**HEAD, "cluster": "c0", "events": made_up}).encode())
    blob, rows = fold_group(blob, [events], Detection(), 0, 2)
    assert len(decode_group(blob).partitions) == 30 - len(letters(rows)) == 10
    assert letters(rows)[0].reason == "the group holds too many partitions to take another"


def test_a_partition_that_is_stored_and_observed_again_counts_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partition_fold, "MAX_PARTITIONS", 7)
    known = [{**OBSERVATION, "partition": number} for number in range(6)]
    blob, _ = fold_group(None, [at(100.0, 1, *known)], Detection(), 0, 1)
    again = [{**each, "observed_at": 101.0} for each in known]
    one, two = ({**again[0], "partition": number} for number in (6, 7))
    blob, rows = fold_group(blob, [at(101.0, 2, *again, one, two)], Detection(), 0, 1)
    assert (len(decode_group(blob).partitions), len(letters(rows))) == (7, 1)
