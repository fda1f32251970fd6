"""The executors' function on pandas frames, without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd
import pytest
from pyspark import cloudpickle

from tests.stream.synthetic import SyntheticPasses, reduce_all
from tidemark.core.records import DeadLetter, decode_record
from tidemark.detect.default_thresholds import Detection
from tidemark.reduce.rows import RawRecord
from tidemark.settings import Topics
from tidemark.stream import batch_bounds
from tidemark.stream.fold import MAX_ROWS, make_fold

TOPICS = Topics(partitions=2)
LOAD = SyntheticPasses(partitions=12, groups=2, offline_every=3, versions=(1, 2))
FOLD: Any = make_fold(Detection(), TOPICS)


class State:
    """Spark's GroupState as the fold uses it."""

    def __init__(self) -> None:
        self.value: tuple[bytes, ...] | None = None

    @property
    def exists(self) -> bool:
        return self.value is not None

    @property
    def get(self) -> tuple[bytes, ...]:
        assert self.value is not None
        return self.value

    def update(self, value: tuple[bytes, ...]) -> None:
        self.value = value


def records_of(group: int, passes: Iterable[int]) -> list[RawRecord]:
    values = [value for number in passes for place, value in LOAD.records(number) if place == group]
    return [RawRecord(group, offset, 1.8e9 + offset, value) for offset, value in enumerate(values)]


def frame(records: list[RawRecord]) -> pd.DataFrame:
    rows = [
        (r.value, len(r.value or b""), r.partition, r.offset, int(r.timestamp * 1000))
        for r in records
    ]
    return pd.DataFrame(rows, columns=["value", "size", "partition", "offset", "timestamp_ms"])


def run(state: State, group: int, frames: list[pd.DataFrame]) -> list[tuple[Any, ...]]:
    return [
        row
        for out in FOLD((group,), iter(frames), state)
        for row in out.itertuples(index=False, name=None)
    ]


def expected(records: list[RawRecord]) -> list[tuple[Any, ...]]:
    names = {
        "partition_views": TOPICS.partition_views,
        "alerts": TOPICS.alerts,
        "dead_letters": TOPICS.dead_letters,
    }
    return [(names[row.destination], row.key, row.value) for row in reduce_all(records, 2)]


def test_rows_name_their_topics_in_any_order_and_any_chunks() -> None:
    records = records_of(1, range(10))
    backward = records[::-1]
    rows = run(State(), 1, [frame(backward[:7]), frame(backward[7:8]), frame(backward[8:])])
    assert rows == expected(records)
    assert {row[0] for row in rows} == {TOPICS.partition_views, TOPICS.alerts}


def test_batches_carry_on_from_the_state() -> None:
    records = records_of(0, range(10))
    state = State()
    rows = [
        row
        for start in range(0, len(records), 3)
        for row in run(state, 0, [frame(records[start : start + 3])])
    ]
    assert rows == expected(records)


def test_batch_done_again_gives_the_same_bytes() -> None:
    records = records_of(0, range(6))
    first, second = State(), State()
    assert run(first, 0, [frame(records)]) == run(second, 0, [frame(records)])
    assert first.value == second.value


def test_unreadable_and_empty_records_become_dead_letters_and_stop_nothing() -> None:
    good = records_of(0, range(3))
    bad = [RawRecord(0, 100, 1.8e9, b"\xff{"), RawRecord(0, 101, 1.8e9, None)]
    rows = run(State(), 0, [frame([bad[0], *good, bad[1]])])
    assert [row[1] for row in rows if row[0] == TOPICS.dead_letters] == [b"0/100", b"0/101"]
    assert [row for row in rows if row[0] != TOPICS.dead_letters] == expected(good)


def test_what_a_batch_has_beyond_the_bound_is_a_dead_letter_and_takes_no_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = records_of(0, range(1))
    monkeypatch.setattr(batch_bounds, "MAX_GROUP_BYTES", 5_000_000)
    huge = [RawRecord(0, 100 + n, 1.8e9, b" " * 1_000_000) for n in range(7)]
    read = batch_bounds.bounded_records([frame([*good, *huge])])
    assert sum(len(record.value or b"") for record in read) < 6_000_000
    assert [record.size for record in read[-4:]] == [None, 1_000_000, 1_000_000, 1_000_000]
    rows = run(State(), 0, [frame([*good, *huge])])
    letters = [decode_record(row[2]) for row in rows if row[0] == TOPICS.dead_letters]
    reasons = [letter.reason for letter in letters if isinstance(letter, DeadLetter)]
    assert len(reasons) == len(huge)
    assert reasons[-1] == "the record has 1000000 bytes, too many to be read here"
    assert [row for row in rows if row[0] != TOPICS.dead_letters] == expected(good)


def test_frames_are_bounded() -> None:
    garbage = [RawRecord(0, offset, 1.8e9, b"?") for offset in range(MAX_ROWS + 1)]
    assert [len(out) for out in FOLD((0,), iter([frame(garbage)]), State())] == [MAX_ROWS, 1]


def test_function_goes_to_executors_by_reference_and_value() -> None:
    pickled = cloudpickle.dumps(FOLD)  # type: ignore[no-untyped-call]
    assert cloudpickle.loads(pickled).__name__ == "fold"
