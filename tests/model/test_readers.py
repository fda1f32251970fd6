"""Consumers, transactions and purgatories: what completes which request."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.random_runs import STEPS, Step
from tests.model.test_scenarios import (
    MAIN_RUNS,
    before,
    ids,
    lost,
    only_step,
    run_of,
    steps_with,
)
from tidemark_lab.model.log import first_difference
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.replica_manager import broker, consumer, follower, leader, purgatory
from tidemark_lab.model.replica_manager.delayed import FETCH_WAIT_MS, FetchIsolation
from tidemark_lab.model.replica_manager.state import ClusterModel, Consumer, TransactionalRecord
from tidemark_lab.model.replica_manager.transactions import last_stable_offset
from tidemark_lab.model.scenarios import SCENARIOS
from tidemark_lab.model.scenarios.run import ScenarioRun

KIP_966 = PROTOCOLS["kip-966"]


def positions(cluster: ClusterModel) -> list[int]:
    return [each.position for each in cluster.consumers]


def test_one_fetch_completes_the_producer_and_the_consumer() -> None:
    run = run_of("consumer-visibility")
    append = only_step(run, "the producer of m0 waits")
    # The append wakes the follower only: the consumer reads below the high watermark.
    assert [each.reader for each in append.cluster.broker(1).fetch_purgatory] == [-1]
    commit = only_step(run, "HW of 1: 0→1")
    assert "m0 acknowledged" in commit.effects and "C1 reads m0" in commit.effects
    assert positions(before(run, commit)) == [0] and positions(commit.cluster) == [1]


@pytest.mark.parametrize(("name", "protocol"), MAIN_RUNS)
def test_no_consumer_reads_what_is_not_committed(name: str, protocol: str) -> None:
    for step in run_of(name, protocol).steps:
        cluster = step.cluster
        for local in cluster.brokers:
            assert last_stable_offset(cluster, local) <= local.high_watermark
            assert local.log_start_offset <= local.high_watermark <= local.log_end_offset
        assert all(position <= len(cluster.committed) for position in positions(step.cluster))


def test_a_fetch_that_is_not_watched_yet_misses_no_append() -> None:
    run = run_of("purgatory-race")
    append = only_step(run, "the producer of m0 waits")
    assert append.cluster.broker(1).fetch_purgatory == ()
    assert "the fetch of 2 completes: m0, HW 0" in run.steps[3].effects


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
    run = run_of("request-of-two-partitions")
    (entry,) = run.steps[2].cluster.broker(1).fetch_purgatory
    assert entry.completed and run.steps[2].cluster.broker(2).response is not None
    assert run.steps[3].cluster.broker(1).fetch_purgatory == ()
    # A check of the key drops the entry too, and it completes nothing twice.
    run = ScenarioRun(broker.create(KIP_966, 2))
    run.execute("fetch 2", "append_elsewhere 1", "wait 500")
    assert len(run.cluster.broker(1).fetch_purgatory) == 1
    run.execute("write 1")
    assert run.cluster.broker(1).fetch_purgatory == ()
    assert not any("the fetch of 2" in effect for effect in run.steps[-1].effects)


def test_a_produce_request_waits_for_all_its_partitions() -> None:
    run = run_of("request-of-two-partitions")
    committed = only_step(run, "HW of 1: 0→1").cluster
    assert committed.acked == () and ids(committed.committed) == [0]
    assert ids(run.cluster.acked) == [0]


def test_an_open_transaction_holds_the_last_stable_offset() -> None:
    run = run_of("last-stable-offset")
    open_one = only_step(run, "C1 reads m0, m1").cluster
    assert open_one.broker(1).high_watermark == 2
    assert last_stable_offset(open_one, open_one.broker(1)) == 0
    marker = next(step for step in run.steps if "the commit marker of t1" in step.event)
    # The marker alone is not enough: it must be committed too.
    assert last_stable_offset(marker.cluster, marker.cluster.broker(1)) == 0
    assert positions(only_step(run, "C2 reads m0, m1").cluster) == [2, 3]
    # No record of the aborted transaction, and no marker.
    assert run.steps[-1].effects == ("C2 reads m4",)
    hanging = only_step(run, "C1 reads m3, m4").cluster
    assert last_stable_offset(hanging, hanging.broker(1)) == 3 < hanging.broker(1).high_watermark


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


def test_the_high_watermark_is_the_minimum_and_only_rises() -> None:
    run = run_of("uneven-followers")
    shown = [step.cluster.broker(1).high_watermark for step in run.steps]
    assert sorted(set(shown)) == [0, 5, 7, 9] and shown == sorted(shown)
    ahead = next(s.cluster for s in run.steps if s.cluster.broker(1).remotes[2].log_end_offset == 7)
    assert ahead.broker(1).remotes[3].log_end_offset == 0 and ahead.broker(1).high_watermark == 0


def test_both_conditions_of_joining_the_isr_bind() -> None:
    run = run_of("rejoin-isr")
    fetches = [step for step in run.steps if step.event == "3 fetches from offset 1"]
    below_hw, below_start = (step.cluster for step in fetches[-2:])
    one, two = below_hw.broker(1), below_start.broker(2)
    assert one.remotes[3].log_end_offset == 1 < one.high_watermark
    assert [start for _, start in one.epoch_cache] == [0]
    assert two.remotes[3].log_end_offset == 1 == two.high_watermark
    assert two.epoch_cache[-1] == (1, 3)
    assert all(3 not in each.controller.in_sync_replicas for each in (below_hw, below_start))
    assert run.cluster.controller.in_sync_replicas == (2, 3, 4)
    # Before KIP-320 it joins without two committed records.
    early = only_step(run_of("rejoin-isr", "kip-279"), "2 writes ISR 2,3,4").cluster
    assert ids(early.committed) == [0, 1, 2] and ids(early.broker(3).log) == [0]


def test_the_loss_needs_no_acks_all_and_no_min_isr_of_one() -> None:
    run = run_of("hw-truncation-loss-acks-1", "truncate-to-hw")
    assert lost(run.cluster) == [1] and ids(run.cluster.acked_with_acks_1) == [0, 1]
    assert run.cluster.acked == ()
    for protocol in ("kip-101", "kip-966"):
        assert lost(run_of("hw-truncation-loss-acks-1", protocol).cluster) == []
    # Min ISR 2 does not prevent the loss. It prevents the write that makes the logs diverge.
    assert lost(SCENARIOS["hw-truncation-loss"].run("truncate-to-hw", 2).cluster) == [1]
    for min_isr, diverged in ((1, 1), (2, None)):
        one, two = (
            SCENARIOS["hw-truncation-divergence"].run("truncate-to-hw", min_isr).cluster.brokers
        )
        assert first_difference(one.log, two.log) == diverged


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


def test_a_fetch_without_the_leader_epoch_loses_what_a_fenced_one_keeps() -> None:
    run = run_of("fetch-without-leader-epoch", "kip-320-first-try")
    assert lost(run.cluster) == [2] and 2 in ids(run.cluster.acked)
    elected = only_step(run, "decision: 3 becomes leader in epoch 3")
    # The election is clean: 3 is the ISR.
    assert before(run, elected).controller.in_sync_replicas == (1, 3)
    assert not elected.cluster.controller.recovering
    for protocol in ("kip-320", "kip-966"):
        fenced = run_of("fetch-without-leader-epoch", protocol)
        assert steps_with(fenced, "FENCED_LEADER_EPOCH") and lost(fenced.cluster) == []


def test_a_broker_without_leadership_checks_no_follower() -> None:
    run = run_of("two-replica-write")
    run.execute("shrink 2")
    assert run.steps[-1].effects == ("no follower is out of sync",)


def test_deleted_records_are_gone_once_every_live_replica_has_deleted_them() -> None:
    run = run_of("delete-records")
    asked = only_step(run, "the low watermark is 0: the request waits").cluster
    assert [broker.log_start_offset for broker in asked.brokers] == [2, 0, 0]
    done = only_step(run, "low watermark 2: DeleteRecords completes").cluster
    assert [broker.log_start_offset for broker in done.brokers] == [2, 2, 2]
    assert done.broker(1).delete_purgatory == ()
    restarted = next(step for step in run.steps if step.event == "2 starts").cluster
    # The checkpoint of the log start was not written yet.
    assert restarted.broker(2).log_start_offset == 0
    assert lost(run.cluster) == [] and run.cluster.broker(2).log_start_offset == 2


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
    start = only_step(run, "no .kafka_cleanshutdown: it checks its log from 2 on").cluster
    # m2 is above the recovery point, and on the disk; m3 is not.
    assert start.broker(2).log_end_offset == 3
    assert lost(run.cluster) == [] and run.cluster.broker(2).log_end_offset == 4
    run.execute("shut_down 2")
    assert run.cluster.broker(2).disk.recovery_point_checkpoint == 4
    run.execute("start 2")
    assert not any("kafka_cleanshutdown" in note for note in run.steps[-1].effects)
