"""`tidemark safe-to-stop` on recordings: the table, the exit code, and that what was not seen is never safe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.verbs.replay.make import recording, trace, write
from tidemark.cli import main
from tidemark.core.codec import encode_batch
from tidemark.core.events import OK, Batch, BrokerAnswer, Event, Observation, Pass, Replica
from tidemark.detect.thresholds import Detection
from tidemark.verbs.safe_to_stop.command import MAX_ROWS, survey_file, text
from tidemark.verbs.safe_to_stop.survey import judge

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def without_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMARK_CONFIG", raising=False)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["safe-to-stop", *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def observation(topic: str, number: int = 0, **changed: Any) -> Observation:
    replicas = changed.pop("replicas", [1, 2, 3])
    known: dict[str, Any] = {
        "observed_at": 1000.0,
        "leader": replicas[0],
        "leader_epoch": 0,
        "replicas": replicas,
        "in_sync_replicas": replicas,
        "effective_min_in_sync_replicas": min(2, len(replicas)),
        "leader_log_end_offset_before": 5,
        "leader_log_end_offset_after": 5,
        "committed": 5,
        "samples": [
            Replica(broker=b, log_end_offset=5, high_watermark=5, leader_epoch=0) for b in replicas
        ],
    }
    return Observation(topic=topic, partition=number, **{**known, **changed})


def batch(*observed: Observation, number: int = 1, cluster: str = "main", **changed: Any) -> bytes:
    known: dict[str, Any] = {
        "brokers": [BrokerAnswer(broker=broker, outcome=OK) for broker in (1, 2, 3)],
        "partitions": len(observed),
    }
    at = 1000.0 + number
    closing = Pass(
        number=number,
        started_at=at,
        ended_at=at,
        monotonic=at,
        period_ms=1000.0,
        **{**known, **changed},
    )
    events: list[Event] = [*observed, closing]
    return encode_batch(
        Batch(
            v=1,
            cluster=cluster,
            collector="c",
            collector_epoch=1,
            pass_number=number,
            events=events,
        )
    )


def test_safe_is_exit_0(tmp_path: Path, capsys: Captured) -> None:
    path = write(
        tmp_path / "e",
        [
            batch(
                observation("a"),
                observation("b", replicas=[2, 3, 1]),
                observation("c", replicas=[2]),
            )
        ],
    )
    assert run("1", "--from", path) == 0
    assert capsys.readouterr().out == (
        "Broker 1 of main leads 1 and is in sync for 2 of 3 partitions.\nSafe to stop: it would hurt nothing.\n"
    )


def test_what_would_be_hurt_is_listed_worst_first(tmp_path: Path, capsys: Captured) -> None:
    observed = [
        observation("copy", replicas=[1, 2], effective_min_in_sync_replicas=1),
        observation("min", 7, in_sync_replicas=[1, 2]),
        observation("single", replicas=[1]),
        observation("fine"),
    ]
    path = write(tmp_path / "e", [batch(*observed)])
    assert run("1", "--from", path) == 3
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:4]] == [
        ["effect", "partition"],
        ["offline", "single-0"],
        ["under_min_isr", "min-7"],
        ["last_copy", "copy-0"],
    ]
    assert lines[-1] == "Not safe to stop: 1 offline, 1 under min ISR, 1 down to a last copy."
    assert run("1", "--json", "--from", path) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["safe"] is False
    assert told["counts"] == {"offline": 1, "under_min_isr": 1, "unknown": 0, "last_copy": 1}
    assert (told["partitions"], told["leads"], told["in_sync"], told["outcome"]) == (4, 4, 4, "ok")
    assert told["impacts"][0] == {
        "topic": "single",
        "partition": 0,
        "effect": "offline",
        "detail": "no replica would be left to elect without loss",
    }


def test_what_was_missed_or_never_seen_is_unknown(tmp_path: Path, capsys: Captured) -> None:
    lines = [
        batch(observation("seen"), observation("later-missed"), partitions=5),
        batch(number=2, missed={"later-missed": [(0, 0)], "never": [(3, 4)]}, partitions=5),
    ]
    assert run("2", "--json", "--from", write(tmp_path / "e", lines)) == 3
    told = json.loads(capsys.readouterr().out)
    assert [
        (impact["topic"], impact["partition"], impact["effect"]) for impact in told["impacts"]
    ] == [
        ("later-missed", 0, "unknown"),
        ("never", 3, "unknown"),
        ("never", 4, "unknown"),
    ]
    # Five are counted, four have a name.
    assert told["not_shown"] == 1
    assert (
        run("2", "--from", write(tmp_path / "one", [batch(observation("seen"), partitions=2)])) == 3
    )
    assert "1 partition was not observed: unknown, so not safe." in capsys.readouterr().out


def test_a_pass_that_missed_all_makes_all_unknown(tmp_path: Path, capsys: Captured) -> None:
    path = write(
        tmp_path / "e", [batch(observation("a")), batch(number=2, missed="all", partitions=1)]
    )
    assert run("1", "--from", path) == 3
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["unknown", "a-0"]


def test_a_hostile_range_is_not_walked(tmp_path: Path) -> None:
    path = write(
        tmp_path / "e", [batch(observation("a"), missed={"x": [(0, 2**31 - 1)]}, partitions=1)]
    )
    verdict = judge(survey_file(path, Detection()), "main", 1)
    assert not verdict.safe
    lines = text(verdict)
    assert len(lines) < MAX_ROWS + 10
    assert any(line.startswith("… and 900 more") for line in lines)


def test_the_lag_that_passes_showed_counts(tmp_path: Path, capsys: Captured) -> None:
    lagging = (
        "partition t-0 replicas=1,2,3 min_isr=2",
        "pass 2 add=10",
        "pass 5 leo=1:200,2:200 hw=20",
        "pass leo=1:300,2:300 hw=20",
    )
    assert run("1", "--from", write(tmp_path / "e", recording(*lagging))) == 3
    assert "broker 3 does not count: it is " in capsys.readouterr().out
    assert run("3", "--from", write(tmp_path / "e", recording(*lagging))) == 0


def test_the_end_of_a_recorded_fault(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path / "e", trace("unclean"))
    assert run("1", "--from", path) == 3
    assert run("9", "--from", path) == 2
    assert capsys.readouterr().err == "tidemark: cluster trace has no broker 9; it has 1, 2, 3.\n"


def test_several_clusters_want_a_name(tmp_path: Path, capsys: Captured) -> None:
    path = write(
        tmp_path / "e",
        [batch(observation("a")), batch(observation("a", replicas=[1]), cluster="other")],
    )
    assert run("1", "--from", path) == 2
    assert run("1", "--from", path, "--cluster", "third") == 2
    told = capsys.readouterr().err
    assert "name one by --cluster: main, other" in told
    assert "no cluster is called `third`" in told
    assert (
        run("1", "--from", path, "--cluster", "main"),
        run("1", "--from", path, "--cluster", "other"),
    ) == (0, 3)


def test_broken_lines_are_named_and_nothing_is_no_answer(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path / "e", [b"{", batch(observation("a"))])
    assert run("1", "--from", path) == 0
    assert capsys.readouterr().err.startswith(f"safe-to-stop: unreadable  {path} line 1: ")
    assert run("1", "--from", write(tmp_path / "none", [b"{"])) == 2
    assert "holds no pass over a cluster" in capsys.readouterr().err


def test_a_broker_that_does_not_answer_is_said_to_be_down(tmp_path: Path, capsys: Captured) -> None:
    down = [BrokerAnswer(broker=1, outcome="refused"), BrokerAnswer(broker=2, outcome=OK)]
    observed = observation(
        "a",
        leader=None,
        leaderless=True,
        replicas=[1],
        samples=[Replica(broker=1, error="refused")],
    )
    path = write(tmp_path / "e", [batch(observed, brokers=down)])
    assert run("1", "--from", path) == 3
    told = capsys.readouterr().out
    assert "It does not answer (refused): it may be down already." in told
    assert "1 partition has no leader already." in told
    assert run("2", "--from", path) == 0
