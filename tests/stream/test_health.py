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


class Hang:
    """A step during which time passes, and which then ends the stream."""

    def __init__(self, now: list[float], seconds: float) -> None:
        self._now, self._seconds = now, seconds
        self.healths: list[StreamHealth] = []
        self.seen: list[list[str]] = []

    def __call__(self, *_: object, **__: object) -> Any:
        (health,) = self.healths
        for seconds in (self._seconds - 1, 2.0):
            self._now[0] += seconds
            self.seen.append(health.stuck())
        raise TidemarkError("it ends")


STEPS = [
    ("ensure_topics", "the check of the topics", 600.0),
    ("start_session", "the start of Spark", 900.0),
    ("open_checkpoint", "opening the checkpoint", 900.0),
    ("step_over", "the check of the last batch", 600.0),
]


@pytest.mark.parametrize(("function", "name", "seconds"), STEPS)
def test_a_step_of_the_start_that_hangs_is_not_healthy(
    monkeypatch: pytest.MonkeyPatch, function: str, name: str, seconds: float
) -> None:
    now = [1_000.0]
    hang, nothing = Hang(now, seconds), lambda *_, **__: None

    def make(*attempts: Any) -> StreamHealth:
        hang.healths.append(StreamHealth(*attempts))
        return hang.healths[0]

    spark = SimpleNamespace(streams=SimpleNamespace(addListener=nothing), stop=nothing)
    places: dict[str, tuple[Any, Any]] = {
        "StreamHealth": (command, make),
        "import_packages": (command, nothing),
        "check_start": (command, nothing),
        "ensure_topics": (command, nothing),
        "start_session": (command, lambda *_: spark),
        "ended": (command, lambda *_: nullcontext()),
        "start_worker": (command, nothing),
        "open_checkpoint": (checkpoint, nothing),
        "step_over": (command, nothing),
    }
    for each, (module, value) in places.items():
        monkeypatch.setattr(module, each, hang if each == function else value)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with pytest.raises(TidemarkError, match="it ends"):
        command.run(Settings())
    assert hang.seen == [[], [f"{name} has not ended for {seconds + 1:.0f} s"]]
    assert hang.healths[0].stuck() == []


def test_waiting_for_kafka_is_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long, as each attempt ends."""
    now, tries = [1_000.0], [0]
    healths: list[StreamHealth] = []

    def make(*attempts: Any) -> StreamHealth:
        healths.append(StreamHealth(*attempts))
        return healths[0]

    def ensure(*_: object) -> None:
        assert healths[0].stuck() == []
        now[0] += 100
        assert healths[0].stuck() == []
        tries[0] += 1
        if tries[0] == 50:
            raise TidemarkError("it ends")
        raise ClusterError("no broker answers")

    monkeypatch.setattr(command, "StreamHealth", make)
    monkeypatch.setattr(command, "import_packages", lambda: None)
    monkeypatch.setattr(command, "ensure_topics", ensure)
    monkeypatch.setattr("tidemark.kafka.attempts.FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with pytest.raises(TidemarkError, match="it ends"):
        command.run(Settings())
    assert healths[0].waiting() == ["Kafka: no broker answers"]
