"""Consumers, transactions and purgatories: what completes which request."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.random_runs import STEPS, Step
from tests.model.test_scenarios import (
    lost,
    only_step,
    run_of,
    steps_with,
)
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.replica_manager import broker, consumer, follower, leader, purgatory
from tidemark_lab.model.replica_manager.delayed import FETCH_WAIT_MS, FetchIsolation
from tidemark_lab.model.replica_manager.state import ClusterModel, Consumer, TransactionalRecord
from tidemark_lab.model.replica_manager.transactions import last_stable_offset
from tidemark_lab.model.scenarios import SCENARIOS
from tidemark_lab.model.scenarios.run import ScenarioRun

KIP_966 = PROTOCOLS["kip-966"]


def play(order: tuple[str, ...], *, second_attempt: bool) -> ClusterModel:
    """A consumer and a follower fetch while records are appended and committed, in any order."""
    cluster = broker.create(KIP_966, 2).with_consumer(Consumer(1))
    for event in order:
        match event:
            case "read":
                cluster = follower.read_messages(cluster, 2)
            case "watch":
                cluster = purgatory.watch(cluster, 1, second_attempt=second_attempt)
            case _:
                cluster = leader.append_records_to_leader(cluster, 1, "1")
    return cluster


@pytest.mark.parametrize("appends", [1, 2, 3])
def test_no_order_of_events_leaves_a_fetch_waiting_for_records_that_are_there(
    appends: int,
) -> None:
    """Every interleaving of a fetch's two halves with appends."""
    missed = 0
    for read, watch in combinations(range(appends + 2), 2):
        order = ["append"] * (appends + 2)
        order[read], order[watch] = "read", "watch"
        assert play(tuple(order), second_attempt=True).broker(1).fetch_purgatory == ()
        cluster = play(tuple(order), second_attempt=False)
        waiting = cluster.broker(1).fetch_purgatory
        after_watch, found = order[watch:].count("append"), order[:read].count("append")
        if waiting:
            # It misses what was appended between the halves, and waits for its timeout.
            missed += 1
            assert (
                not found
                and not after_watch
                and waiting[0].offset < cluster.broker(1).log_end_offset
            )
            late = broker.pass_time(cluster, FETCH_WAIT_MS)
            assert late.broker(1).fetch_purgatory == () and late.broker(2).response is not None
    # Only with both halves around all appends.
    assert missed == 1


def test_a_fetch_that_another_partition_completed_is_watched_until_a_purge() -> None:
    """A check of the key drops the entry too, and it completes nothing twice."""
    run = ScenarioRun(broker.create(KIP_966, 2))
    run.execute("fetch 2", "append_elsewhere 1", "wait 500")
    assert len(run.cluster.broker(1).fetch_purgatory) == 1
    run.execute("write 1")
    assert run.cluster.broker(1).fetch_purgatory == ()
    assert not any("the fetch of 2" in effect for effect in run.steps[-1].effects)


def test_the_follower_has_a_last_stable_offset_of_its_own() -> None:
    run = run_of("last-stable-offset")
    marker = only_step(run, "C2 reads m0, m1").cluster
    assert last_stable_offset(marker, marker.broker(1)) == 3
    assert last_stable_offset(marker, marker.broker(2)) == 0


def test_a_consumer_without_a_leader_or_with_a_lost_offset_says_so() -> None:
    cluster = broker.create(KIP_966, 2).with_consumer(Consumer(1, position=3))
    assert "auto.offset.reset" in consumer.poll(cluster, 1).notes[0]
    cluster = cluster.with_consumer(Consumer(1, preferred_read_replica=2))
    ended = broker.shut_down(cluster, 2)
    back = consumer.poll(ended, 1)
    assert back.consumer(1).preferred_read_replica is None
    offline = broker.shut_down(ended, 1)
    assert (
        "the partition has no leader" in consumer.poll(offline.with_consumer(Consumer(1)), 1).notes
    )


def test_a_fetch_above_what_it_can_read_does_not_wait() -> None:
    cluster = broker.create(KIP_966, 2)
    cluster = leader.append_records_to_leader(cluster, 1, "1", 2)
    cluster = consumer.poll(cluster.with_consumer(Consumer(1, position=1)), 1)
    assert cluster.notes[-1] == "C1 gets no record"
    assert cluster.broker(1).fetch_purgatory == ()


def test_markers_are_read_by_no_one() -> None:
    cluster = broker.create(KIP_966, 1).with_consumer(Consumer(1))
    cluster = leader.append_transactional(cluster, 1, "t", "data")
    cluster = leader.append_transactional(cluster, 1, "t", "abort")
    committed = Consumer(2, FetchIsolation.TXN_COMMITTED)
    assert consumer.poll(cluster, 1).notes[-1] == "C1 reads m0"
    cluster = consumer.poll(cluster.with_consumer(committed), 2)
    assert cluster.notes[-1] == "C2 reads nothing but markers"
    assert cluster.consumer(2).position == 2
    assert cluster.transactional[1] == TransactionalRecord(1, "t", "abort")


@settings(max_examples=30, deadline=None)
@given(
    st.randoms(use_true_random=False),
    st.sampled_from(["kip-320", "kip-966"]),
    st.sampled_from(list(FetchIsolation)[1:]),
)
def test_a_consumer_never_reads_a_record_that_is_lost(
    random: Random, protocol: str, isolation: FetchIsolation
) -> None:
    """Random runs with transactions, deletions and two consumers, one of them of a follower."""
    run = ScenarioRun(broker.create(PROTOCOLS[protocol], 3, 2))
    for number, rack in ((1, None), (2, 2)):
        run.cluster = run.cluster.with_consumer(Consumer(number, isolation, rack=rack))
    steps: dict[str, Step] = {
        **STEPS,
        "poll": lambda run, _: run.poll(1, 2),
        "data": lambda run, each: run.write_in(each, f"t{each}"),
        "end": lambda run, each: run.end(each, f"t{each}", "commit"),
        "delete": lambda run, each: run.delete_records(
            each, run.cluster.broker(each).high_watermark
        ),
        "checkpoint log": ScenarioRun.checkpoint_log,
        "force": ScenarioRun.force,
    }
    for _ in range(60):
        steps[random.choice(list(steps))](run, random.randint(1, 3))
        cluster = run.cluster
        for local in cluster.brokers:
            assert local.log_start_offset <= local.high_watermark <= local.log_end_offset
            assert last_stable_offset(cluster, local) <= local.high_watermark
            assert local.recovery_point <= local.log_end_offset
            assert not local.unwatched
        assert all(each.position <= len(cluster.committed) for each in cluster.consumers)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_order_in_which_two_machines_fail_decides_about_the_loss(protocol: str) -> None:
    scenario = SCENARIOS["hw-truncation-divergence"]
    assert lost(scenario.run(protocol).cluster) == [1]
    other = scenario._replace(script=scenario.script.replace("fence 1 2", "fence 2 1"))
    assert other.script != scenario.script
    run = other.run(protocol)
    waits = next(step for step in run.steps if step.event == "2 starts").cluster
    assert waits.controller.leader is None
    assert run.cluster.controller.leader == 1 and lost(run.cluster) == []


def test_a_broker_without_leadership_checks_no_follower() -> None:
    run = run_of("two-replica-write")
    run.execute("shrink 2")
    assert run.steps[-1].effects == ("no follower is out of sync",)


def test_delete_records_above_the_high_watermark_is_rejected() -> None:
    run = run_of("two-replica-write")
    run.execute("delete_records 1 2", "delete_records 2 1", "write 1", "delete_records 1 1")
    assert "OFFSET_OUT_OF_RANGE: the HW is 1" in run.steps[-4].effects
    assert "NOT_LEADER_OR_FOLLOWER" in run.steps[-3].effects
    run.execute("wait 30000")
    assert "DeleteRecords: REQUEST_TIMED_OUT" in run.steps[-1].effects


def test_a_follower_that_is_below_the_log_start_starts_again_there() -> None:
    run = run_of("delete-records")
    run.execute("kill 3", "fence 3", "learn 1", "write 1 2", "catch_up 2", "delete_records 1 5")
    run.execute("start 3", "learn 1 3", "fetch 3", "receive 3", "catch_up 3")
    assert steps_with(run, "3 empties its log and starts again at 5")
    assert run.cluster.broker(3).log_start_offset == 5 == run.cluster.broker(3).log_end_offset
    assert lost(run.cluster) == []


def test_a_log_is_checked_from_its_recovery_point_on() -> None:
    run = run_of("power-failure")
    run.execute("shut_down 2")
    assert run.cluster.broker(2).disk.recovery_point_checkpoint == 4
    run.execute("start 2")
    assert not any("kafka_cleanshutdown" in note for note in run.steps[-1].effects)
