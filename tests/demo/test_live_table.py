from __future__ import annotations

import io

import pytest
from rich.console import Console

from tidemark_lab.demo.alert_result import AlertResult
from tidemark_lab.demo.live_table import LiveTable, make_table

EXPECTED = AlertResult(
    scene="unclean election",
    alert="KafkaFollowerUnreachable",
    expected=True,
    fault_at=100.0,
    detectable_at=101.0,
    received_at=212.5,
    allowed_seconds=7.0,
    resolved=True,
)
PENDING = AlertResult(scene="unclean election", alert="KafkaOffline", expected=True)
UNEXPECTED = AlertResult(scene="healthy", alert="KafkaIsrChange", expected=False, received_at=105.0)
CLEAN = AlertResult(scene="healthy", alert="any alert", expected=False)


def terminal(height: int = 40) -> Console:
    """A colour terminal of 80 columns that writes to memory."""
    return Console(
        file=io.StringIO(), force_terminal=True, color_system="standard", width=80, height=height
    )


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_row_shows_all_known_values_in_80_columns() -> None:
    console = Console(file=io.StringIO(), width=80)
    console.print(make_table([CLEAN, EXPECTED, PENDING]))
    lines = printed(console).splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split() for line in lines[2:]] == [
        ["healthy"],
        ["any", "alert", "no", "no", "-", "-", "-"],
        ["unclean", "election"],
        ["KafkaFollowerUnreachable", "yes", "yes,", "resolved", "112.5", "LATE", "111.5", "7"],
        ["KafkaOffline", "yes", "no", "-", "-", "-"],
    ]


@pytest.mark.parametrize(
    ("result", "colour"),
    [
        (EXPECTED, "\033[33m"),
        (UNEXPECTED, "\033[31m"),
        (AlertResult(scene="s", alert="a", expected=True, received_at=1.0), "\033[32m"),
    ],
)
def test_late_unexpected_and_expected_alerts_have_different_colours(
    result: AlertResult, colour: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    console = terminal()
    console.print(make_table([result]))
    assert colour in printed(console)


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    console = terminal()
    console.print(make_table([EXPECTED, UNEXPECTED]))
    assert "KafkaIsrChange" in printed(console)
    assert "\033[3" not in printed(console)


def test_without_a_terminal_each_alert_is_one_plain_line() -> None:
    console = Console(file=io.StringIO())
    table = LiveTable(console)
    table.say("starting " + "x" * 100)
    for _ in range(3):
        table.show([UNEXPECTED, CLEAN])
    lines = printed(console).splitlines()
    assert len(lines) == 2
    assert lines[0].endswith("x" * 100)
    assert lines[1].endswith(" s from detectable  NOT EXPECTED")
    assert "\033" not in printed(console)


def test_on_a_terminal_the_status_is_below_the_table() -> None:
    console = terminal(height=40)
    table = LiveTable(console)
    table.show([CLEAN])
    table.say("[paused] broker 2")
    table.show([CLEAN])
    table.stop()
    assert printed(console).rindex("[paused] broker 2") > printed(console).rindex("any alert")


def test_a_low_terminal_shows_the_rows_around_the_newest() -> None:
    console = terminal(height=13)
    results = [
        AlertResult(scene="s", alert=f"alert-{n}", expected=True, fault_at=1.0 if n < 10 else None)
        for n in range(20)
    ]
    table = LiveTable(console)
    table.show(results)
    table.stop()
    shown = [n for n in range(20) if f"alert-{n} " in printed(console)]
    assert shown == [8, 9, 10]


@pytest.mark.parametrize("console", [Console(file=io.StringIO()), terminal()])
def test_the_table_remains_at_the_end(console: Console) -> None:
    table = LiveTable(console)
    table.show([UNEXPECTED])
    table.finish([UNEXPECTED])
    assert "KafkaIsrChange" in printed(console).rstrip().splitlines()[-1]
