"""The reducer of a group: what a pipeline does to its records does not change the result."""

from __future__ import annotations

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
    """The state and the rows after calls with these parts; dead letters are not compared."""
    blob: bytes | None = None
    rows: list[Row] = []
    for part in parts:
        blob, new = fold_group(blob, part, DETECTION, 0, 1)
        assert encode_group(decode_group(blob)) == blob
        assert not any(b"the reducer failed" in (row.value or b"") for row in new)
        rows += (row for row in new if row.destination != "dead_letters")
    return blob or b"", rows


@settings(max_examples=3 * settings().max_examples)
@given(histories(), st.data())
def test_any_way_through_the_pipeline_gives_the_same_result(
    records: list[RawRecord], data: st.DataObject
) -> None:
    """It may split, repeat, delay and mix the records of a group, and some cannot be read.

    A producer's retry repeats a record at once or a little later; passes never run backward.
    """
    sent: list[bytes | None] = []
    for record in records:
        sent.append(record.value)
        back = data.draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4, None]))
        if back is None:
            sent.append(b'{"v": 1, "events": [')
        elif 0 < back <= len(sent):
            sent.append(sent[-back])
    again = [RawRecord(0, offset, 0.0, value) for offset, value in enumerate(sent)]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(again)), max_size=6)))
    parts = [again[a:b] for a, b in zip([0, *cuts], [*cuts, len(again)], strict=True)]
    # The order of records in a call does not matter.
    assert fold(*(data.draw(st.permutations(part)) for part in parts)) == fold(records)


@given(histories())
def test_state_decodes_to_what_was_encoded(records: list[RawRecord]) -> None:
    blob, _ = fold(records)
    for partition in decode_group(blob).partitions.values():
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
