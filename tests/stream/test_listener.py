"""What the stream says of a batch that took long."""

from __future__ import annotations

from tidemark.stream.listener import longest
from tidemark.stream.overtaken import overtaken_records


def test_records_that_were_planned_and_not_read_are_overtaken() -> None:
    start, end = '{"t":{"0":100,"1":5}}', '{"t":{"0":160,"1":15}}'
    assert overtaken_records(start, end, 70) == 0
    assert overtaken_records(start, end, 30) == 40
    # A task that was tried again counts twice.
    assert overtaken_records(start, end, 90) == 0
    # The first batch has no start.
    assert overtaken_records(None, end, 3) == overtaken_records("null", end, 3) == 0
    assert overtaken_records("{", end, 3) == overtaken_records('{"u":{"0":1}}', end, 3) == 0


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
