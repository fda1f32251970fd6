"""What the stream says of a batch that took long."""

from __future__ import annotations

from tidemark.stream.listener import longest


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
