"""The reducer of a group: what a pipeline does to its records does not change the result."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, target
from hypothesis import strategies as st

from tests import version_1
from tests.core.event_strategies import batches
from tests.reduce.histories import DETECTION, histories
from tests.scenarios.scenario import Scenario
from tidemark.core import activity
from tidemark.core.activity import Activity
from tidemark.core.cluster import ClusterState
from tidemark.core.codec import decode_batch, encode_batch
from tidemark.core.events import Batch, Event, Observation, Pass
from tidemark.core.identity import partition_key
from tidemark.core.partition import PartitionState, decode_state, encode_state
from tidemark.core.records import Alert
from tidemark.detect import DETECTORS
from tidemark.detect.detector import Context
from tidemark.evolve.activity import activity_of, changes
from tidemark.evolve.fast_path import fold_offsets
from tidemark.evolve.observation import evolve
from tidemark.reduce.group import Fold, fold_group
from tidemark.reduce.group_state import GroupState, decode_group, encode_group
from tidemark.reduce.judge import EMPTY, DecodedPartition, Judge
from tidemark.reduce.rows import RawRecord, Row
from tidemark.reduce.views import partition_digest


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


# The flags of `core.activity`: detectors that they do not wake have nothing to report.


STATES = [detector for detector in DETECTORS.values() if detector.state is not None]
EVENTS = [detector for detector in DETECTORS.values() if detector.event is not None]


def check_states(state: PartitionState, flags: Activity, context: Context) -> None:
    """No state detector returns a condition unless the flags wake it."""
    for detector in STATES:
        if detector.state is not None and not detector.wakes_on & flags:
            assert list(detector.state(state, context)) == [], detector.id


class CheckedJudge(Judge):
    """Runs also the detectors that are not woken."""

    def judge_events(
        self,
        watched: DecodedPartition,
        before: PartitionState | None,
        flags: Activity,
        context: Context,
    ) -> list[Alert]:
        """No event detector returns a condition unless the flags of state or fold wake it."""
        for detector in EVENTS:
            if detector.event is not None and not detector.wakes_on & flags:
                found = detector.event(before or EMPTY, watched.state, context)
                assert list(found) == [], detector.id
        return super().judge_events(watched, before, flags, context)

    def judge_states(
        self, watched: DecodedPartition, context: Context, *, missed: bool
    ) -> list[Alert]:
        """The same for states, with the alerts before the judgement."""
        check_states(watched.state, watched.flags, context)
        return super().judge_states(watched, context, missed=missed)


class CheckedFold(Fold):
    """Compares the kept flags with those of the state after every event."""

    def __init__(self) -> None:
        super().__init__(GroupState(), DETECTION, 0, 1)
        self._judge = CheckedJudge(DETECTION)
        self.fast = self.unjudged = 0

    def _skip(self, record: RawRecord, event: Event, error: Exception) -> None:
        raise error

    def _fold(self, batch: Batch, event: Event) -> None:
        super()._fold(batch, event)
        for watched in self._decoded.values():
            assert watched.flags == activity_of(watched.state)

    def _pass(self, batch: Batch, cluster: ClusterState, event: Pass) -> None:
        """Every partition is checked at every pass, also one that is not judged."""
        super()._pass(batch, cluster, event)
        for watched in self._decoded.values():
            context = self._judge.context(watched, cluster, event.ended_at, event.period_ms)
            check_states(watched.state, watched.flags, context)
            if not watched.state.alerts and not self._judge.may_find(watched, event.ended_at):
                check_states(watched.state, activity.NONE, context)
                self.unjudged += watched.flags == activity.LAG

    def _observe(self, batch: Batch, cluster: ClusterState, event: Observation) -> None:
        before = self.partition(partition_key(batch.cluster, event.topic, event.partition))
        source = (batch.collector, batch.collector_epoch)
        if before is not None and (before.collector, before.collector_epoch) == source:
            self._fold_both_ways(before, batch, cluster, event)
        super()._observe(batch, cluster, event)

    def _fold_both_ways(
        self, before: PartitionState, batch: Batch, cluster: ClusterState, event: Observation
    ) -> None:
        """The fast path leaves the state of the whole fold, and skips no event."""
        fast = decode_state(encode_state(before))
        flags = fold_offsets(fast, event, batch.pass_number, activity_of(before))
        if flags is None:
            assert encode_state(fast) == encode_state(before)
            return
        source = (batch.collector, batch.collector_epoch)
        whole = evolve(before, event, *source, batch.pass_number, cluster)
        assert fast == whole
        assert flags == activity_of(whole)
        assert partition_digest(fast) == partition_digest(before)
        fold_flags = flags | changes(before, whole)
        assert [detector.id for detector in EVENTS if detector.wakes_on & fold_flags] == []
        self.fast += 1


@given(histories())
def test_flags_decide_which_detectors_run(records: list[RawRecord]) -> None:
    fold = CheckedFold()
    for record in records:
        fold.record(record)
    target(float(fold.fast))


def test_the_fast_path_is_taken() -> None:
    scenario = Scenario()
    scenario.play("partition orders-0 replicas=1,2,3 min_isr=2", "pass 5 add=10")
    state = scenario.state
    scenario.run("pass add=10")
    assert scenario.state is state, "folded in place"


def test_every_detector_of_a_partition_declares_what_wakes_it() -> None:
    assert [detector.id for detector in (*STATES, *EVENTS) if not detector.wakes_on] == []


@pytest.mark.parametrize("behind", ["leo=1:900,2:900,3:90", "leo=900 hw=90"])
def test_who_is_behind_is_judged_once_a_record_waits(behind: str) -> None:
    fold = CheckedFold()
    scenario = Scenario()
    scenario.play("partition orders-0 replicas=1,2,3 min_isr=2", "pass leo=90 hw=90")
    scenario.play(*[f"pass {behind}"] * 8)
    for number, batch in enumerate(scenario.batches):
        fold.record(RawRecord(0, number, 0.0, encode_batch(batch)))
    assert fold.unjudged
    (watched,) = fold._decoded.values()
    assert watched.state.alerts
