"""Drills of blame and of what cannot make progress: which broker, link or setting is the cause."""

from __future__ import annotations

from typing import Final

from tidemark.core.errors import ClusterError
from tidemark.core.identity import alert_name
from tidemark_lab.brokers.link import Link
from tidemark_lab.drills.collector_faults import CollectorKilled
from tidemark_lab.drills.drill import Drill, Step, Topic
from tidemark_lab.drills.pipeline import COLLECTOR
from tidemark_lab.drills.stage import TOPIC, Stage
from tidemark_lab.drills.steps import (
    alert,
    heal,
    in_sync,
    inject,
    load,
    passes,
    resolved,
    wait,
    whole,
)
from tidemark_lab.faults.controller_faults import LostVoter, QuorumElections
from tidemark_lab.faults.node_faults import Crash, SlowLeader, TakenAddress
from tidemark_lab.faults.topic_faults import BlockedReassignment, LeaderThrottle
from tidemark_lab.judge.expected import Expected

_SLOW, _THROTTLE, _KILL = "slow leader", "leave a throttle on broker 1", "kill broker 3"
_KILL_2, _MOVE, _STALLS = "kill broker 2", "reassign to brokers 2 and 3", "stall the controllers"
_VOTER, _RESTART, _TAKEN = "kill a voter", "restart the collector", "broker 4 takes 3's address"
_UNTRUE: Final = ("COMMITTED_DATA_LOSS", "UNCLEAN_ELECTION", "DIVERGENCE")
# Every broker leads, and follows each other one.
_TURNS: Final = Topic(partitions=6, layouts=((1, 2, 3), (2, 3, 1), (3, 1, 2)))
# A silent follower remains in sync for long.
_PATIENT: Final = {"replica.lag.time.max.ms": "30000", "broker.session.timeout.ms": "20000"}


def _link(stage: Stage) -> Link:
    if stage.link is None:
        raise ClusterError("the drill has no link to slow.")
    return stage.link


def _stays_open(detector: str) -> Step:
    """A check that an alert is open at this moment."""

    def look(stage: Stage) -> None:
        is_open = alert_name(detector) in stage.open_alerts()
        text = "is open" if is_open else "is not open"
        stage.show(f"{alert_name(detector)} stays open", text, holds=is_open)

    return Step(f"look: {alert_name(detector)} is open", look)


def _says(name: str, detector: str, words: str) -> Step:
    """A check that the text of an alert has these words."""

    def look(stage: Stage) -> None:
        texts = [
            alert.annotations["description"]
            for alert, _ in stage.product.alerts()
            if alert.labels["alertname"] == alert_name(detector)
        ]
        stage.show(name, texts[-1] if texts else "no alert", holds=any(words in t for t in texts))

    return Step(f"look: {name}", look)


def _restart_collector(stage: Stage) -> CollectorKilled:
    return CollectorKilled(stage.pipeline, COLLECTOR)


SLOW_LEADER: Final = Drill(
    name="slow-leader",
    shows="All followers of one leader get its answers late: the leader is named, no follower is.",
    topic=_TURNS,
    overrides=_PATIENT,
    slow_leader=1,
    steps=(
        load(5),
        inject(_SLOW, lambda stage: SlowLeader(_link(stage), 1, 9.0)),
        # With acks=all the producer waits, so that the followers lack few records.
        alert("HW_STALLED", broker=1),
        load(15),
        heal(_SLOW),
        whole(),
        resolved("FOLLOWER_LAG", "HW_STALLED"),
    ),
    expected=(Expected("HW_STALLED", _SLOW, "warning", broker=1, resolves=True),),
    forbidden=(*_UNTRUE, "BROKER_DOWN"),
    healthy=(2, 3),
)

LEADER_THROTTLE: Final = Drill(
    name="leader-throttle",
    shows="A forgotten replication throttle of a leader keeps a broker that returns out of sync.",
    topic=_TURNS,
    records_per_second=300,
    record_bytes=400,
    steps=(
        load(5),
        inject(_THROTTLE, lambda stage: LeaderThrottle(stage.cluster, stage.places, 1, 2_000)),
        inject(_KILL, lambda stage: Crash(stage.cluster, 3)),
        load(10),
        heal(_KILL),
        # The collector reads the configuration of brokers and topics once a minute.
        alert("FOLLOWER_LAG", broker=1, seconds=90.0, after=_THROTTLE),
        load(30),
        _says("the text names the throttle", "FOLLOWER_LAG", "leader.replication.throttled.rate"),
        heal(_THROTTLE),
        whole(),
    ),
    expected=(Expected("FOLLOWER_LAG", _THROTTLE, "warning", broker=1),),
    forbidden=_UNTRUE,
    healthy=(2,),
)

BLOCKED_REASSIGNMENT: Final = Drill(
    name="blocked-reassignment",
    # From 4.3 on, it ends without that replica.
    versions=("4.2.2",),
    shows="A reassignment waits for a dead replica of the old assignment: a warning names it.",
    topic=Topic((1, 2)),
    thresholds={"reassignment_stuck_ms": 20_000},
    steps=(
        load(3),
        inject(_KILL_2, lambda stage: Crash(stage.cluster, 2)),
        wait("broker 2 is out of sync", in_sync(1)),
        inject(
            _MOVE,
            lambda stage: BlockedReassignment(
                stage.cluster, {(TOPIC, 0): (1, 2)}, {(TOPIC, 0): (2, 3)}
            ),
        ),
        alert("REASSIGNMENT_STUCK", broker=2, seconds=60.0),
        heal(_KILL_2),
        heal(_MOVE),
        whole(),
        resolved("REASSIGNMENT_STUCK"),
    ),
    expected=(Expected("REASSIGNMENT_STUCK", _MOVE, "warning", broker=2, resolves=True),),
    forbidden=_UNTRUE,
    healthy=(1, 3),
)

QUORUM_ELECTIONS: Final = Drill(
    name="quorum-elections",
    shows="The active controller stalls eight times: each pass finds a leader, a warning comes.",
    controllers=3,
    topic=Topic(partitions=3),
    steps=(
        load(8),
        inject(_STALLS, lambda stage: QuorumElections(stage.cluster, 8, 5.0)),
        alert("QUORUM_UNHEALTHY", seconds=60.0),
        heal(_STALLS),
        load(3),
    ),
    expected=(Expected("QUORUM_UNHEALTHY", _STALLS, "warning"),),
    forbidden=_UNTRUE,
    healthy=(1, 2, 3),
)

LOST_VOTER: Final = Drill(
    name="lost-voter",
    shows="One of three controllers stays dead: a warning says what one more failure means.",
    controllers=3,
    topic=Topic(partitions=3),
    thresholds={"under_replicated_escalates_ms": 30_000},
    steps=(
        load(3),
        inject(_VOTER, lambda stage: LostVoter(stage.cluster)),
        alert("QUORUM_UNHEALTHY", seconds=90.0),
        heal(_VOTER),
        resolved("QUORUM_UNHEALTHY"),
    ),
    expected=(Expected("QUORUM_UNHEALTHY", _VOTER, "warning", resolves=True),),
    forbidden=_UNTRUE,
    healthy=(1, 2, 3),
)

COLLECTOR_RESTART_BESIDE_DEAD_BROKER: Final = Drill(
    name="collector-restart-beside-dead-broker",
    shows="A restart of the collector does not close the alert of a broker that is still dead.",
    topic=_TURNS,
    steps=(
        load(3),
        inject(_KILL, lambda stage: Crash(stage.cluster, 3)),
        alert("BROKER_DOWN", broker=3),
        load(10),
        inject(_RESTART, _restart_collector),
        heal(_RESTART),
        passes(12),
        _stays_open("BROKER_DOWN"),
        heal(_KILL),
        whole(),
        resolved("BROKER_DOWN"),
    ),
    expected=(Expected("BROKER_DOWN", _KILL, "warning", broker=3, resolves=True),),
    forbidden=(*_UNTRUE, "OFFLINE"),
    healthy=(1, 2),
    # The broker's alert is the only one that asks for something.
    quiet=True,
)

LATE_START: Final = Drill(
    name="late-start",
    shows="A collector that starts beside a dead broker, which no broker lists, raises its alert.",
    topic=_TURNS,
    steps=(
        load(3),
        inject(_RESTART, _restart_collector),
        inject(_KILL, lambda stage: Crash(stage.cluster, 3)),
        wait("broker 3 is out of sync", in_sync(1, 2)),
        load(10),
        heal(_RESTART),
        alert("BROKER_DOWN", broker=3),
        heal(_KILL),
        whole(),
        resolved("BROKER_DOWN"),
    ),
    expected=(Expected("BROKER_DOWN", _KILL, "warning", broker=3, resolves=True),),
    forbidden=(*_UNTRUE, "OFFLINE"),
    healthy=(1, 2),
)

_FOLLOWS: Final = Topic(partitions=4, layouts=((1, 2, 3), (2, 1, 3)))

SHARED_ADDRESS: Final = Drill(
    name="shared-address",
    shows="Broker 3 gives clients the address of broker 2: no answer of 2 counts as one of 3.",
    topic=_FOLLOWS,
    told_addresses={3: 2},
    steps=(
        load(5),
        alert("BROKER_DOWN", broker=3),
        inject(_KILL, lambda stage: Crash(stage.cluster, 3)),
        load(10),
        _stays_open("BROKER_DOWN"),
        heal(_KILL),
        whole(),
    ),
    forbidden=_UNTRUE,
    healthy=(1, 2),
)

TAKEN_ADDRESS: Final = Drill(
    name="taken-address",
    shows="A dead broker's address is taken by another broker: the dead one stays down.",
    topic=_FOLLOWS,
    steps=(
        load(5),
        inject(_TAKEN, lambda stage: TakenAddress(stage.cluster, 3, 4)),
        alert("BROKER_DOWN", broker=3),
        load(20),
        _stays_open("BROKER_DOWN"),
        heal(_TAKEN),
        whole(),
    ),
    expected=(Expected("BROKER_DOWN", _TAKEN, "warning", broker=3),),
    forbidden=_UNTRUE,
    healthy=(1, 2),
)

UNREACHABLE_LISTENER: Final = Drill(
    name="unreachable-listener",
    shows="Broker 3 gives clients an address where nothing listens: it is named, with the address.",
    topic=_FOLLOWS,
    told_addresses={3: None},
    steps=(load(5), alert("BROKER_DOWN", broker=3), _stays_open("BROKER_DOWN"), load(5)),
    forbidden=_UNTRUE,
    healthy=(1, 2),
)

MIN_ISR_ABOVE_REPLICAS: Final = Drill(
    name="min-isr-above-replicas",
    shows="Before 3.7 min ISR may exceed the replicas (KAFKA-15583): every acks=all write fails.",
    versions=("2.8.2",),
    topics={
        TOPIC: Topic(partitions=1),
        "one": Topic((1,), min_in_sync_replicas=2, idle_every=1),
        "two": Topic((1, 2), min_in_sync_replicas=3, idle_every=1),
    },
    steps=(load(5), _stays_open("UNDER_MIN_ISR"), load(5)),
    allowed=("UNDER_MIN_ISR",),
    forbidden=_UNTRUE,
)
