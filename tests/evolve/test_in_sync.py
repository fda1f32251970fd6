"""Which broker left the in-sync set, under which leader, and why."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.core.broker_seen import BrokerSeen
from tidemark.core.cluster import ClusterState, NodeState
from tidemark.core.events import MetadataChange, Observation, Replica
from tidemark.core.partition import MAX_ISR_HISTORY, MAX_SHRINKS, IsrChange, PartitionState, Shrink
from tidemark.core.shrink_causes import ShrinkCause, ShrinkExplanation
from tidemark.evolve.membership import apply_in_sync, confirm_causes, recorded_cause, sampled_cause


def cluster(outcome: str | None = None, **node: Any) -> ClusterState:
    """Facts about broker 3. Broker 2 is fenced, shuts down and refuses connections."""
    state = ClusterState()
    state.nodes[2] = NodeState(0.0, fenced=True, in_controlled_shutdown=True)
    state.brokers[2] = BrokerSeen("refused", 0.0)
    if node:
        state.nodes[3] = NodeState(0.0, **node)
    if outcome is not None:
        state.brokers[3] = BrokerSeen(outcome, 0.0)
    return state


PARTITION: dict[str, Any] = {"topic": "orders", "partition": 0, "observed_at": 1.0}
LED: dict[str, Any] = {"leader": 1, "leader_epoch": 4, "replicas": [1, 2, 3]}


def sampled(error: str | None = None, log_end: int | None = None, **fields: Any) -> Observation:
    """Brokers 2 and 3 left; broker 3 answers unless `error`."""
    samples = [
        Replica(broker=1, log_end_offset=1),
        Replica(broker=2, error="refused"),
        Replica(broker=3, log_end_offset=log_end, error=error),
    ]
    whole = {**PARTITION, **LED, "in_sync_replicas": [1], "samples": samples}
    return Observation(**{**whole, **fields})


@pytest.mark.parametrize(
    ("event", "known", "cause"),
    [
        (sampled(), None, ShrinkCause.LEADER_SHRINK),
        (sampled(), ClusterState(), ShrinkCause.LEADER_SHRINK),
        (sampled(), cluster(), ShrinkCause.LEADER_SHRINK),
        (
            sampled(),
            cluster("ok", fenced=False, in_controlled_shutdown=False),
            ShrinkCause.LEADER_SHRINK,
        ),
        (sampled(removing=[3]), cluster(fenced=True), ShrinkCause.REASSIGNMENT),
        (sampled(removing=[2]), cluster(), ShrinkCause.LEADER_SHRINK),
        (sampled("refused", replicas=[1, 2]), cluster(), ShrinkCause.REASSIGNMENT),
        (sampled("controlled_shutdown"), cluster(fenced=True), ShrinkCause.CONTROLLED_SHUTDOWN),
        (
            sampled(),
            cluster(in_controlled_shutdown=True, fenced=True),
            ShrinkCause.CONTROLLED_SHUTDOWN,
        ),
        (sampled(), cluster(fenced=True), ShrinkCause.FENCING),
        (sampled("refused"), None, ShrinkCause.STOPPED_OR_FENCED),
        (sampled("timed_out"), cluster("refused"), ShrinkCause.NO_ANSWER),
        (sampled("timed_out"), None, ShrinkCause.NO_ANSWER),
        # Without a sample, the last answer of the broker counts.
        (sampled(samples=[]), cluster("refused"), ShrinkCause.STOPPED_OR_FENCED),
        (sampled(samples=[]), cluster("timed_out"), ShrinkCause.NO_ANSWER),
        (sampled(samples=[]), cluster("controlled_shutdown"), ShrinkCause.CONTROLLED_SHUTDOWN),
        (sampled(samples=[]), cluster(), ShrinkCause.LEADER_SHRINK),
        # A leader never removes a follower that has its whole log.
        (sampled(log_end=9, leader_log_end_offset_after=10), None, ShrinkCause.LEADER_SHRINK),
        (sampled(log_end=None, leader_log_end_offset_after=10), None, ShrinkCause.LEADER_SHRINK),
        (
            sampled(log_end=9, leader_log_end_offset_before=1),
            None,
            ShrinkCause.LEADER_SHRINK,
        ),
        (sampled(log_end=10, leader_log_end_offset_after=10), None, ShrinkCause.STOPPED_OR_FENCED),
        (sampled(log_end=11, leader_log_end_offset_after=10), None, ShrinkCause.STOPPED_OR_FENCED),
        (
            sampled("timed_out", log_end=10, leader_log_end_offset_after=10),
            None,
            ShrinkCause.NO_ANSWER,
        ),
    ],
)
def test_a_cause_from_samples_is_a_suspicion(
    event: Observation, known: ClusterState | None, cause: ShrinkCause
) -> None:
    assert sampled_cause(PartitionState(leader=1), event, 3, known) == ShrinkExplanation(cause)


@pytest.mark.parametrize(
    ("leader", "cause"), [(1, ShrinkCause.STOPPED_OR_FENCED), (3, ShrinkCause.LEADER_SHRINK)]
)
def test_a_leader_that_lost_the_leadership_stopped_or_was_fenced(
    leader: int, cause: ShrinkCause
) -> None:
    found = sampled_cause(PartitionState(leader=3), sampled(leader=leader), 3, None)
    assert found == ShrinkExplanation(cause)


def change(cause: str | None = None, **fields: Any) -> MetadataChange:
    record = {"metadata_offset": 7, "partition_epoch": 3, "in_sync_replicas": [1], "cause": cause}
    return MetadataChange(**{**PARTITION, **LED, **record, **fields})


@pytest.mark.parametrize(
    ("event", "known", "cause", "recorded"),
    [
        (change("fenced"), None, ShrinkCause.FENCING, True),
        (
            change("controlled_shutdown"),
            cluster(fenced=True),
            ShrinkCause.CONTROLLED_SHUTDOWN,
            True,
        ),
        (change("leader"), cluster(fenced=True), ShrinkCause.LEADER_SHRINK, True),
        (change("reassignment"), None, ShrinkCause.REASSIGNMENT, True),
        (change("unknown"), cluster(fenced=True), ShrinkCause.FENCING, False),
        (change("unknown"), cluster(), ShrinkCause.UNKNOWN, False),
        (change("created"), None, ShrinkCause.LEADER_SHRINK, False),
        (change(removing=[3]), cluster(fenced=True), ShrinkCause.REASSIGNMENT, False),
        (change(removing=[2]), cluster(), ShrinkCause.LEADER_SHRINK, False),
        (change(replicas=[1, 2]), cluster(fenced=True), ShrinkCause.REASSIGNMENT, False),
        (change(replicas=[]), cluster(fenced=True), ShrinkCause.FENCING, False),
        (
            change(),
            cluster(fenced=True, in_controlled_shutdown=True),
            ShrinkCause.CONTROLLED_SHUTDOWN,
            False,
        ),
        (change(), cluster(fenced=True), ShrinkCause.FENCING, False),
        (change(), cluster(fenced=False), ShrinkCause.LEADER_SHRINK, False),
        (change(), cluster(), ShrinkCause.LEADER_SHRINK, False),
        (change(), None, ShrinkCause.LEADER_SHRINK, False),
    ],
)
def test_a_cause_that_the_record_gives_is_certain(
    event: MetadataChange, known: ClusterState | None, cause: ShrinkCause, recorded: bool
) -> None:
    assert recorded_cause(event, 3, known) == ShrinkExplanation(cause, recorded)


def apply(before: PartitionState, members: list[int], at: float = 2.0) -> PartitionState:
    """The state after a new in-sync set; the causes are a record's for broker 2 alone."""
    after = PartitionState(isr_history=before.isr_history, shrinks=before.shrinks, leader=9)
    apply_in_sync(after, before, members, at, lambda broker: ShrinkExplanation(CAUSE, broker == 2))
    return after


CAUSE = ShrinkCause.FENCING
OLD_CHANGE = IsrChange(1.0, [1, 2, 3])
OLD_SHRINK = Shrink(0.5, 2, 1, ShrinkCause.UNKNOWN)


def test_each_broker_that_left_is_noted_with_its_leader_and_cause() -> None:
    known = PartitionState(
        leader=1, in_sync_replicas=[1, 2, 3], isr_history=[OLD_CHANGE], shrinks=[OLD_SHRINK]
    )
    after = apply(known, [1, 4])
    assert after.in_sync_replicas == [1, 4]
    assert after.isr_history == [OLD_CHANGE, IsrChange(2.0, [1, 4])]
    assert after.shrinks == [
        OLD_SHRINK,
        Shrink(2.0, 2, 1, CAUSE, recorded=True),
        Shrink(2.0, 3, 1, CAUSE),
    ]
    assert known.shrinks == [OLD_SHRINK], "the state before does not change"


def test_a_record_confirms_the_causes_of_the_brokers_that_it_names() -> None:
    sampled_at = [Shrink(2.0, broker, 1, ShrinkCause.UNKNOWN) for broker in (2, 3)]
    after = PartitionState(shrinks=list(sampled_at))
    confirm_causes(after, [2, 3], 2.0, lambda broker: ShrinkExplanation(CAUSE, broker == 2))
    assert after.shrinks == [Shrink(2.0, 2, 1, CAUSE, recorded=True), sampled_at[1]]


@pytest.mark.parametrize(
    ("before", "members", "changed"),
    [
        # An expansion is history and no shrink. Another order is no change.
        ([1], [1, 2], True),
        ([1, 2], [1, 2], False),
        ([1, 2], [2, 1], False),
        # Without a known set before, no broker left.
        (None, [1, 2], True),
    ],
)
def test_without_a_broker_that_left_there_is_no_shrink(
    before: list[int] | None, members: list[int], changed: bool
) -> None:
    after = apply(PartitionState(in_sync_replicas=before), members)
    assert after.in_sync_replicas == members
    assert after.isr_history == ([IsrChange(2.0, members)] if changed else [])
    assert after.shrinks == []


def test_history_is_bounded_and_keeps_the_newest() -> None:
    state = PartitionState(leader=1, in_sync_replicas=[1])
    for step in range(60):
        state = apply(state, [1, 2] if step % 2 == 0 else [1], at=float(step))
    assert [change.at for change in state.isr_history] == [
        float(step) for step in range(60 - MAX_ISR_HISTORY, 60)
    ]
    assert [shrink.at for shrink in state.shrinks] == [
        float(step) for step in range(61 - 2 * MAX_SHRINKS, 60, 2)
    ]
