from __future__ import annotations

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


def record_of(payload: bytes) -> EventRecord:
    return EventRecord(0, payload, "c", (), droppable=False)


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    made = Pipeline(["127.0.0.1:1"], tmp_path / "events.jsonl", {})
    made.start()
    return made


def test_alerts_come_with_their_time_and_the_recording_replays_to_the_same(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    passes = [record_of(encode_batch(batch)) for batch in batches(TRACE.splitlines())]
    for record in passes:
        pipeline.put([record])
    pipeline.close()
    assert pipeline.passes() == len(passes)
    pipeline.check()
    alerts = [received.alert for received in pipeline.alerts()]
    assert "KafkaCommittedDataLoss" in {alert.labels["alertname"] for alert in alerts}
    replayed = replay(tmp_path / "events.jsonl", 1)
    assert {a.id for a in alerts} == {a.id for a in replayed}
    samples = read_samples(batches_of(tmp_path / "events.jsonl"))
    assert any(shown.readings for shown in samples.values())


def test_an_event_that_cannot_be_reduced_ends_the_drill(pipeline: Pipeline) -> None:
    pipeline.put([record_of(b"{}")])
    pipeline.close()
    assert pipeline.passes() == 1
    with pytest.raises(ClusterError, match="could not read an event"):
        pipeline.check()
