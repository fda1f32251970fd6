"""Drills of single steps on real followers: rounds, epoch entries, acks=1, a near member."""

from __future__ import annotations

import time
from typing import Final

from tidemark.kafka.client import Producer, close_producer
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.brokers.replica_logs import read_epochs, read_replicas
from tidemark_lab.drills.drill import Drill, Step, Topic
from tidemark_lab.drills.held_answers import (
    FETCH_WAIT_MS,
    FETCHERS,
    PLACE,
    link_of,
    play_real_rounds,
    send,
)
from tidemark_lab.drills.schedules.historic import ASKS
from tidemark_lab.drills.schedules.leaders import cut_link
from tidemark_lab.drills.schedules.routine import UNTRUE
from tidemark_lab.drills.stage import TOPIC, Stage
from tidemark_lab.drills.steps import (
    busy,
    crash,
    heal,
    idle,
    in_sync,
    inject,
    led_by,
    load,
    passes,
    wait,
    whole,
)
from tidemark_lab.drills.wire import Wire
from tidemark_lab.faults.node_faults import ControlledRestart, Pause

_STOP, _KILL, _PAUSE, _CUT = "stop broker 1", "kill broker 1", "pause broker 3", "cut the link"
_PATIENT: Final = {"replica.lag.time.max.ms": "120000", "broker.session.timeout.ms": "90000"}
_LOST_RECORDS: Final = 20
_HELD_SECONDS: Final = 1.0
_SECONDS: Final = 30.0

FOLLOWER_ROUNDS: Final = Drill(
    name="follower-rounds",
    shows="Two real followers, answer by answer: the five values, and what waits for them.",
    slow_leader=1,
    overrides={
        **_PATIENT,
        "replica.fetch.wait.max.ms": str(FETCH_WAIT_MS),
        "replica.high.watermark.checkpoint.interval.ms": "1000",
    },
    steps=(
        load(2),
        idle(),
        Step("let answers through one by one", play_real_rounds),
        busy(),
        whole(),
        load(2),
        passes(3),
    ),
    forbidden=UNTRUE,
)


def _epochs(stage: Stage, broker: int) -> list[tuple[int, int]]:
    return read_epochs(stage.cluster.log_directory(broker), PLACE)


def _end(stage: Stage, broker: int) -> int:
    return read_replicas(stage.cluster.log_directory(broker), [PLACE])[PLACE].log_end_offset


def _before_first_record(stage: Stage) -> None:
    """Broker 2 leads, and nothing was written since."""
    found, end = _epochs(stage, 2), _end(stage, 2)
    earlier = [entry for entry in found if entry[1] < end]
    text = f"elected at log end {end}, before a record, the leader's epoch file has {found}"
    if stage.cluster.version == ASKS:
        holds = bool(found) and found == earlier
    else:
        holds = bool(earlier) and len(found) == len(earlier) + 1 and found[-1][1] == end
    stage.show("epochs before the first record", text, holds=holds)


def _after_first_record(stage: Stage) -> None:
    found, others = _epochs(stage, 2), _epochs(stage, 1)
    text = f"after records, the leader's epoch file has {found}, that of the old leader {others}"
    holds = len(found) == len(others) + 1 and found[:-1] == others
    stage.show("epochs after the first record", text, holds=holds)


def _old_leader(stage: Stage) -> None:
    """Broker 1 led, and follows broker 2, or leads again."""
    found, others = _epochs(stage, 1), _epochs(stage, 2)
    text = f"broker 1, which led before, has epochs {found}; broker 2 has {others}"
    stage.show("old leader keeps its epochs", text, holds=len(found) > 1 and found == others)


EPOCH_ENTRY: Final = Drill(
    name="epoch-entry",
    shows="When an epoch enters the file: at the election, and on 0.11 with its first record.",
    versions=(ASKS, KAFKA_VERSION),
    topic=Topic((1, 2)),
    overrides={"auto.leader.rebalance.enable": "false"},
    steps=(
        load(3),
        idle(),
        inject(_STOP, lambda stage: ControlledRestart(stage.cluster, 1)),
        wait("broker 2 leads", led_by(2)),
        Step("read the epochs before a record", _before_first_record),
        busy(),
        load(3),
        Step("read the epochs after records", _after_first_record),
        heal(_STOP),
        whole(),
        load(2),
        Step("read the epochs of the old leader", _old_leader),
        passes(3),
    ),
    forbidden=UNTRUE,
    quiet=True,
)


def _write_to_one(stage: Stage) -> None:
    """Records that the leader acknowledges; the link holds its answers to the follower."""
    link_of(stage).hold(FETCHERS)
    before = _end(stage, 2)
    send(stage, 1, *(b"acks-1 %d" % number for number in range(_LOST_RECORDS)))
    time.sleep(_HELD_SECONDS)
    holds = _end(stage, 1) == before + _LOST_RECORDS and _end(stage, 2) == before
    text = f"{_LOST_RECORDS} records are acknowledged with acks=1, and on the leader alone"
    stage.show("acks=1 needs one log", text, holds=holds)


def _compare_lost(stage: Stage) -> None:
    folders = [stage.cluster.log_directory(broker) for broker in (1, 2)]
    logs = [
        b"".join(file.read_bytes() for file in sorted((folder / f"{TOPIC}-0").glob("*.log")))
        for folder in folders
    ]
    holds = not any(b"acks-1 " in log for log in logs)
    text = "no log has the records that were acknowledged with acks=1"
    stage.show("acks=1 is lost", text, holds=holds)


ACKS_1_LOSS: Final = Drill(
    name="acks-1-loss",
    shows="A leader dies with records of acks=1 that no follower has: a clean election loses them.",
    topic=Topic((1, 2)),
    slow_leader=1,
    overrides={"replica.lag.time.max.ms": "60000"},
    steps=(
        load(2),
        idle(),
        Step("write with acks=1 to the leader alone", _write_to_one),
        crash(_KILL, 1),
        wait("broker 2 leads", led_by(2)),
        Step("let answers through again", lambda stage: link_of(stage).let_go()),
        passes(2),
        busy(),
        load(2),
        heal(_KILL),
        whole(),
        Step("look for the records", _compare_lost),
        passes(3),
    ),
    allowed=("OFFLINE", "BROKER_DOWN"),
    forbidden=UNTRUE,
)


def _hold_back(stage: Stage) -> None:
    """Broker 3 has caught up. Broker 1 asks for it to join, and the controller does not hear it."""
    stage.wait(lambda stage: _end(stage, 3) == _end(stage, 1), _SECONDS, "broker 3 has caught up")
    members = stage.partitions()[0].isr_nodes
    text = f"broker 3 is at the leader's log end, and the in-sync set is {sorted(members)}"
    stage.show("caught up, not in sync", text, holds=sorted(members) == [1, 2])
    pause = Pause(stage.cluster, 3)
    producer = Producer(bootstrap_servers=stage.cluster.bootstrap_servers[0], acks="all", retries=0)
    try:
        with Wire(stage, 1, PLACE) as leader:
            before = leader.high_watermark()
            pause.inject()
            written = producer.send(TOPIC, value=b"held", partition=0)
            time.sleep(_HELD_SECONDS)
            waits = leader.high_watermark() == before and not written.is_done
            pause.heal()
            written.get(_SECONDS)
        text = "the high watermark waits for it: acks=all is answered once it has the record"
        stage.show("it counts already", text, holds=waits)
    finally:
        pause.heal()
        close_producer(producer, 1.0)


CAUGHT_UP_OUT_OF_SYNC: Final = Drill(
    name="caught-up-out-of-sync",
    shows="A follower that has caught up counts before the controller has it in the in-sync set.",
    linked_broker=1,
    overrides={"replica.lag.time.max.ms": "4000", "broker.session.timeout.ms": "90000"},
    steps=(
        load(2),
        inject(_PAUSE, lambda stage: Pause(stage.cluster, 3)),
        wait("broker 3 is out of sync", in_sync(1, 2)),
        inject(_CUT, cut_link),
        idle(),
        heal(_PAUSE),
        Step("write while it has caught up", _hold_back),
        heal(_CUT),
        whole(),
        busy(),
        load(2),
        passes(3),
    ),
    allowed=("BROKER_DOWN", "UNDER_REPLICATED"),
    forbidden=UNTRUE,
)
