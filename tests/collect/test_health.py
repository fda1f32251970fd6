"""The collector's probes over collectors of the test."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tidemark.collect.health import START_SECONDS, STUCK_SECONDS, CollectHealth


class Publisher:
    reason: str | None = None
    alive = True

    def waits_for(self) -> str | None:
        return self.reason

    def is_alive(self) -> bool:
        return self.alive


def collector(name: str, outcome: str, period_seconds: float = 1.0) -> Any:
    passes = SimpleNamespace(outcomes={1: outcome}, period_seconds=period_seconds)
    cluster = SimpleNamespace(name=name)
    return SimpleNamespace(cluster=cluster, passes=passes, passed_at=time.monotonic())


def test_ready_once_all_clusters_answer_and_events_can_be_published() -> None:
    health, publisher = CollectHealth(), Publisher()
    assert health.waiting() == ["the start"]
    east, west = collector("east", "ok"), collector("west", "refused")
    publisher.reason = "no bootstrap server can be used"
    health.watch([east, west], cast(Any, publisher))
    assert health.waiting() == [
        "cluster west: no broker answers",
        "Kafka, to publish: no bootstrap server can be used",
    ]
    assert health.stuck() == []
    west.passes.outcomes, publisher.reason = {}, None
    assert health.waiting() == ["cluster west: no broker answers"]
    west.passes.outcomes = {1: "timed_out", 2: "ok"}
    assert health.waiting() == []


@pytest.mark.parametrize(("period", "silent", "is_stuck"), [(1, 61, True), (30, 61, False)])
def test_healthy_while_passes_end_whatever_they_find(
    monkeypatch: pytest.MonkeyPatch, period: float, silent: float, is_stuck: bool
) -> None:
    east, health, publisher = collector("east", "refused", period), CollectHealth(), Publisher()
    health.watch([east], cast(Any, publisher))
    later = east.passed_at + silent
    monkeypatch.setattr("time.monotonic", lambda: later)
    assert health.stuck() == (["cluster east: no pass for 61 s"] if is_stuck else [])
    assert silent > STUCK_SECONDS
    east.passed_at = later
    assert health.stuck() == []
    publisher.alive = False
    assert health.stuck() == ["the publisher has ended"]


def test_a_start_that_hangs_is_not_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    health, began = CollectHealth(), time.monotonic()
    monkeypatch.setattr("time.monotonic", lambda: began + START_SECONDS - 1)
    assert health.stuck() == []
    monkeypatch.setattr("time.monotonic", lambda: began + START_SECONDS + 10)
    assert health.stuck() == ["the start has not ended for 610 s"]
    health.watch([], cast(Any, Publisher()))
    assert health.stuck() == []
