"""Waiting for Kafka: growing pauses, one line, and what waiting does not mend."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from structlog.testing import capture_logs

from tidemark.core.errors import ClusterError, ConfigError
from tidemark.kafka.attempts import LOG_SECONDS, LONGEST_PAUSE_SECONDS, Attempts
from tidemark.kafka.topics import TopicMismatchError


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Stopped(threading.Event):
    """Counts the pauses and takes none."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.pauses: list[float] = []
        self._clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.pauses.append(timeout)
        self._clock.now += timeout
        return self.is_set()


def test_pauses_grow_and_the_reason_is_logged_once() -> None:
    clock = Clock()
    attempts, stopped = Attempts("to test", clock), Stopped(clock)
    left = [ClusterError("no broker answers")] * 8

    def action() -> str:
        if left:
            assert attempts.reason in (None, "no broker answers")
            raise left.pop()
        return "done"

    with capture_logs() as logged:
        assert attempts.run(action, stopped) == "done"
    assert attempts.reason is None
    assert stopped.pauses == sorted(stopped.pauses)
    assert (stopped.pauses[0], stopped.pauses[-1]) == (0.5, LONGEST_PAUSE_SECONDS)
    assert [entry["event"] for entry in logged] == ["waiting for Kafka", "Kafka can be used"]
    assert logged[0]["reason"] == "no broker answers"


def test_another_reason_is_logged_now_and_then() -> None:
    clock = Clock()
    attempts = Attempts("to test", clock)
    with capture_logs() as logged:
        for number in range(100):
            attempts.failed(ClusterError(f"reason {number}"))
            clock.now += LOG_SECONDS / 10
    assert 9 <= len(logged) <= 11


@pytest.mark.parametrize("error", [TopicMismatchError("8, not 16"), ConfigError("no"), KeyError()])
def test_what_waiting_does_not_mend_is_raised(error: Exception) -> None:
    def action() -> Any:
        raise error

    with pytest.raises(type(error)):
        Attempts("to test").run(action, threading.Event())


def test_it_ends_when_stopped() -> None:
    stopped = threading.Event()

    def action() -> str:
        stopped.set()
        raise ClusterError("no")

    assert Attempts("to test").run(action, stopped) is None
