"""A start that hangs is not healthy, without a JVM: at each of its steps."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.core.errors import ClusterError, TidemarkError
from tidemark.settings import Settings
from tidemark.stream import checkpoint, command
from tidemark.stream.health import StreamHealth


class Started:
    """A start of the stream without Kafka and Spark: its time, and its health once it has one."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now, self.health = 1_000.0, StreamHealth()
        patch.setattr(command, "StreamHealth", self._make)
        patch.setattr(command, "import_packages", lambda: None)
        patch.setattr("time.monotonic", lambda: self.now)

    def _make(self, *attempts: Any) -> StreamHealth:
        self.health = StreamHealth(*attempts)
        return self.health

    def stuck_after(self, seconds: float) -> list[str]:
        self.now += seconds
        return self.health.stuck()

    def run(self) -> None:
        with pytest.raises(TidemarkError, match="it ends"):
            command.run(Settings())


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    return Started(monkeypatch)


STEPS = [
    ("ensure_topics", "the check of the topics", 600.0),
    ("start_session", "the start of Spark", 900.0),
    ("open_checkpoint", "opening the checkpoint", 900.0),
    ("step_over", "the check of the last batch", 600.0),
]


@pytest.mark.parametrize(("function", "name", "seconds"), STEPS)
def test_a_step_of_the_start_that_hangs_is_not_healthy(
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    name: str,
    seconds: float,
) -> None:
    nothing = lambda *_, **__: None  # noqa: E731 - many times in a table
    seen: list[list[str]] = []

    def hang(*_: object, **__: object) -> None:
        seen.extend(started.stuck_after(each) for each in (seconds - 1, 2.0))
        raise TidemarkError("it ends")

    spark = SimpleNamespace(streams=SimpleNamespace(addListener=nothing), stop=nothing)
    places: dict[str, tuple[Any, Any]] = {
        "check_start": (command, nothing),
        "ensure_topics": (command, nothing),
        "start_session": (command, lambda *_: spark),
        "ended": (command, lambda *_: nullcontext()),
        "start_worker": (command, nothing),
        "open_checkpoint": (checkpoint, nothing),
        "EventTopic": (
            command,
            lambda *_: SimpleNamespace(check=nothing, keep_looking=nothing),
        ),
        "step_over": (command, nothing),
    }
    for each, (module, value) in places.items():
        monkeypatch.setattr(module, each, hang if each == function else value)
    started.run()
    assert seen == [[], [f"{name} has not ended for {seconds + 1:.0f} s"]]
    assert started.health.stuck() == []


def test_waiting_for_kafka_is_healthy(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long, as each attempt ends."""
    answers = iter([ClusterError("no broker answers")] * 49)

    def ensure(*_: object) -> None:
        assert [started.stuck_after(each) for each in (0.0, 100.0)] == [[], []]
        raise next(answers, TidemarkError("it ends"))

    monkeypatch.setattr(command, "ensure_topics", ensure)
    monkeypatch.setattr("tidemark.kafka.attempts.FIRST_PAUSE_SECONDS", 0.0)
    started.run()
    assert started.health.waiting() == ["Kafka: no broker answers"]
