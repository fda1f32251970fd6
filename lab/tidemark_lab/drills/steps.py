"""The vocabulary of drills: steps that inject and heal faults, and conditions to wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tidemark.core.identity import alert_name
from tidemark_lab.drills.drill import Step
from tidemark_lab.drills.stage import Stage
from tidemark_lab.faults.fault import Fault
from tidemark_lab.faults.node_faults import Crash

STATE_SECONDS: Final = 60.0
ALERT_SECONDS: Final = 30.0

Condition = Callable[[Stage], bool]


def inject(key: str, make: Callable[[Stage], Fault]) -> Step:
    return Step(f"inject: {key}", lambda stage: stage.inject(key, make(stage)))


def heal(key: str) -> Step:
    return Step(f"heal: {key}", lambda stage: stage.heal(key))


def crash(key: str, broker: int) -> Step:
    return inject(key, lambda stage: Crash(stage.cluster, broker))


def load(seconds: float) -> Step:
    return Step(f"load for {seconds:.0f} s", lambda stage: stage.pause(seconds))


def passes(count: int) -> Step:
    return Step(f"{count} passes", lambda stage: stage.pass_over(count))


def wait(what: str, condition: Condition, seconds: float = STATE_SECONDS) -> Step:
    """A state that brokers must reach. The drill's verdict is unknown where they do not."""
    return Step(f"wait: {what}", lambda stage: stage.wait(condition, seconds, what))


def alert(
    detector: str,
    partitions: int = 1,
    broker: int | None = None,
    seconds: float = ALERT_SECONDS,
    after: str | None = None,
) -> Step:
    """Time for an alert, after a fault. Whether it came is judged at the end."""

    def until(stage: Stage) -> None:
        since = 0.0 if after is None else stage.marks[after].at
        stage.reaches(
            lambda stage: len(stage.firing(detector, broker, since)) >= partitions, seconds
        )

    return Step(f"wait: {alert_name(detector)} fires", until)


def resolved(*detectors: str) -> Step:
    """Time for the end of alerts on states."""
    names = {alert_name(detector) for detector in detectors}

    def until(stage: Stage) -> None:
        stage.reaches(lambda stage: not names & stage.open_alerts(), ALERT_SECONDS)

    return Step(f"wait: {', '.join(sorted(names))} resolve", until)


def idle() -> Step:
    """Stops the load, and waits until every replica has it and knows that it is committed."""

    def stop(stage: Stage) -> None:
        stage.load.pause(stage.topic)
        stage.pass_over(3)

    return Step("stop the load", stop)


def busy() -> Step:
    return Step("start the load", lambda stage: stage.load.resume(stage.topic))


def whole() -> Step:
    return wait(
        "every replica is in sync", lambda stage: stage.cluster.is_whole(stage.topics), 90.0
    )


def in_sync(*brokers: int) -> Condition:
    """Whether these are in sync, for every partition."""

    def holds(stage: Stage) -> bool:
        found = stage.partitions().values()
        return bool(found) and all(sorted(p.isr_nodes) == sorted(brokers) for p in found)

    return holds


def led_by(broker: int) -> Condition:
    return lambda stage: _all_led(stage, lambda leader: leader == broker)


def not_led_by(broker: int) -> Condition:
    return lambda stage: _all_led(stage, lambda leader: leader not in (-1, broker))


def leaderless() -> Condition:
    return lambda stage: _all_led(stage, lambda leader: leader == -1)


def acknowledged_since(key: str, count: int = 20) -> Condition:
    """Whether records of the watched topic were acknowledged after a fault."""

    def holds(stage: Stage) -> bool:
        since = stage.marks[key].at
        acked = (
            r for r in stage.load.acknowledged() if r.topic == stage.topic and r.acked_at > since
        )
        return sum(1 for _ in acked) >= count

    return holds


def _all_led(stage: Stage, holds: Callable[[int], bool]) -> bool:
    leaders = stage.leaders()
    return bool(leaders) and all(map(holds, leaders.values()))
