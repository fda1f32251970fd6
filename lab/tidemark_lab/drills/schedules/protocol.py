"""Drills of what one replica does: fetch rounds, reads of followers, files of a log directory."""

from __future__ import annotations

from typing import Final

from tidemark_lab.brokers.replica_logs import (
    CHECKPOINT,
    RECOVERY_POINTS,
    read_checkpoint,
    read_epochs,
    read_replicas,
)
from tidemark_lab.drills.drill import Drill, Step, Topic
from tidemark_lab.drills.rounds import play_rounds
from tidemark_lab.drills.schedules.routine import UNTRUE
from tidemark_lab.drills.stage import TOPIC, Stage
from tidemark_lab.drills.steps import (
    busy,
    heal,
    idle,
    in_sync,
    inject,
    load,
    passes,
    wait,
    whole,
)
from tidemark_lab.drills.wire import Wire
from tidemark_lab.faults.node_faults import ControlledRestart, Pause
from tidemark_lab.faults.topic_faults import DeleteRecords

_PAUSE, _DELETE, _STOP = "pause the follower", "delete records", "stop broker 3"
_DELETED: Final = 50

FETCH_ROUNDS: Final = Drill(
    name="fetch-rounds",
    shows="A record is committed by the follower's second fetch; consumers and acks=all wait.",
    topic=Topic((1, 2)),
    overrides={"replica.lag.time.max.ms": "120000", "broker.session.timeout.ms": "90000"},
    steps=(
        load(2),
        idle(),
        inject(_PAUSE, lambda stage: Pause(stage.cluster, 2)),
        Step("write and fetch by hand", play_rounds),
        heal(_PAUSE),
        busy(),
        whole(),
        load(2),
        passes(3),
    ),
    forbidden=UNTRUE,
)


def _read_from_follower(stage: Stage) -> None:
    with Wire(stage, 1, (TOPIC, 0)) as leader, Wire(stage, 2, (TOPIC, 0)) as follower:
        found = leader.fetch(0, rack="b")
        text = f"the leader sends a consumer of rack b to broker {found.preferred_read_replica}"
        stage.show("preferred read replica", text, holds=found.preferred_read_replica == 2)
        read = follower.fetch(0)
        committed = leader.high_watermark()
        ends = (0 if read.end is None else read.end, read.high_watermark, committed)
        text = "a follower serves consumers up to its own high watermark: {} <= {} <= {}"
        stage.show("follower's answer", text.format(*ends), holds=0 < ends[0] <= ends[1] <= ends[2])


REPLICA_READ: Final = Drill(
    name="replica-read",
    shows="A consumer reads from the follower on its rack, up to the follower's high watermark.",
    topic=Topic((1, 2)),
    overrides={
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    },
    broker_overrides={n: {"broker.rack": rack} for n, rack in ((1, "a"), (2, "b"), (3, "c"))},
    steps=(load(3), Step("read from the follower", _read_from_follower), passes(3)),
    forbidden=UNTRUE,
    quiet=True,
)


def _compare_files(stage: Stage) -> None:
    folder, place = stage.cluster.log_directory(3), (TOPIC, 0)
    end = read_replicas(folder, [place])[place].log_end_offset
    text = "after a clean stop it has {}, the log ends at {}"
    found = read_checkpoint(folder / CHECKPOINT).get(place)
    stage.show("replication-offset-checkpoint", text.format(found, end), holds=found == end)
    found = read_checkpoint(folder / RECOVERY_POINTS).get(place)
    stage.show("recovery-point-offset-checkpoint", text.format(found, end), holds=found == end)
    start = read_checkpoint(folder / "log-start-offset-checkpoint").get(place)
    text = f"it has {start}, records below {_DELETED} were deleted"
    stage.show("log-start-offset-checkpoint", text, holds=start == _DELETED)
    epochs = [read_epochs(stage.cluster.log_directory(broker), place) for broker in (1, 3)]
    text = f"the leader has epochs {epochs[0]}, the follower {epochs[1]}"
    stage.show("leader-epoch-checkpoint", text, holds=bool(epochs[0]) and epochs[0] == epochs[1])


CHECKPOINT_FILES: Final = Drill(
    name="checkpoint-files",
    shows="A broker that stops writes its checkpoints: high watermark, recovery point, log start.",
    overrides={
        "replica.high.watermark.checkpoint.interval.ms": "1000",
        "log.flush.start.offset.checkpoint.interval.ms": "1000",
        "log.flush.offset.checkpoint.interval.ms": "1000",
        "log.initial.task.delay.ms": "500",
    },
    steps=(
        load(3),
        inject(_DELETE, lambda stage: DeleteRecords(stage.cluster, {(TOPIC, 0): _DELETED})),
        heal(_DELETE),
        idle(),
        inject(_STOP, lambda stage: ControlledRestart(stage.cluster, 3)),
        wait("broker 3 is out of sync", in_sync(1, 2)),
        Step("compare the files", _compare_files),
        heal(_STOP),
        whole(),
        busy(),
        load(1),
        passes(3),
    ),
    forbidden=UNTRUE,
    quiet=True,
)
