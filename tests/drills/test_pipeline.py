from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.traces import batches
from tidemark.collect.publish.pack import EventRecord
from tidemark.core.codec import encode_batch
from tidemark.core.errors import ClusterError
from tidemark_lab.drills.pipeline import Pipeline
from tidemark_lab.judge.replay import replay
from tidemark_lab.judge.samples import batches_of, read_samples

TRACE = (ROOT / "tests/testdata/traces/unclean.jsonl").read_text(encoding="utf-8")


@pytest.fixture
def records() -> list[EventRecord]:
    return [record_of(encode_batch(batch)) for batch in batches(TRACE.splitlines())]


def record_of(payload: bytes) -> EventRecord:
    return EventRecord(0, payload, "c", (), droppable=False)


def until_passes(pipeline: Pipeline, passes: int) -> bool:
    pipeline.close()
    return pipeline.passes() == passes


@pytest.fixture
def make(tmp_path: Path) -> Callable[[], Pipeline]:
    def build() -> Pipeline:
        pipeline = Pipeline(["127.0.0.1:1"], tmp_path / "events.jsonl", {})
        pipeline.start()
        return pipeline

    return build


def test_alerts_come_with_their_time_and_the_recording_replays_to_the_same(
    make: Callable[[], Pipeline], records: list[EventRecord], tmp_path: Path
) -> None:
    pipeline = make()
    for record in records:
        pipeline.put([record])
    assert until_passes(pipeline, len(records))
    pipeline.check()
    alerts = [received.alert for received in pipeline.alerts()]
    assert "KafkaCommittedDataLoss" in {alert.labels["alertname"] for alert in alerts}
    replayed = replay(tmp_path / "events.jsonl", 1)
    assert {a.id for a in alerts} == {a.id for a in replayed}
    samples = read_samples(batches_of(tmp_path / "events.jsonl"))
    assert any(shown.readings for shown in samples.values())


def test_an_event_that_cannot_be_reduced_ends_the_drill(make: Callable[[], Pipeline]) -> None:
    pipeline = make()
    pipeline.put([record_of(b"{}")])
    assert until_passes(pipeline, 1)
    with pytest.raises(ClusterError, match="could not read an event"):
        pipeline.check()
