"""Every scenario has its golden text and its expected outcome."""

from __future__ import annotations

import re

import pytest

from tests.model.golden import assert_golden
from tidemark_lab.model.protocols import PROTOCOLS
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


# What is lost in the end, and what the steps or the verdict say: the golden texts have the offsets.
DIVERGED = "DIVERGED: 1 and 2 hold different records at offset 1, permanently."
OUTCOMES: list[tuple[str, str, list[int], tuple[str, ...]]] = [
    (
        *("hw-truncation-loss", "truncate-to-hw", [1]),
        (
            "2 truncates its log to offset 1",
            "1 truncates its log to offset 1, BELOW ITS HIGH WATERMARK",
        ),
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


@pytest.mark.parametrize(("name", "protocol"), MAIN_RUNS)
def test_the_legend_explains_the_high_watermark_of_a_stopped_broker(
    name: str, protocol: str
) -> None:
    run = run_of(name, protocol)
    stopped = any(not broker.running for step in run.steps for broker in step.cluster.brokers)
    text = "\n".join(render_scenario(SCENARIOS[name], protocol))
    assert ("has the high watermark of its checkpoint" in text) == stopped
