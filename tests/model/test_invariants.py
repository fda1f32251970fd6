"""Each invariant that no protocol breaks fails on a state that breaks it."""

from __future__ import annotations

import pytest

from tidemark_lab.model.invariants import INVARIANTS
from tidemark_lab.model.log import Record
from tidemark_lab.model.state import Constants, ModelReplica, ModelState, QuorumState, initial

CONSTANTS = Constants()
FIRST = initial(CONSTANTS)
LEADER = ModelReplica(0, 0, 0, (0, 1))
SOUND = ModelState(
    logs=((Record(0, 0),), ()),
    replicas=(LEADER, LEADER),
    quorum=QuorumState(0, 0, (0, 1)),
    next_record_id=1,
)


def with_leader(leader: ModelReplica) -> ModelState:
    return SOUND._replace(replicas=(leader, LEADER))


def with_quorum(quorum: QuorumState) -> ModelState:
    return SOUND._replace(quorum=quorum)


def holds(name: str, state: ModelState) -> bool:
    return INVARIANTS[name].holds(CONSTANTS, state)


@pytest.mark.parametrize("name", INVARIANTS)
def test_each_invariant_holds_in_a_sound_state(name: str) -> None:
    assert holds(name, FIRST) and holds(name, SOUND)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("TypeOk", SOUND._replace(next_record_id=3)),
        ("TypeOk", SOUND._replace(next_record_id=0)),
        ("TypeOk", SOUND._replace(logs=((Record(0, 0),) * 3, ()))),
        ("TypeOk", SOUND._replace(logs=((Record(3, 0),), ()))),
        ("TypeOk", with_leader(LEADER._replace(high_watermark=-1))),
        ("TypeOk", with_leader(LEADER._replace(high_watermark=3))),
        ("TypeOk", with_leader(LEADER._replace(leader_epoch=3))),
        ("TypeOk", with_leader(LEADER._replace(leader=2))),
        ("TypeOk", with_leader(LEADER._replace(isr=(1, 0)))),
        ("TypeOk", with_leader(LEADER._replace(isr=(0, 2)))),
        ("TypeOk", with_quorum(QuorumState(0, 2, (0, 1)))),
        ("TypeOk", with_quorum(QuorumState(3, 0, (0, 1)))),
        ("TypeOk", with_quorum(QuorumState(0, 0, (0, 0)))),
        ("TypeOk", with_quorum(QuorumState(0, 0, (0,), elr=(2,)))),
        ("HwAtMostLeo", with_leader(LEADER._replace(high_watermark=2))),
        ("LeaderInIsr", with_quorum(QuorumState(0, 0, (1,)))),
    ],
)
def test_a_state_that_breaks_an_invariant(name: str, state: ModelState) -> None:
    assert not holds(name, state)


def test_a_partition_without_a_leader_keeps_leader_in_isr() -> None:
    assert holds("LeaderInIsr", with_quorum(QuorumState(0, None, ())))
