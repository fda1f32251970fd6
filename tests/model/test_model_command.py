"""The `tidemark model` command."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.http_server import serving
from tests.verbs.run import tidemark
from tidemark_lab.model.invariants import INVARIANTS
from tidemark_lab.model.pages.command import create_server
from tidemark_lab.model.pages.site import INDEX, render_file
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.scenarios import SCENARIOS

EXPECTED_SCENARIOS = {
    "two-replica-write",
    "three-replica-write",
    "acks-0-1-all",
    "hw-truncation-loss",
    "hw-truncation-divergence",
    "epoch-reply-never-comes",
    "epoch-without-records",
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
    "lag-max-messages",
    "delete-records",
    "power-failure",
    "request-of-two-partitions",
    "fetch-without-leader-epoch",
}


def model(*arguments: str, code: int = 0) -> str:
    """What it prints; on standard error where the code is 2."""
    shown = tidemark("model", *arguments, code=code)
    return shown.err if code == 2 else shown.out


def test_list_shows_all_scenarios_protocols_and_invariants() -> None:
    out = model("list")
    assert set(SCENARIOS) == EXPECTED_SCENARIOS
    assert all(name in out for name in (*SCENARIOS, *PROTOCOLS, *INVARIANTS))


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (
            ("hw-truncation-loss",),
            ("LOST: m1 committed, but not in the leader's log.",),
        ),
        (
            ("hw-truncation-loss", "--protocol", "kip-101"),
            ("No committed record is lost.",),
        ),
        (
            ("hw-truncation-divergence", "--min-isr", "2"),
            ("2 brokers, min ISR 2.", "rejected, NOT_ENOUGH_REPLICAS"),
        ),
        (
            ("unclean-election", "--alerts", "--steps", "13"),
            (
                "  step 13:        critical KafkaUncleanElection: Keep the disk of broker 1",
                "critical KafkaCommittedDataLoss: Broker 1 had the lost records of model-0",
            ),
        ),
        (
            ("two-replica-write", "--alerts"),
            ("after the last one:\n  nothing\n",),
        ),
    ],
)
def test_show_runs_a_scenario_with_these_options(
    arguments: tuple[str, ...], texts: tuple[str, ...]
) -> None:
    out = model("show", *arguments)
    assert [text for text in texts if text not in out] == []


@pytest.mark.parametrize("name", sorted(EXPECTED_SCENARIOS))
def test_show_fits_a_terminal_of_80_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = model("show", name).splitlines()
    assert max(map(len, lines)) <= 80
    heading = next(line for line in lines if line.startswith("step"))
    assert heading.endswith("what happens") and "1 LEO HW" in heading
    # What is not in the heading is named.
    assert "epochs" in heading or any(line.startswith("A wider terminal") for line in lines)


def test_show_parts_of_a_scenario() -> None:
    out = model(
        "show",
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


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--steps", "99"), "--steps 99: the last step is 23"),
        (("--steps", "7-4"), "--steps 7-4: write steps and ranges"),
        (("--logs", "x"), "--logs x: write steps and ranges"),
        (("--without", "horoscope"), "there is no such column. Columns: epochs, remote LEOs, ISR"),
        (("--width", "20"), "20 is not in the range"),
        (("--min-isr", "0"), "0 is not in the range"),
    ],
)
def test_parts_that_do_not_exist(arguments: tuple[str, ...], text: str) -> None:
    assert text in model("show", "unclean-election", *arguments, code=2)


def test_show_of_an_unknown_scenario_lists_the_known_ones() -> None:
    error = model("show", "nothing", code=2)
    assert error.count("\n") == 1 and "zombie-leader" in error


def test_check_shows_the_shortest_counterexample() -> None:
    options = ("--protocol", "truncate-to-hw", "--invariant", "WeakIsr")
    found = json.loads(model("check", *options, "--json", code=3))
    assert set(found) == {
        *("protocol", "invariant", "holds", "complete", "states", "initial", "steps")
    }
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


NONE = ("--replicas", "1", "--log-size", "1", "--records", "0", "--max-epoch", "0")


@pytest.mark.parametrize(
    ("options", "code", "expected", "action"),
    [
        (
            ("truncate-to-hw", "--invariant", "WeakIsr"),
            3,
            {
                "protocol": "truncate-to-hw",
                "invariant": "WeakIsr",
                "holds": False,
                "complete": False,
            },
            "BecomeLeader",
        ),
        (
            ("kip-320", "--invariant", "strong-isr"),
            0,
            {"invariant": "StrongIsr", "holds": True, "complete": True, "initial": None},
            None,
        ),
        (
            ("kip-320", "--max-states", "100"),
            1,
            {"holds": None, "complete": False, "states": 100},
            None,
        ),
        # Faults and bounds are options.
        (
            ("kip-320", "--lossy-disk", "--min-isr", "2", "--invariant", "LeaderCompleteness"),
            3,
            {"complete": False},
            "LoseUnflushed",
        ),
        (
            ("kip-966", "--unclean-election", "--invariant", "LeaderCompleteness"),
            3,
            {"complete": False},
            "ControllerElectUncleanLeader",
        ),
        (
            ("kip-966", "--lossy-disk", "--min-isr", "1", "--invariant", "AckedNeverLost"),
            3,
            {"complete": False},
            "ControllerElectLastKnownLeader",
        ),
        (("kip-101", *NONE), 0, {"complete": True, "states": 4}, None),
    ],
)
def test_check_has_its_exit_code_and_its_document(
    options: tuple[str, ...], code: int, expected: dict[str, Any], action: str | None
) -> None:
    found = json.loads(model("check", "--protocol", *options, "--json", code=code))
    assert {name: found[name] for name in expected} == expected
    assert bool(found["steps"]) == (action is not None)
    assert action is None or any(action in step["action"] for step in found["steps"])


def test_check_without_an_invariant_reports_the_first_that_breaks() -> None:
    found = json.loads(model("check", "--protocol", "kip-101", "--json", code=3))
    assert (found["invariant"], len(found["steps"])) == ("WeakIsr", 11)


TINY = ("--log-size", "1", "--records", "1", "--max-epoch", "0")
NO_FAULTS = "min ISR 1, no unclean elections, no lossy disks"
BOUNDS = "(2 replicas, log size 1, 1 records, epochs 0 to 0"
FAULTS = ("--lossy-disk", "--unclean-election")


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (
            ("kip-320", "--invariant", "acked-never-lost"),
            0,
            "kip-320 keeps AckedNeverLost over the whole space",
        ),
        (("kip-320", "--max-states", "100"), 1, "raise --max-states"),
        # A verdict shows all bounds.
        (
            ("kip-966", *TINY),
            0,
            f"within these bounds: 121 states {BOUNDS}, partition epochs 0 to 2, {NO_FAULTS})",
        ),
        (
            ("kip-320", "--max-states", "1", *TINY),
            1,
            f"or use --seed for random walks {BOUNDS}, {NO_FAULTS})",
        ),
        (
            ("kip-966", "--max-states", "1", *TINY, *FAULTS),
            1,
            "min ISR 1, unclean elections, lossy disks)",
        ),
        (("kip-320", "--max-states", "1", *TINY), 1, "in the 1 state searched, "),
    ],
)
def test_a_verdict_as_text(options: tuple[str, ...], code: int, text: str) -> None:
    assert text in model("check", "--protocol", *options, code=code)


def test_check_with_a_seed_is_repeatable() -> None:
    walk = ("--replicas", "3", "--seed", "2", "--max-states", "200000", "--json")
    one, other = (
        model("check", "--protocol", "kip-279", "--invariant", "StrongIsr", *walk, code=3)
        for _ in range(2)
    )
    assert one == other


def test_a_counterexample_shows_each_step_and_the_logs() -> None:
    out = model("check", "--protocol", "truncate-to-hw", code=3)
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
def test_wrong_usage_exits_2(arguments: tuple[str, ...]) -> None:
    (line,) = model(*arguments, code=2).splitlines()
    assert line.startswith("tidemark model ") and line.endswith("--help` lists what it takes.")


def test_serve_answers_for_its_pages_on_loopback_and_for_nothing_else() -> None:
    with serving(create_server(0)) as server:
        assert server.server_address[0] == "127.0.0.1"

        def get(path: str, method: str = "GET") -> tuple[int, bytes]:
            # A client of HTTP that leaves the path as it is.
            connection = HTTPConnection("127.0.0.1", server.server_port, timeout=30)
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read()

        for name in (INDEX, "play.js", "two-replica-write.html", "unclean-election.html"):
            assert get(f"/{name}?x=1") == (200, render_file(name)), name
        assert get("/") == get(f"/{INDEX}")
        hostile = ("/nothing.html", "/../command.py", "/..%2fcommand.py", "//etc/passwd")
        for path in (*hostile, "/static/play.js", "/two-replica-write.html/../../document.py"):
            assert get(path) == (404, b"There is no such page.\n"), path
        assert get("/", "POST")[0] == 501
