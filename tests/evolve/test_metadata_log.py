"""What is no sample: records of the metadata log are exact, files of a broker and findings of an audit are noted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.evolve.observed import fold, observation
from tidemark.core.cluster import ClusterState, NodeState
from tidemark.core.events import MAX_REPLICAS, Audit, Checkpoint, MetadataChange
from tidemark.core.partition import PartitionState, encode_state
from tidemark.core.sparse_state import AuditFinding, CheckpointSeen, MetadataPosition, SparseState
from tidemark.evolve.metadata_log import (
    evolve_audit,
    evolve_change,
    evolve_checkpoint,
    is_new_record,
)


def change(**fields: Any) -> MetadataChange:
    whole: dict[str, Any] = {
        "topic": "orders",
        "partition": 0,
        "observed_at": 20.0,
        "topic_id": "a",
        "metadata_offset": 8,
    }
    here: dict[str, Any] = {
        "leader": 1,
        "leader_epoch": 4,
        "partition_epoch": 3,
        "replicas": [1, 2],
        "in_sync_replicas": [1, 2],
    }
    return MetadataChange(**{**whole, **here, **fields})


def recorded(**fields: Any) -> PartitionState:
    """Record 7, of partition epoch 2, is the newest one read."""
    state = fold(None, observation())
    state.sparse = SparseState(
        metadata=MetadataPosition(**{"offset": 7, "partition_epoch": 2, "at": 10.0, **fields})
    )
    return state


@pytest.mark.parametrize(
    ("state", "event", "new"),
    [
        (None, change(), True),
        (fold(None, observation()), change(), True),
        (recorded(), change(), True),
        (recorded(), change(metadata_offset=7), False),
        (recorded(), change(metadata_offset=6), False),
        (recorded(), change(leader_epoch=3), False),
        (fold(None, observation()), change(leader_epoch=3), False),
        (fold(None, observation(leader_epoch=None)), change(leader_epoch=3), True),
        # The log of another topic under the name has another order.
        (recorded(), change(topic_id="b", metadata_offset=1, leader_epoch=0), True),
        (recorded(), change(topic_id="b", metadata_offset=99, observed_at=10.0), False),
        (recorded(), change(topic_id=None, metadata_offset=7), False),
        (
            fold(
                None,
                observation(),
                observation(lineage=[(3, 1), (4, 2)], lineage_complete_from=3, leader_epoch=5),
            ),
            change(leader_epoch=5),
            True,
        ),
    ],
)
def test_records_are_ordered_by_their_offset_and_no_epoch_falls(
    state: PartitionState | None, event: MetadataChange, new: bool
) -> None:
    assert is_new_record(state, event) is new


def test_a_record_says_exactly_who_leads_and_who_is_in_sync() -> None:
    event = change(
        leader=None,
        leader_epoch=5,
        replicas=[1, 2, 3],
        in_sync_replicas=[2],
        eligible_leader_replicas=[1],
        last_known_eligible_leader_replicas=[2],
        adding=[3],
        removing=[1],
    )
    after = evolve_change(recorded(), event)
    assert (after.leader, after.leader_epoch, after.leaderless) == (None, 5, True)
    assert (after.assigned, after.in_sync_replicas, after.adding, after.removing) == (
        [1, 2, 3],
        [2],
        [3],
        [1],
    )
    assert (after.eligible_leader_replicas, after.last_known_eligible_leader_replicas) == ([1], [2])
    assert not evolve_change(after, change(leader_epoch=6, metadata_offset=9)).leaderless


def test_what_a_record_does_not_tell_stays() -> None:
    state = recorded()
    state.eligible_leader_replicas, state.last_known_eligible_leader_replicas = [2], [1]
    after = evolve_change(state, change(replicas=[], topic_id=None))
    assert (after.assigned, after.topic_id) == ([1, 2], "a")
    assert (after.eligible_leader_replicas, after.last_known_eligible_leader_replicas) == ([2], [1])
    assert evolve_change(fold(None, observation(topic_id=None)), change()).topic_id == "a"


def test_the_state_before_a_record_is_left_as_it_is() -> None:
    state = recorded()
    kept = encode_state(state)
    evolve_change(state, change(leader=2, leader_epoch=5, in_sync_replicas=[2], recovering=True))
    assert encode_state(state) == kept


def test_a_topic_created_anew_begins_with_its_first_record() -> None:
    new = change(topic_id="b", leader_epoch=0)
    assert evolve_change(recorded(), new) == evolve_change(None, new)
    assert evolve_change(None, new).topic_id == "b"


@pytest.mark.parametrize(
    ("state", "partition_epoch", "adjacent"),
    [
        (recorded(), 3, True),
        (recorded(), 4, False),
        (recorded(), 2, False),
        (fold(None, observation()), 3, False),
        (None, 0, False),
    ],
)
def test_partition_epochs_tell_whether_a_record_was_missed(
    state: PartitionState | None, partition_epoch: int, adjacent: bool
) -> None:
    after = evolve_change(state, change(partition_epoch=partition_epoch, recovering=True))
    assert after.sparse is not None
    assert after.sparse.metadata == MetadataPosition(
        8, partition_epoch, 20.0, recovering=True, adjacent=adjacent
    )


def test_a_shrink_is_dated_by_the_controller_where_it_says_when() -> None:
    assert evolve_change(recorded(), change(in_sync_replicas=[1], record_at=15.0)).shrinks == [
        (15.0, 2, 1, "the leader's own shrink")
    ]
    assert evolve_change(recorded(), change(in_sync_replicas=[1])).shrinks == [
        (20.0, 2, 1, "the leader's own shrink")
    ]
    cluster = ClusterState()
    cluster.nodes[2] = NodeState(0.0, fenced=True)
    assert evolve_change(recorded(), change(in_sync_replicas=[1]), cluster).shrinks == [
        (20.0, 2, 1, "fencing")
    ]


def test_a_new_leadership_begins_when_the_record_was_written_and_its_ring_is_kept_from_when_it_was_read() -> (
    None
):
    state = recorded()
    after = evolve_change(state, change(leader=2, leader_epoch=5, record_at=15.0))
    assert (
        after.offset_history,
        after.previous_offset_history,
        after.previous_offset_history_until,
    ) == ([], state.offset_history, 620.0)
    assert after.sparse is not None and after.sparse.epoch_starts == [(15.0, 5)]
    same = evolve_change(state, change())
    assert same.offset_history == state.offset_history
    assert same.sparse is not None and same.sparse.epoch_starts == []


def test_an_unclean_election_in_the_metadata_log_is_remembered() -> None:
    nobody = evolve_change(
        recorded(),
        change(leader=None, leader_epoch=5, in_sync_replicas=[1], eligible_leader_replicas=[]),
    )
    unclean = change(
        leader=2, leader_epoch=6, in_sync_replicas=[2], metadata_offset=9, partition_epoch=4
    )
    assert evolve_change(nobody, unclean).unclean_epoch == 6
    clean = change(
        leader=1, leader_epoch=6, in_sync_replicas=[1], metadata_offset=9, partition_epoch=4
    )
    assert evolve_change(nobody, clean).unclean_epoch is None
    nobody.eligible_leader_replicas = [2]
    assert evolve_change(nobody, unclean).unclean_epoch is None, (
        "an eligible leader holds all that was committed"
    )


def checkpoint(broker: int = 2, **fields: Any) -> Checkpoint:
    whole: dict[str, Any] = {
        "topic": "orders",
        "partition": 0,
        "topic_id": "a",
        "observed_at": 20.0,
        "high_watermark": 80,
    }
    return Checkpoint(**{"broker": broker, "modified_at": 18.0, **whole, **fields})


def files(state: PartitionState) -> list[CheckpointSeen]:
    return [] if state.sparse is None else state.sparse.checkpoints


def test_the_newest_reading_of_each_brokers_files_is_kept() -> None:
    state = evolve_checkpoint(fold(None, observation()), checkpoint())
    assert files(state) == [CheckpointSeen(2, 80, 18.0, 20.0)]
    state = evolve_checkpoint(state, checkpoint(1))
    newer = evolve_checkpoint(state, checkpoint(observed_at=21.0, high_watermark=85))
    assert sorted((item.broker, item.high_watermark) for item in files(newer)) == [(1, 80), (2, 85)]
    assert [item.high_watermark for item in files(state)] == [80, 80], (
        "the state before is left as it is"
    )


@pytest.mark.parametrize(
    "event",
    [checkpoint(), checkpoint(observed_at=19.0), checkpoint(observed_at=21.0, topic_id="b")],
)
def test_an_older_reading_or_one_of_another_topic_changes_nothing(event: Checkpoint) -> None:
    state = evolve_checkpoint(fold(None, observation()), checkpoint())
    assert evolve_checkpoint(state, event) is state


def test_files_are_taken_where_the_topic_id_was_never_seen() -> None:
    assert files(evolve_checkpoint(fold(None, observation(topic_id=None)), checkpoint()))
    assert files(
        evolve_checkpoint(fold(None, observation(topic_id=None)), checkpoint(topic_id=None))
    )


def test_the_files_of_a_bounded_number_of_brokers_are_known() -> None:
    state = fold(None, observation())
    for broker in range(MAX_REPLICAS + 2):
        state = evolve_checkpoint(state, checkpoint(broker))
    assert [item.broker for item in files(state)] == list(range(2, MAX_REPLICAS + 2))


def audit(**fields: Any) -> Audit:
    whole: dict[str, Any] = {
        "topic": "orders",
        "partition": 0,
        "topic_id": "a",
        "observed_at": 20.0,
        "brokers": [1, 2],
        "offset": 40,
    }
    return Audit(**{**whole, "leader_epoch": 4, "crcs": [11, 22], **fields})


def test_the_newest_finding_of_an_audit_is_kept_beside_the_rest() -> None:
    state = recorded()
    after = evolve_audit(state, audit())
    assert after.sparse is not None
    assert after.sparse.audit == AuditFinding(40, 4, [1, 2], [11, 22], 20.0)
    assert after.sparse.metadata is not None
    assert state.sparse is not None and state.sparse.audit is None


def test_a_finding_that_comes_again_or_late_changes_nothing() -> None:
    state = evolve_audit(recorded(), audit())
    assert evolve_audit(state, audit()) is state
    assert evolve_audit(state, audit(observed_at=19.0, offset=50)) is state
    later = evolve_audit(state, audit(observed_at=21.0, offset=50))
    assert later.sparse is not None and later.sparse.audit is not None
    assert later.sparse.audit.offset == 50


@pytest.mark.parametrize("event", [audit(topic_id="b"), audit(crcs=[11, 11]), audit(crcs=[])])
def test_what_agrees_or_is_of_another_topic_is_no_finding(event: Audit) -> None:
    state = recorded()
    assert evolve_audit(state, event) is state
    assert (
        evolve_audit(fold(None, observation(topic_id=None)), audit(topic_id="b")).sparse is not None
    )
