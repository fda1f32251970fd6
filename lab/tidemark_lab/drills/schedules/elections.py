"""Drills of elections: unclean ones, with and without a loss, and those that KIP-966 makes safe."""

from __future__ import annotations

from typing import Final

from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.drills.drill import Drill, Step, Topic
from tidemark_lab.drills.steps import (
    acknowledged_since,
    alert,
    busy,
    crash,
    heal,
    idle,
    in_sync,
    inject,
    leaderless,
    led_by,
    load,
    passes,
    resolved,
    wait,
    whole,
)
from tidemark_lab.faults.disk_faults import PageCacheLoss
from tidemark_lab.faults.node_faults import ControlledRestart
from tidemark_lab.judge.expected import Expected

# Before eligible leader replicas.
BEFORE_ELR: Final = "3.9.1"
UNCLEAN: Final = {"unclean.leader.election.enable": "true"}
_LEADER, _FOLLOWER = "kill the leader", "kill the follower"
_MANY: Final = 30


def _elect_stale(partitions: int = 1) -> tuple[Step, ...]:
    return (
        wait("broker 1 is alone in sync", in_sync(1)),
        wait("broker 1 acknowledges records alone", acknowledged_since(_FOLLOWER, 50)),
        load(3),
        crash(_LEADER, 1),
        wait("no partition has a leader", leaderless()),
        alert("OFFLINE", partitions),
        heal(_FOLLOWER),
        wait("broker 2 leads", led_by(2)),
    )


UNCLEAN_ELECTION: Final = Drill(
    name="unclean-election",
    shows="A stale follower is elected: the records that only the old leader had are lost.",
    topic=Topic((1, 2), configs=UNCLEAN),
    versions=(KAFKA_VERSION, BEFORE_ELR),
    steps=(
        crash(_FOLLOWER, 2),
        *_elect_stale(),
        alert("COMMITTED_DATA_LOSS"),
        heal(_LEADER),
        whole(),
        alert("LOG_TRUNCATION"),
        resolved("OFFLINE", "BROKER_DOWN"),
    ),
    lost="some",
    causes=1,
    expected=(
        Expected("BROKER_DOWN", _FOLLOWER, broker=2, resolves=True),
        Expected("OFFLINE", _LEADER, "critical", resolves=True),
        Expected("UNCLEAN_ELECTION", _LEADER, "critical", broker=2),
        Expected("COMMITTED_DATA_LOSS", _LEADER, "critical"),
        Expected("LOG_TRUNCATION", _LEADER, broker=1),
    ),
)

UNCLEAN_ELECTION_MANY: Final = Drill(
    name="unclean-election-many",
    shows=f"{_MANY} partitions lose records at once: one cause, so one message.",
    topic=Topic((1, 2), partitions=_MANY, configs=UNCLEAN),
    records_per_second=300,
    steps=(
        crash(_FOLLOWER, 2),
        *_elect_stale(_MANY),
        alert("COMMITTED_DATA_LOSS", _MANY),
        heal(_LEADER),
        whole(),
        alert("LOG_TRUNCATION", _MANY),
        resolved("OFFLINE", "BROKER_DOWN"),
    ),
    lost="some",
    causes=1,
    expected=(
        Expected("OFFLINE", _LEADER, "critical", partitions=_MANY, resolves=True),
        Expected("UNCLEAN_ELECTION", _LEADER, "critical", broker=2, partitions=_MANY),
        Expected("COMMITTED_DATA_LOSS", _LEADER, "critical", partitions=_MANY),
        # Broker 1 had the last copies, and cuts them when it is back.
        Expected("LOG_TRUNCATION", _LEADER, "critical", broker=1, partitions=_MANY),
    ),
)

UNCLEAN_WITHOUT_LOSS: Final = Drill(
    name="unclean-without-loss",
    shows="A follower out of sync is elected, and has every record: no loss is claimed.",
    topic=Topic((1, 2), configs=UNCLEAN),
    steps=(
        load(2),
        idle(),
        crash(_FOLLOWER, 2),
        wait("broker 1 is alone in sync", in_sync(1)),
        passes(3),
        crash(_LEADER, 1),
        wait("no partition has a leader", leaderless()),
        alert("OFFLINE"),
        heal(_FOLLOWER),
        wait("broker 2 leads", led_by(2)),
        alert("UNCLEAN_ELECTION"),
        busy(),
        load(3),
        heal(_LEADER),
        whole(),
        passes(5),
    ),
    expected=(
        Expected("OFFLINE", _LEADER, "critical", resolves=True),
        Expected("UNCLEAN_ELECTION", _LEADER, "critical", broker=2),
    ),
    forbidden=("COMMITTED_DATA_LOSS", "DIVERGENCE"),
)

_POWER = "the last leader loses power"
LAST_REPLICA_STANDING: Final = Drill(
    name="last-replica-standing",
    shows="The last in-sync replica loses records on its disk. With ELR another one is elected.",
    topic=Topic((1, 2, 3), min_in_sync_replicas=2),
    versions=(KAFKA_VERSION, BEFORE_ELR),
    steps=(
        load(2),
        idle(),
        inject("stop broker 3", lambda stage: ControlledRestart(stage.cluster, 3)),
        wait("broker 3 is out of sync", in_sync(1, 2)),
        inject("stop broker 2", lambda stage: ControlledRestart(stage.cluster, 2)),
        wait("broker 1 is alone in sync", in_sync(1)),
        passes(4),
        inject(_POWER, lambda stage: PageCacheLoss(stage.cluster, 1, stage.places, 20)),
        passes(8),
        heal(_POWER),
        passes(4),
        heal("stop broker 2"),
        heal("stop broker 3"),
        whole(),
        busy(),
        load(2),
        passes(4),
    ),
    lost={BEFORE_ELR: "some"},
    expected=(
        Expected("UNDER_MIN_ISR", "stop broker 2", "critical", resolves=True),
        Expected("ELR_ELECTION", _POWER, versions=(KAFKA_VERSION,)),
        Expected("COMMITTED_DATA_LOSS", _POWER, "critical", versions=(BEFORE_ELR,)),
        # Broker 3 is the last that had the records.
        Expected("LOG_TRUNCATION", "stop broker 3", "critical", broker=3, versions=(BEFORE_ELR,)),
    ),
    allowed=("OFFLINE",),
)

LAST_KNOWN_LEADER: Final = Drill(
    name="last-known-leader",
    shows="Every replica crashes. Kafka elects the last leader once it is back; nothing is lost.",
    topic=Topic((1, 2, 3), min_in_sync_replicas=2),
    steps=(
        load(2),
        crash("kill broker 3", 3),
        wait("broker 3 is out of sync", in_sync(1, 2)),
        crash("kill broker 2", 2),
        wait("broker 1 is alone in sync", in_sync(1)),
        alert("UNDER_MIN_ISR"),
        crash(_LEADER, 1),
        passes(8),
        heal("kill broker 2"),
        heal("kill broker 3"),
        wait("no partition has a leader", leaderless()),
        passes(4),
        heal(_LEADER),
        wait("broker 1 leads", led_by(1)),
        whole(),
        load(2),
        passes(4),
    ),
    expected=(
        Expected("UNDER_MIN_ISR", "kill broker 2", "critical", resolves=True),
        Expected("OFFLINE", _LEADER, "critical", resolves=True),
    ),
    allowed=("UNCLEAN_ELECTION",),
    forbidden=("COMMITTED_DATA_LOSS", "DIVERGENCE"),
)
