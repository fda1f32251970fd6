"""The drill that tests play on every version of Kafka; docs/versions.md shows what they found.

A follower is paused, a broker restarted, a leader killed; then acknowledged records are lost: the
follower of the watched topic is down while the leader goes on alone, the leader is killed, and the
follower comes back. While nobody writes, what the collector saw last must be what the disks hold.
`SHORT` is the loss alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tidemark.core.codec import decode_batch
from tidemark.core.events import Observation
from tidemark_lab.brokers.broker_socket import fetch_metadata
from tidemark_lab.brokers.cluster import BROKERS, Place
from tidemark_lab.drills.drill import Drill, Step, Topic
from tidemark_lab.drills.stage import TOPIC, Stage
from tidemark_lab.drills.steps import (
    acknowledged_since,
    alert,
    crash,
    heal,
    in_sync,
    inject,
    leaderless,
    led_by,
    load,
    passes,
    wait,
    whole,
)
from tidemark_lab.faults.fault import Fault
from tidemark_lab.faults.node_faults import ControlledRestart, Pause

TRIO: Final = "trio"
_PAUSE, _RESTART, _KILL = "pause a follower", "restart broker 3", "kill broker 2"
_FOLLOWER, _LEADER = "kill the follower", "kill the last leader"
# A few passes of the collector.
_SECONDS: Final = 3.5


def _pause(stage: Stage) -> Fault:
    """Not the controller."""
    controller = fetch_metadata(stage.cluster.address(1)).controller_id
    return Pause(stage.cluster, 2 if controller == 3 else 3)


def _has_moved(stage: Stage) -> bool:
    """Whether another broker than 2 leads the partition that prefers it."""
    found = stage.cluster.partitions([TRIO]).get((TRIO, 1))
    return found is not None and found.leader_id not in (-1, 2)


def _is_gone(broker: int, stage: Stage) -> bool:
    """A killed broker can start again once its session is over."""
    alive = next(other for other in BROKERS if stage.cluster.is_running(other))
    return broker not in {b.node_id for b in fetch_metadata(stage.cluster.address(alive)).brokers}


def _compare(stage: Stage) -> None:
    """What the collector observed last against the disks."""
    seen: dict[Place, Observation] = {}
    for line in stage.pipeline.events.read_bytes().split(b"\n")[:-1]:
        for event in decode_batch(line).events:
            if isinstance(event, Observation):
                seen[event.topic, event.partition] = event
    shown: Mapping[tuple[int, Place], tuple[int | None, int | None]] = {
        (sample.broker, place): (sample.log_end_offset, sample.high_watermark)
        for place, observation in seen.items()
        for sample in observation.samples
        if sample.error is None
    }
    stored = stage.on_disk()
    wrong = [key for key in shown.keys() | stored.keys() if shown.get(key) != stored.get(key)]
    text = f"{len(stored)} replicas end where the collector says, but {wrong}"
    stage.show("observed offsets", text, holds=bool(stored) and not wrong)


def quiet() -> tuple[Step, ...]:
    """Compares what was observed with the disks, while nobody writes."""
    return (
        Step("pause the load", lambda stage: stage.load.pause(*stage.topics)),
        load(0.5),
        wait(
            "every log and checkpoint ends at the high watermark",
            lambda stage: stage.is_settled(committed=True),
        ),
        passes(2),
        Step("compare what was observed with the disks", _compare),
        Step("resume the load", lambda stage: stage.load.resume(*stage.topics)),
    )


_LOSE: Final = (
    wait("broker 1 leads", led_by(1)),
    crash(_FOLLOWER, 2),
    wait("the leader is alone", in_sync(1)),
    wait("the leader acknowledges records alone", acknowledged_since(_FOLLOWER, 50)),
    load(_SECONDS),
    crash(_LEADER, 1),
    wait("no leader is named", leaderless()),
    wait("the follower's session is over", lambda stage: _is_gone(2, stage)),
    alert("OFFLINE", 3),
    heal(_FOLLOWER),
    wait("the follower leads", led_by(2)),
    load(_SECONDS),
    wait("the old leader's session is over", lambda stage: _is_gone(1, stage)),
    heal(_LEADER),
    whole(),
)
SHORT: Final = Drill(
    name="short",
    shows="An unclean election loses records: what a version shows of it.",
    topic=Topic((1, 2), partitions=3, configs={"unclean.leader.election.enable": "true"}),
    steps=(load(_SECONDS), *quiet(), *_LOSE),
    overrides={
        "replica.lag.time.max.ms": "2000",
        "replica.high.watermark.checkpoint.interval.ms": "1000",
    },
    records_per_second=120,
    lost="some",
    allowed=("OFFLINE", "UNCLEAN_ELECTION", "COMMITTED_DATA_LOSS", "UNDER_MIN_ISR"),
    forbidden=("DIVERGENCE",),
)
EVERY_VERSION: Final = replace(
    SHORT,
    name="every-version",
    shows="Pauses, restarts and a loss: what a version shows of them.",
    topics={
        TRIO: Topic(
            partitions=3, min_in_sync_replicas=2, layouts=[(1, 2, 3), (2, 3, 1), (3, 1, 2)]
        ),
        TOPIC: SHORT.topic,
    },
    steps=(
        load(_SECONDS),
        *quiet(),
        inject(_PAUSE, _pause),
        load(_SECONDS),
        heal(_PAUSE),
        whole(),
        inject(_RESTART, lambda stage: ControlledRestart(stage.cluster, 3)),
        heal(_RESTART),
        whole(),
        crash(_KILL, 2),
        wait("another leader serves", _has_moved),
        wait("its session is over", lambda stage: _is_gone(2, stage)),
        heal(_KILL),
        whole(),
        *SHORT.steps,
        *quiet(),
    ),
)
