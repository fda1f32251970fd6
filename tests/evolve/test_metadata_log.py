"""Records of the metadata log are exact and ordered by their offset."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.evolve.observations import SEEN, fold, observation, sparse_of
from tidemark.core.cluster import ClusterState, NodeState
from tidemark.core.events import MetadataChange
from tidemark.core.partition import PartitionState, Shrink, encode_state
from tidemark.core.shrink_causes import ShrinkCause
from tidemark.core.sparse_state import EpochStart, MetadataPosition, SparseState
from tidemark.evolve.metadata_log import evolve_change, is_new_record, note_delay
from tidemark.evolve.recreation import is_other_topic


def change(**fields: Any) -> MetadataChange:
    """Record 8, of partition epoch 3: the healthy partition again."""
    partition = {"topic": "orders", "partition": 0, "topic_id": "a", "observed_at": 20.0}
    record = {"metadata_offset": 8, "partition_epoch": 3, "leader": 1, "leader_epoch": 4}
    members = {"replicas": [1, 2], "in_sync_replicas": [1, 2]}
    return MetadataChange(**{**partition, **record, **members, **fields})


def recorded(**fields: Any) -> PartitionState:
    """Record 7, of partition epoch 2, is the newest one that was read."""
    state = fold(None, observation())
    position = {"offset": 7, "partition_epoch": 2, "at": 10.0}
    state.sparse = SparseState(metadata=MetadataPosition(**{**position, **fields}))
    return state


@pytest.mark.parametrize(
    ("known", "reported", "other"),
    [("a", "b", True), ("a", "a", False), (None, "b", False), ("a", None, False)],
)
def test_another_topic_id_is_another_topic(
    known: str | None, reported: str | None, other: bool
) -> None:
    assert is_other_topic(PartitionState(topic_id=known), reported) is other


@pytest.mark.parametrize(
    ("state", "event", "new"),
    [
        (None, change(), True),
        (SEEN, change(), True),
        (recorded(), change(), True),
        (recorded(), change(metadata_offset=7), False),
        (recorded(), change(metadata_offset=6), False),
        (recorded(), change(leader_epoch=3), False),
        (SEEN, change(leader_epoch=3), False),
        (fold(None, observation(leader_epoch=None)), change(leader_epoch=3), True),
        # Another topic of this name is newer by the order of the log, whatever any clock says.
        (recorded(), change(topic_id="b", metadata_offset=8, leader_epoch=0), True),
        (recorded(), change(topic_id="b", metadata_offset=99, record_at=5.0), True),
        (SEEN, change(topic_id="b", metadata_offset=99, record_at=50.0), False),
        (recorded(), change(topic_id=None, metadata_offset=7), False),
        # A snapshot has an offset of its own. The same partition epoch is the same state.
        (recorded(), change(metadata_offset=50, partition_epoch=2), False),
        (recorded(), change(metadata_offset=50, partition_epoch=1), False),
        # A record of the deleted topic, which a collector reads again at its start.
        (recorded(), change(topic_id="b", metadata_offset=6, record_at=50.0), False),
        # Sparse state without a record.
        (fold(SEEN, observation(leader_epoch=5)), change(leader_epoch=5), True),
    ],
)
def test_records_are_ordered_by_their_offset_and_no_epoch_falls(
    state: PartitionState | None, event: MetadataChange, new: bool
) -> None:
    assert is_new_record(state, event) is new


def test_a_record_replaces_leadership_and_membership() -> None:
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
    assert (after.assigned, after.in_sync_replicas) == ([1, 2, 3], [2])
    assert (after.adding, after.removing) == ([3], [1])
    assert (after.eligible_leader_replicas, after.last_known_eligible_leader_replicas) == ([1], [2])
    assert not evolve_change(after, change(leader_epoch=6, metadata_offset=9)).leaderless


def test_fields_that_a_record_leaves_out_are_kept() -> None:
    state = recorded()
    state.eligible_leader_replicas, state.last_known_eligible_leader_replicas = [2], [1]
    after = evolve_change(state, change(replicas=[], topic_id=None))
    assert (after.assigned, after.topic_id) == ([1, 2], "a")
    assert (after.eligible_leader_replicas, after.last_known_eligible_leader_replicas) == ([2], [1])
    assert evolve_change(fold(None, observation(topic_id=None)), change()).topic_id == "a"


def test_the_state_before_a_record_does_not_change() -> None:
    state = recorded()
    kept = encode_state(state)
    evolve_change(state, change(leader=2, leader_epoch=5, in_sync_replicas=[2], recovering=True))
    assert encode_state(state) == kept


def test_a_topic_that_was_created_again_starts_with_its_first_record() -> None:
    new = change(topic_id="b", leader_epoch=0)
    assert evolve_change(recorded(), new) == evolve_change(None, new)
    assert evolve_change(None, new).topic_id == "b"


@pytest.mark.parametrize(
    ("state", "partition_epoch", "adjacent"),
    [
        (recorded(), 3, True),
        (recorded(), 4, False),
        (recorded(), 2, False),
        (SEEN, 3, False),
        (None, 0, False),
    ],
)
def test_the_partition_epoch_shows_whether_a_record_was_missed(
    state: PartitionState | None, partition_epoch: int, adjacent: bool
) -> None:
    after = evolve_change(state, change(partition_epoch=partition_epoch, recovering=True))
    position = MetadataPosition(
        8, partition_epoch, 20.0, recovering=True, adjacent=adjacent, in_sync_replicas=[1, 2]
    )
    assert sparse_of(after).metadata == position


FENCED = ClusterState(nodes={2: NodeState(0.0, fenced=True)})


@pytest.mark.parametrize(
    ("fields", "cluster", "shrink"),
    [
        # The controller's time, where the record has it.
        ({"record_at": 15.0}, None, Shrink(15.0, 2, 1, ShrinkCause.LEADER_SHRINK)),
        ({}, None, Shrink(20.0, 2, 1, ShrinkCause.LEADER_SHRINK)),
        ({}, FENCED, Shrink(20.0, 2, 1, ShrinkCause.FENCING)),
        ({"cause": "fenced"}, None, Shrink(20.0, 2, 1, ShrinkCause.FENCING, recorded=True)),
    ],
)
def test_a_shrink_has_the_time_and_cause_of_its_record(
    fields: dict[str, Any], cluster: ClusterState | None, shrink: Shrink
) -> None:
    after = evolve_change(recorded(), change(in_sync_replicas=[1], **fields), cluster)
    assert after.shrinks == [shrink]


def test_a_leadership_begins_when_its_record_was_written() -> None:
    """The previous offset history is kept from the moment at which the record was read."""
    state = recorded()
    after = evolve_change(state, change(leader=2, leader_epoch=5, record_at=15.0))
    assert (after.offset_history, after.previous_offset_history) == ([], state.offset_history)
    assert after.previous_offset_history_until == 620.0
    assert sparse_of(after).epoch_starts == [EpochStart(15.0, 5)]
    same = evolve_change(state, change())
    assert same.offset_history == state.offset_history
    assert sparse_of(same).epoch_starts == []


@pytest.mark.parametrize(
    ("eligible", "leader", "unclean_epoch"),
    # An eligible leader holds every committed record.
    [([], 2, 6), ([], 1, None), ([2], 2, None)],
)
def test_an_unclean_election_in_the_metadata_log_is_remembered(
    eligible: list[int], leader: int, unclean_epoch: int | None
) -> None:
    gone = change(leader=None, leader_epoch=5, in_sync_replicas=[1])
    gone.eligible_leader_replicas = eligible
    elected = change(leader=leader, leader_epoch=6, in_sync_replicas=[leader])
    elected.metadata_offset, elected.partition_epoch = 9, 4
    assert evolve_change(evolve_change(recorded(), gone), elected).unclean_epoch == unclean_epoch


def test_a_record_with_fewer_replicas_lowers_the_minimum() -> None:
    state = fold(None, observation(effective_min_in_sync_replicas=2))
    removed = change(replicas=[1], in_sync_replicas=[1])
    assert evolve_change(state, removed).effective_min_in_sync_replicas == 1
    assert evolve_change(state, change(replicas=[])).effective_min_in_sync_replicas == 2


def test_the_first_records_are_history_where_samples_show_the_same_leadership() -> None:
    before = SEEN.observed_at
    old = change(record_at=before - 1.0, in_sync_replicas=[1], recovering=True)
    after = evolve_change(SEEN, old)
    assert sparse_of(after).metadata == MetadataPosition(8, 3, 20.0, True, False, [1])
    after.sparse = SEEN.sparse
    assert after == SEEN
    assert SEEN.sparse is None
    for now in (
        change(record_at=before, in_sync_replicas=[1]),
        change(record_at=before - 1.0, in_sync_replicas=[1], leader_epoch=5),
    ):
        assert evolve_change(SEEN, now).in_sync_replicas == [1]
    assert evolve_change(recorded(), old).in_sync_replicas == [1]


def test_a_record_that_was_read_late_is_history() -> None:
    """The clocks differ by 30 s: of two spans, the least delay is theirs."""
    cluster, state = ClusterState(), replace(recorded(), observed_at=40.0)
    late = change(metadata_offset=9, partition_epoch=9, in_sync_replicas=[1], record_at=3.9)
    for record_at, members in ((7.9, [1, 2]), (8.1, [1])):
        cluster.record_delays = (0.0, 30.0, 30.0)
        note_delay(cluster, replace(late, record_at=record_at), 40.0)
        assert cluster.record_delays == (0.0, 30.0, 30.0)
        after = evolve_change(state, replace(late, record_at=record_at), cluster, 40.0)
        assert after.in_sync_replicas == members
        # An image of the same epoch counts again at once.
        position = after.metadata_position
        assert position is not None
        assert position.at == (0.0 if members == [1, 2] else 40.0)
    note_delay(cluster, change(record_at=380.0), 400.0)
    assert cluster.record_delays == (400.0, 30.0, 20.0)


def test_an_image_that_had_reached_the_record_is_newer() -> None:
    """Of one that had not, nobody knows: its broker may be cut off from the controller."""
    for brokers, members in (([1, 3], [1, 2]), ([3], [1])):
        shrunk = fold(recorded(at=-60.0), observation(in_sync_replicas=[1], metadata_from=[1, 2]))
        record = change(metadata_offset=9, partition_epoch=9, in_sync_replicas=[1])
        state = evolve_change(shrunk, record)
        image = observation(observed_at=21.0, in_sync_replicas=[1, 2], metadata_from=brokers)
        assert fold(state, image).in_sync_replicas == members


@pytest.mark.parametrize(
    ("known", "shrink", "cause", "confirmed"),
    [
        ([1, 2], Shrink(15.0, 2, 1, ShrinkCause.NO_ANSWER), "fenced", True),
        ([1, 2], Shrink(25.0, 2, 1, ShrinkCause.NO_ANSWER), "fenced", True),
        ([1, 2], Shrink(25.1, 2, 1, ShrinkCause.NO_ANSWER), "fenced", False),
        ([1, 2], Shrink(14.9, 2, 1, ShrinkCause.NO_ANSWER), "fenced", False),
        ([1, 2], Shrink(20.0, 3, 1, ShrinkCause.NO_ANSWER), "fenced", False),
        ([1, 2], Shrink(20.0, 2, 1, ShrinkCause.NO_ANSWER), "unknown", False),
        ([1, 2], Shrink(20.0, 2, 1, ShrinkCause.LEADER_SHRINK, recorded=True), "fenced", False),
        ([1], Shrink(20.0, 2, 1, ShrinkCause.NO_ANSWER), "fenced", False),
        (None, Shrink(20.0, 2, 1, ShrinkCause.NO_ANSWER), "fenced", False),
    ],
)
def test_a_record_confirms_the_cause_of_a_shrink_that_a_sample_showed_first(
    known: list[int] | None, shrink: Shrink, cause: Any, confirmed: bool
) -> None:
    state = recorded(in_sync_replicas=known)
    state.in_sync_replicas, state.shrinks = [1], [shrink]
    after = evolve_change(state, change(in_sync_replicas=[1], cause=cause))
    expected = Shrink(shrink.at, 2, 1, ShrinkCause.FENCING, recorded=True) if confirmed else shrink
    assert after.shrinks == [expected]
    assert state.shrinks == [shrink]
