"""Drills of followers: slow ones, paused ones, and what min.insync.replicas stops."""

from __future__ import annotations

from typing import Final

from tidemark.core.errors import ClusterError
from tidemark_lab.drills.drill import Drill, Topic
from tidemark_lab.drills.stage import TOPIC, Stage
from tidemark_lab.drills.steps import (
    alert,
    crash,
    heal,
    in_sync,
    inject,
    load,
    passes,
    resolved,
    wait,
    whole,
)
from tidemark_lab.faults.disk_faults import DiskFull
from tidemark_lab.faults.node_faults import Pause, SlowFollower
from tidemark_lab.faults.topic_faults import RaisedMinIsr
from tidemark_lab.judge.expected import Expected

_SLOW, _PAUSE, _KILL, _RAISE = "slow follower", "pause a follower", "kill broker 3", "raise min ISR"
_PAUSES: Final = "pause a follower again and again"

# Kafka keeps a silent replica in sync for 30 s, and a broker's session open for 9 s.
_DEFAULTS: Final = {"replica.lag.time.max.ms": "30000", "broker.session.timeout.ms": "20000"}

SLOW_IN_SYNC_FOLLOWER: Final = Drill(
    name="slow-in-sync-follower",
    shows="A follower fetches every 9 s and stays in sync: it holds back every commit.",
    overrides=_DEFAULTS,
    steps=(
        inject(_SLOW, lambda stage: SlowFollower(stage.cluster, 3, 9.0, 0.3)),
        alert("FOLLOWER_LAG", broker=3),
        load(5),
        heal(_SLOW),
        resolved("FOLLOWER_LAG"),
    ),
    expected=(Expected("FOLLOWER_LAG", _SLOW, broker=3, resolves=True),),
    forbidden=("ISR_CHANGE", "UNDER_REPLICATED", "COMMITTED_DATA_LOSS"),
)

PAUSING_FOLLOWER: Final = Drill(
    name="pausing-follower",
    shows="A follower in sync pauses for 4 s again and again. No pause alone counts as down.",
    overrides=_DEFAULTS,
    steps=(
        inject(_PAUSES, lambda stage: SlowFollower(stage.cluster, 3, 4.3, 1.0)),
        alert("BROKER_DOWN", broker=3),
        load(5),
        heal(_PAUSES),
        resolved("BROKER_DOWN"),
    ),
    expected=(Expected("BROKER_DOWN", _PAUSES, broker=3, resolves=True),),
    forbidden=("ISR_CHANGE", "UNDER_REPLICATED", "COMMITTED_DATA_LOSS"),
)

FOLLOWER_LAG_SHRINKS_ISR: Final = Drill(
    name="follower-lag-shrinks-isr",
    shows="A paused follower holds back commits until Kafka removes it from the in-sync set.",
    overrides={"replica.lag.time.max.ms": "12000", "broker.session.timeout.ms": "20000"},
    steps=(
        inject(_PAUSE, lambda stage: Pause(stage.cluster, 3)),
        wait("broker 3 is out of sync", in_sync(1, 2)),
        alert("UNDER_REPLICATED"),
        load(2),
        heal(_PAUSE),
        whole(),
        resolved("FOLLOWER_LAG", "UNDER_REPLICATED"),
    ),
    expected=(
        Expected("FOLLOWER_LAG", _PAUSE, broker=3, resolves=True),
        Expected("BROKER_DOWN", _PAUSE, broker=3, resolves=True),
        Expected("UNDER_REPLICATED", _PAUSE, resolves=True),
    ),
    forbidden=("COMMITTED_DATA_LOSS", "UNCLEAN_ELECTION"),
)

REJOIN_ISR: Final = Drill(
    name="rejoin-isr",
    shows="A crashed follower is out of sync until it has reached the high watermark again.",
    steps=(
        crash(_KILL, 3),
        wait("broker 3 is out of sync", in_sync(1, 2)),
        alert("ISR_CHANGE"),
        load(5),
        heal(_KILL),
        whole(),
        resolved("ISR_CHANGE", "UNDER_REPLICATED", "BROKER_DOWN"),
    ),
    expected=(
        Expected("BROKER_DOWN", _KILL, broker=3, resolves=True),
        Expected("ISR_CHANGE", _KILL, "info", resolves=True),
        Expected("UNDER_REPLICATED", _KILL, "info", resolves=True),
    ),
    forbidden=("COMMITTED_DATA_LOSS", "UNCLEAN_ELECTION", "OFFLINE"),
)

_CHURN_LAG: Final = {"replica.lag.time.max.ms": "1500", "broker.session.timeout.ms": "20000"}


ISR_CHURN: Final = Drill(
    name="isr-churn",
    shows="A follower leaves the in-sync set and joins it again, three times.",
    overrides=_CHURN_LAG,
    steps=(
        *(
            step
            for number in (1, 2, 3)
            for step in (
                inject(f"pause {number}", lambda stage: Pause(stage.cluster, 3)),
                wait("broker 3 is out of sync", in_sync(1, 2)),
                passes(2),
                heal(f"pause {number}"),
                whole(),
                passes(2),
            )
        ),
        alert("ISR_CHURN"),
    ),
    expected=(Expected("ISR_CHURN", "pause 3", "warning", broker=3),),
    forbidden=("COMMITTED_DATA_LOSS", "UNCLEAN_ELECTION", "OFFLINE"),
)

MIN_ISR_GATE: Final = Drill(
    name="min-isr-gate",
    shows="min.insync.replicas rises above the in-sync set: writes with acks=all are refused.",
    topic=Topic(min_in_sync_replicas=2),
    steps=(
        crash(_KILL, 3),
        wait("broker 3 is out of sync", in_sync(1, 2)),
        load(2),
        inject(_RAISE, lambda stage: RaisedMinIsr(stage.cluster, [(TOPIC, 0)], 3, 2)),
        # The collector reads the configuration of topics once a minute.
        alert("UNDER_MIN_ISR", seconds=75.0),
        heal(_RAISE),
        resolved("UNDER_MIN_ISR"),
        heal(_KILL),
        whole(),
        load(2),
    ),
    expected=(Expected("UNDER_MIN_ISR", _RAISE, "critical", broker=3, resolves=True),),
    forbidden=("COMMITTED_DATA_LOSS", "UNCLEAN_ELECTION", "OFFLINE"),
)

_FULL: Final = "fill a disk of broker 3"


def _fill(stage: Stage) -> DiskFull:
    if stage.disk is None:
        raise ClusterError("the drill has no disk to fill.")
    return DiskFull(stage.cluster, 3, stage.disk.folder, stage.disk.size_bytes)


DISK_FULL: Final = Drill(
    name="disk-full",
    shows="One of a broker's two disks is full: Kafka stops using it, a warning names it.",
    topic=Topic(partitions=6),
    small_disk_broker=3,
    steps=(
        load(2),
        inject(_FULL, _fill),
        # The collector asks brokers for their log directories once a minute.
        alert("LOG_DIR_OFFLINE", broker=3, seconds=75.0),
        heal(_FULL),
        whole(),
        load(2),
    ),
    expected=(Expected("LOG_DIR_OFFLINE", _FULL, "warning", broker=3),),
    forbidden=("COMMITTED_DATA_LOSS", "UNCLEAN_ELECTION", "OFFLINE"),
)
