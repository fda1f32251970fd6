"""Every scenario has its golden text and its expected outcome."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from tests.model.golden import assert_golden
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.replica_manager.delayed import FETCH_WAIT_MS
from tidemark_lab.model.replica_manager.state import ClusterModel
from tidemark_lab.model.scenarios import SCENARIOS
from tidemark_lab.model.scenarios.fates import missing_records
from tidemark_lab.model.scenarios.render import render_scenario, render_table, verdict
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


# What is lost in the end, and what the steps or the verdict say: the golden texts have the offsets.
DIVERGED = "DIVERGED: 1 and 2 hold different records at offset 1, permanently."
OUTCOMES: list[tuple[str, str, list[int], tuple[str, ...]]] = [
    (
        *("hw-truncation-loss", "truncate-to-hw", [1]),
        ("2 truncates its log to 1", "1 truncates its log to 1, BELOW ITS HIGH WATERMARK"),
    ),
    ("hw-truncation-divergence", "truncate-to-hw", [1], (DIVERGED,)),
    # Killed processes are enough for a divergence.
    ("epoch-reply-never-comes", "truncate-to-hw", [1], (DIVERGED,)),
    # In the end the logs agree: no replica shows the loss.
    ("unclean-election", "kip-966", [1], ("decision: 2 becomes leader",)),
    ("unclean-election", "kip-320", [1], ("decision: 2 becomes leader",)),
    ("three-replica-write", "kip-966", [], ("2 appends m1", "HW of 2: 0→1", "HW of 1: 0→1 (m0)")),
    (
        *("follower-lag-shrinks-isr", "kip-966", []),
        ("1 asks the controller for ISR 1,2", "granted: 1 uses ISR 1,2", "HW of 1: 1→4"),
    ),
    (
        *("replica-read", "kip-966", []),
        (
            *("the fetch of C1 completes", "C1 reads m0", "OFFSET_OUT_OF_RANGE"),
            "C1 returns to the leader, its position stays",
        ),
    ),
    # The response with m1 carries the high watermark from before the fetch.
    ("preferred-leader", "kip-966", [], ("response: m1, HW 0", "HW of 2: 0→1")),
    (
        *("preferred-leader", "kip-966", []),
        ("PREFERRED_LEADER_NOT_AVAILABLE", "decision: 2 becomes leader in epoch 1"),
    ),
    (
        *("min-isr-gate", "kip-966", []),
        ("rejected, NOT_ENOUGH_REPLICAS", "acknowledged at once: m2", "HW of 1: 1→3 (m1, m2)"),
    ),
    ("min-isr-gate", "kip-320", [], ("m1: NOT_ENOUGH_REPLICAS_AFTER_APPEND",)),
    ("last-replica-standing", "kip-320", [0, 1], ()),
    (
        *("last-replica-standing", "kip-966", []),
        ("2 is elected from the eligible leader replicas",),
    ),
    # A burst drives out followers that are not slow, until 0.8.2.
    (
        *("lag-max-messages", "truncate-to-hw", []),
        ("1 writes ISR 1 to ZooKeeper", "HW of 1: 1→6", "1 writes ISR 1,2,3 to ZooKeeper"),
    ),
    ("lag-max-messages", "kip-101", [], ("no follower is out of sync",)),
]


@pytest.mark.parametrize(("name", "protocol", "gone", "words"), OUTCOMES)
def test_a_scenario_has_its_outcome(
    name: str, protocol: str, gone: list[int], words: tuple[str, ...]
) -> None:
    run = run_of(name, protocol)
    assert lost(run.cluster) == gone
    told = [*verdict(run.cluster), *(effect for step in run.steps for effect in step.effects)]
    assert [each for each in words if not any(each in text for text in told)] == []


@pytest.mark.parametrize("protocol", EPOCHS)
def test_leader_epochs_keep_what_truncation_to_the_high_watermark_lost(protocol: str) -> None:
    cluster = run_of("hw-truncation-loss", protocol).cluster
    assert lost(cluster) == []
    assert ids(cluster.committed) == [0, 1]
    assert all(ids(broker.log) == [0, 1] for broker in cluster.brokers)


@pytest.mark.parametrize("protocol", EPOCHS)
def test_leader_epochs_end_the_divergence(protocol: str) -> None:
    cluster = run_of("hw-truncation-divergence", protocol).cluster
    assert cluster.brokers[0].log == cluster.brokers[1].log
    # The disk that lost its end led last. With min ISR 1 no replica is eligible any more.
    assert lost(cluster) == [1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_epoch_that_enters_with_its_first_record_loses_records(protocol: str) -> None:
    run = run_of("epoch-without-records", protocol)
    early = PROTOCOLS[protocol].truncation.notes_epoch_at_election
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
