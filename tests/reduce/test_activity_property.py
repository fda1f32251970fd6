"""The flags of `core.activity`: detectors that they do not wake have nothing to report."""

from __future__ import annotations

import pytest
from hypothesis import given, target

from tests.reduce.histories import DETECTION, histories
from tests.scenarios.scenario import Scenario
from tidemark.core import activity
from tidemark.core.activity import Activity
from tidemark.core.cluster import ClusterState
from tidemark.core.codec import encode_batch
from tidemark.core.events import Batch, Event, Observation, Pass
from tidemark.core.identity import partition_key
from tidemark.core.partition import PartitionState, decode_state, encode_state
from tidemark.core.records import Alert
from tidemark.detect import DETECTORS
from tidemark.detect.detector import Context
from tidemark.evolve.activity import activity_of, changes
from tidemark.evolve.fast_path import fold_offsets
from tidemark.evolve.observation import evolve
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark.reduce.judge import EMPTY, DecodedPartition, Judge
from tidemark.reduce.rows import RawRecord
from tidemark.reduce.views import partition_digest

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
