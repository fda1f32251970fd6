"""The four scenes of the demo: faults on the brokers, and the alerts that each must cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tidemark.core.errors import TidemarkError
from tidemark_lab.demo.expected_alerts import (
    EXPECTED,
    FOLLOWER,
    HEALTHY,
    KILL_FOLLOWER,
    KILL_LEADER,
    LEADER,
    OWN_TOPICS_LEADER,
    PAUSE_FOLLOWER,
    PAUSED,
    RETURN_LEADER,
    RETURN_STALE,
    ROLLING,
    UNCLEAN,
)
from tidemark_lab.demo.report import Report
from tidemark_lab.drills.drill import Drill, Step, Topic
from tidemark_lab.drills.stage import Stage
from tidemark_lab.drills.steps import (
    acknowledged_since,
    alert,
    in_sync,
    inject,
    led_by,
    load,
    resolved,
    wait,
)
from tidemark_lab.faults.node_faults import Crash, Pause, RollingRestart
from tidemark_lab.faults.topic_faults import PreferredElection

WATCHED: Final = "demo.orders"
LAG_TIME_MS: Final = "15000"
# The broker that leads Tidemark's own topics drops a silent follower sooner. Until it does, their
# high watermark does not move and no consumer reads past it. With the event topics on another
# cluster this is not needed.
OWN_TOPICS_LAG_TIME_MS: Final = "1000"

HEALTHY_SECONDS: Final = 12.0
# After a scene's last step: time for an unexpected page, and for a scrape of the expected alerts.
SETTLE_SECONDS: Final = 6.0
# Load on the lone leader: acknowledged records that no other broker holds.
ALONE_SECONDS: Final = 3.0
# Longer than Alertmanager's group_wait for a page: what is resolved before causes no message.
OFFLINE_SECONDS: Final = 6.0
ALERT_SECONDS: Final = 45.0
# A slow start raises TidemarkStreamStalled. It resolves once passes have flowed for two minutes.
SLOW_START_SECONDS: Final = 240.0
RECOVERY_SECONDS: Final = 90.0


# The steps need what runs: `steps_of`.
DEMO: Final = Drill(
    name="demo",
    shows="The whole product on a real cluster of this machine: faults, and their alerts.",
    topics={WATCHED: Topic((LEADER, FOLLOWER), configs={"unclean.leader.election.enable": "true"})},
    steps=(),
    overrides={"replica.lag.time.max.ms": LAG_TIME_MS, "broker.session.timeout.ms": LAG_TIME_MS},
    broker_overrides={OWN_TOPICS_LEADER: {"replica.lag.time.max.ms": OWN_TOPICS_LAG_TIME_MS}},
)


def steps_of(report: Report, own_topics: Mapping[str, Sequence[int]]) -> tuple[Step, ...]:
    """All scenes. A step without a text does not show on the terminal.

    `own_topics`: Tidemark's, on the same brokers, with their partitions.
    """
    scenes = _Scenes(report, own_topics)
    return (*scenes.healthy(), *scenes.paused(), *scenes.rolling(), *scenes.unclean())


class _Scenes:
    def __init__(self, report: Report, own_topics: Mapping[str, Sequence[int]]) -> None:
        self._report, self._own_topics = report, own_topics

    def _begin(self, scene: str, text: str) -> Step:
        return Step(f"{scene}: {text}", lambda _: self._report.begin(scene))

    def _is_whole(self, stage: Stage) -> bool:
        return stage.cluster.is_whole([WATCHED, *self._own_topics])

    def _whole(self) -> Step:
        return _silent(wait("every replica is in sync", self._is_whole, RECOVERY_SECONDS))

    def healthy(self) -> tuple[Step, ...]:
        """Nothing happens, nothing may fire. Alerts from the start-up must be resolved before."""
        return (
            Step("", _wait_for_a_quiet_start),
            self._begin(HEALTHY, f"nothing happens for {HEALTHY_SECONDS:.0f} s, nothing may fire"),
            _silent(load(HEALTHY_SECONDS)),
        )

    def paused(self) -> tuple[Step, ...]:
        """A follower hangs under load: the high watermark stops before Kafka shrinks the ISR."""
        return (
            self._begin(PAUSED, f"broker {FOLLOWER} will hang under load (SIGSTOP)"),
            inject(PAUSE_FOLLOWER, lambda stage: Pause(stage.cluster, FOLLOWER)),
            *_fired(PAUSED),
            Step(
                f"{PAUSED}: broker {FOLLOWER} resumes (SIGCONT); its alerts must resolve",
                lambda stage: stage.heal(PAUSE_FOLLOWER),
            ),
            self._whole(),
            _resolved(PAUSED),
        )

    def rolling(self) -> tuple[Step, ...]:
        """A weekly routine: it must not page."""
        places = [(t, p) for t, numbers in self._own_topics.items() for p in numbers]
        return (
            self._begin(ROLLING, "a clean restart of each broker in turn; nothing may page"),
            inject(
                "each broker stops cleanly and starts again",
                lambda stage: RollingRestart(stage.cluster, lambda: self._is_whole(stage)),
            ),
            inject(
                "the preferred leaders are elected",
                lambda stage: PreferredElection(stage.cluster, [(WATCHED, 0), *places]),
            ),
            _silent(wait(f"broker {LEADER} leads {WATCHED}", led_by(LEADER), 30.0)),
            _silent(load(SETTLE_SECONDS)),
        )

    def unclean(self) -> tuple[Step, ...]:
        """The follower dies, then the leader. The follower returns and leads without records."""
        return (
            self._begin(
                UNCLEAN,
                "the follower dies, then the leader; the stale follower is elected under load",
            ),
            inject(KILL_FOLLOWER, lambda stage: Crash(stage.cluster, FOLLOWER)),
            _silent(wait(f"broker {LEADER} alone in the in-sync set", in_sync(LEADER))),
            _silent(wait("it acknowledges records alone", acknowledged_since(KILL_FOLLOWER, 50))),
            _silent(load(ALONE_SECONDS)),
            *_fired(UNCLEAN, KILL_FOLLOWER),
            inject(KILL_LEADER, lambda stage: Crash(stage.cluster, LEADER)),
            *_fired(UNCLEAN, KILL_LEADER),
            _silent(load(OFFLINE_SECONDS)),
            _return(RETURN_STALE, KILL_FOLLOWER),
            _silent(wait(f"broker {FOLLOWER} leads", led_by(FOLLOWER), RECOVERY_SECONDS)),
            *_fired(UNCLEAN, RETURN_STALE),
            _return(RETURN_LEADER, KILL_LEADER),
            self._whole(),
            *_fired(UNCLEAN, RETURN_LEADER),
            Step(f"{UNCLEAN}: both replicas are back; the state alerts must resolve", _nothing),
            _resolved(UNCLEAN),
            _silent(load(SETTLE_SECONDS)),
        )


def _silent(step: Step) -> Step:
    return replace(step, text="")


def _fired(scene: str, *faults: str) -> tuple[Step, ...]:
    """Waits for the expected alerts. Missing ones show in the table; the scenes go on."""
    return tuple(
        _silent(alert(e.detector, 1, e.broker, ALERT_SECONDS, e.after))
        for e in EXPECTED[scene]
        if not faults or e.after in faults
    )


def _resolved(scene: str) -> Step:
    """Waits until the scene's alerts on states are resolved, as `_fired` does."""
    return _silent(resolved(*(e.detector for e in EXPECTED[scene] if e.resolves)))


def _nothing(_stage: Stage) -> None:
    """It is only said."""


def _return(key: str, killed: str) -> Step:
    """A killed broker starts again: a fault of its own."""

    def start(stage: Stage) -> None:
        stage.mark(key)
        stage.heal(killed)

    return Step(key, start)


def _wait_for_a_quiet_start(stage: Stage) -> None:
    if not stage.reaches(lambda stage: not stage.open_alerts(), SLOW_START_SECONDS):
        names = ", ".join(sorted(stage.open_alerts()))
        raise TidemarkError(
            f"alerts that fired at the start are not resolved: {names}. Logs: "
            f"{stage.cluster.directory.parent}"
        )
