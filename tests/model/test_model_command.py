"""The `tidemark model` command."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemark.cli import main
from tidemark_lab.model.invariants import INVARIANTS
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.scenarios import SCENARIOS

Captured = pytest.CaptureFixture[str]
EXPECTED_SCENARIOS = {
    "two-replica-write",
    "three-replica-write",
    "acks-0-1-all",
    "hw-truncation-loss",
    "hw-truncation-divergence",
    "epoch-reply-never-comes",
    "follower-lag-shrinks-isr",
    "min-isr-gate",
    "preferred-leader",
    "last-replica-standing",
    "unclean-election",
    "zombie-leader",
    "uneven-followers",
    "consumer-visibility",
    "purgatory-race",
    "last-stable-offset",
    "replica-read",
    "hw-truncation-loss-acks-1",
    "rejoin-isr",
    "delete-records",
    "power-failure",
    "request-of-two-partitions",
    "fetch-without-leader-epoch",
}


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["model", *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def as_json(captured: Captured, *arguments: str) -> tuple[int, dict[str, Any]]:
    code = run("check", *arguments, "--json")
    return code, json.loads(captured.readouterr().out)


def test_list_shows_all_scenarios_protocols_and_invariants(capsys: Captured) -> None:
    assert run("list") == 0
    out = capsys.readouterr().out
    assert set(SCENARIOS) == EXPECTED_SCENARIOS
    assert all(name in out for name in (*SCENARIOS, *PROTOCOLS, *INVARIANTS))


def test_show_runs_a_scenario_under_a_protocol(capsys: Captured) -> None:
    assert run("show", "hw-truncation-loss") == 0
    assert "LOST: m1 committed, but not in the leader's log." in capsys.readouterr().out
    assert run("show", "hw-truncation-loss", "--protocol", "kip-101") == 0
    assert "No committed record is lost." in capsys.readouterr().out


def test_show_runs_a_scenario_with_another_min_isr(capsys: Captured) -> None:
    assert run("show", "hw-truncation-divergence", "--min-isr", "2") == 0
    out = capsys.readouterr().out
    assert "2 brokers, min ISR 2." in out and "rejected, NOT_ENOUGH_REPLICAS" in out
    assert run("show", "hw-truncation-divergence", "--min-isr", "0") == 2


@pytest.mark.parametrize("name", sorted(EXPECTED_SCENARIOS))
def test_show_fits_a_terminal_of_80_columns(
    name: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run("show", name) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    heading = next(line for line in lines if line.startswith("step"))
    assert heading.endswith("what happens") and "1 LEO HW" in heading
    # What is not in the heading is named.
    assert "epochs" in heading or any(line.startswith("A wider terminal") for line in lines)


def shown(capsys: Captured, *arguments: str, code: int = 0) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["model", "show", *arguments])
    assert ended.value.code == code
    captured = capsys.readouterr()
    return captured.err if code else captured.out


def test_show_parts_of_a_scenario(capsys: Captured) -> None:
    out = shown(
        capsys,
        *("unclean-election", "--steps", "9-10,13", "--logs", "9,13", "--width", "100"),
        *("--without", "remote LEOs, epochs"),
    )
    lines = out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("step "))
    assert lines[at].split() == [
        *("step", "1", "LEO", "HW", "2", "LEO", "HW", "ISR", "what", "happens")
    ]
    steps = [line.split()[0] for line in lines[at + 1 : lines.index("", at)] if line[0] != " "]
    assert steps == ["9", "10", "…", "13"]
    assert any(line.split() == ["after", "step", "9", "after", "step", "13"] for line in lines)
    assert max(map(len, lines)) <= 100


def test_show_the_alerts_of_a_scenario(capsys: Captured) -> None:
    out = shown(capsys, "unclean-election", "--alerts", "--steps", "13")
    assert "  step 13:        critical KafkaUncleanElection: Unclean election: broker 2" in out
    assert "KafkaCommittedDataLoss: 1 committed record of model-0 is lost: offsets [1, 2)" in out
    assert shown(capsys, "two-replica-write", "--alerts").endswith(
        "after the last one:\n  nothing\n"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--steps", "99"), "--steps 99: the last step is 23"),
        (("--steps", "7-4"), "--steps 7-4: write steps and ranges"),
        (("--logs", "x"), "--logs x: write steps and ranges"),
        (("--without", "horoscope"), "there is no such column. Columns: epochs, remote LEOs, ISR"),
        (("--width", "20"), "20 is not in the range"),
    ],
)
def test_parts_that_do_not_exist(capsys: Captured, arguments: tuple[str, ...], text: str) -> None:
    assert text in shown(capsys, "unclean-election", *arguments, code=2)


def test_show_of_an_unknown_scenario_lists_the_known_ones(capsys: Captured) -> None:
    assert run("show", "nothing") == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "zombie-leader" in error


def test_check_exits_3_with_the_shortest_counterexample(capsys: Captured) -> None:
    code, found = as_json(capsys, "--protocol", "truncate-to-hw", "--invariant", "WeakIsr")
    assert code == 3
    assert set(found) == {
        "protocol",
        "invariant",
        "holds",
        "complete",
        "states",
        "initial",
        "steps",
    }
    assert (found["protocol"], found["invariant"], found["holds"], found["complete"]) == (
        "truncate-to-hw",
        "WeakIsr",
        False,
        False,
    )
    assert len(found["steps"]) == 8
    assert found["steps"][0]["action"].startswith("ControllerElectLeader(replica=")
    assert (
        found["initial"]["controller"]["leader"] is None
        and found["initial"]["brokers"][0]["leader_epoch"] is None
    )
    assert all(
        broker["high_watermark"] <= broker["log_end_offset"]
        for step in found["steps"]
        for broker in step["state"]["brokers"]
    )


def test_check_without_an_invariant_reports_the_first_that_breaks(
    capsys: Captured,
) -> None:
    code, found = as_json(capsys, "--protocol", "kip-101")
    assert (code, found["invariant"], len(found["steps"])) == (3, "WeakIsr", 11)


def test_check_exits_0_if_the_invariant_holds(capsys: Captured) -> None:
    code, found = as_json(capsys, "--protocol", "kip-320", "--invariant", "strong-isr")
    assert code == 0
    assert (
        found["invariant"],
        found["holds"],
        found["complete"],
        found["initial"],
        found["steps"],
    ) == ("StrongIsr", True, True, None, [])
    assert run("check", "--protocol", "kip-320", "--invariant", "acked-never-lost") == 0
    assert "kip-320 keeps AckedNeverLost over the whole space" in capsys.readouterr().out


def test_check_exits_1_at_the_cap(capsys: Captured) -> None:
    code, found = as_json(capsys, "--protocol", "kip-320", "--max-states", "100")
    assert (code, found["holds"], found["complete"], found["states"]) == (1, None, False, 100)
    assert run("check", "--protocol", "kip-320", "--max-states", "100") == 1
    assert "raise --max-states" in capsys.readouterr().out


def test_a_verdict_shows_all_bounds(capsys: Captured) -> None:
    tiny = ("--log-size", "1", "--records", "1", "--max-epoch", "0")
    assert run("check", "--protocol", "kip-966", *tiny) == 0
    bounds = (
        "epochs 0 to 0, partition epochs 0 to 2, min ISR 1, no unclean elections, no lossy disks)"
    )
    assert f"within these bounds: 121 states (2 replicas, log size 1, 1 records, {bounds}" in (
        capsys.readouterr().out
    )
    assert run("check", "--protocol", "kip-320", "--max-states", "1", *tiny) == 1
    out = capsys.readouterr().out
    assert "in the 1 state searched, " in out and "partition" not in out
    faults = ("--lossy-disk", "--unclean-election")
    assert run("check", "--protocol", "kip-966", "--max-states", "1", *tiny, *faults) == 1
    assert "min ISR 1, unclean elections, lossy disks)" in capsys.readouterr().out


def test_check_with_a_seed_is_repeatable(capsys: Captured) -> None:
    arguments = (
        "--protocol",
        "kip-279",
        "--replicas",
        "3",
        "--invariant",
        "StrongIsr",
        "--seed",
        "2",
        "--max-states",
        "200000",
    )
    one = as_json(capsys, *arguments)
    assert one[0] == 3 and one == as_json(capsys, *arguments)


def test_faults_and_bounds_are_options(capsys: Captured) -> None:
    code, found = as_json(
        capsys,
        "--protocol",
        "kip-320",
        "--lossy-disk",
        "--min-isr",
        "2",
        "--invariant",
        "LeaderCompleteness",
    )
    assert code == 3 and any("LoseUnflushed" in step["action"] for step in found["steps"])
    code, found = as_json(
        capsys, "--protocol", "kip-966", "--unclean-election", "--invariant", "LeaderCompleteness"
    )
    assert code == 3 and any(
        "ControllerElectUncleanLeader" in step["action"] for step in found["steps"]
    )
    code, found = as_json(
        capsys,
        *("--protocol", "kip-966", "--lossy-disk", "--min-isr", "1"),
        *("--invariant", "AckedNeverLost"),
    )
    assert code == 3 and any(
        "ControllerElectLastKnownLeader" in step["action"] for step in found["steps"]
    )
    bounds = ("--replicas", "1", "--log-size", "1", "--records", "0", "--max-epoch", "0")
    code, found = as_json(capsys, "--protocol", "kip-101", *bounds)
    assert (code, found["complete"]) == (0, True) and found["states"] < 10


def test_a_counterexample_shows_each_step_and_the_logs(capsys: Captured) -> None:
    assert run("check", "--protocol", "truncate-to-hw") == 3
    out = capsys.readouterr().out
    assert "the shortest counterexample has 8 steps" in out
    assert [line.split()[0] for line in out.splitlines() if line[:1].isdigit()] == [
        str(number) for number in range(9)
    ]
    assert "offset" in out and "H high watermark" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ("check",),
        ("check", "--protocol", "kip-500"),
        ("check", "--protocol", "kip-320", "--invariant", "Nothing"),
        ("check", "--protocol", "kip-320", "--replicas", "0"),
        ("check", "--protocol", "kip-320", "--max-states", "0"),
        ("check", "--protocol", "kip-320", "--log-size", "1000"),
        ("show",),
        ("show", "zombie-leader", "--protocol", "kip-500"),
    ],
)
def test_wrong_usage_exits_2(arguments: tuple[str, ...], capsys: Captured) -> None:
    assert run(*arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tidemark model ") and line.endswith("--help` lists what it takes.")
