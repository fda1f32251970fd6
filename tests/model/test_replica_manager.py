"""The replica manager: its invariants under random runs, and its rules one by one."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.random_runs import check_candidates, check_leader, check_offsets, random_run
from tidemark_lab.model import epoch_cache
from tidemark_lab.model.invariants import INVARIANTS
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.replica_manager.broker import create
from tidemark_lab.model.replica_manager.model_state import to_model_state
from tidemark_lab.model.replica_manager.state import Broker
from tidemark_lab.model.scenarios.run import ScenarioRun
from tidemark_lab.model.state import Constants

SEEDS = st.integers(0, 2**32)
SAFE = st.sampled_from(["kip-320", "kip-966"])
BROKERS, MIN_ISR = st.integers(2, 3), st.integers(1, 2)


def new_run(
    protocol: str = "kip-966", brokers: int = 3, min_isr: int = 2, *, unclean: bool = False
) -> ScenarioRun:
    return ScenarioRun(
        create(PROTOCOLS[protocol], brokers, min_isr, unclean_leader_election=unclean)
    )


def replicated_run(protocol: str = "kip-966", brokers: int = 2, min_isr: int = 1) -> ScenarioRun:
    """m0 is committed and on all brokers."""
    run = new_run(protocol, brokers, min_isr)
    run.write(1)
    run.catch_up(*range(2, brokers + 1))
    return run


def leader_of(run: ScenarioRun) -> Broker:
    leader = run.cluster.controller.leader
    assert leader is not None
    return run.cluster.broker(leader)


@settings(max_examples=40)
@given(SEEDS, st.sampled_from(list(PROTOCOLS)), BROKERS, MIN_ISR)
def test_offsets_stay_in_order(seed: int, protocol: str, brokers: int, min_isr: int) -> None:
    run = random_run(protocol, brokers, min_isr, Random(seed), 80)
    for before, after in pairwise(run.steps):
        check_offsets(before.cluster, after.cluster)


@settings(max_examples=40)
@given(SEEDS, SAFE, BROKERS, MIN_ISR)
def test_who_can_be_elected_has_all_committed_records_and_the_searched_invariants_hold(
    seed: int, protocol: str, brokers: int, min_isr: int
) -> None:
    constants = Constants(brokers, log_size=1000, records=1000, max_epoch=1000, min_isr=min_isr)
    for step in random_run(protocol, brokers, min_isr, Random(seed), 80).steps:
        check_candidates(step.cluster)
        state = to_model_state(step.cluster)
        assert [
            name for name, invariant in INVARIANTS.items() if not invariant.holds(constants, state)
        ] == []


@settings(max_examples=30)
@given(SEEDS, BROKERS)
def test_one_lossy_machine_loses_nothing_under_kip_966(seed: int, brokers: int) -> None:
    """Until the last known leader is elected: see the test below."""
    for step in random_run("kip-966", brokers, 2, Random(seed), 100, lossy=brokers - 1).steps:
        if step.cluster.controller.recovering:
            break
        check_leader(step.cluster)


@pytest.mark.parametrize("min_isr", [1, 2])
def test_two_unclean_shutdowns_can_lose_a_record_under_kip_966(min_isr: int) -> None:
    """After them no replica is eligible, so the last known leader is elected despite its disk."""
    run = replicated_run(min_isr=min_isr)
    run.execute("lose_power 1", "kill 2", "fence 2 1", "start 1 2", "learn 1")
    assert run.cluster.controller.recovering and leader_of(run).leads
    assert len(run.cluster.committed) == 1 and leader_of(run).log == ()


def test_the_order_of_fencing_decides_which_disk_the_last_known_leader_has() -> None:
    """One decision fences one broker, and the last known leader is the broker of the last one."""
    lost = []
    for order in ("fence 1 2", "fence 2 1"):
        run = replicated_run()
        run.execute("lose_power 1", "kill 2", order, "start 1 2", "learn 1 2")
        assert run.cluster.controller.recovering
        lost.append(leader_of(run).log == ())
    assert lost == [False, True]


def test_a_fencing_moves_one_replica_to_the_eligible_ones() -> None:
    run = replicated_run(brokers=4, min_isr=2)
    eligible = []
    for broker in (2, 3, 4, 1):
        run.fence(broker)
        eligible.append(run.cluster.controller.eligible_leader_replicas)
    # At min ISR or above none is eligible. The last members leave one by one.
    assert eligible == [(), (), (4,), (1, 4)]
    single = replicated_run(brokers=3, min_isr=1)
    single.fence(2, 3, 1)
    assert single.cluster.controller.eligible_leader_replicas == (1,)


def test_a_request_of_the_leader_can_make_several_replicas_eligible() -> None:
    run = replicated_run(brokers=3, min_isr=2)
    run.execute("write 1", "wait 31000", "shrink 1", "grant 1")
    assert run.cluster.controller.in_sync_replicas == (1,)
    assert run.cluster.controller.eligible_leader_replicas == (2, 3)


def test_a_leader_that_cannot_reach_the_controller_gets_no_response() -> None:
    for protocol, words in (
        ("kip-966", "1 asks the controller for ISR 1 and gets no response"),
        ("kip-320", "1 gets no response from ZooKeeper for ISR 1"),
    ):
        run = replicated_run(protocol)
        run.execute("fence 1", "write 1", "wait 31000", "shrink 1")
        assert run.steps[-1].effects == (words,)
        run.grant(1)
        assert run.cluster.broker(1).in_sync_replicas == (1, 2)
        assert not any("rejected" in effect for effect in run.steps[-1].effects)


@pytest.mark.parametrize(
    ("protocol", "unclean", "exits"),
    [("truncate-to-hw", False, True), ("truncate-to-hw", True, False), ("kip-279", False, True)],
)
def test_until_2_0_a_longer_log_stops_its_broker_without_unclean_elections(
    protocol: str, *, unclean: bool, exits: bool
) -> None:
    """ReplicaFetcherThread.handleOffsetOutOfRange: the record stays on the disk of that broker."""
    run = new_run(protocol, 2, 1, unclean=unclean)
    run.execute("write 1", "catch_up 2", "checkpoint 2", "learn 2")
    shorter = replace(run.cluster.broker(1), log=(), high_watermark=0)
    run.cluster = run.cluster.with_broker(shorter)
    run.execute("fetch 2", "receive 2")
    assert run.cluster.broker(2).running is not exits
    assert len(run.cluster.broker(2).log) == exits


def test_a_waiting_follower_fetches_again_after_each_response() -> None:
    run = new_run(brokers=3, min_isr=1)
    run.execute("write 1", "catch_up 2 3", "wait 29700 2")
    assert run.steps[-1].event == "29,700 ms pass while 2 fetches"
    remotes = leader_of(run).remotes
    assert [remotes[each].last_fetch_ms for each in (2, 3)] == [29_500, 0]
    # 3 is stalled: it has not processed the response that it got after 500 ms.
    assert [run.cluster.broker(each).high_watermark for each in (2, 3)] == [1, 0]


def test_the_same_runs_break_unsafe_protocols() -> None:
    """The two properties above can fail: the same random runs break them under other rules."""

    def breaks(protocol: str, brokers: int, min_isr: int, lossy: int | None) -> bool:
        check = check_candidates if lossy is None else check_leader
        for seed in range(600):
            try:
                for step in random_run(protocol, brokers, min_isr, Random(seed), 100, lossy).steps:
                    check(step.cluster)
            except AssertionError:
                return True
        return False

    assert breaks("truncate-to-hw", 2, 1, None)
    assert breaks("kip-320", 3, 2, 2)


def test_a_new_leader_needs_a_fetch_of_every_member_before_its_high_watermark_moves() -> None:
    run = replicated_run(brokers=3, min_isr=2)
    run.execute("kill 1", "fence 1", "learn 2")
    assert leader_of(run).remotes[3].log_end_offset is None
    assert leader_of(run).high_watermark == 0
    run.execute("learn 3", "fetch 3")
    assert leader_of(run).high_watermark == 1


def test_the_leader_waits_for_a_caught_up_follower_outside_the_isr() -> None:
    run = replicated_run("kip-320")
    run.execute("kill 2", "fence 2", "learn 1", "write 1")
    # Recently caught up, so it may be about to join (Partition.maybeIncrementLeaderHW).
    assert run.cluster.controller.in_sync_replicas == (1,)
    assert leader_of(run).high_watermark == 1
    run.execute("wait 10001", "write 1")
    assert leader_of(run).high_watermark == 3


def test_an_isr_request_older_than_the_newest_decision_is_rejected() -> None:
    run = new_run(min_isr=1)
    run.execute("write 1", "catch_up 2", "wait 31000", "fetch 2", "shrink 1")
    assert leader_of(run).pending_in_sync_replicas == (1, 2)
    run.execute("kill 2", "fence 2", "grant 1")
    assert "rejected: INVALID_UPDATE_VERSION" in run.steps[-1].effects
    assert run.cluster.controller.in_sync_replicas == (1, 3)


def test_a_request_to_add_a_broker_that_has_registered_again_is_rejected() -> None:
    run = new_run(brokers=2, min_isr=1)
    run.execute("kill 2", "fence 2", "learn 1", "write 1", "start 2", "learn 1 2", "catch_up 2")
    assert leader_of(run).pending_in_sync_replicas == (1, 2)
    run.execute("lose_power 2", "start 2")
    assert any("INELIGIBLE_REPLICA" in effect for effect in run.steps[-1].effects)
    assert leader_of(run).pending_in_sync_replicas is None


def test_a_delayed_fetch_that_expires_returns_only_the_high_watermark() -> None:
    run = new_run(brokers=2, min_isr=1)
    run.execute("fetch 2", "wait 499")
    assert [fetch.reader for fetch in leader_of(run).fetch_purgatory] == [2]
    run.wait(1)
    response = run.cluster.broker(2).response
    assert leader_of(run).fetch_purgatory == ()
    assert response is not None and (response.records, response.high_watermark) == ((), 0)


def test_a_record_can_be_committed_after_its_produce_request_has_timed_out() -> None:
    run = new_run(brokers=2, min_isr=1)
    run.execute("write 1", "wait 29999")
    assert [waiting.records for waiting in leader_of(run).produce_purgatory] == [(0,)]
    run.wait(1)
    assert run.steps[-1].effects == ("m0: REQUEST_TIMED_OUT",)
    run.catch_up(2)
    assert leader_of(run).produce_purgatory == ()
    assert leader_of(run).high_watermark == 1 and len(run.cluster.committed) == 1
    assert run.cluster.acked == ()


def run_without_the_last_leader(protocol: str, *, unclean: bool = False) -> ScenarioRun:
    """2 died first, then 1 with m1, which 2 lacks. Only 2 has restarted."""
    run = new_run(protocol, 2, 1, unclean=unclean)
    run.execute(
        "write 1",
        "catch_up 2",
        "kill 2",
        "fence 2",
        "learn 1",
        "write 1",
        "kill 1",
        "fence 1",
        "start 2",
    )
    return run


@pytest.mark.parametrize("protocol", ["kip-320", "kip-966"])
def test_an_unclean_election_needs_the_topics_permission_or_an_operator(protocol: str) -> None:
    assert run_without_the_last_leader(protocol).cluster.controller.leader is None
    allowed = run_without_the_last_leader(protocol, unclean=True).cluster.controller
    requested = run_without_the_last_leader(protocol)
    requested.elect_unclean()
    assert allowed == requested.cluster.controller
    assert (allowed.leader, allowed.in_sync_replicas, allowed.recovering) == (2, (2,), True)
    assert not requested.cluster.unclean_leader_election
    requested.elect_unclean()
    assert requested.steps[-1].effects == ("ELECTION_NOT_NEEDED",)


def test_an_unclean_election_needs_an_alive_replica_and_an_eligible_one_needs_none() -> None:
    run = new_run()
    run.execute("shut_down 2", "shut_down 3", "kill 1", "fence 1", "elect_unclean")
    assert run.steps[-1].effects == ("ELIGIBLE_LEADERS_NOT_AVAILABLE",)
    run.start(2)
    # The ISR still met min ISR without 2, so 2 is not eligible. Without 3 it did not, so 3 is.
    assert run.cluster.controller.leader is None
    run.start(3)
    elected = run.cluster.controller
    assert (elected.leader, elected.recovering) == (3, False)


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(0, (0, 0)), (1, (1, 3)), (2, (1, 3)), (3, (3, 9)), (4, None)],
)
def test_the_epoch_cache_returns_the_floor_epoch_and_the_start_of_the_next(
    epoch: int, expected: tuple[int, int] | None
) -> None:
    assert epoch_cache.end_offset_for(((1, 0), (3, 3)), epoch, 9) == expected


def test_the_epoch_cache_removes_later_entries() -> None:
    cache = epoch_cache.assign(((0, 0), (1, 4), (2, 8)), 3, 6)
    assert cache == ((0, 0), (1, 4), (3, 6))
    assert epoch_cache.assign(cache, 3, 7) == cache
    assert epoch_cache.truncate_from_end(cache, 4) == ((0, 0),)
