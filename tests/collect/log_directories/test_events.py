"""Changes are published at once and the rest slowly; a stop is clean or not only where it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidemark.collect.sources.log_directories.directory import LogDirectory, PartitionFiles
from tidemark.collect.sources.log_directories.sidecar import (
    MAX_PARTITIONS,
    REPEAT_SECONDS,
    CheckpointEvents,
)
from tidemark.core.events import BrokerState, Checkpoint


def reading(high_watermarks: dict[int, int], path: str = "/data", **fields: Any) -> LogDirectory:
    found = LogDirectory(Path(path), broker=3, cluster_id="abc", modified_at=95.0, **fields)
    found.partitions = {("t", n): PartitionFiles("id", hw) for n, hw in high_watermarks.items()}
    return found


def published(events: list[Checkpoint | BrokerState]) -> dict[int, int | None]:
    return {e.partition: e.high_watermark for e in events if isinstance(e, Checkpoint)}


def test_a_change_is_published_at_once_and_everything_again_after_a_while() -> None:
    events = CheckpointEvents(3)
    assert published(events.of_reading([reading({0: 5, 1: 5})], 100.0, 0.0)) == {0: 5, 1: 5}
    assert published(events.of_reading([reading({0: 5, 1: 6})], 100.5, 0.0)) == {1: 6}
    seen = [
        published(events.of_reading([reading({0: 5, 1: 6})], 101.0 + second, 0.0))
        for second in range(2 * int(REPEAT_SECONDS))
    ]
    for partition in (0, 1):
        times = [second for second, found in enumerate(seen) if partition in found]
        assert 1 <= len(times) <= 3
        assert times[0] <= REPEAT_SECONDS
    assert published(events.of_reading([reading({})], 200.0, 0.0)) == {}
    assert events._published == {}, "what has no folder is forgotten"


def test_an_event_names_what_the_files_hold_by_the_clock_of_the_events() -> None:
    found = reading({0: 5})
    files = found.partitions["t", 0]
    files.lineage_starts = [(epoch, epoch) for epoch in range(100)]
    checkpoint, broker = CheckpointEvents(3).of_reading([found], 100.0, 2.0)
    assert isinstance(checkpoint, Checkpoint)
    assert (checkpoint.broker, checkpoint.topic_id, checkpoint.modified_at) == (3, "id", 97.0)
    assert checkpoint.lineage_starts == [(epoch, epoch) for epoch in range(36, 100)]
    assert broker == BrokerState(
        broker=3,
        observed_at=100.0,
        checkpoint_modified_at=97.0,
        checkpoint_directory="/data",
        cluster_id="abc",
    )


def test_a_broker_without_replicas_has_nothing_to_report() -> None:
    """An event without content would only move the times of the broker's other events."""
    empty = reading({})
    empty.modified_at = None
    assert CheckpointEvents(3).of_reading([empty], 100.0, 0.0) == []


def test_the_oldest_file_of_the_directories_counts() -> None:
    newer, older = reading({0: 5}), reading({1: 5}, "/older")
    older.modified_at = 50.0
    empty = reading({}, "/empty")
    empty.modified_at = None
    broker = CheckpointEvents(3).of_reading([newer, older, empty], 100.0, 0.0)[-1]
    assert isinstance(broker, BrokerState)
    assert (broker.checkpoint_modified_at, broker.checkpoint_directory) == (50.0, "/older")


def test_a_reading_publishes_a_bounded_number_and_the_longest_waiting_first() -> None:
    events, count = CheckpointEvents(3), MAX_PARTITIONS + 100
    first = published(events.of_reading([reading(dict.fromkeys(range(count), 1))], 100.0, 0.0))
    second = published(events.of_reading([reading(dict.fromkeys(range(count), 2))], 105.0, 0.0))
    assert len(first) == len(second) == MAX_PARTITIONS
    assert second.keys() >= set(range(count)) - first.keys()


def stop_of(events: CheckpointEvents, at: float, *found: LogDirectory) -> tuple[object, object]:
    state = events.of_reading(list(found), at, 0.0)[-1]
    assert isinstance(state, BrokerState), "the files have an age"
    return state.stopped_clean, state.stopped_at


def test_a_stop_is_clean_where_every_directory_has_the_mark() -> None:
    events = CheckpointEvents(3)
    unknown, clean = (None, None), (True, 98.0)
    assert stop_of(events, 90.0, reading({}, locked=True), reading({}, locked=True)) == unknown
    closing = reading({}, locked=True, clean_shutdown_at=98.0), reading({}, locked=True)
    assert stop_of(events, 98.0, *closing) == unknown, "it writes the marks before it unlocks"
    stopped = [reading({}, locked=False, clean_shutdown_at=at) for at in (98.0, 97.0)]
    assert stop_of(events, 99.0, *stopped) == clean
    assert stop_of(events, 110.0, reading({}, locked=True)) == clean, (
        "the newest stop that was seen"
    )


UNKNOWN = (None, None)


@pytest.mark.parametrize(
    ("readings", "stop"),
    [
        # The lock was held, and no mark is left.
        ([(90.0, [{"locked": True}]), (95.0, [{"locked": False}])], (False, 95.0)),
        (
            [
                (90.0, [{"locked": True}]),
                (95.0, [{"locked": False}]),
                (99.0, [{"locked": False}]),
            ],
            (False, 95.0),
        ),
        # A copy of a running broker's files shows no stop.
        ([(90.0, [{"locked": False}])], UNKNOWN),
        ([(90.0, [{"locked": None}])], UNKNOWN),
        (
            [(90.0, [{"locked": False, "clean_shutdown_at": 80.0}, {"locked": False}])],
            UNKNOWN,
        ),
    ],
)
def test_when_a_stop_is_not_clean(
    readings: list[tuple[float, list[dict[str, Any]]]], stop: tuple[object, object]
) -> None:
    events = CheckpointEvents(3)
    found = [stop_of(events, at, *(reading({}, **each) for each in read)) for at, read in readings]
    assert found[-1] == stop
