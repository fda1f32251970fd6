"""Drills of leaders: replaced unseen, without their high watermark, elected again and again."""

from __future__ import annotations

from typing import Final

from tidemark.core.errors import ClusterError
from tidemark.core.identity import alert_name
from tidemark_lab.drills.drill import Drill, Step, Topic
from tidemark_lab.drills.stage import TOPIC, Stage
from tidemark_lab.drills.steps import (
    alert,
    busy,
    heal,
    idle,
    in_sync,
    inject,
    led_by,
    load,
    not_led_by,
    passes,
    resolved,
    wait,
    whole,
)
from tidemark_lab.drills.wire import Wire
from tidemark_lab.faults.controller_faults import CutControllerLink
from tidemark_lab.faults.disk_faults import LostCheckpoint, PowerFailure
from tidemark_lab.faults.topic_faults import LeaderMoves, PreferredElection
from tidemark_lab.faults.transaction_faults import TRANSACTIONAL_ID, HangingTransaction
from tidemark_lab.judge.expected import Expected

_CUT, _STORM, _HANG, _LOST, _POWER = (
    "cut the leader's controller link",
    "move the leader six times",
    "leave a transaction open",
    "lose the checkpoint",
    "lose power everywhere",
)


def cut_link(stage: Stage) -> CutControllerLink:
    if stage.link is None:
        raise ClusterError("the drill has no link to cut.")
    return CutControllerLink(stage.link, 1)


def _read_committed(stage: Stage) -> None:
    """A consumer of each isolation level, at the last stable offset."""
    with Wire(stage, 1, (TOPIC, 0)) as leader:
        stable = leader.fetch(0).last_stable_offset
        committed = leader.fetch(stable, committed_only=True)
        all_records = leader.fetch(stable)
    text = f"read_committed stops at {stable}, below the high watermark {committed.high_watermark}"
    holds = committed.end is None and all_records.end is not None
    stage.show("last stable offset", text, holds=holds and stable < committed.high_watermark)
    name = alert_name("LSO_STUCK")

    def named(stage: Stage) -> bool:
        told = [a.evidence for a, _ in stage.product.alerts() if a.labels["alertname"] == name]
        held = told[-1]["transaction"] or {}
        return (held.get("start_offset"), held.get("transactional_id")) == (
            stable,
            TRANSACTIONAL_ID,
        )

    holds = stage.reaches(named, 20.0)
    text = f"{name} names `{TRANSACTIONAL_ID}`, and {stable}, where its transaction begins"
    stage.show("holder of the last stable offset", text, holds=holds)


ZOMBIE_LEADER: Final = Drill(
    name="zombie-leader",
    shows="A leader without its controller is replaced unseen, and cuts off what it took since.",
    linked_broker=1,
    steps=(
        inject(_CUT, cut_link),
        wait("another broker leads", not_led_by(1)),
        alert("ZOMBIE_LEADER", broker=1),
        load(2),
        heal(_CUT),
        whole(),
        resolved("ZOMBIE_LEADER"),
        load(2),
    ),
    # It cuts records off only where a request of a producer was on its way to it.
    expected=(Expected("ZOMBIE_LEADER", _CUT, "warning", broker=1, resolves=True),),
    forbidden=("COMMITTED_DATA_LOSS", "UNCLEAN_ELECTION", "OFFLINE"),
)

HW_REGRESSION: Final = Drill(
    name="hw-regression",
    shows="A leader starts below the committed offset and below min ISR: consumers wait.",
    topic=Topic((1, 2), min_in_sync_replicas=2),
    thresholds={"high_watermark_regressed_ms": 5000.0},
    steps=(
        load(2),
        idle(),
        inject("stop broker 2", lambda stage: LostCheckpoint(stage.cluster, 2)),
        wait("broker 1 is alone in sync", in_sync(1)),
        passes(2),
        inject(_LOST, lambda stage: LostCheckpoint(stage.cluster, 1)),
        passes(2),
        heal(_LOST),
        wait("broker 1 leads", led_by(1)),
        alert("HW_REGRESSION"),
        passes(8),
        heal("stop broker 2"),
        whole(),
        busy(),
        load(2),
        resolved("HW_REGRESSION"),
    ),
    expected=(Expected("HW_REGRESSION", _LOST, "warning", resolves=True),),
    allowed=("UNDER_MIN_ISR", "OFFLINE"),
    forbidden=("COMMITTED_DATA_LOSS", "UNCLEAN_ELECTION"),
)

EPOCH_STORM: Final = Drill(
    name="epoch-storm",
    shows="The leader moves again and again: clients search for it each time.",
    steps=(
        inject(_STORM, lambda stage: LeaderMoves(stage.cluster, (TOPIC, 0), (1, 2, 3), 6)),
        alert("EPOCH_BUMP_STORM"),
        heal(_STORM),
        whole(),
        load(2),
    ),
    expected=(Expected("EPOCH_BUMP_STORM", _STORM, "info"),),
    forbidden=("COMMITTED_DATA_LOSS", "UNCLEAN_ELECTION", "OFFLINE"),
    quiet=True,
)

HANGING_TRANSACTION: Final = Drill(
    name="hanging-transaction",
    shows="A transaction that no producer ends stops every read_committed consumer.",
    thresholds={"last_stable_stuck_ms": 8000.0},
    steps=(
        inject(_HANG, lambda stage: HangingTransaction(stage.cluster, (TOPIC, 0))),
        alert("LSO_STUCK"),
        Step("read at the last stable offset", _read_committed),
        heal(_HANG),
        resolved("LSO_STUCK"),
        load(2),
    ),
    expected=(Expected("LSO_STUCK", _HANG, "warning", resolves=True),),
    forbidden=("COMMITTED_DATA_LOSS", "HW_STALLED", "FOLLOWER_LAG"),
)

POWER_FAILURE: Final = Drill(
    name="power-failure",
    shows="All brokers lose power, and the newest records with it: committed ones are lost.",
    steps=(
        load(3),
        # What is lost was sampled: the high watermark is that of the last pass.
        idle(),
        inject(
            _POWER,
            lambda stage: PowerFailure(stage.cluster, stage.places, {1: 30, 2: 60, 3: 90}),
        ),
        passes(8),
        heal(_POWER),
        whole(),
        passes(4),
        busy(),
        alert("COMMITTED_DATA_LOSS"),
        load(3),
        passes(4),
    ),
    lost="some",
    expected=(Expected("COMMITTED_DATA_LOSS", _POWER, "critical"),),
    # That the last copies are cut is seen where the brokers answer together.
    allowed=("OFFLINE", "UNCLEAN_ELECTION", "UNDER_MIN_ISR", "LOG_TRUNCATION"),
)

PREFERRED_LEADER: Final = Drill(
    name="preferred-leader",
    shows="The first assigned replica leads again: nothing is wrong.",
    steps=(
        inject(
            "move the leader", lambda stage: LeaderMoves(stage.cluster, (TOPIC, 0), (2, 1, 3), 1)
        ),
        passes(2),
        heal("move the leader"),
        inject("elect the preferred", lambda stage: PreferredElection(stage.cluster, stage.places)),
        heal("elect the preferred"),
        whole(),
        load(2),
        passes(5),
    ),
    quiet=True,
)
