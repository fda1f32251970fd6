"""A step that takes too long is named, and waiting between two attempts is not."""

from __future__ import annotations

import pytest

from tidemark.web.health import Health


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [1_000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    return clock


def test_a_step_that_takes_too_long_hangs_until_it_ends(now: list[float]) -> None:
    health = Health(stuck=lambda: ["the rest"])
    with health.step("the start", 60.0):
        now[0] += 60
        assert health.stuck() == ["the rest"]
        now[0] += 1
        assert health.stuck() == ["the start has not ended for 61 s", "the rest"]
    assert health.stuck() == ["the rest"]


def test_a_step_that_fails_has_ended(now: list[float]) -> None:
    health = Health()
    with pytest.raises(OSError, match="gone"), health.step("the start", 60.0):
        raise OSError("gone")
    now[0] += 1_000
    assert health.stuck() == []


def test_each_attempt_has_its_own_time(now: list[float]) -> None:
    health = Health()
    seen: list[list[str]] = []

    def attempt() -> int:
        now[0] += 40
        seen.append(health.stuck())
        return 7

    timed = health.timed("the attempt", 60.0, attempt)
    for _ in range(5):
        assert timed() == 7
        # The pause before the next one.
        now[0] += 100
        assert health.stuck() == []
    assert seen == [[]] * 5
