"""What the stream says of a batch that took long."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import generate_latest
from pyspark.sql.streaming.listener import QueryProgressEvent
from structlog.testing import capture_logs

from tidemark.stream.listener import (
    Listener,
    StreamMetrics,
    longest,
    overtaken_records,
    progress_event,
)
from tidemark.stream.spark_internals import read_progress


def test_records_that_were_planned_and_not_read_are_overtaken() -> None:
    start, end = '{"t":{"0":100,"1":5}}', '{"t":{"0":160,"1":15}}'
    assert overtaken_records(start, end, 70) == 0
    assert overtaken_records(start, end, 30) == 40
    # A task that was tried again counts twice.
    assert overtaken_records(start, end, 90) == 0
    # The first batch has no start.
    assert overtaken_records(None, end, 3) == overtaken_records("null", end, 3) == 0
    assert overtaken_records("{", end, 3) == overtaken_records('{"u":{"0":1}}', end, 3) == 0


def test_a_partition_that_began_again_hides_no_other_that_was_overtaken() -> None:
    start, end = '{"t":{"0":100,"1":5}}', '{"t":{"0":3,"1":65}}'
    assert overtaken_records(start, end, 20) == 40


def test_the_phases_that_took_longest_are_named_and_their_sum_is_not() -> None:
    phases = {
        "addBatch": 900,
        "latestOffset": 44_901,
        "walCommit": 12,
        "queryPlanning": 40,
        "triggerExecution": 45_912,
    }
    assert longest(phases) == "latestOffset=44901 addBatch=900 queryPlanning=40"
    assert longest({}) == ""


# As Spark 4.0 writes it, without the fields that nobody reads.
REPORT: dict[str, Any] = {
    "id": "4761c320-afb2-478f-a2f0-681617d9a55a",
    "runId": "cd1d849b-5445-4c36-bc20-33d64c7c4b4f",
    "name": "tidemark",
    "timestamp": "2026-11-23T00:30:16.154Z",
    "batchId": 7,
    "batchDuration": 912,
    "numInputRows": 30,
    "durationMs": {"addBatch": 900, "triggerExecution": 912},
    "stateOperators": [
        {
            "operatorName": "applyInPandasWithState",
            "numRowsTotal": 4,
            "numRowsUpdated": 4,
            "allUpdatesTimeMs": 1,
            "numRowsRemoved": 0,
            "allRemovalsTimeMs": 0,
            "commitTimeMs": 20,
            "memoryUsedBytes": 4000,
            "numRowsDroppedByWatermark": 0,
            "numShufflePartitions": 4,
            "numStateStoreInstances": 4,
        }
    ],
    "sources": [
        {
            "description": "KafkaV2[Subscribe[t]]",
            "startOffset": {"t": {"0": 100, "1": 5}},
            "endOffset": {"t": {"0": 160, "1": 15}},
            "latestOffset": {"t": {"0": 160, "1": 15}},
            "numInputRows": 30,
            "metrics": {"avgOffsetsBehindLatest": "2.5"},
        }
    ],
    "sink": {"description": "KafkaTable", "numOutputRows": 9},
    "observedMetrics": {
        "tidemark_read": {"records": 30, "oldest_ms": 1_795_393_816_000},
        "tidemark_written": {"views": 8, "alerts": 1, "dead_letters": 0},
    },
}


def test_a_report_in_json_gives_the_metrics_and_the_log_line() -> None:
    metrics = StreamMetrics()
    with capture_logs() as lines:
        Listener(metrics).onQueryProgress(progress_event(json.dumps(REPORT)))
    overtaken, batch = lines
    assert overtaken["records"] == 40
    assert (batch["number"], batch["ms"]) == (7, 912)
    assert {name: batch[name] for name in ("records", "views", "alerts", "dead_letters")} == {
        "records": 30,
        "views": 8,
        "alerts": 1,
        "dead_letters": 0,
    }
    text = generate_latest(metrics.registry).decode()
    assert "tidemark_stream_offsets_behind_average 2.5\n" in text
    assert "tidemark_stream_state_memory_bytes 4000.0\n" in text


def report(start: Any, end: Any, read: Any) -> QueryProgressEvent:
    """A batch between these offsets; `read`: what was observed, None where Spark leaves it out."""
    source = {**REPORT["sources"][0], "startOffset": start, "endOffset": end, "latestOffset": end}
    observed = {} if read is None else {"tidemark_read": read}
    return progress_event(json.dumps({**REPORT, "sources": [source], "observedMetrics": observed}))


def observed(records: int) -> dict[str, Any]:
    return {"records": records, "oldest_ms": 1_795_393_816_000 if records else None}


def test_a_stream_that_retention_passed_while_it_was_stopped_is_counted() -> None:
    """In the form of the reports of Spark, which goes on silently with failOnDataLoss=false.

    The stream stopped at offsets 100 and 40 of two partitions. When it starts again, the log of the
    first begins at 5,100 and that of the second at 30, and a batch takes at most 4,000 offsets.
    """
    metrics = StreamMetrics()
    listener = Listener(metrics)
    reports = [
        # It repeats the batch that was planned before the stop: nothing of it is left of partition
        # 0, and a batch without rows may have no metrics at all.
        report({"t": {"0": 100, "1": 40}}, {"t": {"0": 130, "1": 40}}, observed(0)),
        report({"t": {"0": 130, "1": 40}}, {"t": {"0": 4_130, "1": 40}}, None),
        # Retention ends within this batch.
        report({"t": {"0": 4_130, "1": 40}}, {"t": {"0": 8_030, "1": 140}}, observed(3_030)),
        # It has caught up.
        report({"t": {"0": 8_030, "1": 140}}, {"t": {"0": 8_060, "1": 150}}, observed(40)),
        report({"t": {"0": 8_060, "1": 150}}, {"t": {"0": 8_060, "1": 150}}, None),
    ]
    with capture_logs() as lines:
        for each in reports:
            listener.onQueryProgress(each)
    found = [line for line in lines if "removed from the topic" in line["event"]]
    assert [line["records"] for line in found] == [30, 4_000, 970]
    assert {line["log_level"] for line in found} == {"error"}
    assert "retention.ms" in found[0]["cure"]
    text = generate_latest(metrics.registry).decode()
    assert "tidemark_stream_overtaken_records_total 5000.0\n" in text
    assert not any("cannot read" in line["event"] for line in lines)
    assert [line["records"] for line in lines if line["event"] == "batch"] == [3_030, 40]


def test_the_report_of_a_first_batch_has_no_start() -> None:
    first = {**REPORT, "sources": [{**REPORT["sources"][0], "startOffset": None}]}
    (source,) = progress_event(json.dumps(first)).progress.sources
    assert overtaken_records(source.startOffset, source.endOffset, 1) == 0


@pytest.mark.parametrize(
    ("text", "read_by_pyspark"),
    [(json.dumps(REPORT), False), ("{}", True), ("not JSON", True), ("[]", True)],
)
def test_a_report_is_read_by_one_call_and_one_of_another_form_as_pyspark_reads_it(
    text: str, read_by_pyspark: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Any] = []
    monkeypatch.setattr(QueryProgressEvent, "fromJObject", read.append)
    read_progress(progress_event)
    event: Any = SimpleNamespace(progress=lambda: SimpleNamespace(json=lambda: text))
    found = QueryProgressEvent.fromJObject(event)
    assert read == [event] * read_by_pyspark
    assert read_by_pyspark or found.progress.batchId == 7
