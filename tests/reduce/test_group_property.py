"""The reducer of a group: splits, repeats and delays of its records do not change the result."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests import version_1
from tests.core.event_strategies import batches
from tests.reduce.histories import DETECTION, histories
from tests.scenarios.scenario import Scenario
from tidemark.core.codec import decode_batch, encode_batch
from tidemark.core.events import Batch
from tidemark.core.partition import decode_state, encode_state
from tidemark.reduce.group import fold_group
from tidemark.reduce.group_state import decode_group, encode_group
from tidemark.reduce.rows import RawRecord, Row


def fold(*parts: list[RawRecord]) -> tuple[bytes, list[Row]]:
    """The state and the rows after calls with these parts."""
    blob: bytes | None = None
    rows: list[Row] = []
    for part in parts:
        blob, new = fold_group(blob, part, DETECTION, 0, 1)
        assert not any(b"the reducer failed" in (row.value or b"") for row in new)
        rows += new
    return blob or b"", rows


@given(histories(), st.data())
def test_another_split_gives_the_same_rows_and_state(
    records: list[RawRecord], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(records)), max_size=6)))
    parts = [records[a:b] for a, b in zip([0, *cuts], [*cuts, len(records)], strict=True)]
    assert fold(*parts) == fold(records)


@given(histories(), st.randoms(use_true_random=False))
def test_the_order_of_records_in_a_call_does_not_matter(
    records: list[RawRecord], order: random.Random
) -> None:
    shuffled = list(records)
    order.shuffle(shuffled)
    assert fold(shuffled) == fold(records)


@given(histories(), st.data())
def test_repeated_and_late_records_change_nothing(
    records: list[RawRecord], data: st.DataObject
) -> None:
    """A producer's retry repeats a record at once or a little later; passes never run backward."""
    sent: list[bytes | None] = []
    for record in records:
        sent.append(record.value)
        back = data.draw(st.integers(0, 3))
        if 0 < back <= len(sent):
            sent.append(sent[-back])
    again = [RawRecord(0, offset, 0.0, value) for offset, value in enumerate(sent)]
    assert fold(again) == fold(records)


@given(histories())
def test_state_decodes_to_what_was_encoded(records: list[RawRecord]) -> None:
    blob, _ = fold(records)
    group = decode_group(blob)
    assert encode_group(group) == blob
    for partition in group.partitions.values():
        assert encode_state(decode_state(partition)) == partition


@settings(max_examples=20)
@given(histories())
def test_both_versions_of_the_events_give_the_same_rows_and_state(records: list[RawRecord]) -> None:
    old = [
        record._replace(value=version_1.encode_batch(decode_batch(record.value or b"")))
        for record in records
    ]
    assert fold(old) == fold(records)


@given(st.lists(batches, max_size=4))
def test_anything_that_the_schema_allows_is_folded(history: list[Batch]) -> None:
    records = [RawRecord(0, n, 0.0, encode_batch(batch)) for n, batch in enumerate(history)]
    assert fold(*([record] for record in records), []) == fold(records)


def test_a_healthy_partition_of_three_replicas_takes_less_than_400_bytes() -> None:
    scenario = Scenario()
    scenario.play(
        "partition orders-0 replicas=1,2,3 min_isr=2 topic_id=AAAAAAAAAAAAAAAAAAAAAQ",
        "pass epoch=2 leo=4000000000 hw=4000000000 lineage=1:100,2:4000000000",
        "pass 60 every=60",
        "pass 20 add=1000",
    )
    blob = encode_state(scenario.state)
    assert scenario.fold.close().partitions == {scenario.key: blob}
    assert len(blob) <= 400
