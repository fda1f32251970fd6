"""`tidemark replay` from outside: recorded truth, broken lines, other thresholds."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.verbs.replay.make import TRACES, recording, trace, write
from tidemark.cli import main
from tidemark.core.records import Alert, DeadLetter, View, decode_record

Captured = pytest.CaptureFixture[str]
LAGGING = (
    "partition orders-0 replicas=1,2,3",
    "pass 3 add=10",
    "pass 8 leo=1:200,2:200 hw=30",
    "pass 4 leo=200 hw=200",
)


@pytest.fixture(autouse=True)
def without_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMARK_CONFIG", raising=False)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["replay", *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_the_time_line_of_a_loss(tmp_path: Path, capsys: Captured) -> None:
    assert run(write(tmp_path / "e.jsonl", trace("unclean"))) == 0
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert lines[0].startswith("replicas: = committed")
    assert lines[1].endswith("view      trace/trace/0  leader 1, epoch 0, in sync [1, 2] of [1, 2]")
    assert any(
        "KafkaCommittedDataLoss  trace/trace/0  7 committed records" in line and "[5, 12)" in line
        for line in lines
    )
    at = next(number for number, line in enumerate(lines) if "in sync [1, 2] → [1]" in line)
    assert lines[at + 1].split() == [
        "1",
        "===============X",
        "HW",
        "5",
        "LEO",
        "5",
        "2",
        "===============X",
        "HW",
        "5",
        "LEO",
        "5",
        "last",
        "seen",
    ]
    assert any("leader ? → 2, epoch 1 → 2" in line and "2 answers again" in line for line in lines)
    assert any(
        line.endswith(
            "resolved (cleared) info     KafkaIsrChange  trace/trace/0  broker 2, after 11.0 s"
        )
        for line in lines
    )
    assert told.err == ""


def test_marks_stand_apart_where_offsets_do(tmp_path: Path, capsys: Captured) -> None:
    assert (
        run(
            write(
                tmp_path / "e.jsonl",
                recording("partition t-0 replicas=1,2", "pass leo=1:100,2:40 hw=40"),
            )
        )
        == 0
    )
    assert (
        "1 H--------------E HW 40 LEO 100   2 X                HW 40 LEO 40"
        in capsys.readouterr().out
    )


def test_json_is_the_records_of_the_topics(tmp_path: Path, capsys: Captured) -> None:
    assert run("--json", write(tmp_path / "e.jsonl", trace("unclean"))) == 0
    records = [decode_record(line) for line in capsys.readouterr().out.splitlines()]
    assert {type(record) for record in records} == {Alert, View}
    (loss,) = [
        r
        for r in records
        if isinstance(r, Alert) and r.labels["alertname"] == "KafkaCommittedDataLoss"
    ]
    assert loss.evidence["proven"] == [5, 12]


def test_the_tests_converter_can_be_piped_in() -> None:
    events = subprocess.run(
        [sys.executable, "-m", "tests.traces", str(TRACES / "unclean.jsonl")],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    told = subprocess.run(
        [sys.executable, "-m", "tidemark.cli", "replay", "-"],
        input=events.stdout,
        capture_output=True,
        check=True,
    )
    assert b"KafkaCommittedDataLoss" in told.stdout


def test_broken_lines_are_named_and_the_rest_goes_on(tmp_path: Path, capsys: Captured) -> None:
    good = trace("unclean")
    bad_event = json.loads(good[3])
    bad_event["events"][0]["partition"] = -1
    lines = [
        good[0],
        b"\xff\xfe\x00",
        *good[1:3],
        json.dumps(bad_event).encode(),
        good[3][:50],
        b"[" * 100_000,
        *good[3:],
    ]
    path = write(tmp_path / "e.jsonl", lines)
    assert run(path) == 0
    told = [line.strip() for line in capsys.readouterr().out.splitlines()]
    unreadable = [line for line in told if line.startswith("unreadable")]
    assert [line.split(": ")[0] for line in unreadable] == [
        f"unreadable  {path} line 2",
        f"unreadable  {path} line 5, $.events[0].partition",
        f"unreadable  {path} line 6",
        f"unreadable  {path} line 7",
    ]
    assert all(line.split(": ", 1)[1] for line in unreadable)
    assert any("7 committed records" in line for line in told)


def test_broken_lines_in_json_are_dead_letters(tmp_path: Path, capsys: Captured) -> None:
    packed = tmp_path / "e.gz"
    packed.write_bytes(gzip.compress(b"\n".join(trace("unclean")))[:-300])
    assert run("--json", write(tmp_path / "first", [b"{}"]), str(packed)) == 0
    letters = [
        r
        for line in capsys.readouterr().out.splitlines()
        if isinstance(r := decode_record(line), DeadLetter)
    ]
    assert (letters[0].partition, letters[0].offset) == (0, 0)
    assert (letters[-1].partition, letters[-1].reason) == (1, "the gzip stream ends early")


def test_several_files_are_one_recording(tmp_path: Path, capsys: Captured) -> None:
    events = trace("unclean")
    whole, first, second = (
        write(tmp_path / "w", events),
        write(tmp_path / "1", events[:60]),
        tmp_path / "2.gz",
    )
    second.write_bytes(gzip.compress(b"\n".join(events[60:])))
    assert run("--json", whole) == 0
    expected = capsys.readouterr().out
    assert run("--json", first, str(second)) == 0
    assert capsys.readouterr().out == expected


def test_nothing_to_tell_is_said(tmp_path: Path, capsys: Captured) -> None:
    assert run(write(tmp_path / "empty", [])) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == (
        "",
        "replay: there is nothing to tell: no partition was observed.\n",
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Missing argument"),
        (("/nonexistent/e.jsonl",), "cannot read /nonexistent/e.jsonl: No such file or directory"),
        (
            ("--diff", "-"),
            "--diff compares the thresholds in force with those of --thresholds FILE",
        ),
        (
            ("--thresholds", "/nonexistent.yaml", "-"),
            "cannot read the configuration /nonexistent.yaml",
        ),
    ],
)
def test_wrong_usage_is_one_line(arguments: tuple[str, ...], told: str, capsys: Captured) -> None:
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert told in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("thresholds: {lag_sm: 1}", "unknown field `lag_sm` - at `$.detect.thresholds`"),
        ("clusters: []", "has no section `detect`"),
        ("disabled: [FOLLOWER_LAK]", "there is no detector `FOLLOWER_LAK`"),
    ],
)
def test_wrong_thresholds_are_named(text: str, told: str, tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "new.yaml"
    path.write_text(text, encoding="utf-8")
    assert run("--thresholds", str(path), "-") == 2
    assert told in capsys.readouterr().err.replace("Object contains ", "")


def test_the_difference_of_thresholds(tmp_path: Path, capsys: Captured) -> None:
    events, path = write(tmp_path / "e.jsonl", recording(*LAGGING)), tmp_path / "new.yaml"
    path.write_text(
        "detect: {thresholds: {lag_ms: 60000, high_watermark_stalled_ms: 60000}}", encoding="utf-8"
    )
    assert run("--thresholds", str(path), "--diff", events) == 0
    lines = capsys.readouterr().out.splitlines()
    (lag,) = [line for line in lines if "KafkaFollowerLag" in line]
    assert lag.startswith("- 2023-11-14 22:13:2")
    assert "ticket  KafkaFollowerLag  main/orders/0 broker 3  for " in lag
    gone = sum(line.startswith("- ") and "  ticket  " in line for line in lines)
    assert lines[-1].startswith("pages: 0 before, 0 with the new thresholds (+0 -0); tickets: ")
    assert lines[-1].endswith(f" with the new thresholds (+0 -{gone})")


def test_the_difference_the_other_way_and_as_json(tmp_path: Path, capsys: Captured) -> None:
    events, config, path = (
        write(tmp_path / "e.jsonl", recording(*LAGGING)),
        tmp_path / "old.yaml",
        tmp_path / "new.yaml",
    )
    config.write_text(
        "detect: {thresholds: {lag_ms: 60000, high_watermark_stalled_ms: 60000}}", encoding="utf-8"
    )
    path.write_text(
        "thresholds: {lag_ms: 2000, high_watermark_stalled_ms: 60000}", encoding="utf-8"
    )
    assert run("--config", str(config), "--thresholds", str(path), "--diff", "--json", events) == 0
    *changes, total = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(c["change"], c["kind"], c["labels"]["alertname"]) for c in changes] == [
        ("come", "ticket", "KafkaFollowerLag")
    ]
    assert changes[0]["ended_at"] > changes[0]["fired_at"]
    assert total["after"] == {
        "page": total["before"]["page"],
        "ticket": total["before"]["ticket"] + 1,
    }


def test_the_same_thresholds_differ_in_nothing(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "same.yaml"
    path.write_text("detect: {}", encoding="utf-8")
    assert (
        run("--thresholds", str(path), "--diff", write(tmp_path / "e", [*trace("unclean"), b"{"]))
        == 0
    )
    told = capsys.readouterr()
    pages = re.match(r"pages: (\d+) before, \1 with the new thresholds \(\+0 -0\)", told.out)
    assert pages is not None and int(pages[1]) >= 2
    assert told.out.count("\n") == 1
    assert "unreadable" in told.err
