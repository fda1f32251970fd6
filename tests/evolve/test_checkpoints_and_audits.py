"""Checkpoint files and audit findings: the newest is kept, a late one changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.evolve.observations import SEEN, fold, observation, sparse_of
from tests.evolve.test_metadata_log import recorded
from tidemark.core.events import MAX_LINEAGE, MAX_REPLICAS, Audit, Checkpoint, Escrow
from tidemark.core.partition import encode_state
from tidemark.core.sparse_state import (
    AuditFinding,
    CheckpointSeen,
    Escrowed,
    MetadataPosition,
    SparseState,
)
from tidemark.evolve.checkpoints_and_audits import evolve_audit, evolve_checkpoint, evolve_escrow

PARTITION: dict[str, Any] = {
    "topic": "orders",
    "partition": 0,
    "topic_id": "a",
    "observed_at": 20.0,
}
WITHOUT_ID = fold(None, observation(topic_id=None))


def checkpoint(broker: int = 2, **fields: Any) -> Checkpoint:
    files = {"broker": broker, "high_watermark": 80, "modified_at": 18.0}
    return Checkpoint(**{**PARTITION, **files, **fields})


def audit(**fields: Any) -> Audit:
    finding = {"brokers": [1, 2], "offset": 40, "leader_epoch": 4, "crcs": [11, 22]}
    return Audit(**{**PARTITION, **finding, **fields})


def test_the_newest_reading_of_each_brokers_files_is_kept() -> None:
    state = evolve_checkpoint(SEEN, checkpoint())
    assert sparse_of(state).checkpoints == [CheckpointSeen(2, 80, 18.0, 20.0)]
    state = evolve_checkpoint(state, checkpoint(1))
    before = encode_state(state)
    newer = evolve_checkpoint(state, checkpoint(observed_at=21.0, high_watermark=85))
    known = [(seen.broker, seen.high_watermark) for seen in sparse_of(newer).checkpoints]
    assert known == [(1, 80), (2, 85)]
    assert encode_state(state) == before, "the state before does not change"


def test_every_file_of_a_replica_is_kept_and_of_its_epochs_the_newest() -> None:
    offsets = {"recovery_point": 70, "log_start_offset": 5, "first_dirty_offset": 40}
    starts = [(epoch, 10 * epoch) for epoch in range(MAX_LINEAGE + 3)]
    state = evolve_checkpoint(SEEN, checkpoint(**offsets, lineage_starts=starts))
    newest = starts[3:]
    assert sparse_of(state).checkpoints == [
        CheckpointSeen(2, 80, 18.0, 20.0, 70, 5, 40, newest),
    ]


@pytest.mark.parametrize(
    "event",
    [
        checkpoint(),
        checkpoint(observed_at=19.0),
        checkpoint(observed_at=21.0, topic_id="b"),
        checkpoint(observed_at=21.0, topic_id=None),
    ],
)
def test_an_older_reading_or_one_of_another_topic_changes_nothing(event: Checkpoint) -> None:
    state = evolve_checkpoint(SEEN, checkpoint())
    assert evolve_checkpoint(state, event) is state


@pytest.mark.parametrize("topic_id", ["a", None])
def test_findings_count_where_the_topic_id_of_the_partition_is_unknown(
    topic_id: str | None,
) -> None:
    assert sparse_of(evolve_checkpoint(WITHOUT_ID, checkpoint(topic_id=topic_id))).checkpoints
    assert sparse_of(evolve_audit(WITHOUT_ID, audit(topic_id=topic_id))).audit


def test_the_files_of_a_bounded_number_of_brokers_are_known() -> None:
    state = SEEN
    for broker in range(MAX_REPLICAS + 2):
        state = evolve_checkpoint(state, checkpoint(broker))
    known = [seen.broker for seen in sparse_of(state).checkpoints]
    assert known == list(range(2, MAX_REPLICAS + 2))


def test_the_newest_finding_of_an_audit_is_kept_beside_the_rest() -> None:
    state = recorded()
    after = evolve_audit(state, audit())
    finding = AuditFinding(40, 4, [1, 2], [11, 22], 20.0)
    assert after.sparse == SparseState(metadata=MetadataPosition(7, 2, 10.0), audit=finding)
    assert state == recorded(), "the state before does not change"
    later = evolve_audit(after, audit(observed_at=21.0, offset=50))
    assert sparse_of(later).audit == AuditFinding(50, 4, [1, 2], [11, 22], 21.0)


@pytest.mark.parametrize(
    "event",
    [
        # Repeated, or late.
        audit(),
        audit(observed_at=19.0, offset=50),
        # Of another topic, or without a difference.
        audit(observed_at=21.0, topic_id="b"),
        audit(observed_at=21.0, crcs=[11, 11]),
        audit(observed_at=21.0, crcs=[]),
    ],
)
def test_a_finding_that_is_late_or_none_changes_nothing(event: Audit) -> None:
    state = evolve_audit(recorded(), audit())
    assert evolve_audit(state, event) is state


def escrow(**fields: Any) -> Escrow:
    return Escrow(**{**PARTITION, "ranges": [(40, 60, 4)], "kept_until": 90.0, **fields})


def test_what_the_escrow_holds_is_known_until_it_holds_nothing() -> None:
    held = evolve_escrow(SEEN, escrow(ranges=[(40, 60, 4), (70, 70, 4)]))
    assert sparse_of(held).escrow == Escrowed([(40, 60, 4)], 20.0, 90.0)
    for late in (escrow(ranges=[]), escrow(ranges=[], observed_at=21.0, topic_id="b")):
        assert evolve_escrow(held, late) is held
    ended = evolve_escrow(held, escrow(ranges=[], observed_at=21.0))
    assert encode_state(ended) == encode_state(SEEN)
