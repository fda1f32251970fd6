"""State written by earlier releases is read on: nothing is forgotten, and it goes on as if it had been written today.

`testdata/state/group-1.bin` was written by the release whose partitions had version 1, after the history below.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tests.scenarios.world import World
from tidemark.core.codec import encode_batch
from tidemark.core.partition import TrackedAlert
from tidemark.core.records import Alert, decode_record
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import decode_group
from tidemark.reduce.life_cycle import Scope
from tidemark.reduce.rows import RawRecord
from tidemark.reduce.views import partition_view

OLD = Path(__file__).parents[1] / "testdata" / "state" / "group-1.bin"
KEY = "main/orders/0"
HISTORY = (
    "pass 5 add=10 lineage=0:10",
    "pass 40 add=10",
    "pass 1 isr=1,2",
    "pass 3 add=10 down=3:timed_out",
    "pass 2 down=none isr=1,2,3 leo=700",
    "pass 1 leader=none isr=none elr=1 leaderless epoch=1",
    "pass 1 leader=2 isr=2 epoch=2 leo=1:400,2:300,3:400 hw=300 lineage=0:300,2:300",
    "pass 1 hw=300",
)


def told(life: TrackedAlert) -> tuple[object, ...]:
    """What makes the alert, without its words: a release may find better ones."""
    return life.detector, life.subject, life.severity, life.since, life.firing, life.incident


def world() -> World:
    world = World()
    world.run("partition orders-0 replicas=1,2,3 min_isr=2")
    for line in HISTORY:
        world.run(line)
    return world


def test_state_of_the_first_version_reads_on() -> None:
    now = world()
    old = Fold(decode_group(OLD.read_bytes()), Detection(), 0, 1)
    known, fresh = old.partition(KEY), now.fold.partition(KEY) if now.fold else None
    assert known is not None
    assert fresh is not None
    # What version 1 did not have is unknown, and its detectors were fewer; all else is what it was.
    dated = [replace(entry, dated=True) for entry in known.committed]
    assert (
        replace(
            known, sparse=fresh.sparse, alerts=fresh.alerts, committed=dated, shrinks=fresh.shrinks
        )
        == fresh
    )
    # The causes are words too.
    assert [shrink[:3] for shrink in known.shrinks] == [shrink[:3] for shrink in fresh.shrinks]
    detectors = {life.detector for life in known.alerts}
    assert [told(life) for life in known.alerts] == [
        told(life) for life in fresh.alerts if life.detector in detectors
    ]
    sent = len(now.batches)
    for line in ("pass 3 isr=2,3 add=10", "pass 2 isr=1,2,3 add=10", "ack KafkaCommittedDataLoss"):
        now.run(line)
    for offset, batch in enumerate(now.batches[sent:]):
        old.record(RawRecord(0, offset, 0.0, encode_batch(batch)))
    alerts = [
        record
        for row in old.rows
        if row.value is not None and isinstance(record := decode_record(row.value), Alert)
    ]
    assert {alert.labels["alertname"] for alert in alerts if alert.reason == "acked"} == {
        "KafkaCommittedDataLoss"
    }
    again, there = old.partition(KEY), now.fold.partition(KEY) if now.fold else None
    assert again is not None
    assert there is not None
    dated = [replace(entry, dated=True) for entry in again.committed]
    spoken = {"alerts": there.alerts, "shrinks": there.shrinks}
    assert (
        replace(
            again,
            sparse=there.sparse,
            published_digest=there.published_digest,
            committed=dated,
            **spoken,
        )
        == there
    )


def test_a_view_can_be_made_of_it() -> None:
    old = Fold(decode_group(OLD.read_bytes()), Detection(), 0, 1)
    state = old.partition(KEY)
    assert state is not None
    view = partition_view(
        state,
        Scope("main", "orders", 0, state.topic_id),
        old.rules(Detection().thresholds),
        state.observed_at,
    )
    assert "KafkaCommittedDataLoss" in {alert.labels["alertname"] for alert in view.alerts}
