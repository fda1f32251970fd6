"""States before and after an election."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tidemark.core.leader_epochs import Committed
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.sparse_state import MetadataPosition, SparseState
from tidemark.evolve.elections import ElectionVerdict, judge_election


def before(**fields: Any) -> PartitionState:
    """No leader at epoch 4; broker 1 was the last one in sync."""
    whole = {
        "leader": None,
        "leader_epoch": 4,
        "in_sync_replicas": [1],
        "eligible_leader_replicas": [],
    }
    return PartitionState(**{**whole, **fields})


def after(**fields: Any) -> PartitionState:
    """Broker 2 leads epoch 5."""
    return PartitionState(**{"leader": 2, "leader_epoch": 5, **fields})


def recorded(offset: int, *, adjacent: bool = True) -> SparseState:
    return SparseState(metadata=MetadataPosition(offset, 0, 0.0, adjacent=adjacent))


def verdict(old: PartitionState, new: PartitionState) -> ElectionVerdict | None:
    election = judge_election(old, new)
    return None if election is None else election.verdict


EARLIER, COMMITTED = Committed(3, 9, 50.0, 10, 1), Committed(4, 9, 50.0, 10, 1)


def led(at: float | None = 100.0, **fields: Any) -> PartitionState:
    """Broker 1 leads at epoch 4 and was sampled last at `at`."""
    former = ReplicaState(1, log_end_offset=10, leader_epoch=4, leads=True, sampled_at=at)
    known = {"observed_at": 100.0, "replicas": [former], "committed": [COMMITTED]}
    return before(**{"leader": 1, **known, **fields})


def vacant(**fields: Any) -> PartitionState:
    """No leader at epoch 4 and nobody in sync; broker 1 led before, and was sampled last."""
    return led(leader=None, leaderless=True, in_sync_replicas=[], committed=[EARLIER], **fields)


def taken_over(at: float = 101.0, end: int = 9, epoch: int = 5) -> PartitionState:
    """Broker 2 leads; its records of epoch 4 end at `end`."""
    leader = ReplicaState(2, log_end_offset=12, leader_epoch=epoch, leads=True, sampled_at=at)
    lineage = {"lineage": [(4, end), (epoch, 12)], "lineage_complete_from": 0}
    known = {"observed_at": at, "replicas": [leader], "committed": [COMMITTED]}
    return after(leader_epoch=epoch, **known, **lineage)


WITH_LINEAGE = replace(COMMITTED, lineage=[(4, 9)], lineage_complete_from=0)


def unread(at: float = 101.0, epoch: int = 5) -> PartitionState:
    """Broker 2 leads, and its lineage was not read yet."""
    return replace(taken_over(at, epoch=epoch), lineage=None, lineage_complete_from=None)
