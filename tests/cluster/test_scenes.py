"""The one run of the scenes: what its report says, whatever its exit code claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.scenes import Scenes

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow]

TIMES = ("fault_at", "detectable_at", "received_at")


def row_of(scenes: Scenes, scene: str, alert: str) -> dict[str, Any]:
    (row,) = [row for row in scenes.report if (row["scene"], row["alert"]) == (scene, alert)]
    return row


def test_the_demo_ends_well(scenes: Scenes) -> None:
    assert scenes.code == 0, scenes.output[-4000:]


def test_every_expected_alert_came_and_nothing_else(scenes: Scenes) -> None:
    assert scenes.report
    assert [row for row in scenes.report if row["received"] != row["expected"]] == []


def test_the_consequences_of_an_unclean_election_are_all_expected(scenes: Scenes) -> None:
    expected = {row["alert"] for row in scenes.report if row["expected"]}
    assert expected >= {
        "KafkaFollowerLag",
        "KafkaFollowerUnreachable",
        "KafkaIsrChange",
        "KafkaUnderReplicated",
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


def test_alerts_came_within_their_bar(scenes: Scenes) -> None:
    """2 passes + 2 s after the condition could be seen from outside, and the detector's own hysteresis."""
    late = [
        row
        for row in scenes.report
        if row["received"] and row["detectable_at"] is not None and row["received_at"] - row["detectable_at"] > row["allowed_seconds"]
    ]
    assert late == []


def test_the_lag_is_told_before_kafka_shrinks_the_in_sync_set(scenes: Scenes) -> None:
    lag = row_of(scenes, "follower paused", "KafkaFollowerLag")
    change = row_of(scenes, "follower paused", "KafkaIsrChange")
    assert lag["received_at"] < change["detectable_at"]


def test_the_proven_loss_is_a_true_lower_bound_with_an_exact_start(scenes: Scenes) -> None:
    loss = row_of(scenes, "unclean election", "KafkaCommittedDataLoss")
    assert loss["proven"][0] == loss["true"][0]
    assert loss["true"][0] < loss["proven"][1] <= loss["true"][1]


def test_nothing_is_left_running(scenes: Scenes) -> None:
    """Brokers, Spark and our own verbs all name the work folder in their arguments."""
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(scenes.workdir) in arguments:
            left.append(arguments[:200])
    assert left == []
