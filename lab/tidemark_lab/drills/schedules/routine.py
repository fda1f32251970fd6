"""Drills of planned work, and of Tidemark's own faults: no page, and no ticket for planned work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.drills.collector_faults import ClockStep, CollectorKilled, SecondCollector
from tidemark_lab.drills.drill import Drill, Topic
from tidemark_lab.drills.pipeline import COLLECTOR
from tidemark_lab.drills.schedules.elections import BEFORE_ELR
from tidemark_lab.drills.stage import TOPIC, Stage
from tidemark_lab.drills.steps import alert, heal, inject, load, passes, resolved, whole
from tidemark_lab.faults.controller_faults import ControllerFailover
from tidemark_lab.faults.node_faults import Pause, RollingRestart
from tidemark_lab.faults.topic_faults import DeleteRecords, PreferredElection, Reassignment
from tidemark_lab.judge.expected import Expected

UNTRUE: Final = ("COMMITTED_DATA_LOSS", "UNCLEAN_ELECTION", "DIVERGENCE")
_MOVED: Final[tuple[Place, ...]] = tuple((TOPIC, partition) for partition in range(4))


def _healthy(name: str, shows: str, replicas: Sequence[int]) -> Drill:
    return Drill(
        name=name,
        shows=shows,
        topic=Topic(tuple(replicas), partitions=3),
        steps=(load(5), passes(6)),
        forbidden=UNTRUE,
        quiet=True,
    )


TWO_REPLICA_WRITE: Final = _healthy(
    "two-replica-write", "Two replicas under load: every record is on both, no alert.", (1, 2)
)
THREE_REPLICA_WRITE: Final = _healthy(
    "three-replica-write", "Three replicas under load: every record is on all, no alert.", (1, 2, 3)
)


ROLLING_RESTART: Final = Drill(
    name="rolling-restart",
    shows="Every broker restarts in good order, one after another: no alert asks for anything.",
    topic=Topic(partitions=6, min_in_sync_replicas=2),
    versions=(KAFKA_VERSION, BEFORE_ELR),
    steps=(
        inject(
            "restart every broker",
            lambda stage: RollingRestart(
                stage.cluster, lambda: stage.cluster.is_whole(stage.topics)
            ),
        ),
        heal("restart every broker"),
        inject("elect the preferred", lambda stage: PreferredElection(stage.cluster, stage.places)),
        heal("elect the preferred"),
        whole(),
        load(3),
        passes(5),
    ),
    forbidden=UNTRUE,
    quiet=True,
)


def _reassign(stage: Stage) -> Reassignment:
    before = dict.fromkeys(_MOVED, (1, 2))
    return Reassignment(stage.cluster, before, dict.fromkeys(_MOVED, (3, 2)), 200_000)


REASSIGNMENT: Final = Drill(
    name="reassignment",
    shows="Replicas move to another broker and back, throttled: planned work, no alert.",
    topic=Topic((1, 2), partitions=len(_MOVED)),
    records_per_second=200,
    steps=(
        load(5),
        inject("move replicas", _reassign),
        passes(3),
        heal("move replicas"),
        whole(),
        load(2),
        passes(5),
    ),
    forbidden=UNTRUE,
    quiet=True,
)

DELETE_RECORDS: Final = Drill(
    name="delete-records",
    shows="An operator deletes records: the log start moves, and no loss is claimed.",
    steps=(
        load(4),
        inject("delete records", lambda stage: DeleteRecords(stage.cluster, {(TOPIC, 0): 100})),
        heal("delete records"),
        load(2),
        passes(5),
    ),
    forbidden=UNTRUE,
    quiet=True,
)

CONTROLLER_FAILOVER: Final = Drill(
    name="controller-failover",
    shows="The active controller of three is killed, another one takes over: no page.",
    controllers=3,
    steps=(
        inject("kill the controller", lambda stage: ControllerFailover(stage.cluster)),
        load(3),
        heal("kill the controller"),
        passes(8),
    ),
    forbidden=UNTRUE,
)

_AGAIN: Final = "pause a follower"


_DETECTS = (
    inject(_AGAIN, lambda stage: Pause(stage.cluster, 3)),
    alert("BROKER_DOWN", broker=3),
    heal(_AGAIN),
    whole(),
    resolved("BROKER_DOWN"),
)
_DETECTED = Expected("BROKER_DOWN", _AGAIN, broker=3, resolves=True)

COLLECTOR_KILLED: Final = Drill(
    name="collector-killed",
    shows="The collector is gone for a while: nothing fires, and what follows is seen.",
    steps=(
        inject("kill the collector", lambda stage: CollectorKilled(stage.pipeline, COLLECTOR)),
        load(5),
        heal("kill the collector"),
        passes(4),
        *_DETECTS,
    ),
    expected=(_DETECTED,),
    forbidden=UNTRUE,
)

COLLECTOR_CLOCK: Final = Drill(
    name="collector-clock",
    shows="The collector's clock steps back an hour, then ahead: nothing fires but what is true.",
    steps=(
        inject("clock back", lambda stage: ClockStep(stage.pipeline, COLLECTOR, -3_600.0)),
        heal("clock back"),
        passes(36),
        inject("clock ahead", lambda stage: ClockStep(stage.pipeline, COLLECTOR, 3_600.0)),
        heal("clock ahead"),
        passes(4),
        *_DETECTS,
    ),
    expected=(_DETECTED,),
    forbidden=UNTRUE,
)

_SECOND: Final = "start a second collector"
TWO_COLLECTORS: Final = Drill(
    name="two-collectors",
    shows="Two collectors watch the same partitions: a warning names the mistake.",
    steps=(
        inject(_SECOND, lambda stage: SecondCollector(stage.pipeline, "second")),
        alert("COLLECTOR_CONFLICT"),
        heal(_SECOND),
        passes(4),
    ),
    expected=(Expected("COLLECTOR_CONFLICT", _SECOND, "warning"),),
    forbidden=UNTRUE,
)
