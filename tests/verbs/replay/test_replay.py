"""`tidemark replay`: the time line, records, unreadable lines, other thresholds."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.verbs.recordings import TRACES, recording, trace, write
from tests.verbs.run import tidemark
from tidemark.core.records import Alert, DeadLetter, View, decode_record

run = partial(tidemark, "replay")
LAGGING = (
    "partition orders-0 replicas=1,2,3",
    "pass 3 add=10",
    "pass 8 leo=1:200,2:200 hw=30",
    "pass 4 leo=200 hw=200",
)


def test_the_time_line_of_a_loss(tmp_path: Path) -> None:
    captured = run(write(tmp_path / "e.jsonl", trace("unclean")))
    lines = captured.out.splitlines()
    assert lines[0].startswith("replicas: = committed")
    assert lines[1].endswith("view      trace/trace-0  leader 1, epoch 0, in sync [1, 2] of [1, 2]")
    assert any(
        "KafkaCommittedDataLoss  trace/trace-0  Broker 1 had the lost records" in line
        and "[5, 12)" in line
        for line in lines
    )
    at = next(number for number, line in enumerate(lines) if "in sync [1, 2] → [1]" in line)
    bar = "===============X HW 5 LEO 5"
    assert lines[at + 1].strip() == f"1 {bar}   2 {bar} last seen"
    assert any("leader ? → 2, epoch 1 → 2" in line and "2 answers again" in line for line in lines)
    assert any(
        line.endswith(
            "resolved (cleared) info     KafkaIsrChange  trace/trace-0  broker 1, after 11.0 s"
        )
        for line in lines
    )
    assert captured.err == ""


def test_bars_compare_the_marks_of_replicas(tmp_path: Path) -> None:
    events = recording("partition t-0 replicas=1,2", "pass leo=1:100,2:40 hw=40")
    out = run(write(tmp_path / "e.jsonl", events)).out
    assert "1 H--------------E HW 40 LEO 100   2 X                HW 40 LEO 40" in out


def test_json_prints_the_records_of_the_topics(tmp_path: Path) -> None:
    out = run("--json", write(tmp_path / "e.jsonl", trace("unclean"))).out
    records = [decode_record(line) for line in out.splitlines()]
    assert {type(record) for record in records} == {Alert, View}
    found = [r for r in records if isinstance(r, Alert)]
    losses = [r for r in found if r.labels["alertname"] == "KafkaCommittedDataLoss"]
    assert [loss.state for loss in losses] == ["firing", "update"]
    loss = losses[0]
    assert loss.evidence["proven"] == [5, 12]


def test_events_can_be_piped_in() -> None:
    events = subprocess.run(
        [sys.executable, "-m", "tests.traces", str(TRACES / "unclean.jsonl")],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    replayed = subprocess.run(
        [sys.executable, "-m", "tidemark.cli", "replay", "-"],
        input=events.stdout,
        capture_output=True,
        check=True,
    )
    assert b"KafkaCommittedDataLoss" in replayed.stdout


def test_unreadable_lines_are_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    good = trace("unclean")
    bad_event = json.loads(good[3])
    # Its kind, the samples, the topic and the partition.
    bad_event["events"][0][3] = -1
    bad = (b"\xff\xfe\x00", json.dumps(bad_event).encode(), good[3][:50], b"[" * 100_000)
    path = write(tmp_path / "e.jsonl", [good[0], bad[0], *good[1:3], *bad[1:], *good[3:]])
    lines = [line.strip() for line in run(path).out.splitlines()]
    unreadable = [line for line in lines if line.startswith("unreadable")]
    assert [line.split(": ")[0] for line in unreadable] == [
        f"unreadable  {path} line 2",
        f"unreadable  {path} line 5, $.events[0].partition",
        f"unreadable  {path} line 6",
        f"unreadable  {path} line 7",
    ]
    assert all(line.split(": ", 1)[1] for line in unreadable)
    assert any("7 committed records" in line for line in lines)


def test_unreadable_lines_are_dead_letters_in_json(tmp_path: Path) -> None:
    packed = tmp_path / "e.gz"
    packed.write_bytes(gzip.compress(b"\n".join(trace("unclean")))[:-300])
    out = run("--json", write(tmp_path / "first", [b"{}"]), str(packed)).out
    records = [decode_record(line) for line in out.splitlines()]
    letters = [record for record in records if isinstance(record, DeadLetter)]
    assert (letters[0].partition, letters[0].offset) == (0, 0)
    assert (letters[-1].partition, letters[-1].reason) == (1, "the gzip stream ends early")


def test_several_files_are_one_recording(tmp_path: Path) -> None:
    events = trace("unclean")
    whole, first = write(tmp_path / "w", events), write(tmp_path / "1", events[:60])
    second = tmp_path / "2.gz"
    second.write_bytes(gzip.compress(b"\n".join(events[60:])))
    assert run("--json", first, str(second)) == run("--json", whole)


@pytest.mark.parametrize(
    "words",
    [
        ["replay"],
        ["replay", "--json"],
        ["timeline", "t", "0", "--from"],
        ["inspect", "--losses", "--from"],
    ],
)
@pytest.mark.parametrize("content", [b"no events\n[]\n", b"\x1f\x8bcut"])
def test_a_file_of_which_no_line_can_be_read_is_an_error(
    words: list[str], content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "notes"
    path.write_bytes(content)
    shown = tidemark(*words, str(path), code=1)
    assert shown.err.splitlines()[-1].startswith(f"tidemark: no line of {path} can be read.")
    # No loss is not claimed.
    assert shown.out == "" or words[0] != "inspect"


def test_all_of_several_files_are_named(tmp_path: Path) -> None:
    paths = [write(tmp_path / name, [b"no events"]) for name in "ab"]
    assert f"no line of {paths[0]}, {paths[1]} can be read" in run(*paths, code=1).err
    assert "KafkaCommittedDataLoss" in run(paths[0], write(tmp_path / "c", trace("unclean"))).out


def test_an_empty_recording_is_reported(tmp_path: Path) -> None:
    assert run(write(tmp_path / "empty", [])) == ("", "replay: no partition was observed.\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("thresholds: {lag_sm: 1}", "detect.thresholds: unknown field `lag_sm`"),
        ("clusters: []", "has no section `detect`"),
        ("disabled: [FOLLOWER_LAK]", "detect.disabled[0]: no such detector"),
    ],
)
def test_wrong_thresholds_are_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    path.write_text(text, encoding="utf-8")
    err = run("--thresholds", str(path), "-", code=2).err
    assert message in err.replace("Object contains ", "")


def test_higher_thresholds_remove_alerts(tmp_path: Path) -> None:
    events, path = write(tmp_path / "e.jsonl", recording(*LAGGING)), tmp_path / "new.yaml"
    path.write_text(
        "detect: {thresholds: {lag_ms: 60000, high_watermark_stalled_ms: 60000}}", encoding="utf-8"
    )
    lines = run("--thresholds", str(path), "--diff", events).out.splitlines()
    (lag,) = [line for line in lines if "KafkaFollowerLag" in line]
    assert lag.startswith("- 2023-11-14 22:13:2")
    assert "ticket  KafkaFollowerLag  main/orders-0 broker 3  for " in lag
    gone = sum(line.startswith("- ") and "  ticket  " in line for line in lines)
    assert lines[-1].startswith("pages: 0 before, 0 with the new thresholds (+0 -0); tickets: ")
    assert lines[-1].endswith(f" with the new thresholds (+0 -{gone})")


def test_lower_thresholds_add_alerts_as_json(tmp_path: Path) -> None:
    events = write(tmp_path / "e.jsonl", recording(*LAGGING, "pass 10"))
    config, path = tmp_path / "old.yaml", tmp_path / "new.yaml"
    config.write_text(
        "detect: {thresholds: {lag_ms: 60000, high_watermark_stalled_ms: 60000}}", encoding="utf-8"
    )
    path.write_text(
        "thresholds: {lag_ms: 2000, high_watermark_stalled_ms: 60000}", encoding="utf-8"
    )
    out = run("--config", str(config), "--thresholds", str(path), "--diff", "--json", events).out
    *changes, total = [json.loads(line) for line in out.splitlines()]
    assert [(c["change"], c["kind"], c["labels"]["alertname"]) for c in changes] == [
        ("come", "ticket", "KafkaFollowerLag")
    ]
    assert changes[0]["ended_at"] > changes[0]["fired_at"]
    assert total["after"] == {
        "page": total["before"]["page"],
        "ticket": total["before"]["ticket"] + 1,
    }


def test_equal_thresholds_make_no_difference(tmp_path: Path) -> None:
    path = tmp_path / "same.yaml"
    path.write_text("detect: {}", encoding="utf-8")
    events = write(tmp_path / "e", [*trace("unclean"), b"{"])
    captured = run("--thresholds", str(path), "--diff", events)
    pages = re.match(r"pages: (\d+) before, \1 with the new thresholds \(\+0 -0\)", captured.out)
    assert pages is not None and int(pages[1]) >= 2
    assert captured.out.count("\n") == 1
    assert "unreadable" in captured.err
