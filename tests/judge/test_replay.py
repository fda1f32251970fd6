from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from tests.conftest import ROOT
from tests.traces import batches
from tidemark.core.codec import encode_batch
from tidemark.core.events import (
    Batch,
    BrokerState,
    Event,
    Observation,
    PartitionDeleted,
    Pass,
    Ranges,
)
from tidemark.core.identity import group_of
from tidemark_lab.judge.replay import replay, split

CLUSTER, GROUPS = "c", 4
MISSED: Ranges = {"t": [(0, 9)], "u": [(3, 3)]}


def test_each_group_has_its_partitions_every_pass_and_every_broker() -> None:
    events: list[Event] = [
        *(Observation(topic="t", partition=p, observed_at=1.0) for p in range(10)),
        PartitionDeleted(topic="u", partition=3, observed_at=1.0),
        BrokerState(broker=1, observed_at=1.0),
        Pass(
            number=1, started_at=1.0, ended_at=2.0, monotonic=1.0, period_ms=1000.0, missed=MISSED
        ),
    ]
    batch = Batch(
        v=2, cluster=CLUSTER, collector="k", collector_epoch=1, pass_number=1, events=events
    )
    groups: dict[int, list[Event]] = defaultdict(list)
    for group, part in split(batch, GROUPS):
        groups[group] += part.events
    assert sorted(groups) == list(range(GROUPS))
    found: set[tuple[str, int]] = set()
    for group, own in groups.items():
        *placed, broker, ended = own
        assert broker == events[-2]
        assert isinstance(ended, Pass)
        assert ended.missed != "all"
        places = {
            (event.topic, event.partition)
            for event in placed
            if isinstance(event, Observation | PartitionDeleted)
        }
        # Each partition is observed and missed in the same group, its own.
        assert places == {(topic, p) for topic, ranges in ended.missed.items() for p, _ in ranges}
        assert {group_of(CLUSTER, *place, GROUPS) for place in places} <= {group}
        found |= places
    assert found == {*(("t", p) for p in range(10)), ("u", 3)}


def test_a_split_recording_has_the_alerts_of_a_whole_one(tmp_path: Path) -> None:
    trace = (ROOT / "tests/testdata/traces/unclean.jsonl").read_text(encoding="utf-8")
    recording = tmp_path / "events.jsonl"
    recording.write_bytes(b"".join(encode_batch(b) + b"\n" for b in batches(trace.splitlines())))
    whole, parts = (
        {(alert.id, alert.labels["alertname"]) for alert in replay(recording, groups)}
        for groups in (1, GROUPS)
    )
    assert whole == parts
    assert "KafkaCommittedDataLoss" in {name for _, name in whole}
