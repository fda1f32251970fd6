"""`tidemark inspect --losses`: one line a loss, whatever order its records come in, and nothing that is none."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.verbs.replay.make import recording, trace, write
from tidemark.cli import main
from tidemark.core.errors import ConfigError
from tidemark.core.records import Alert, encode_record
from tidemark.verbs.inspect.losses import COLUMNS, as_csv, as_json, chosen, losses_of, since_time

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def without_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMARK_CONFIG", raising=False)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["inspect", *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def alert(
    state: str = "firing",
    at: float = 100.0,
    incident: str = "0a1b2c3d",
    topic: str = "orders",
    **changed: Any,
) -> Alert:
    labels = {
        "kafka_cluster": "main",
        "alertname": changed.pop("alertname", "KafkaCommittedDataLoss"),
        "severity": "critical",
        "topic": topic,
        "partition": changed.pop("partition", "3"),
        "broker": "2",
        "incident": incident,
    }
    evidence = {
        "proven": [5, 12],
        "exposed": [12, 14],
        "written_between": [90.0, 91.5],
        "confidence": "proven",
    }
    return Alert(
        id=f"f.{at}.{state}", fingerprint=f"f{incident}", state=state, labels=labels, annotations={"description": "d"},  # type: ignore[arg-type]
        evidence={**evidence, **changed.pop("evidence", {})}, starts_at=min(at, 100.0), at=at, **changed,
    )  # fmt: skip


def test_the_newest_record_of_a_loss_counts_in_any_order() -> None:
    fired = alert()
    wider = alert("update", 110.0, evidence={"proven": [4, 12]})
    acked = alert("resolved", 120.0, evidence={"proven": [4, 12]}, reason="acked", ends_at=120.0)
    for records in (
        [fired, wider, acked],
        [acked, fired, wider],
        [fired, acked, wider, fired, acked],
    ):
        (loss,) = losses_of(records)
        assert (loss.start, loss.end, loss.state) == (4, 12, "acked")
    (loss,) = losses_of([wider, fired])
    assert (loss.start, loss.state, loss.found_at) == (4, "open", 100.0)


def test_every_loss_has_a_line_in_the_order_of_places() -> None:
    losses = losses_of(
        [
            alert(incident="b"),
            alert(topic="a"),
            alert(partition="20"),
            alert(),
            alert(alertname="KafkaLogTruncation"),
        ]
    )
    assert [(loss.topic, loss.partition) for loss in losses] == [
        ("a", 3),
        ("orders", 3),
        ("orders", 3),
        ("orders", 20),
    ]
    assert len({loss.incident for loss in losses}) == 2
    assert len(chosen(losses, "orders", 3, "main", None)) == 2
    assert (
        chosen(losses, "orders", 3, "other", None) == chosen(losses, None, None, None, 100.5) == []
    )


@pytest.mark.parametrize(
    "evidence",
    [
        {"proven": None},
        {"proven": [12, 5]},
        {"proven": ["5", 12]},
        {"proven": [5]},
        {"proven": {"from": 5}},
        {"proven": [-1, 4]},
    ],
)
def test_without_a_range_nothing_is_claimed(evidence: dict[str, Any]) -> None:
    assert losses_of([alert(evidence=evidence)]) == []
    assert losses_of([alert(partition="x")]) == []


def test_csv_has_the_promised_columns_first_and_empty_for_unknown() -> None:
    losses = losses_of(
        [alert(), alert(topic="z", evidence={"written_between": [None, 1e300], "exposed": None})]
    )
    heading, known, unknown = csv.reader(io.StringIO(as_csv(losses)))
    assert (
        tuple(heading[:7])
        == COLUMNS
        == ("cluster", "topic", "partition", "from", "to", "from_time", "to_time")
    )
    assert known[:9] == [
        "main",
        "orders",
        "3",
        "5",
        "12",
        "1970-01-01T00:01:30.000Z",
        "1970-01-01T00:01:31.500Z",
        "12",
        "14",
    ]
    assert unknown[:9] == ["main", "z", "3", "5", "12", "", "", "", ""]
    assert json.loads(as_json(losses[1])) == dict(
        zip(heading, [None if v == "" else v for v in unknown], strict=True)
    ) | {
        "partition": 3,
        "from": 5,
        "to": 12,
    }
    assert as_csv([]).count("\n") == 1


def test_since_is_an_age_or_a_time() -> None:
    assert since_time("90m", 10_000.0) == 4_600.0
    assert since_time("1970-01-02", 0.0) == since_time("1970-01-02T01:00:00+01:00", 0.0) == 86_400.0
    for text in ("yesterday", "9x", "24 h", ""):
        with pytest.raises(ConfigError, match="--since"):
            since_time(text, 0.0)


def test_losses_of_a_recording(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path / "e.jsonl", trace("unclean"))
    assert run("--losses", "--csv", "--from", path) == 3
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["topic"], row["from"], row["to"], row["state"]) == ("trace", "5", "12", "open")
    assert "2001-09-09T01:46:4" in row["from_time"] < row["to_time"]
    assert run("--losses", "--from", path) == 3
    told = capsys.readouterr().out
    assert "[5, 12)" in told
    assert "1 loss, 7 committed records gone." in told
    assert run("--losses", "trace", "1", "--from", path) == 0
    assert "no committed record is known to be lost there." in capsys.readouterr().out


def test_no_loss_is_exit_0(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path / "e.jsonl", recording("partition t-0 replicas=1,2,3", "pass 5 add=3"))
    assert run("--losses", "--from", path) == 0
    assert capsys.readouterr().out == "no committed record is known to be lost.\n"
    assert run("--losses", "--json", "--from", path) == 0
    assert capsys.readouterr().out == ""


def test_alert_records_and_broken_lines_of_a_file(tmp_path: Path, capsys: Captured) -> None:
    resolved = encode_record(alert("resolved", 120.0, reason="expired", ends_at=120.0))
    wrong = encode_record(alert(topic="b")).replace(b'"at":100.0', b'"at":"noon"')
    path = write(
        tmp_path / "a.jsonl",
        [encode_record(alert()), wrong, b'{"type":"al', resolved, encode_record(alert(topic="c"))],
    )
    assert run("--losses", "--json", "--from", path) == 3
    told = capsys.readouterr()
    assert [(loss["topic"], loss["state"]) for loss in map(json.loads, told.out.splitlines())] == [
        ("c", "open"),
        ("orders", "expired"),
    ]
    assert [line.split(":")[1].strip() for line in told.err.splitlines()] == [
        f"unreadable  {path} line {number}" for number in (2, 3)
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "name a topic, or ask for --losses"),
        (("t", "--csv"), "belong to --losses"),
        (("--losses", "--csv", "--json"), "give one of them"),
        (("--losses", "--from", "/nonexistent"), "cannot read /nonexistent"),
        (("--losses", "--bootstrap", ","), "--bootstrap is empty"),
    ],
)
def test_wrong_usage_is_one_line(arguments: tuple[str, ...], told: str, capsys: Captured) -> None:
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.err.count("\n") == 1
