"""The parts of a state that an observation replaces, and those that it keeps."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.evolve.observations import SEEN, answer, fold, observation, silent
from tidemark.core.cluster import ClusterState, NodeState
from tidemark.core.events import Observation
from tidemark.core.partition import (
    IsrChange,
    LossCandidate,
    PartitionState,
    ReplicaState,
    Shrink,
    encode_state,
)
from tidemark.core.shrink_causes import ShrinkCause
from tidemark.core.sparse_state import EpochStart, FormerTopic, MetadataPosition, SparseState
from tidemark.core.tracked_alert import TrackedAlert
from tidemark.evolve.membership import RECORD_SECONDS
from tidemark.evolve.observation import HANDOVER_SECONDS, evolve, is_newer

OWNED = PartitionState(collector="c1", collector_epoch=3, pass_number=7)


@pytest.mark.parametrize(
    ("state", "collector", "collector_epoch", "pass_number", "owner_silent", "newer"),
    [
        (None, "c1", 1, 1, False, True),
        (PartitionState(), "c1", 0, 0, False, True),
        (OWNED, "c1", 3, 8, False, True),
        # Repeated and late ones, even while the owner is silent.
        (OWNED, "c1", 3, 7, True, False),
        (OWNED, "c1", 3, 6, True, False),
        # The newer of two collector processes owns the partition; names do not matter.
        (OWNED, "c1", 4, 0, False, True),
        (OWNED, "c2", 4, 0, False, True),
        (OWNED, "c1", 2, 9, False, False),
        (OWNED, "c2", 3, 9, False, False),
        (OWNED, "c2", 2, 9, False, False),
        (OWNED, "c2", 2, 0, True, True),
    ],
)
def test_one_collector_owns_a_partition(
    state: PartitionState | None,
    collector: str,
    collector_epoch: int,
    pass_number: int,
    owner_silent: bool,
    newer: bool,
) -> None:
    assert is_newer(state, collector, collector_epoch, pass_number, owner_silent) is newer


def test_a_topic_that_was_created_again_keeps_nothing_of_the_old_one() -> None:
    lineage = {"lineage": [(4, 100)], "lineage_complete_from": 4}
    before = fold(None, observation(), observation(in_sync_replicas=[1], **lineage))
    new = observation(topic_id="b", leader_epoch=0, observed_at=20.0)
    after = fold(before, new, number=9)
    assert replace(after, sparse=None) == fold(None, new, number=9)
    assert after.sparse == SparseState(former_topic=FormerTopic("a", 4, 20.0))


def test_a_known_topic_id_stays() -> None:
    assert fold(SEEN, observation(topic_id=None)).topic_id == "a"
    assert fold(fold(None, observation(topic_id=None)), observation()).topic_id == "a"


def test_the_observation_is_noted() -> None:
    before = fold(None, observation())
    before.missed_passes = 3
    after = fold(before, observation(observed_at=11.0), number=5)
    assert (after.collector, after.collector_epoch, after.pass_number) == ("c1", 1, 5)
    assert (after.observed_at, after.missed_passes) == (11.0, 0)


@pytest.mark.parametrize(
    "event",
    [
        observation(),
        observation(committed=95, samples=[answer(1, high_watermark=95), silent(2)]),
        observation(in_sync_replicas=[1], adding=[2], lineage=[(4, 100)], lineage_complete_from=4),
        observation(leader=2, leader_epoch=5, lineage=[(4, 50), (5, 60)], lineage_complete_from=4),
        observation(leader_epoch=3, committed=200),
    ],
)
def test_the_state_before_does_not_change(event: Observation) -> None:
    read = observation(samples=[answer(1), answer(2, lineage=[(4, 100)])])
    before = fold(None, observation(), read)
    before.loss_candidate = LossCandidate(3, 4, 10, 50, 60, 0, confirmed=True)
    kept = encode_state(before)
    event.observed_at = 11.0
    fold(before, event)
    assert encode_state(before) == kept


def test_a_lower_leader_epoch_shows_nothing_of_leadership_and_membership() -> None:
    before = fold(None, observation(eligible_leader_replicas=[2]))
    late = observation(
        leader=2,
        leader_epoch=3,
        leaderless=True,
        replicas=[1, 2, 3],
        in_sync_replicas=[2],
        adding=[3],
        removing=[1],
        committed=None,
        samples=[answer(1, log_end_offset=101), answer(2)],
    )
    after = fold(before, late)
    replicas = [before.replicas[0], before.replicas[1]]
    assert [replica.log_end_offset for replica in after.replicas] == [101, 100], "sampled"
    after.replicas, after.pass_number = replicas, before.pass_number
    after.leader_end_before, after.leader_end_after = 100, 100
    assert after == before


@pytest.mark.parametrize(
    ("known", "observed", "leader"), [(4, None, 1), (None, None, 2), (None, 4, 2)]
)
def test_an_unknown_leader_epoch_is_lower_than_a_known_one(
    known: int | None, observed: int | None, leader: int
) -> None:
    before = fold(None, observation(leader_epoch=known))
    assert fold(before, observation(leader=2, leader_epoch=observed)).leader == leader


UNKNOWN_METADATA: dict[str, Any] = {
    "replicas": [],
    "in_sync_replicas": None,
    "effective_min_in_sync_replicas": None,
    "eligible_leader_replicas": None,
    "last_known_eligible_leader_replicas": None,
}


def test_unknown_metadata_changes_nothing() -> None:
    known = {"eligible_leader_replicas": [2], "last_known_eligible_leader_replicas": [1]}
    before = fold(None, observation(**known))
    assert fold(before, observation(**UNKNOWN_METADATA), number=0) == before


def leadership(state: PartitionState) -> tuple[int | None, int | None, bool]:
    return state.leader, state.leader_epoch, state.leaderless


NO_NAME: dict[str, Any] = {"leader": None}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        # An epoch has one leader, or none, from its beginning to its end.
        ([observation(), observation(**NO_NAME)], (1, 4, False)),
        (
            [
                observation(**NO_NAME, leader_epoch=5, leaderless=True),
                observation(**NO_NAME, leader_epoch=5),
            ],
            (None, 5, True),
        ),
        ([observation(), observation(**NO_NAME, leader_epoch=5)], (None, 5, False)),
        ([observation(), observation(**NO_NAME, leaderless=True)], (None, 4, True)),
        (
            [
                observation(**NO_NAME, leader_epoch=5),
                observation(leader=2, leader_epoch=5),
            ],
            (2, 5, False),
        ),
        # Without epochs it may be another leadership.
        (
            [observation(leader_epoch=None), observation(**NO_NAME, leader_epoch=None)],
            (None, None, False),
        ),
    ],
)
def test_a_pass_that_cannot_name_the_leader_of_an_epoch_keeps_the_known_one(
    events: list[Observation], expected: tuple[int | None, int | None, bool]
) -> None:
    assert leadership(fold(None, *events)) == expected


def test_new_metadata_replaces_the_old() -> None:
    event = observation(
        leader=None,
        leader_epoch=5,
        leaderless=True,
        replicas=[1, 2, 3],
        in_sync_replicas=[2],
        eligible_leader_replicas=[1],
        last_known_eligible_leader_replicas=[2],
        adding=[3],
        removing=[1],
        effective_min_in_sync_replicas=2,
    )
    after = fold(SEEN, event)
    assert leadership(after) == (None, 5, True)
    assert (after.assigned, after.in_sync_replicas) == ([1, 2, 3], [2])
    assert (after.adding, after.removing) == ([3], [1])
    assert (after.eligible_leader_replicas, after.last_known_eligible_leader_replicas) == ([1], [2])
    assert after.effective_min_in_sync_replicas == 2
    assert after.isr_history[-1] == IsrChange(10.0, [2])
    cleared = fold(after, observation(leader_epoch=5, eligible_leader_replicas=[]))
    assert cleared.eligible_leader_replicas == []
    assert cleared.last_known_eligible_leader_replicas is None


def test_the_cause_of_a_shrink_considers_what_is_known_of_the_broker() -> None:
    cluster = ClusterState(nodes={2: NodeState(0.0, fenced=True)})
    after = fold(SEEN, observation(in_sync_replicas=[1], observed_at=11.0), cluster=cluster)
    assert after.shrinks == [Shrink(11.0, 2, 1, ShrinkCause.FENCING)]


def recorded(sparse: SparseState) -> PartitionState:
    """By the metadata log: epoch 4, no leader, broker 1 alone in sync."""
    before = fold(None, observation(in_sync_replicas=[1], leader=None))
    before.sparse = sparse
    return before


RECORD = SparseState(metadata=MetadataPosition(7, 0, 9.0))


@pytest.mark.parametrize(
    ("known", "fields", "outdated"),
    [
        (RECORD, {"metadata_at": 9.0}, True),
        (RECORD, {"metadata_at": 8.9}, True),
        # A record that is not old counts more than any image: the broker may be cut off.
        (RECORD, {"metadata_at": 9.0 + RECORD_SECONDS}, True),
        (RECORD, {"metadata_at": 9.1 + RECORD_SECONDS}, False),
        # Metadata without a time was read in this pass.
        (RECORD, {"observed_at": 9.0}, True),
        (RECORD, {"observed_at": 9.1 + RECORD_SECONDS}, False),
        # A new epoch is newer; times do not matter.
        (RECORD, {"metadata_at": 8.0, "leader_epoch": 5}, False),
        # Without a record of the metadata log every image counts.
        (SparseState(epoch_starts=[EpochStart(1.0, 4)]), {"metadata_at": 8.0}, False),
    ],
)
def test_an_older_image_of_a_broker_does_not_undo_a_record_of_the_metadata_log(
    known: SparseState, fields: dict[str, Any], outdated: bool
) -> None:
    after = fold(recorded(known), observation(**fields))
    assert after.leader == (None if outdated else 1)
    assert after.in_sync_replicas == ([1] if outdated else [1, 2])


def test_replicas_are_those_sampled_and_those_assigned_in_order() -> None:
    before = fold(None, observation(replicas=[1, 2, 3], samples=[answer(3), answer(1), answer(2)]))
    assert [replica.broker for replica in before.replicas] == [1, 2, 3]
    sampled = observation(observed_at=11.0, samples=[answer(1, log_end_offset=101)])
    sampled.replicas = [1, 3]
    replicas = fold(before, sampled).replicas
    known = [(replica.broker, replica.log_end_offset, replica.sampled_at) for replica in replicas]
    assert known == [(1, 101, 11.0), (3, 100, 10.0)]


def test_a_replica_is_what_its_broker_answered() -> None:
    offsets: dict[str, Any] = {"log_end_offset": 70, "high_watermark": 60, "log_start_offset": 5}
    rest: dict[str, Any] = {"last_stable_offset": 55, "leader_epoch": 3, "leads": False}
    (replica,) = fold(None, observation(samples=[answer(2, **offsets, **rest)])).replicas
    assert replica == ReplicaState(2, **offsets, **rest, sampled_at=10.0)


def test_a_silent_replica_keeps_its_last_answer() -> None:
    once = fold(SEEN, observation(observed_at=11.0, samples=[answer(1), silent(2)]))
    twice = fold(once, observation(observed_at=12.0, samples=[answer(1), silent(2, "refused")]))
    last = ReplicaState(2, 100, 90, 0, leader_epoch=4, sampled_at=10.0)
    for state, error, passes in ((once, "timed_out", 1), (twice, "refused", 2)):
        last.error, last.silent_passes = error, passes
        assert state.replicas[1] == last
    (_, back) = fold(twice, observation(observed_at=13.0)).replicas
    assert (back.error, back.silent_passes, back.sampled_at) == (None, 0, 13.0)
    (never,) = fold(None, observation(samples=[silent(2)])).replicas
    assert never == ReplicaState(2, error="timed_out", silent_passes=1)


def test_a_followers_lineage_stays_until_a_possible_one_is_read() -> None:
    first = observation(samples=[answer(1), answer(2, lineage=[(3, 50), (4, 100)])])
    for lineage, known in (
        (None, [(3, 50), (4, 100)]),
        ([(4, 100), (3, 110)], [(3, 50), (4, 100)]),
        ([(4, 110)], [(4, 110)]),
    ):
        second = observation(samples=[answer(1), answer(2, lineage=lineage)])
        assert fold(None, first, second).replicas[1].lineage == known


@pytest.mark.parametrize(
    ("fields", "known"),
    [
        ({"eligible_leader_replicas": None}, [3]),
        ({"eligible_leader_replicas": None, "in_sync_replicas": None}, [3]),
        # They were of another in-sync set.
        ({"eligible_leader_replicas": None, "in_sync_replicas": [1]}, None),
        # A replica knows a later epoch: an election may lie between the two answers.
        ({"samples": [answer(1, leader_epoch=0), answer(2, leader_epoch=1)]}, [3]),
        ({}, [2]),
    ],
)
def test_the_eligible_replicas_are_those_of_the_leader_epoch_and_the_in_sync_set(
    fields: dict[str, Any], known: list[int] | None
) -> None:
    first: dict[str, Any] = {"leader_epoch": 0, "samples": [answer(1, leader_epoch=0)]}
    state = fold(None, observation(**first, eligible_leader_replicas=[3]))
    event = {**first, "observed_at": 11.0, "eligible_leader_replicas": [2], **fields}
    assert fold(state, observation(**event)).eligible_leader_replicas == known


@pytest.mark.parametrize(
    ("seconds", "began_again", "published_at", "kept_at"),
    [
        # A usual handover, up to the longest one.
        (0.0, False, 1000.0, 1000.0),
        (0.5, False, 999.5, 999.5),
        (HANDOVER_SECONDS, False, 940.0, 940.0),
        # Nothing was observed for longer, or the clock of the other collector was ahead.
        (HANDOVER_SECONDS + 0.1, True, 1000.0, 1000.0),
        (-0.1, True, 1000.1, 0.0),
    ],
)
def test_what_does_not_fire_yet_begins_again_where_the_clocks_differ(
    seconds: float, began_again: bool, published_at: float, kept_at: float
) -> None:
    pending = TrackedAlert("FOLLOWER_LAG", 2, "warning", 900.0, held=2)
    firing = TrackedAlert("OFFLINE", None, "critical", 900.0, firing=True)
    before = replace(SEEN, observed_at=1000.0 - seconds, published_at=published_at)
    before.alerts = [pending, firing]
    after = evolve(before, observation(observed_at=1000.0), "c2", 1, 0)
    assert [alert.since for alert in after.alerts] == [1000.0 if began_again else 900.0, 900.0]
    assert after.published_at == kept_at
    assert pending.since == 900.0
