"""The ordering rules of the reducer: what may overwrite what, what stays while it is not seen, what begins anew."""

from __future__ import annotations

from typing import Any

import pytest

from tests.evolve.observed import answer, fold, observation, silent
from tidemark.core.cluster import ClusterState, NodeState
from tidemark.core.events import Observation
from tidemark.core.leader_epochs import Committed
from tidemark.core.offset_history import add_sample
from tidemark.core.partition import LossCandidate, PartitionState, encode_state
from tidemark.core.sparse_state import MetadataPosition, SparseState
from tidemark.evolve.leadership import PREVIOUS_HISTORY_SECONDS
from tidemark.evolve.observation import is_newer, is_recreated

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
        # Of two collectors the process that began later owns the partition, whatever they are called.
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


@pytest.mark.parametrize(
    ("known", "seen", "recreated"),
    [("a", "b", True), ("a", "a", False), (None, "b", False), ("a", None, False)],
)
def test_another_topic_id_is_another_topic(
    known: str | None, seen: str | None, recreated: bool
) -> None:
    assert is_recreated(PartitionState(topic_id=known), observation(topic_id=seen)) is recreated


def test_a_topic_created_anew_keeps_nothing_of_the_one_before() -> None:
    before = fold(
        None,
        observation(),
        observation(in_sync_replicas=[1], lineage=[(4, 100)], lineage_complete_from=4),
    )
    new = observation(topic_id="b", leader_epoch=0, observed_at=20.0)
    assert fold(before, new, number=9) == fold(None, new, number=9)


def test_a_topic_id_once_known_stays() -> None:
    assert fold(fold(None, observation()), observation(topic_id=None)).topic_id == "a"
    assert fold(fold(None, observation(topic_id=None)), observation()).topic_id == "a"


def test_who_saw_it_and_when() -> None:
    before = fold(None, observation())
    before.missed_passes = 3
    after = fold(before, observation(observed_at=11.0), number=5)
    assert (
        after.collector,
        after.collector_epoch,
        after.pass_number,
        after.observed_at,
        after.missed_passes,
    ) == ("c1", 1, 5, 11.0, 0)


@pytest.mark.parametrize(
    "event",
    [
        observation(observed_at=11.0),
        observation(
            observed_at=11.0, committed=95, samples=[answer(1, high_watermark=95), silent(2)]
        ),
        observation(
            observed_at=11.0,
            in_sync_replicas=[1],
            adding=[2],
            lineage=[(4, 100)],
            lineage_complete_from=4,
        ),
        observation(
            observed_at=11.0,
            leader=2,
            leader_epoch=5,
            lineage=[(4, 50), (5, 60)],
            lineage_complete_from=4,
        ),
        observation(observed_at=11.0, leader_epoch=3, committed=200),
    ],
)
def test_the_state_before_is_left_as_it_is(event: Observation) -> None:
    before = fold(
        None, observation(), observation(samples=[answer(1), answer(2, lineage=[(4, 100)])])
    )
    before.loss_candidate = LossCandidate(3, 4, 10, 50, 60, 0, confirmed=True)
    kept = encode_state(before)
    fold(before, event)
    assert encode_state(before) == kept


def test_a_lower_leader_epoch_tells_nothing_of_leadership_or_membership() -> None:
    before = fold(None, observation(eligible_leader_replicas=[2]))
    late = observation(
        leader=2,
        leader_epoch=3,
        leaderless=True,
        replicas=[1, 2, 3],
        in_sync_replicas=[2],
        adding=[3],
        removing=[1],
    )
    after = fold(before, late)
    told = (
        "leader",
        "leader_epoch",
        "leaderless",
        "assigned",
        "in_sync_replicas",
        "adding",
        "removing",
        "high_watermark",
        "offset_history",
    )
    assert [getattr(after, name) for name in told] == [getattr(before, name) for name in told]
    assert [replica.broker for replica in after.replicas] == [1, 2], (
        "the replicas themselves were sampled all the same"
    )


def test_no_leader_epoch_is_lower_than_one_that_is_known() -> None:
    assert fold(fold(None, observation()), observation(leader_epoch=None, leader=2)).leader == 1
    assert (
        fold(
            fold(None, observation(leader_epoch=None)), observation(leader_epoch=None, leader=2)
        ).leader
        == 2
    )
    assert fold(fold(None, observation(leader_epoch=None)), observation(leader=2)).leader == 2


def test_a_late_fenced_reading_is_still_true_of_its_own_epoch() -> None:
    before = fold(None, observation(), observation(leader=2, leader_epoch=5, committed=100))
    after = fold(before, observation(leader_epoch=4, committed=95, observed_at=12.0))
    assert after.committed == [Committed(4, 95, 12.0, 100, 1), Committed(5, 100, 10.0, 100, 2)]
    assert before.committed[0].high_watermark == 90
    never_seen = fold(before, observation(leader_epoch=3, committed=70, observed_at=12.0))
    assert never_seen.committed[0] == Committed(3, 70, 12.0, 70, 1)
    for unfenced in (
        observation(leader_epoch=4, committed=None),
        observation(leader_epoch=None, committed=95),
    ):
        assert fold(before, unfenced).committed == before.committed
    assert (
        fold(before, observation(leader_epoch=4, leader=None, committed=95)).committed
        == before.committed
    )


def test_what_the_metadata_does_not_tell_stays_as_it_was() -> None:
    before = fold(
        None, observation(eligible_leader_replicas=[2], last_known_eligible_leader_replicas=[1])
    )
    unknown = observation(
        replicas=[],
        in_sync_replicas=None,
        effective_min_in_sync_replicas=None,
        eligible_leader_replicas=None,
        last_known_eligible_leader_replicas=None,
    )
    after = fold(before, unknown)
    assert (after.assigned, after.in_sync_replicas, after.effective_min_in_sync_replicas) == (
        [1, 2],
        [1, 2],
        1,
    )
    assert (after.eligible_leader_replicas, after.last_known_eligible_leader_replicas) == ([2], [1])


def test_an_epoch_keeps_its_leader_whoever_cannot_name_it() -> None:
    before = fold(None, observation(), observation(observed_at=11.0))
    after = fold(
        before,
        observation(
            leader=None,
            observed_at=12.0,
            leader_log_end_offset_before=None,
            leader_log_end_offset_after=None,
        ),
    )
    assert (after.leader, after.leader_epoch, after.leaderless) == (1, 4, False)
    assert (after.high_watermark, after.high_watermark_moved_at, after.offset_history) == (
        90,
        10.0,
        before.offset_history,
    )
    nobody = observation(leader=None, leader_epoch=5, leaderless=True)
    still = fold(after, nobody, observation(leader=None, leader_epoch=5))
    assert (still.leader, still.leader_epoch, still.leaderless) == (None, 5, True)
    for event in (
        observation(leader=None, leader_epoch=5),
        observation(leader=None, leader_epoch=4, leaderless=True),
    ):
        later = fold(before, event)
        assert (later.leader, later.leader_epoch, later.leaderless) == (
            None,
            event.leader_epoch,
            event.leaderless,
        )
    named = fold(
        before, observation(leader=None, leader_epoch=5), observation(leader=2, leader_epoch=5)
    )
    assert named.leader == 2
    # Before 0.11 nothing tells whether it is the same leadership.
    assert (
        fold(
            None, observation(leader_epoch=None), observation(leader=None, leader_epoch=None)
        ).leader
        is None
    )


def test_a_leader_of_before_that_is_back_shows_what_else_it_had_taken() -> None:
    old = fold(None, observation())
    elected: dict[str, Any] = {"leader": 2, "leader_epoch": 5, "committed": 80, "observed_at": 12.0}
    elected |= {"leader_log_end_offset_before": 80, "leader_log_end_offset_after": 85}
    state = fold(
        old,
        observation(**elected, samples=[silent(1), answer(2, log_end_offset=80, leader_epoch=5)]),
    )
    assert [(entry.epoch, entry.log_end_offset) for entry in state.committed] == [(4, 100), (5, 85)]

    def exposed(**fields: Any) -> int:
        back = {
            "samples": [
                answer(1, log_end_offset=110),
                answer(2, log_end_offset=85, leader_epoch=5),
            ],
            **elected,
            "observed_at": 13.0,
        }
        after = fold(state, observation(**{**back, **fields}))
        assert [entry.log_end_offset for entry in state.committed] == [100, 85], (
            "the state before is left as it is"
        )
        assert after.committed[-1].log_end_offset == max(85, after.leader_end_after or 0)
        return after.committed[0].log_end_offset

    assert exposed() == 110
    assert exposed(leader_log_end_offset_after=110) == 100, "its successor has written as far since"
    assert exposed(leader_log_end_offset_after=None) == 100
    for samples in (
        [silent(1), answer(2, log_end_offset=85)],
        [answer(2, log_end_offset=85)],
        [answer(1, log_end_offset=None), answer(2)],
        [answer(1, log_end_offset=99), answer(2)],
        [answer(1, log_end_offset=90), answer(2, log_end_offset=200)],
    ):
        assert exposed(samples=samples) == 100
    epochless = fold(None, observation(leader_epoch=None))
    other = observation(
        leader=2,
        leader_epoch=None,
        leader_log_end_offset_after=80,
        samples=[answer(1, log_end_offset=110), answer(2)],
    )
    assert fold(epochless, other).committed[0].log_end_offset == 100, (
        "without epochs nothing tells the times of leaders apart"
    )
    again = observation(
        leader=1, leader_epoch=6, committed=70, observed_at=13.0, leader_log_end_offset_after=80
    )
    assert fold(state, again).committed[0].log_end_offset == 100, (
        "it leads: nothing shows whose records they are"
    )


def test_by_a_look_without_its_epoch_the_leader_was_not_seen() -> None:
    before = fold(None, observation())
    for event in (observation(leader=None, leader_epoch=None), observation(leader_epoch=3)):
        after = fold(before, event)
        assert (after.leader, after.leader_end_before, after.leader_end_after) == (1, None, None)
        assert (after.high_watermark, after.offset_history) == (90, before.offset_history)


def test_what_the_metadata_tells_is_taken() -> None:
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
    after = fold(fold(None, observation()), event)
    assert (after.leader, after.leader_epoch, after.leaderless) == (None, 5, True)
    assert (after.assigned, after.in_sync_replicas, after.adding, after.removing) == (
        [1, 2, 3],
        [2],
        [3],
        [1],
    )
    assert (after.eligible_leader_replicas, after.last_known_eligible_leader_replicas) == ([1], [2])
    assert after.effective_min_in_sync_replicas == 2
    cleared = fold(after, observation(leader_epoch=5, eligible_leader_replicas=[]))
    assert (cleared.eligible_leader_replicas, cleared.last_known_eligible_leader_replicas) == (
        [],
        None,
    )


def test_the_cause_of_a_shrink_takes_into_account_what_is_known_of_brokers() -> None:
    cluster = ClusterState()
    cluster.nodes[2] = NodeState(0.0, fenced=True)
    after = fold(
        fold(None, observation()),
        observation(in_sync_replicas=[1], observed_at=11.0),
        cluster=cluster,
    )
    assert after.shrinks == [(11.0, 2, 1, "fencing")]


def recorded(at: float) -> PartitionState:
    """The newest record of the metadata log was read at a time: epoch 4, nobody leads, broker 1 alone in sync."""
    before = fold(None, observation(in_sync_replicas=[1], leader=None))
    before.sparse = SparseState(metadata=MetadataPosition(7, 0, at))
    return before


@pytest.mark.parametrize(
    ("event", "outdated"),
    [
        (observation(metadata_at=9.0), True),
        (observation(metadata_at=8.9), True),
        (observation(metadata_at=9.1), False),
        # Where it is not told when the metadata was read, it was in this pass.
        (observation(observed_at=9.0), True),
        (observation(observed_at=9.1), False),
        # A new epoch is newer whatever the clocks say.
        (observation(metadata_at=8.0, leader_epoch=5), False),
    ],
)
def test_a_brokers_image_does_not_undo_a_record_of_the_metadata_log(
    event: Observation, outdated: bool
) -> None:
    after = fold(recorded(9.0), event)
    assert after.leader == (None if outdated else 1)
    assert after.in_sync_replicas == ([1] if outdated else [1, 2])


def test_without_a_record_of_the_metadata_log_every_image_is_taken() -> None:
    before = recorded(9.0)
    before.sparse = SparseState(epoch_starts=[(1.0, 4)])
    assert fold(before, observation(metadata_at=8.0)).leader == 1


def test_replicas_are_those_sampled_and_those_assigned_in_order() -> None:
    before = fold(None, observation(replicas=[1, 2, 3], samples=[answer(3), answer(1), answer(2)]))
    assert [replica.broker for replica in before.replicas] == [1, 2, 3]
    after = fold(before, observation(replicas=[1, 3], samples=[answer(1, log_end_offset=101)]))
    assert [(replica.broker, replica.log_end_offset) for replica in after.replicas] == [
        (1, 101),
        (3, 100),
    ]
    assert after.replicas[1].sampled_at == 10.0


def test_what_a_replica_answers() -> None:
    sample = answer(
        2,
        log_end_offset=70,
        high_watermark=60,
        log_start_offset=5,
        last_stable_offset=55,
        leader_epoch=3,
        leads=False,
    )
    replica = fold(None, observation(samples=[sample])).replicas[0]
    assert (replica.broker, replica.log_end_offset, replica.high_watermark) == (2, 70, 60)
    assert (replica.log_start_offset, replica.last_stable_offset, replica.leader_epoch) == (
        5,
        55,
        3,
    )
    assert (replica.leads, replica.sampled_at, replica.error, replica.silent_passes) == (
        False,
        10.0,
        None,
        0,
    )


def test_a_silent_replica_keeps_its_last_answer_and_counts_its_silence() -> None:
    before = fold(None, observation())
    once = fold(before, observation(observed_at=11.0, samples=[answer(1), silent(2)]))
    twice = fold(once, observation(observed_at=12.0, samples=[answer(1), silent(2, "refused")]))
    replica = twice.replicas[1]
    assert (replica.log_end_offset, replica.sampled_at, replica.error, replica.silent_passes) == (
        100,
        10.0,
        "refused",
        2,
    )
    assert once.replicas[1].leads is None
    back = fold(twice, observation(observed_at=13.0)).replicas[1]
    assert (back.error, back.silent_passes, back.sampled_at) == (None, 0, 13.0)


def test_a_replica_that_never_answered_is_known_to_be_silent() -> None:
    replica = fold(None, observation(samples=[silent(2)])).replicas[0]
    assert (replica.broker, replica.error, replica.silent_passes, replica.log_end_offset) == (
        2,
        "timed_out",
        1,
        None,
    )


def test_a_followers_lineage_stays_until_another_is_read_and_one_that_cannot_be_is_not_taken() -> (
    None
):
    state = fold(
        None,
        observation(samples=[answer(1), answer(2, lineage=[(3, 50), (4, 100)])]),
        observation(),
    )
    assert state.replicas[1].lineage == [(3, 50), (4, 100)]
    assert fold(state, observation(samples=[answer(2, lineage=[(4, 100), (3, 110)])])).replicas[
        1
    ].lineage == [(3, 50), (4, 100)]
    assert fold(state, observation(samples=[answer(2, lineage=[(4, 110)])])).replicas[
        1
    ].lineage == [(4, 110)]


NEW = {"leader": 2, "leader_epoch": 5, "observed_at": 20.0}


def test_a_new_leadership_begins_its_own_history() -> None:
    before = fold(None, observation(lineage=[(4, 100)], lineage_complete_from=4))
    after = fold(
        before,
        observation(
            **NEW,
            leader_log_end_offset_before=None,
            leader_log_end_offset_after=None,
            committed=None,
            samples=[],
        ),
    )
    assert (
        after.offset_history,
        after.lineage,
        after.lineage_complete_from,
        after.high_watermark,
    ) == (
        [],
        None,
        None,
        None,
    )
    assert (after.leader_end_before, after.leader_end_after) == (None, None)
    assert after.previous_offset_history == before.offset_history
    after = fold(before, observation(**NEW))
    assert after.offset_history == [20_000, 100], (
        "what the old leader had is no sample of the new one's"
    )


def test_the_ring_of_the_leadership_before_stays_ten_minutes() -> None:
    state = fold(None, observation(), observation(**NEW))
    offset_history = state.previous_offset_history
    assert offset_history
    until = 20.0 + PREVIOUS_HISTORY_SECONDS
    kept = fold(state, observation(**{**NEW, "observed_at": until}))
    assert kept.previous_offset_history == offset_history
    assert (
        fold(state, observation(**{**NEW, "observed_at": until + 0.1})).previous_offset_history
        == []
    )


def test_the_leaders_log_end_is_dated_by_the_earlier_of_its_samples() -> None:
    first = observation(
        leader_before_at=9.5,
        leader_after_at=9.9,
        leader_log_end_offset_before=100,
        leader_log_end_offset_after=105,
    )
    state = fold(None, first)
    assert (state.leader_end_before, state.leader_end_after, state.offset_history) == (
        100,
        105,
        [9_500, 100],
    )
    assert fold(
        None, observation(leader_after_at=9.9, leader_log_end_offset_after=105)
    ).offset_history == [
        10_000,
        100,
    ]
    late = observation(
        leader_before_at=9.5,
        leader_after_at=9.9,
        leader_log_end_offset_before=None,
        leader_log_end_offset_after=105,
    )
    assert fold(None, late).offset_history == [9_900, 105]
    neither = observation(
        observed_at=11.0, leader_log_end_offset_before=None, leader_log_end_offset_after=None
    )
    assert fold(state, neither).offset_history == state.offset_history
    assert fold(state, observation(observed_at=11.0)).offset_history == add_sample(
        state.offset_history, 11.0, 100
    )


def lineage(entries: list[tuple[int, int]] | None, complete_from: int | None) -> Observation:
    return observation(lineage=entries, lineage_complete_from=complete_from)


OLD = [(2, 30), (3, 50), (4, 100)]


@pytest.mark.parametrize(
    ("read", "complete_from", "known", "reach"),
    [
        # One that reaches as far or further replaces what is known.
        ([(2, 30), (4, 110)], 2, [(2, 30), (4, 110)], 2),
        ([(1, 9), (4, 110)], 1, [(1, 9), (4, 110)], 1),
        # One that reads the newest epochs alone renews them.
        ([(4, 110)], 4, [(2, 30), (3, 50), (4, 110)], 2),
        ([(3, 60), (4, 110)], 3, [(2, 30), (3, 60), (4, 110)], 2),
        # What cannot be a lineage, or tells not how far it reaches, is not taken.
        ([(4, 110), (3, 120)], 2, OLD, 2),
        ([(4, 110)], None, OLD, 2),
        (None, 4, OLD, 2),
    ],
)
def test_the_leaders_lineage_is_put_together_from_walks_of_any_length(
    read: list[tuple[int, int]] | None,
    complete_from: int | None,
    known: list[tuple[int, int]],
    reach: int,
) -> None:
    state = fold(None, lineage(OLD, 2), lineage(read, complete_from))
    assert (state.lineage, state.lineage_complete_from) == (known, reach)


@pytest.mark.parametrize(("count", "reach"), [(7, 1), (8, 4)])
def test_a_lineage_is_bounded_and_says_how_far_it_reaches_then(count: int, reach: int) -> None:
    """One entry too many: the oldest is forgotten, and no epoch below the first that is left is covered."""
    older = [(2 * number, 10 * number) for number in range(1, count + 1)]
    state = fold(None, lineage(older, 1), lineage([(2 * count + 1, 990)], 2 * count + 1))
    assert state.lineage == [*older, (2 * count + 1, 990)][-8:]
    assert state.lineage_complete_from == reach


def moved(state: PartitionState) -> tuple[int | None, float]:
    return state.high_watermark, state.high_watermark_moved_at


def test_the_high_watermark_is_the_highest_and_dated_by_when_the_leader_was_read() -> None:
    state = fold(None, observation(leader_before_at=9.5))
    assert moved(state) == (90, 9.5)
    assert moved(fold(state, observation(observed_at=11.0))) == (90, 9.5)
    assert moved(fold(state, observation(observed_at=11.0, committed=80))) == (90, 9.5)
    assert moved(fold(state, observation(observed_at=11.0, committed=91))) == (91, 11.0)
    assert moved(
        fold(state, observation(observed_at=11.0, leader_before_at=10.8, committed=91))
    ) == (91, 10.8)


def test_a_leader_that_gives_no_fenced_answer_still_shows_its_high_watermark() -> None:
    def shown(**leader: Any) -> tuple[int | None, list[Committed]]:
        state = fold(
            None,
            observation(
                committed=None,
                samples=[answer(1, high_watermark=85, **leader), answer(2, high_watermark=70)],
            ),
        )
        return state.high_watermark, state.committed

    assert shown() == (85, []), "shown, but no proof of what was committed"
    assert shown(leads=None) == (85, [])
    assert shown(leads=False) == (None, [])
    assert (
        fold(None, observation(committed=None, samples=[silent(1), answer(2)])).high_watermark
        is None
    )
    assert fold(None, observation(committed=None, samples=[answer(2)])).high_watermark is None
    stood = fold(
        None,
        observation(committed=None),
        observation(committed=None, observed_at=11.0, samples=[silent(1)]),
    )
    assert moved(stood) == (90, 10.0)


def test_a_fenced_high_watermark_is_committed_under_its_epoch_up_to_the_log_end_then() -> None:
    assert fold(None, observation()).committed == [Committed(4, 90, 10.0, 100, 1)]
    assert fold(None, observation(leader_epoch=None)).committed == [Committed(-1, 90, 10.0, 100, 1)]
    assert fold(None, observation(leader=None, committed=90)).committed == []
    ahead = observation(committed=105, leader_log_end_offset_after=103)
    assert fold(None, ahead).committed == [Committed(4, 105, 10.0, 105, 1)]
    unknown = observation(leader_log_end_offset_before=None, leader_log_end_offset_after=None)
    assert fold(None, unknown).committed == [Committed(4, 90, 10.0, 90, 1)]
    unknown.committed = 0
    assert fold(None, unknown).committed == [Committed(4, 0, 10.0, 0, 1)]


def test_an_unclean_election_is_remembered_by_the_epoch_that_it_began() -> None:
    before = fold(None, observation(in_sync_replicas=[1]))
    gone = observation(
        leader=None,
        leader_epoch=5,
        in_sync_replicas=[],
        eligible_leader_replicas=[1],
        leaderless=True,
    )
    assert fold(before, gone, observation(leader=2, leader_epoch=6)).unclean_epoch == 6
    assert fold(before, observation(leader=2, leader_epoch=5)).unclean_epoch == 5, (
        "a suspected one too"
    )
    assert fold(before, gone, observation(leader=1, leader_epoch=6)).unclean_epoch is None
    assert (
        fold(
            fold(before, observation(leader=2, leader_epoch=5)),
            observation(leader=2, leader_epoch=5),
        ).unclean_epoch
        == 5
    )


SHORT: dict[str, Any] = {
    "leader": 2,
    "leader_epoch": 5,
    "lineage": [(4, 60), (5, 80)],
    "lineage_complete_from": 4,
    "committed": 60,
    "leader_log_end_offset_before": 80,
    "leader_log_end_offset_after": 80,
}


def short(**fields: Any) -> Observation:
    """Leader 2 of epoch 5 ends epoch 4 at 60, where 90 was committed."""
    samples = [
        silent(1),
        answer(2, log_end_offset=80, high_watermark=60, leader_epoch=5, leads=True),
    ]
    return observation(**{"observed_at": 11.0, "samples": samples, **SHORT, **fields})


FIRST = LossCandidate(4, 5, 60, 90, 100, 1)


def test_a_loss_is_certain_at_the_second_read_of_another_pass() -> None:
    once = fold(None, observation(), short())
    assert once.loss_candidate == FIRST
    same_pass = fold(once, short(), number=1)
    assert same_pass.loss_candidate == FIRST
    twice = fold(once, short(observed_at=12.0))
    assert twice.loss_candidate == LossCandidate(4, 5, 60, 90, 100, 1, confirmed=True)


@pytest.mark.parametrize(("second", "start"), [(70, 70), (50, 60)])
def test_two_reads_prove_what_lies_above_both(second: int, start: int) -> None:
    once = fold(None, observation(), short())
    other = fold(once, short(lineage=[(4, second), (5, 80)]))
    assert other.loss_candidate == LossCandidate(4, 5, start, 90, 100, 1, confirmed=True)


def test_a_read_under_another_leadership_is_another_first_read() -> None:
    once = fold(None, observation(), short())
    samples = [
        silent(1),
        answer(2, log_end_offset=80, high_watermark=60, leader_epoch=6, leads=True),
    ]
    other = fold(once, short(leader_epoch=6, lineage=[(4, 60), (6, 80)], samples=samples))
    assert other.loss_candidate == LossCandidate(4, 6, 60, 90, 100, 2)


def test_a_read_of_another_epoch_is_another_first_read() -> None:
    once = fold(None, observation(), short())
    once.committed = [Committed(3, 95, 9.0, 95, 1), *once.committed]
    other = fold(once, short(lineage=[(3, 40), (4, 60), (5, 80)], lineage_complete_from=3))
    assert other.loss_candidate == LossCandidate(3, 5, 40, 95, 95, 2)


def test_after_a_claim_what_is_gone_is_remembered_and_nothing_is_claimed_twice() -> None:
    claimed = fold(None, observation(), short(), short())
    after = fold(claimed, short())
    assert after.loss_candidate is None
    assert after.committed[0] == Committed(4, 90, 10.0, 100, 1, lost_from=60, lost_under=5)
    assert claimed.committed[0].lost_from is None


def test_a_claim_speaks_of_its_epoch_and_earlier_ones() -> None:
    old = Committed(3, 50, 9.0, 50, 1)
    long = Committed(3, 70, 9.0, 70, 1)
    for entry, lost_from in ((old, 50), (long, 60)):
        first = fold(None, observation())
        first.committed = [entry, *first.committed]
        after = fold(
            first,
            short(lineage_complete_from=3),
            short(lineage_complete_from=3),
            short(lineage_complete_from=3),
        )
        assert [item.lost_from for item in after.committed] == [lost_from, 60, None]


@pytest.mark.parametrize(
    "blind",
    [
        short(observed_at=12.0, samples=[silent(1), silent(2)]),
        short(observed_at=12.0, samples=[silent(1)]),
        short(
            observed_at=12.0, samples=[answer(2, log_end_offset=95, leader_epoch=5, leads=False)]
        ),
        short(observed_at=12.0, samples=[answer(2, log_end_offset=95, leader_epoch=4, leads=True)]),
    ],
    ids=["silent", "not sampled", "does not lead", "before its election"],
)
def test_a_look_that_cannot_tell_leaves_the_first_read_standing(blind: Observation) -> None:
    assert fold(None, observation(), short(), blind).loss_candidate == FIRST


def test_a_leader_that_shows_no_lineage_cannot_refute() -> None:
    """It was seen once without one, and its log end is above what was committed by now."""
    first = short(lineage=None, samples=[answer(2, log_end_offset=80, leader_epoch=5, leads=True)])
    once = fold(None, observation(), first)
    assert once.loss_candidate == LossCandidate(4, 5, 80, 90, 100, 1)
    grown = short(lineage=None, samples=[answer(2, log_end_offset=95, leader_epoch=5, leads=True)])
    assert fold(once, grown).loss_candidate == once.loss_candidate


def test_a_look_that_shows_the_records_there_refutes_the_first_read() -> None:
    whole = short(
        lineage=[(4, 90), (5, 95)],
        samples=[answer(2, log_end_offset=95, leader_epoch=5, leads=True)],
    )
    assert fold(fold(None, observation(), short()), whole).loss_candidate is None


def test_a_first_read_ends_with_the_leadership_that_it_spoke_of() -> None:
    once = fold(None, observation(), short())
    assert (
        fold(
            once, observation(leader=2, leader_epoch=6, samples=[silent(1), silent(2)])
        ).loss_candidate
        is None
    )
