"""Events that no collector writes: the query goes on, and the event is a dead letter."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemark.core.records import DeadLetter, decode_record
from tidemark.detect.thresholds import Detection
from tidemark.reduce import group
from tidemark.reduce.group import fold_group
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


def fold(
    *events: dict[str, Any], blob: bytes | None = None, number: int = 1
) -> tuple[bytes, list[Row]]:
    head = {"v": 1, "cluster": "east", "collector": "c", "collector_epoch": 1, "pass": number}
    record = RawRecord(0, 0, 0.0, json.dumps({**head, "events": events}).encode())
    return fold_group(blob, [record], Detection(), 0, 1)


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
