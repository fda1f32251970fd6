"""Every scenario has its golden text and its expected outcome."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from tests.model.golden import assert_golden
from tidemark_lab.model.log import first_difference
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.replica_manager.delayed import FETCH_WAIT_MS
from tidemark_lab.model.replica_manager.state import ClusterModel
from tidemark_lab.model.scenarios import SCENARIOS
from tidemark_lab.model.scenarios.render import (
    missing_records,
    render_scenario,
    render_table,
    verdict,
)
from tidemark_lab.model.scenarios.run import RunStep, ScenarioRun

ALL_RUNS = [(name, protocol) for name in SCENARIOS for protocol in PROTOCOLS]
MAIN_RUNS = [run for run in ALL_RUNS if run[1] in SCENARIOS[run[0]].protocols]
OTHER_RUNS = [run for run in ALL_RUNS if run not in MAIN_RUNS]
EPOCHS = ["kip-101", "kip-279", "kip-320", "kip-966"]


def run_of(name: str, protocol: str | None = None) -> ScenarioRun:
    return SCENARIOS[name].run(protocol)


def ids(records: tuple[tuple[int, int], ...]) -> list[int]:
    return [record_id for _, record_id in records]


def lost(cluster: ClusterModel) -> list[int]:
    """Committed records that the leader at the end does not hold. There must be a leader."""
    leader = cluster.controller.leader
    assert leader is not None and cluster.broker(leader).leads
    return ids(missing_records(cluster.committed, cluster.broker(leader).log))


def steps_with(run: ScenarioRun, words: str) -> list[RunStep]:
    return [step for step in run.steps if any(words in effect for effect in step.effects)]


def only_step(run: ScenarioRun, words: str) -> RunStep:
    """The only step that has an effect with these words."""
    (step,) = steps_with(run, words)
    return step


def before(run: ScenarioRun, step: RunStep) -> ClusterModel:
    """The cluster before a step."""
    return run.steps[run.steps.index(step) - 1].cluster


@pytest.mark.parametrize(("name", "protocol"), MAIN_RUNS)
def test_golden(name: str, protocol: str) -> None:
    assert_golden(f"scenarios/{name}.{protocol}", render_scenario(SCENARIOS[name], protocol))


@pytest.mark.parametrize(("name", "protocol"), OTHER_RUNS)
def test_every_scenario_runs_under_every_protocol(name: str, protocol: str) -> None:
    assert render_scenario(SCENARIOS[name], protocol)[-1]


@pytest.mark.parametrize(("name", "protocol"), MAIN_RUNS)
def test_a_table_fits_a_screen_with_a_row_for_each_step_and_no_empty_column(
    name: str, protocol: str
) -> None:
    # With a zombie the leaders' columns are wide, and the last column has a minimum width.
    assert max(map(len, render_scenario(SCENARIOS[name], protocol))) <= 145
    run = run_of(name, protocol)
    heading, *rows = render_table(run)
    numbers = [line.split()[0] for line in rows if line[0].isdigit()]
    assert numbers == [str(number) for number in range(len(run.steps))]
    starts = [found.start() for found in re.finditer(r"\S+(?: \S+)*", heading)]
    for begin, end in zip(starts, [*starts[1:], None], strict=True):
        assert any(row[begin:end].strip() for row in rows)


def test_offsets_are_below_their_headings() -> None:
    heading, first, *_ = render_table(run_of("zombie-leader"))
    for found in re.finditer(r"\d LEO HW epochs", heading):
        mark, rest = first[found.start()], first[found.start() + 1 : found.start() + 12]
        assert mark in "*- " and re.fullmatch(r"   0  0( 0@0)?\s*", rest.rstrip()) is not None


def test_the_legend_explains_only_the_columns_of_the_table() -> None:
    def has_legend(name: str, column: str) -> bool:
        return any(line.startswith(f"{column} ") for line in render_scenario(SCENARIOS[name]))

    assert has_legend("hw-truncation-loss", "cut")
    assert not has_legend("hw-truncation-loss", "epochs")
    assert has_legend("two-replica-write", "epochs")
    assert not has_legend("two-replica-write", "cut")


def test_two_replica_write_needs_two_fetches_to_commit() -> None:
    run = run_of("two-replica-write")
    commit = only_step(run, "HW of 1: 0→1")
    earlier, later = before(run, commit), commit.cluster
    # The follower has the record before it is committed. The leader knows it from the next fetch.
    assert earlier.broker(2).log_end_offset == 1
    assert earlier.broker(1).remotes[2].log_end_offset == 0
    assert earlier.broker(1).high_watermark == 0
    assert [waiting.records for waiting in earlier.broker(1).produce_purgatory] == [(0,)]
    assert later.broker(1).remotes[2].log_end_offset == 1
    assert later.broker(1).produce_purgatory == ()
    assert ids(later.acked) == [0]
    assert later.broker(2).high_watermark == 0 and run.cluster.broker(2).high_watermark == 1


def test_three_replica_write_waits_for_the_slowest_in_sync_replica() -> None:
    run = run_of("three-replica-write")
    leaders = [step.cluster.broker(1) for step in run.steps]
    first_fetch = next(leader for leader in leaders if leader.remotes[2].log_end_offset == 1)
    assert first_fetch.remotes[3].log_end_offset == 0 and first_fetch.high_watermark == 0
    # Both fetches wait, and the append completes both.
    assert [len(leader.fetch_purgatory) for leader in leaders[:4]] == [0, 1, 2, 0]
    # The response with m1 carries the high watermark for m0.
    assert "2 appends m1" in only_step(run, "HW of 2: 0→1").effects
    assert [broker.high_watermark for broker in run.cluster.brokers] == [2, 2, 2]


def test_a_fetch_response_carries_the_high_watermark_from_before_the_fetch() -> None:
    step = steps_with(run_of("preferred-leader"), "HW of 2: 0→1")[0]
    assert step.cluster.broker(2).high_watermark == 1
    assert "response: m1, HW 0" in step.effects


def test_each_acks_setting_keeps_its_guarantee() -> None:
    run = run_of("acks-0-1-all")
    after = {step.event: step.cluster for step in run.steps}
    assert after["m0 sent to 1, acks=0"].broker(1).produce_purgatory == ()
    assert ids(after["m1 sent to 1, acks=1"].acked_with_acks_1) == [1]
    waiting = after["m2 sent to 1, acks=all"].broker(1).produce_purgatory
    assert [each.records for each in waiting] == [(2,)]
    # m3 was acknowledged with acks=1 and is gone. m4 was not acknowledged.
    leader = run.cluster.broker(2)
    assert leader.leads and ids(leader.log) == [0, 1, 2]
    assert 3 in ids(run.cluster.acked_with_acks_1) and lost(run.cluster) == []
    assert (
        "m3 acknowledged with acks=1, but not in the leader's log: acks=1 does not promise more."
        in verdict(run.cluster)
    )


def test_truncation_to_the_high_watermark_loses_committed_records() -> None:
    run = run_of("hw-truncation-loss", "truncate-to-hw")
    earlier = before(run, steps_with(run, "2 truncates its log to 1")[0])
    assert ids(earlier.committed) == [0, 1] and ids(earlier.acked) == [0, 1]
    assert earlier.broker(2).high_watermark == 1 and earlier.broker(2).log_end_offset == 2
    assert lost(run.cluster) == [1]
    # The old leader still has it and truncates it after its restart: no replica has it any more.
    assert all(1 not in ids(broker.log) for broker in run.cluster.brokers)
    only_step(run, "1 truncates its log to 1, BELOW ITS HIGH WATERMARK")


@pytest.mark.parametrize("protocol", EPOCHS)
def test_leader_epochs_keep_what_truncation_to_the_high_watermark_lost(protocol: str) -> None:
    cluster = run_of("hw-truncation-loss", protocol).cluster
    assert lost(cluster) == []
    assert ids(cluster.committed) == [0, 1]
    assert all(ids(broker.log) == [0, 1] for broker in cluster.brokers)


def test_truncation_to_the_high_watermark_lets_logs_diverge_permanently() -> None:
    cluster = run_of("hw-truncation-divergence", "truncate-to-hw").cluster
    one, two = cluster.brokers
    assert first_difference(one.log, two.log) == 1
    # Both show offset 1 as committed, with different records.
    assert one.high_watermark == two.high_watermark == 2
    assert cluster.controller.in_sync_replicas == (1, 2)
    assert "DIVERGED: 1 and 2 hold different records at offset 1, permanently." in verdict(cluster)


@pytest.mark.parametrize("protocol", EPOCHS)
def test_leader_epochs_end_the_divergence(protocol: str) -> None:
    cluster = run_of("hw-truncation-divergence", protocol).cluster
    assert cluster.brokers[0].log == cluster.brokers[1].log
    # The disk that lost its end led last. With min ISR 1 no replica is eligible any more.
    assert lost(cluster) == [1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_epoch_that_enters_with_its_first_record_loses_records(protocol: str) -> None:
    run = run_of("epoch-without-records", protocol)
    early = PROTOCOLS[protocol].notes_epoch_at_election
    assert lost(run.cluster) == ([] if early else [1])
    elected = only_step(run, "1 leads in epoch 2 from offset 2").cluster.broker(1)
    assert ((2, 2) in elected.epoch_cache) == early


@pytest.mark.parametrize("protocol", ["kip-101", "kip-279", "kip-320"])
def test_without_an_answer_nothing_is_truncated(protocol: str) -> None:
    run = run_of("epoch-reply-never-comes", protocol)
    follower = only_step(run, "does not respond: 2 keeps its log").cluster.broker(2)
    assert follower.log_end_offset == 2 and follower.high_watermark == 1
    assert lost(run.cluster) == []
    assert ids(run.cluster.broker(2).log) == [0, 1, 2]


def test_before_leader_epochs_a_follower_does_not_ask() -> None:
    run = run_of("epoch-reply-never-comes", "truncate-to-hw")
    assert lost(run.cluster) == [1]
    # Killed processes are enough for a divergence: no disk loses a record.
    assert "DIVERGED: 1 and 2 hold different records at offset 1, permanently." in verdict(
        run.cluster
    )
    assert not any("loses power" in step.event for step in run.steps)


@pytest.mark.parametrize(("name", "protocol"), MAIN_RUNS)
def test_one_decision_fences_one_broker(name: str, protocol: str) -> None:
    for earlier, later in pairwise(run_of(name, protocol).steps):
        before, after = (set(each.cluster.controller.alive) for each in (earlier, later))
        assert len(before - after) <= 1


@pytest.mark.parametrize(("name", "protocol"), MAIN_RUNS)
def test_the_legend_explains_the_high_watermark_of_a_stopped_broker(
    name: str, protocol: str
) -> None:
    run = run_of(name, protocol)
    stopped = any(not broker.running for step in run.steps for broker in step.cluster.brokers)
    text = "\n".join(render_scenario(SCENARIOS[name], protocol))
    assert ("has the high watermark of its checkpoint" in text) == stopped


@pytest.mark.parametrize(("protocol", "limit"), [("kip-966", 30_000), ("kip-320", 10_000)])
def test_a_slow_follower_leaves_the_isr_by_time_and_not_by_records(
    protocol: str, limit: int
) -> None:
    run = run_of("follower-lag-shrinks-isr", protocol)
    clusters = [step.cluster for step in run.steps]
    behind = next(cluster for cluster in clusters if cluster.now_ms == 9_000)
    # Only 3 is slow: 2 gets each response within replica.fetch.wait.max.ms.
    fetched = [cluster.broker(1).remotes[2].last_fetch_ms for cluster in clusters]
    assert all(
        cluster.now_ms - last <= FETCH_WAIT_MS
        for cluster, last in zip(clusters, fetched, strict=True)
        if last is not None
    )
    assert behind.broker(1).log_end_offset - behind.broker(3).log_end_offset == 3
    assert behind.lag_time_max_ms == limit
    first_check = only_step(run, "no follower is out of sync").cluster
    assert first_check.now_ms < limit and 3 in first_check.controller.in_sync_replicas
    left = next(each for each in clusters if each.controller.in_sync_replicas == (1, 2))
    assert left.now_ms > limit and left.broker(1).high_watermark == 4
    assert run.cluster.controller.in_sync_replicas == (1, 2, 3)


def test_the_high_watermark_stays_until_the_controller_grants_the_shrink() -> None:
    run = run_of("follower-lag-shrinks-isr", "kip-966")
    leader = steps_with(run, "1 asks the controller for ISR 1,2")[0].cluster.broker(1)
    assert leader.pending_in_sync_replicas == (1, 2)
    assert leader.maximal_in_sync_replicas == (1, 2, 3)
    assert leader.high_watermark == 1


def test_min_isr_rejects_acks_all_and_not_acks_1() -> None:
    run = run_of("min-isr-gate")
    only_step(run, "rejected, NOT_ENOUGH_REPLICAS")
    accepted = only_step(run, "acknowledged at once: m2").cluster
    assert accepted.controller.in_sync_replicas == (1,)
    # Since 3.7 nothing is committed meanwhile, however long the other replicas are down.
    assert accepted.broker(1).high_watermark == 1 and accepted.broker(1).log_end_offset == 3
    assert run.cluster.broker(1).high_watermark == 3 and ids(run.cluster.acked) == [0, 1]


def test_before_strict_min_isr_the_last_leader_commits_and_returns_an_error() -> None:
    run = run_of("min-isr-gate", "kip-320")
    cluster = only_step(run, "m1: NOT_ENOUGH_REPLICAS_AFTER_APPEND").cluster
    assert cluster.broker(1).high_watermark == 3
    assert cluster.controller.in_sync_replicas == (1,)


def test_the_preferred_leader_leads_again_once_it_is_in_sync() -> None:
    run = run_of("preferred-leader")
    assert run.cluster.controller.leader == 1
    refused = only_step(run, "PREFERRED_LEADER_NOT_AVAILABLE").cluster.controller
    assert refused.leader == 2 and 1 not in refused.in_sync_replicas
    assert lost(run.cluster) == []
    # A controlled shutdown elects the next assigned replica that is in sync.
    moved = only_step(run, "decision: 2 becomes leader in epoch 1").cluster.controller
    assert moved.in_sync_replicas == (2, 3)


def test_the_last_replica_is_elected_before_elr_and_not_since() -> None:
    without_elr = run_of("last-replica-standing", "kip-320").cluster
    assert lost(without_elr) == [0, 1]
    assert all(broker.log == () for broker in without_elr.brokers)
    run = run_of("last-replica-standing", "kip-966")
    assert lost(run.cluster) == []
    elected = only_step(run, "2 is elected from the eligible leader replicas").cluster
    assert elected.controller.leader == 2
    assert all(ids(broker.log) == [0, 1] for broker in run.cluster.brokers)


@pytest.mark.parametrize("protocol", ["kip-966", "kip-320"])
def test_an_unclean_election_loses_what_only_the_old_leader_had(protocol: str) -> None:
    run = run_of("unclean-election", protocol)
    election = only_step(run, "decision: 2 becomes leader")
    old, new = before(run, election).controller, election.cluster.controller
    assert old.leader is None
    assert 2 not in (*old.in_sync_replicas, *old.eligible_leader_replicas)
    assert new.recovering and new.in_sync_replicas == (2,)
    assert lost(run.cluster) == [1] and 1 in ids(run.cluster.acked)
    # In the end the logs agree: no replica shows the loss.
    assert run.cluster.brokers[0].log == run.cluster.brokers[1].log


@pytest.mark.parametrize("protocol", ["kip-966", "kip-320", "kip-279"])
def test_a_zombie_acknowledges_acks_1_and_commits_nothing(protocol: str) -> None:
    run = run_of("zombie-leader", protocol)
    zombies = [
        step.cluster.broker(1)
        for step in run.steps
        if step.cluster.broker(1).leads and step.cluster.broker(2).leads
    ]
    assert zombies and all(zombie.high_watermark == 1 for zombie in zombies)
    cluster = run.cluster
    assert 1 in ids(cluster.acked_with_acks_1) and 1 not in ids(cluster.broker(1).log)
    assert 2 not in ids(cluster.acked)
    assert lost(cluster) == []
    kraft = protocol == "kip-966"
    rejected = only_step(
        run, "rejected: FENCED_LEADER_EPOCH" if kraft else "the write to ZooKeeper fails"
    )
    # While it is cut off it gets no response, so no rejection.
    unanswered = only_step(run, "gets no response")
    returned = next(step for step in run.steps if "reaches the controller again" in step.event)
    assert run.steps.index(unanswered) < run.steps.index(returned) < run.steps.index(rejected)
    only_step(run, "the producers of m2 get NOT_LEADER_OR_FOLLOWER")
