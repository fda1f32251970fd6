"""The report of the run of the scenes, checked apart from its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.processes import commands_with
from tests.scenes.run import Scenes
from tidemark_lab.demo.expected_alerts import EXPECTED, PAUSED, SCENES, UNCLEAN

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow]

TIMES = ("fault_at", "detectable_at", "received_at")


def records_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def row_of(scenes: Scenes, scene: str, alert: str) -> dict[str, Any]:
    (row,) = [row for row in scenes.report if (row["scene"], row["alert"]) == (scene, alert)]
    return row


def test_the_demo_succeeds(scenes: Scenes) -> None:
    assert scenes.code == 0, scenes.output[-4000:]


def test_every_expected_alert_came_and_nothing_else(scenes: Scenes) -> None:
    assert {row["scene"] for row in scenes.report} == set(SCENES)
    assert {(scene, e.alert) for scene, expected in EXPECTED.items() for e in expected} == {
        (row["scene"], row["alert"]) for row in scenes.report if row["expected"]
    }
    assert [row for row in scenes.report if row["received"] != row["expected"]] == []


def test_the_consequences_of_an_unclean_election_are_all_expected(scenes: Scenes) -> None:
    expected = {row["alert"] for row in scenes.report if row["expected"]}
    assert expected >= {
        "KafkaFollowerLag",
        "KafkaBrokerDown",
        "KafkaIsrChange",
        "KafkaLeaderAlone",
        "KafkaOffline",
        "KafkaUncleanElection",
        "KafkaLogTruncation",
        "KafkaCommittedDataLoss",
    }


def test_times_are_in_order(scenes: Scenes) -> None:
    for row in scenes.report:
        assert all(row[name] is None or row[name] > 1.6e9 for name in TIMES), row
        if row["received"] and row["fault_at"] is not None:
            assert row["received_at"] >= row["fault_at"], row


def test_the_lag_alert_comes_before_kafka_shrinks_the_isr(scenes: Scenes) -> None:
    lag = row_of(scenes, "follower paused", "KafkaFollowerLag")
    change = row_of(scenes, "follower paused", "KafkaIsrChange")
    assert lag["received_at"] < change["detectable_at"]


def test_the_proven_loss_is_a_true_lower_bound_with_an_exact_start(scenes: Scenes) -> None:
    loss = row_of(scenes, "unclean election", "KafkaCommittedDataLoss")
    assert loss["proven"][0] == loss["true"][0]
    assert loss["true"][0] < loss["proven"][1] <= loss["true"][1]


def test_the_proven_loss_was_acknowledged_by_the_old_leader(
    scenes: Scenes,
) -> None:
    loss = row_of(scenes, UNCLEAN, "KafkaCommittedDataLoss")
    elected_at = row_of(scenes, UNCLEAN, "KafkaUncleanElection")["detectable_at"]
    before = {
        record["offset"]
        for record in records_of(scenes.workdir / "acknowledged.jsonl")
        if record["acked_at"] < elected_at
    }
    assert set(range(*loss["proven"])) <= before


def test_the_probe_saw_the_lag_while_the_follower_was_still_in_sync(scenes: Scenes) -> None:
    lag, shrink = (
        row_of(scenes, PAUSED, "KafkaFollowerLag"),
        row_of(scenes, PAUSED, "KafkaIsrChange"),
    )
    assert lag["detectable_at"] < shrink["detectable_at"]
    samples = records_of(scenes.workdir / "probe.jsonl")
    between = [
        sample
        for sample in samples
        if lag["detectable_at"] < sample["at"] < shrink["detectable_at"] - 1
    ]
    assert any(
        sample["committed"] is not None and sample["log_end_offset"] > sample["committed"]
        for sample in between
    )
    assert all(
        sorted(sample["in_sync_replicas"]) == [1, 2]
        for sample in between
        if sample["in_sync_replicas"]
    )


def test_nothing_is_left_running(scenes: Scenes) -> None:
    """Brokers, Spark and our verbs all have the work folder in their arguments."""
    assert commands_with(str(scenes.workdir)) == []
