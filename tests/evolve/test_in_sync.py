"""Who left the in-sync set, under which leader, and what may have caused it."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.core.cluster import BrokerSeen, ClusterState, NodeState
from tidemark.core.events import MetadataChange, Observation, Replica
from tidemark.core.partition import MAX_ISR_HISTORY, MAX_SHRINKS, PartitionState
from tidemark.evolve.in_sync import apply_in_sync, cause_text, recorded_cause, sampled_cause

OWN = "the leader's own shrink"


def cluster(outcome: str | None = None, **node: Any) -> ClusterState:
    """What is known of broker 3, beside a broker 2 of which the worst is known."""
    state = ClusterState()
    state.nodes[2] = NodeState(0.0, fenced=True, in_controlled_shutdown=True)
    state.brokers[2] = BrokerSeen("refused", 0.0)
    if node:
        state.nodes[3] = NodeState(0.0, **node)
    if outcome is not None:
        state.brokers[3] = BrokerSeen(outcome, 0.0)
    return state


def seen(error: str | None = None, **fields: Any) -> Observation:
    samples = [
        Replica(broker=1, log_end_offset=1),
        Replica(broker=2, error="refused"),
        Replica(broker=3, error=error),
    ]
    whole: dict[str, Any] = {
        "topic": "orders",
        "partition": 0,
        "observed_at": 1.0,
        "leader": 1,
        "leader_epoch": 4,
    }
    return Observation(
        **{**whole, "replicas": [1, 2, 3], "in_sync_replicas": [1], "samples": samples, **fields}
    )


@pytest.mark.parametrize(
    ("event", "known", "cause"),
    [
        (seen(), None, OWN),
        (seen(), ClusterState(), OWN),
        (seen(), cluster(), OWN),
        (seen(), cluster("ok", fenced=False, in_controlled_shutdown=False), OWN),
        (seen(removing=[3]), cluster(fenced=True), "reassignment"),
        (seen(removing=[2]), cluster(), OWN),
        (seen("refused", replicas=[1, 2]), cluster(), "reassignment"),
        (seen("controlled_shutdown"), cluster(fenced=True), "controlled shutdown"),
        (seen(), cluster(in_controlled_shutdown=True, fenced=True), "controlled shutdown"),
        (seen(), cluster(fenced=True), "fencing"),
        (seen("refused"), None, "stopped or fenced"),
        (seen("timed_out"), cluster("refused"), "does not answer"),
        (seen("timed_out"), None, "does not answer"),
        # Where the partition itself was not asked, the last answer of the broker counts.
        (seen(samples=[]), cluster("refused"), "stopped or fenced"),
        (seen(samples=[]), cluster("timed_out"), "does not answer"),
        (seen(samples=[]), cluster("controlled_shutdown"), "controlled shutdown"),
        (seen(samples=[]), cluster(), OWN),
    ],
)
def test_the_suspected_cause_from_what_is_seen(
    event: Observation, known: ClusterState | None, cause: str
) -> None:
    assert sampled_cause(PartitionState(leader=1), event, 3, known) == cause


def test_the_leader_puts_out_nobody_who_has_all_that_it_has() -> None:
    def left(log_end_offset: int | None, leaders: int | None, error: str | None = None) -> str:
        samples = [Replica(broker=3, log_end_offset=log_end_offset, error=error)]
        event = seen(
            samples=samples, leader_log_end_offset_before=1, leader_log_end_offset_after=leaders
        )
        return sampled_cause(PartitionState(leader=1), event, 3, None)

    assert [left(9, 10), left(None, 10), left(9, None)] == [OWN, OWN, OWN]
    assert [left(10, 10), left(11, 10)] == ["stopped or fenced"] * 2
    assert left(10, 10, "timed_out") == "does not answer"


def test_a_leader_that_lost_its_office_stopped_or_was_fenced() -> None:
    assert sampled_cause(PartitionState(leader=3), seen(), 3, None) == "stopped or fenced"
    assert sampled_cause(PartitionState(leader=3), seen(leader=3), 3, None) == OWN


def change(cause: str | None = None, **fields: Any) -> MetadataChange:
    whole: dict[str, Any] = {
        "topic": "orders",
        "partition": 0,
        "observed_at": 1.0,
        "metadata_offset": 7,
        "leader": 1,
        "leader_epoch": 4,
    }
    return MetadataChange(
        **{
            **whole,
            "partition_epoch": 3,
            "replicas": [1, 2, 3],
            "in_sync_replicas": [1],
            "cause": cause,
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("event", "known", "cause"),
    [
        (change("fenced"), None, "fencing, by the metadata log"),
        (
            change("controlled_shutdown"),
            cluster(fenced=True),
            "controlled shutdown, by the metadata log",
        ),
        (change("leader"), cluster(fenced=True), "the leader's own shrink, by the metadata log"),
        (change("reassignment"), None, "reassignment, by the metadata log"),
        (change("unknown"), cluster(fenced=True), "fencing"),
        (change(removing=[3]), cluster(fenced=True), "reassignment"),
        (change(removing=[2]), cluster(), OWN),
        (change(replicas=[1, 2]), cluster(fenced=True), "reassignment"),
        (change(replicas=[]), cluster(fenced=True), "fencing"),
        (change(), cluster(fenced=True, in_controlled_shutdown=True), "controlled shutdown"),
        (change(), cluster(fenced=True), "fencing"),
        (change(), cluster(fenced=False), OWN),
        (change(), cluster(), OWN),
        (change(), None, OWN),
    ],
)
def test_the_cause_as_the_metadata_log_tells_it(
    event: MetadataChange, known: ClusterState | None, cause: str
) -> None:
    assert recorded_cause(event, 3, known) == cause


def test_a_cause_of_the_metadata_log_is_no_suspicion() -> None:
    assert (
        cause_text(recorded_cause(change("fenced"), 3, None))
        == "cause: fencing, by the metadata log"
    )
    assert cause_text("fencing") == "suspected cause: fencing"


def take(before: PartitionState, members: list[int], at: float = 2.0) -> PartitionState:
    after = PartitionState(isr_history=before.isr_history, shrinks=before.shrinks, leader=9)
    apply_in_sync(after, before, members, at, lambda broker: f"cause of {broker}")
    return after


def test_each_broker_that_left_is_noted_with_the_leader_it_left_under() -> None:
    known = PartitionState(
        leader=1,
        in_sync_replicas=[1, 2, 3],
        isr_history=[(1.0, [1, 2, 3])],
        shrinks=[(0.5, 2, 1, "old")],
    )
    after = take(known, [1, 4])
    assert after.in_sync_replicas == [1, 4]
    assert after.isr_history == [(1.0, [1, 2, 3]), (2.0, [1, 4])]
    assert after.shrinks == [
        (0.5, 2, 1, "old"),
        (2.0, 2, 1, "cause of 2"),
        (2.0, 3, 1, "cause of 3"),
    ]


def test_an_expansion_is_history_and_no_shrink() -> None:
    after = take(PartitionState(in_sync_replicas=[1]), [1, 2])
    assert after.isr_history == [(2.0, [1, 2])]
    assert after.shrinks == []


@pytest.mark.parametrize("members", [[1, 2], [2, 1]])
def test_another_order_is_no_change(members: list[int]) -> None:
    after = take(PartitionState(in_sync_replicas=[1, 2]), members)
    assert after.in_sync_replicas == members
    assert after.isr_history == []


def test_at_first_sight_nobody_left() -> None:
    after = take(PartitionState(), [1, 2])
    assert after.isr_history == [(2.0, [1, 2])]
    assert after.shrinks == []


def test_history_is_bounded_and_the_newest_stays() -> None:
    state = PartitionState(leader=1, in_sync_replicas=[1])
    for step in range(60):
        after = take(state, [1, 2] if step % 2 == 0 else [1], at=float(step))
        state = PartitionState(
            leader=1,
            in_sync_replicas=after.in_sync_replicas,
            isr_history=after.isr_history,
            shrinks=after.shrinks,
        )
    assert [time for time, _ in state.isr_history] == [
        float(step) for step in range(60 - MAX_ISR_HISTORY, 60)
    ]
    assert [entry[0] for entry in state.shrinks] == [
        float(step) for step in range(61 - 2 * MAX_SHRINKS, 60, 2)
    ]
