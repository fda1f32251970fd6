"""What fails in the reducer costs itself only: a partition, a broker's views, a state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.reduce.test_hostile_events import OBSERVATION, PASS, fold, letters
from tidemark.core.errors import StateError
from tidemark.core.identity import split_key
from tidemark.core.partition import PartitionState, decode_state, encode_state
from tidemark.core.records import Alert, decode_record
from tidemark.detect import DETECTORS
from tidemark.detect.detector import Context
from tidemark.reduce import group_state, pass_fold
from tidemark.reduce.group_state import GroupState, decode_group, encode_group
from tidemark.reduce.judge import DecodedPartition, Judge
from tidemark.reduce.life_cycle import LifeCycle
from tidemark.reduce.rows import Row

KEYS = [f"east/orders/{number}" for number in range(10)]
BROKEN = KEYS[2]
# Each partition is under its minimum, so each has an alert after some passes.
OBSERVED = {
    **OBSERVATION,
    "in_sync_replicas": [1],
    "effective_min_in_sync_replicas": 2,
}


def passes(
    *numbers: int, blob: bytes | None = None, partitions: int = 10
) -> tuple[bytes, list[Row]]:
    """Observations of all partitions and a pass, for each number."""
    rows: list[Row] = []
    for number in numbers:
        at = float(number)
        events: list[dict[str, Any]] = [
            {**OBSERVED, "partition": each, "observed_at": at} for each in range(partitions)
        ]
        clock = {"number": number, "started_at": at, "ended_at": at, "monotonic": at}
        blob, new = fold(*events, {**PASS, **clock}, blob=blob, number=number)
        rows += new
    assert blob is not None
    return blob, rows


def fired(rows: list[Row]) -> set[bytes]:
    """The partitions with an alert."""
    text = [row.value or b"" for row in rows if row.destination == "alerts"]
    return {key.encode() for key in KEYS for each in text if _is_of(key, each)}


def _is_of(key: str, alert: bytes) -> bool:
    _, topic, number = split_key(key)
    return f'"topic":"{topic}","partition":"{number}"'.encode() in alert


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judgement of one partition raises."""
    judged = Judge.judge_states

    def judge_states(
        self: Judge, partition: DecodedPartition, context: Context, *, missed: bool
    ) -> Any:
        if partition.key == BROKEN:
            raise TypeError("unhashable")
        return judged(self, partition, context, missed=missed)

    monkeypatch.setattr(Judge, "judge_states", judge_states)


@pytest.mark.usefixtures("broken")
def test_a_partition_that_cannot_be_judged_costs_no_other_its_alerts_and_views() -> None:
    blob, rows = passes(1, 2, 3, 4)
    others = {key.encode() for key in KEYS if key != BROKEN}
    assert fired(rows) == others
    shown = {row.key for row in rows if row.destination == "partition_views"}
    assert shown == {*others, b"east", b"east/1"}
    # Once for each pass, with its key.
    assert [letter.reason for letter in letters(rows)] == [
        f"the reducer failed: {BROKEN}: TypeError('unhashable')"
    ] * 4
    # It is observed, and due at the next pass.
    group = decode_group(blob)
    assert decode_state(group.partitions[BROKEN]).pass_number == 4
    assert group.due[BROKEN] <= 4


def test_a_partition_is_judged_again_once_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Judge, "judge_states", _fail)
        blob, rows = passes(1, 2, 3)
    assert fired(rows) == set()
    assert [letter.reason for letter in letters(rows)] == [
        "the reducer failed: 10 failures, such as "
        + "; ".join(f"{key}: TypeError('unhashable')" for key in KEYS[:3])
    ] * 3
    _, rows = passes(4, 5, 6, blob=blob)
    assert fired(rows) == {key.encode() for key in KEYS}
    assert letters(rows) == []


def _fail(*_: object, **__: object) -> Any:
    raise TypeError("unhashable")


def test_a_damaged_partition_costs_no_other_its_alerts() -> None:
    blob, _ = passes(1)
    group = decode_group(blob)
    group.partitions[BROKEN] = b"\x03damaged"
    _, rows = passes(2, 3, 4, blob=encode_group(group))
    assert fired(rows) == {key.encode() for key in KEYS if key != BROKEN}
    # In each pass its observation, and its judgement.
    reasons = [letter.reason for letter in letters(rows)]
    assert len(reasons) == 6
    assert sum(f"the reducer failed: {BROKEN}: StateError" in each for each in reasons) == 3


@pytest.mark.parametrize("broken_function", ["apply_answers", "grant_grace"])
def test_partitions_are_judged_where_the_brokers_of_a_pass_cannot_be_applied(
    monkeypatch: pytest.MonkeyPatch, broken_function: str
) -> None:
    monkeypatch.setattr(pass_fold, broken_function, _fail)
    _, rows = passes(1, 2, 3)
    assert fired(rows) == {key.encode() for key in KEYS}
    assert {each.reason for each in letters(rows)} == {
        "the reducer failed: east: TypeError('unhashable')"
    }


def test_the_views_of_a_cluster_that_cannot_be_judged_show_its_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Judge, "judge_cluster", _fail)
    _, rows = passes(1)
    assert {b"east", b"east/1"} < {row.key for row in rows}
    (letter,) = letters(rows)
    assert letter.reason == "the reducer failed: east: TypeError('unhashable')"


def test_a_detector_that_fails_on_a_broker_costs_no_other_and_resolves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broker_down(count: int, blob: bytes | None, first: int) -> tuple[bytes | None, list[Row]]:
        rows: list[Row] = []
        answers = [{"broker": 1, "outcome": "ok"}, {"broker": 2, "outcome": "refused"}]
        for number in range(first, first + count):
            at = float(number)
            clock = {"number": number, "started_at": at, "ended_at": at, "monotonic": at}
            blob, new = fold({**PASS, **clock, "brokers": answers}, blob=blob, number=number)
            rows += new
        return blob, rows

    def published(rows: list[Row]) -> list[str]:
        alerts = [decode_record(row.value or b"") for row in rows if row.destination == "alerts"]
        return [f"{a.state} {a.labels['alertname']}" for a in alerts if isinstance(a, Alert)]

    blob, rows = broker_down(30, None, 1)
    assert published(rows) == ["firing KafkaBrokerDown"]
    broken = replace(DETECTORS["BROKER_DOWN"], cluster=_fail)
    monkeypatch.setitem(DETECTORS, "BROKER_DOWN", broken)
    blob, rows = broker_down(10, blob, 31)
    assert published(rows) == []
    assert {each.reason for each in letters(rows)} == {
        "the reducer failed: east (BROKER_DOWN): TypeError('unhashable')"
    }


def test_an_alert_that_cannot_expire_changes_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    blob, _ = passes(1, 2)
    with monkeypatch.context() as patch:
        patch.setattr(LifeCycle, "expire_events", _fail)
        blob, rows = passes(3, blob=blob)
    assert fired(rows) == set()
    # What could not be published is not remembered as published.
    _, rows = passes(4, blob=blob)
    assert fired(rows) == {key.encode() for key in KEYS}


def test_a_state_that_cannot_be_encoded_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = passes(1)

    def encode(state: PartitionState) -> bytes:
        leader = state.replica(1)
        if leader is not None and leader.log_end_offset == 99:
            # What no encoder takes.
            state.high_watermark = 2**70
        return encode_state(state)

    monkeypatch.setattr(group_state, "encode_state", encode)
    moved = {**OBSERVED, "partition": 2, "observed_at": 2.0}
    moved["samples"] = [
        {"broker": 1, "log_end_offset": 99, "high_watermark": 7},
        {"broker": 2, "log_end_offset": 7, "high_watermark": 7},
    ]
    new = {**moved, "partition": 10}
    other = {**OBSERVED, "partition": 3, "observed_at": 2.0}
    second, rows = fold(moved, new, other, blob=first, number=2)
    before, after = decode_group(first), decode_group(second)
    assert after.partitions[BROKEN] == before.partitions[BROKEN]
    assert after.partitions[KEYS[3]] != before.partitions[KEYS[3]]
    # A new partition begins again.
    assert "east/orders/10" not in {**after.partitions, **after.due}
    (letter,) = letters(rows)
    assert letter.reason.startswith(f"a state cannot be encoded: 2 failures, such as {BROKEN}: ")
    assert (letter.offset, letter.length) == (0, 0)
    # The group goes on.
    third, _ = passes(3, blob=second)
    assert decode_state(decode_group(third).partitions[BROKEN]).pass_number == 3


def test_a_cluster_that_cannot_be_encoded_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = passes(1)

    def apply_pass(cluster: Any, _: object) -> None:
        cluster.reassigning = 2**70

    monkeypatch.setattr(pass_fold, "apply_pass", apply_pass)
    second, rows = passes(2, blob=first)
    assert decode_group(second).clusters == decode_group(first).clusters
    assert decode_state(decode_group(second).partitions[BROKEN]).pass_number == 2
    assert "a state cannot be encoded: east: OverflowError" in letters(rows)[-1].reason
    begun, _ = passes(1)
    assert decode_group(begun).clusters == {}


def test_no_state_is_an_empty_group_and_an_empty_one_is_damaged() -> None:
    assert decode_group(None) == GroupState()
    with pytest.raises(StateError, match="state of 0 bytes"):
        decode_group(b"")
