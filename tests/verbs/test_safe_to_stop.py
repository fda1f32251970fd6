"""`tidemark safe-to-stop` on recordings: the table, the JSON form and the exit code."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from tests.verbs.recordings import recording, trace, write
from tests.verbs.run import tidemark
from tidemark.core.codec import encode_batch
from tidemark.core.events import OK, Batch, BrokerAnswer, Event, Observation, Pass, Replica
from tidemark.detect.default_thresholds import Detection
from tidemark.observations.recorded_lines import read_recording
from tidemark.verbs.safe_to_stop.verdict import MAX_ROWS, as_text, judge

run = partial(tidemark, "safe-to-stop")


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
            v=2,
            cluster=cluster,
            collector="c",
            collector_epoch=1,
            pass_number=number,
            events=events,
        )
    )


def test_the_exit_code_of_a_safe_stop_is_0(tmp_path: Path) -> None:
    observed = [
        observation("a"),
        observation("b", replicas=[2, 3, 1]),
        observation("c", replicas=[2]),
    ]
    path = write(tmp_path / "e", [batch(*observed)])
    assert run("1", "--from", path).out == (
        "Broker 1 of main leads 1 and is in sync for 2 of 3 partitions.\n"
        "Safe to stop: no partition is affected.\n"
    )
    shown = run("1", "--margin", "1", "--from", path, code=3).out
    assert "2 in-sync replicas would be left, acks=all needs 2 and the margin 1 more" in shown
    assert shown.endswith("Not safe to stop: 2 below the margin above min ISR.\n")


def test_affected_partitions_are_listed_worst_first(tmp_path: Path) -> None:
    observed = [
        observation("copy", replicas=[1, 2], effective_min_in_sync_replicas=1),
        observation("min", 7, in_sync_replicas=[1, 2]),
        observation("single", replicas=[1]),
        observation("fine"),
    ]
    path = write(tmp_path / "e", [batch(*observed)])
    lines = run("1", "--from", path, code=3).out.splitlines()
    assert [line.split()[:2] for line in lines[:4]] == [
        ["effect", "partition"],
        ["offline", "single-0"],
        ["under_min_isr", "min-7"],
        ["last_copy", "copy-0"],
    ]
    assert lines[-1] == "Not safe to stop: 1 offline, 1 under min ISR, 1 down to a last copy."
    verdict = json.loads(run("1", "--json", "--from", path, code=3).out)
    assert verdict["safe"] is False
    counts = {"offline": 1, "under_min_isr": 1, "unknown": 0, "last_copy": 1, "under_margin": 0}
    assert verdict["counts"] == counts
    assert (verdict["partitions"], verdict["leads"], verdict["in_sync"]) == (4, 4, 4)
    assert verdict["outcome"] == "ok"
    assert verdict["impacts"][0] == {
        "topic": "single",
        "partition": 0,
        "effect": "offline",
        "detail": "no replica would be left to elect without loss",
    }


def test_partitions_that_were_missed_or_never_seen_are_unknown(tmp_path: Path) -> None:
    lines = [
        batch(observation("seen"), observation("later-missed"), partitions=5),
        batch(number=2, missed={"later-missed": [(0, 0)], "never": [(3, 4)]}, partitions=5),
    ]
    verdict = json.loads(run("2", "--json", "--from", write(tmp_path / "e", lines), code=3).out)
    assert [
        (impact["topic"], impact["partition"], impact["effect"]) for impact in verdict["impacts"]
    ] == [
        ("later-missed", 0, "unknown"),
        ("never", 3, "unknown"),
        ("never", 4, "unknown"),
    ]
    # Five are counted, four have a name.
    assert verdict["not_shown"] == 1
    path = write(tmp_path / "one", [batch(observation("seen"), partitions=2)])
    out = run("2", "--from", path, code=3).out
    assert "Not observed: 1 partition. Unknown is not safe." in out


def test_a_pass_that_missed_everything_makes_every_partition_unknown(tmp_path: Path) -> None:
    path = write(
        tmp_path / "e", [batch(observation("a")), batch(number=2, missed="all", partitions=1)]
    )
    assert run("1", "--from", path, code=3).out.splitlines()[1].split()[:2] == ["unknown", "a-0"]


def test_a_huge_range_of_missed_partitions_is_bounded(tmp_path: Path) -> None:
    path = write(
        tmp_path / "e", [batch(observation("a"), missed={"x": [(0, 2**31 - 1)]}, partitions=1)]
    )
    verdict = judge(*read_recording(path, Detection(), "safe-to-stop", "main"), 1)
    assert not verdict.safe
    lines = as_text(verdict)
    assert len(lines) < MAX_ROWS + 10
    assert any(line.startswith("… and 900 more") for line in lines)


def test_a_lagging_replica_does_not_count(tmp_path: Path) -> None:
    lagging = (
        "partition t-0 replicas=1,2,3 min_isr=2",
        "pass 2 add=10",
        "pass 5 leo=1:200,2:200 hw=20",
        "pass leo=1:300,2:300 hw=20",
    )
    path = write(tmp_path / "e", recording(*lagging))
    assert "broker 3 does not count: it is " in run("1", "--from", path, code=3).out
    run("3", "--from", path)


def test_a_recorded_fault_is_judged_at_its_end(tmp_path: Path) -> None:
    path = write(tmp_path / "e", trace("unclean"))
    run("1", "--from", path, code=3)
    err = run("9", "--from", path, code=2).err
    assert err == "tidemark: cluster trace has no broker 9; it has 1, 2, 3.\n"


def test_several_clusters_need_a_name(tmp_path: Path) -> None:
    path = write(
        tmp_path / "e",
        [batch(observation("a")), batch(observation("a", replicas=[1]), cluster="other")],
    )
    judged = partial(run, "1", "--from", path)
    assert "choose one with --cluster: main, other" in judged(code=2).err
    assert "no cluster is called `third`" in judged("--cluster", "third", code=2).err
    judged("--cluster", "main")
    judged("--cluster", "other", code=3)


def test_unreadable_lines_are_reported_and_an_empty_recording_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "e", [b"{", batch(observation("a"))])
    assert run("1", "--from", path).err.startswith(f"safe-to-stop: unreadable  {path} line 1: ")
    err = run("1", "--from", write(tmp_path / "none", [b"{"]), code=2).err
    assert "holds no pass over a cluster" in err


def test_a_broker_that_does_not_answer_may_be_down(tmp_path: Path) -> None:
    down = [BrokerAnswer(broker=1, outcome="refused"), BrokerAnswer(broker=2, outcome=OK)]
    observed = observation(
        "a",
        leader=None,
        leaderless=True,
        replicas=[1],
        samples=[Replica(broker=1, error="refused")],
    )
    path = write(tmp_path / "e", [batch(observed, brokers=down)])
    out = run("1", "--from", path, code=3).out
    assert "It does not answer (refused) and may already be down." in out
    assert "Without a leader now: 1 partition." in out
    run("2", "--from", path)


def test_several_brokers_and_racks_are_judged_together(tmp_path: Path) -> None:
    racked = [BrokerAnswer(broker=b, outcome=OK, rack="ab"[b % 2]) for b in (1, 2, 3)]
    path = write(tmp_path / "e", [batch(observation("a"), brokers=racked)])
    out = run("1", "2", "--from", path, code=3).out
    assert "Brokers 1 and 2 of main lead 1 and are in sync for 1 of 1 partition.\n" in out
    assert out.endswith("Not safe to stop: 1 under min ISR.\n")
    by_rack = json.loads(run("--rack", "b", "--from", path, "--json", code=3).out)
    assert (by_rack["brokers"], by_rack["broker"], by_rack["outcome"]) == ([1, 3], None, None)
    run("--rack", "a", "--from", path)
    err = run("--rack", "c", "--from", path, code=2).err
    assert "has no rack c; it has a, b." in err
    assert "give a broker or --rack" in run("--from", path, code=2).err
    assert "--wait needs a live cluster" in run("1", "--wait", "1", "--from", path, code=2).err


def test_what_is_lost_if_the_broker_died_instead(tmp_path: Path) -> None:
    tail = {"leader_log_end_offset_before": 9, "leader_log_end_offset_after": 9}
    samples = [
        Replica(broker=b, log_end_offset=9 if b == 1 else 5, high_watermark=5, leader_epoch=0)
        for b in (1, 2, 3)
    ]
    observed = [observation("a", samples=samples, **tail), observation("lone", replicas=[1])]
    path = write(tmp_path / "e", [batch(*observed)])
    lines = run("1", "--from", path, code=3).out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("If it died now"))
    assert lines[at + 1 : at + 3] == [
        "  lone-0: offline; 5 committed and 0 acks=1 records at risk",
        "  a-0: broker 2 (clean); 0 committed and 4 acks=1 records at risk, the oldest 1.0 s old",
    ]
    verdict = json.loads(run("1", "--from", path, "--json", code=3).out)
    assert verdict["partitions_at_risk"] == 2
    assert verdict["at_risk"][1]["uncommitted"] == [5, 9]
