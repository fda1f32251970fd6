"""The replica manager under anything that can happen, and its rules one by one."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.operations import check_candidates, check_leader, check_offsets, random_play
from tidemark.model.invariants import INVARIANTS
from tidemark.model.protocols import PROTOCOLS
from tidemark.model.replica_manager import epoch_cache
from tidemark.model.replica_manager.abstract import as_cluster_state
from tidemark.model.replica_manager.broker import create
from tidemark.model.scenarios.play import Play
from tidemark.model.state import Constants

SEEDS = st.integers(0, 2**32)


def staged(protocol: str = "kip-966", brokers: int = 3, min_isr: int = 2) -> Play:
    return Play(create(PROTOCOLS[protocol], brokers, min_isr))


@settings(max_examples=40)
@given(SEEDS, st.sampled_from(list(PROTOCOLS)), st.integers(2, 3), st.integers(1, 2))
def test_offsets_keep_their_order_whatever_happens(
    seed: int, protocol: str, brokers: int, min_isr: int
) -> None:
    play = random_play(protocol, brokers, min_isr, Random(seed), 80)
    for before, after in pairwise(play.rows):
        check_offsets(before.cluster, after.cluster)


@settings(max_examples=40)
@given(SEEDS, st.sampled_from(["kip-320", "kip-966"]), st.integers(2, 3), st.integers(1, 2))
def test_whoever_may_be_elected_has_all_that_was_committed(
    seed: int, protocol: str, brokers: int, min_isr: int
) -> None:
    for row in random_play(protocol, brokers, min_isr, Random(seed), 80).rows:
        check_candidates(row.cluster)


@settings(max_examples=40)
@given(SEEDS, st.sampled_from(["kip-320", "kip-966"]), st.integers(2, 3), st.integers(1, 2))
def test_it_keeps_the_invariants_of_the_searched_model(
    seed: int, protocol: str, brokers: int, min_isr: int
) -> None:
    constants = Constants(brokers, log_size=1000, records=1000, max_epoch=1000, min_isr=min_isr)
    for row in random_play(protocol, brokers, min_isr, Random(seed), 80).rows:
        state = as_cluster_state(row.cluster)
        assert [
            name for name, invariant in INVARIANTS.items() if not invariant.holds(constants, state)
        ] == []


@settings(max_examples=30)
@given(SEEDS, st.integers(2, 3))
def test_one_lossy_machine_costs_kip_966_nothing(seed: int, brokers: int) -> None:
    for row in random_play("kip-966", brokers, 2, Random(seed), 100, lossy=brokers - 1).rows:
        check_leader(row.cluster)


def test_the_same_plays_break_protocols_that_are_not_safe() -> None:
    """The two properties above can fail: under other rules the same random plays do break them."""

    def breaks(protocol: str, brokers: int, min_isr: int, lossy: int | None) -> bool:
        check = check_candidates if lossy is None else check_leader
        for seed in range(600):
            try:
                for row in random_play(protocol, brokers, min_isr, Random(seed), 100, lossy).rows:
                    check(row.cluster)
            except AssertionError:
                return True
        return False

    assert breaks("truncate-to-hw", 2, 1, None)
    assert breaks("kip-320", 3, 2, 2)


def test_a_new_leader_moves_no_high_watermark_before_it_heard_of_every_member() -> None:
    play = staged()
    play.write(1)
    play.catch_up(2, 3)
    play.kill(1)
    play.fence(1)
    play.learn(2)
    assert play.cluster.broker(2).remotes[3].log_end_offset is None
    assert play.cluster.broker(2).high_watermark == 0
    play.learn(3)
    play.fetch(3)
    assert play.cluster.broker(2).high_watermark == 1


def test_a_caught_up_follower_outside_the_set_is_waited_for() -> None:
    play = staged("kip-320", brokers=2, min_isr=1)
    play.write(1)
    play.catch_up(2)
    play.kill(2)
    play.fence(2)
    play.learn(1)
    play.write(1)
    # Out of the set, and caught up a moment ago: it may be about to join (Partition.maybeIncrementLeaderHW).
    assert play.cluster.controller.in_sync_replicas == (1,)
    assert play.cluster.broker(1).high_watermark == 1
    play.wait(10_001)
    play.write(1)
    assert play.cluster.broker(1).high_watermark == 3


def test_a_follower_joins_at_the_start_of_the_leaders_epoch_and_not_before() -> None:
    play = staged("kip-966", brokers=4, min_isr=1)
    play.write(1)
    play.catch_up(2, 3, 4)
    play.kill(3)
    play.fence(3)
    play.learn(1)
    play.write(1)
    play.catch_up(2, 4)
    play.kill(1)
    play.fence(1)
    play.learn(2)
    play.start(3)
    play.learn(2, 3)
    # The new leader's high watermark trails the one that the leader before had shown, so it does not say who has all.
    leader = play.cluster.broker(2)
    assert (leader.high_watermark, leader.epoch_cache[-1]) == (1, (1, 2))
    play.fetch(3)
    assert play.cluster.broker(2).remotes[3].log_end_offset == 1
    assert play.cluster.broker(2).pending_in_sync_replicas is None
    play.receive(3)
    play.fetch(3)
    assert play.cluster.broker(2).pending_in_sync_replicas == (2, 3, 4)


def test_a_wish_made_before_a_newer_decision_is_refused() -> None:
    play = staged("kip-966", brokers=3, min_isr=1)
    play.write(1)
    play.catch_up(2)
    play.wait(31_000)
    play.fetch(2)
    play.shrink(1)
    assert play.cluster.broker(1).pending_in_sync_replicas == (1, 2)
    play.kill(2)
    play.fence(2)
    play.grant(1)
    assert "refused: INVALID_UPDATE_VERSION" in play.rows[-1].outcome
    assert play.cluster.controller.in_sync_replicas == (1, 3)


def test_a_wish_for_a_broker_that_has_registered_anew_is_refused() -> None:
    play = staged("kip-966", brokers=2, min_isr=1)
    play.kill(2)
    play.fence(2)
    play.learn(1)
    play.write(1)
    play.start(2)
    play.learn(1, 2)
    play.catch_up(2)
    assert play.cluster.broker(1).pending_in_sync_replicas == (1, 2)
    play.lose_power(2)
    play.start(2)
    assert any("INELIGIBLE_REPLICA" in outcome for outcome in play.rows[-1].outcome)
    assert play.cluster.broker(1).pending_in_sync_replicas is None


def test_a_parked_fetch_is_answered_with_the_high_watermark_alone_when_its_time_is_up() -> None:
    play = staged(brokers=2, min_isr=1)
    play.fetch(2)
    play.wait(499)
    assert [fetch.follower for fetch in play.cluster.broker(1).fetch_purgatory] == [2]
    play.wait(1)
    answer = play.cluster.broker(2).answer
    assert play.cluster.broker(1).fetch_purgatory == ()
    assert answer is not None and (answer.records, answer.high_watermark) == ((), 0)


def test_a_producer_that_waited_too_long_is_told_so_and_its_record_may_be_committed_yet() -> None:
    play = staged(brokers=2, min_isr=1)
    play.write(1)
    play.wait(29_999)
    assert [waiting.record for waiting in play.cluster.broker(1).produce_purgatory] == [0]
    play.wait(1)
    assert play.rows[-1].outcome == ("m0: REQUEST_TIMED_OUT",)
    play.catch_up(2)
    assert play.cluster.broker(1).produce_purgatory == ()
    assert play.cluster.broker(1).high_watermark == 1 and len(play.cluster.committed) == 1
    assert play.cluster.acked == ()


def test_a_broker_starts_with_the_high_watermark_of_its_checkpoint() -> None:
    play = staged(brokers=2, min_isr=1)
    play.write(1)
    play.catch_up(2)
    play.checkpoint(1)
    play.write(1)
    play.catch_up(2)
    assert play.cluster.broker(1).high_watermark == 2
    play.kill(1)
    play.start(1)
    assert (play.cluster.broker(1).high_watermark, play.cluster.broker(1).log_end_offset) == (1, 2)


def test_producers_that_wait_at_a_leader_that_is_none_any_more_are_told() -> None:
    play = staged(brokers=2, min_isr=1)
    play.write(1)
    play.fence(1)
    play.learn(1)
    assert "the producers of m0 are told NOT_LEADER_OR_FOLLOWER" in play.rows[-1].outcome
    assert play.cluster.acked == ()


def both_gone(protocol: str = "kip-966", *, unclean: bool = False) -> Play:
    """1 led alone and died with m1, which 2 lacks; 2, which died before, is back."""
    play = Play(create(PROTOCOLS[protocol], 2, 1, unclean_leader_election=unclean))
    play.write(1)
    play.catch_up(2)
    play.kill(2)
    play.fence(2)
    play.learn(1)
    play.write(1)
    play.kill(1)
    play.fence(1)
    play.start(2)
    return play


@pytest.mark.parametrize("protocol", ["kip-320", "kip-966"])
def test_unclean_elections_happen_where_the_topic_allows_them_or_an_operator_asks(
    protocol: str,
) -> None:
    assert both_gone(protocol).cluster.controller.leader is None
    allowed = both_gone(protocol, unclean=True).cluster.controller
    asked = both_gone(protocol)
    asked.elect_unclean()
    assert allowed == asked.cluster.controller
    assert (allowed.leader, allowed.in_sync_replicas, allowed.recovering) == (2, (2,), True)
    assert not asked.cluster.unclean_leader_election
    asked.elect_unclean()
    assert asked.rows[-1].outcome == ("ELECTION_NOT_NEEDED",)


def test_an_unclean_election_takes_nobody_who_is_down_and_an_eligible_replica_needs_none() -> None:
    play = staged("kip-966", brokers=3, min_isr=2)
    play.shut_down(2)
    play.shut_down(3)
    play.kill(1)
    play.fence(1)
    play.elect_unclean()
    assert play.rows[-1].outcome == ("ELIGIBLE_LEADERS_NOT_AVAILABLE",)
    play.start(2)
    # 2 left a set that met min ISR without it, so it is not eligible; when 3 left, the set fell below, and it is.
    assert play.cluster.controller.leader is None
    play.start(3)
    elected = play.cluster.controller
    assert (elected.leader, elected.recovering) == (3, False)


def test_an_elected_leader_notes_its_epoch_before_any_write() -> None:
    play = staged(brokers=2, min_isr=1)
    play.write(1)
    play.catch_up(2)
    play.kill(1)
    play.fence(1)
    play.learn(2)
    assert play.cluster.broker(2).epoch_cache == ((0, 0), (1, 1))


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(0, (0, 0)), (1, (1, 3)), (2, (1, 3)), (3, (3, 9)), (4, None)],
)
def test_epoch_cache_answers_the_floor_epoch_and_where_the_next_begins(
    epoch: int, expected: tuple[int, int] | None
) -> None:
    assert epoch_cache.end_offset_for(((1, 0), (3, 3)), epoch, 9) == expected


def test_epoch_cache_lets_later_entries_give_way() -> None:
    cache = epoch_cache.assign(((0, 0), (1, 4), (2, 8)), 3, 6)
    assert cache == ((0, 0), (1, 4), (3, 6))
    assert epoch_cache.assign(cache, 3, 7) == cache
    assert epoch_cache.truncate_from_end(cache, 4) == ((0, 0),)
