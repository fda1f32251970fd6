"""Each invariant that no protocol breaks, broken by hand: it can fail."""

from __future__ import annotations

import pytest

from tidemark.model.invariants import INVARIANTS
from tidemark.model.log import Record
from tidemark.model.state import ClusterState, Constants, QuorumState, ReplicaState, initial

CONSTANTS = Constants()
FIRST = initial(CONSTANTS)
SOUND = ClusterState(
    logs=((Record(0, 0),), ()),
    replicas=(ReplicaState(0, 0, 0, (0, 1)), ReplicaState(0, 0, 0, (0, 1))),
    quorum=QuorumState(0, 0, (0, 1)),
    next_record_id=1,
)


def first_replica(
    high_watermark: int = 0,
    leader_epoch: int = 0,
    leader: int | None = 0,
    isr: tuple[int, ...] = (0, 1),
) -> ClusterState:
    return SOUND._replace(
        replicas=(ReplicaState(high_watermark, leader_epoch, leader, isr), SOUND.replicas[1])
    )


def holds(name: str, state: ClusterState) -> bool:
    return INVARIANTS[name].holds(CONSTANTS, state)


@pytest.mark.parametrize("name", INVARIANTS)
def test_each_holds_of_a_sound_state(name: str) -> None:
    assert holds(name, FIRST) and holds(name, SOUND)


@pytest.mark.parametrize(
    "state",
    [
        SOUND._replace(next_record_id=3),
        SOUND._replace(next_record_id=0),
        SOUND._replace(logs=((Record(0, 0),) * 3, ())),
        SOUND._replace(logs=((Record(3, 0),), ())),
        first_replica(high_watermark=-1),
        first_replica(high_watermark=3),
        first_replica(leader_epoch=3),
        first_replica(leader=2),
        first_replica(isr=(1, 0)),
        first_replica(isr=(0, 2)),
        SOUND._replace(quorum=QuorumState(0, 2, (0, 1))),
        SOUND._replace(quorum=QuorumState(3, 0, (0, 1))),
        SOUND._replace(quorum=QuorumState(0, 0, (0, 0))),
        SOUND._replace(quorum=QuorumState(0, 0, (0,), elr=(2,))),
    ],
)
def test_a_value_of_another_kind_breaks_type_ok(state: ClusterState) -> None:
    assert not holds("TypeOk", state)


def test_a_high_watermark_past_the_log_breaks_hw_at_most_leo() -> None:
    assert not holds("HwAtMostLeo", first_replica(high_watermark=2))


def test_a_leader_outside_the_set_breaks_leader_in_isr() -> None:
    assert not holds("LeaderInIsr", SOUND._replace(quorum=QuorumState(0, 0, (1,))))
    assert holds("LeaderInIsr", SOUND._replace(quorum=QuorumState(0, None, ())))
