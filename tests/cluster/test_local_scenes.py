"""What the one run of the scenes left behind, read again from its raw records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.scenes import Scenes
from tidemark.demo.expectations import EXPECTATIONS, PAUSED, SCENES, UNCLEAN

pytestmark = pytest.mark.cluster


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def row(scenes: Scenes, scene: str, alert: str) -> dict[str, Any]:
    return next(r for r in scenes.report if (r["scene"], r["alert"], r["expected"]) == (scene, alert, True))


def test_the_demo_succeeds(scenes: Scenes) -> None:
    assert scenes.code == 0, scenes.output[-3000:]


def test_every_expected_alert_has_a_row_and_came_after_its_fault(scenes: Scenes) -> None:
    assert {r["scene"] for r in scenes.report} == set(SCENES)
    for expectation in EXPECTATIONS:
        found = row(scenes, expectation.scene, expectation.alert)
        assert found["received"], found
        assert found["fault_at"] < found["received_at"]
        assert found["detectable_at"] is not None


def test_nothing_else_paged(scenes: Scenes) -> None:
    assert [r for r in scenes.report if not r["expected"] and r["received"]] == []


def test_the_proven_loss_lies_in_what_the_producer_was_told_under_the_old_leader(scenes: Scenes) -> None:
    loss = row(scenes, UNCLEAN, "KafkaCommittedDataLoss")
    (start, end), (true_start, true_end) = loss["proven"], loss["true"]
    assert start == true_start < end <= true_end
    elected_at = row(scenes, UNCLEAN, "KafkaUncleanElection")["detectable_at"]
    before = {a["offset"] for a in lines(scenes.workdir / "acknowledged.jsonl") if a["acked_at"] < elected_at}
    assert set(range(start, end)) <= before


def test_the_probe_saw_the_lag_while_the_follower_was_still_in_sync(scenes: Scenes) -> None:
    lag, shrink = row(scenes, PAUSED, "KafkaFollowerLag"), row(scenes, PAUSED, "KafkaIsrChange")
    assert lag["detectable_at"] < shrink["detectable_at"]
    between = [s for s in lines(scenes.workdir / "probe.jsonl") if lag["detectable_at"] < s["at"] < shrink["detectable_at"] - 1]
    assert any(s["committed"] is not None and s["log_end_offset"] > s["committed"] for s in between)
    assert all(sorted(s["in_sync_replicas"]) == [1, 2] for s in between if s["in_sync_replicas"])
