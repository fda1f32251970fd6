"""The alerts of a recording: its batches split over groups as the event topic splits them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from tidemark.core.codec import decode_batch
from tidemark.core.events import Batch, BrokerState, Event, Pass
from tidemark.core.identity import group_of
from tidemark.core.records import Alert, decode_record
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark.verbs.recording import read_lines

# The default of `topics.partitions`. In one group, as `tidemark replay` folds, the result is the
# same only where nothing is counted over partitions.
GROUPS = 16


def replay(recording: Path, groups: int = GROUPS) -> list[Alert]:
    """Every transition of every alert under the default thresholds, by time."""
    folds = [Fold(GroupState(), Detection(), group, groups) for group in range(groups)]
    found: list[Alert] = []
    for line in read_lines([str(recording)]):
        for group, batch in split(decode_batch(line.data), groups):
            fold = folds[group]
            fold.batch(batch)
            values = [row.value for row in fold.rows if row.destination == "alerts"]
            fold.rows.clear()
            records = [decode_record(value) for value in values if value is not None]
            found += [record for record in records if isinstance(record, Alert)]
    return sorted(found, key=lambda alert: alert.at)


def split(batch: Batch, groups: int) -> Iterator[tuple[int, Batch]]:
    """The batch of each group. Passes and broker states go to every group."""
    events: list[list[Event]] = [[] for _ in range(groups)]
    for event in batch.events:
        if isinstance(event, Pass):
            for group, own in enumerate(events):
                own.append(_pass_of(batch.cluster, event, group, groups))
        elif isinstance(event, BrokerState):
            for own in events:
                own.append(event)
        elif event.topic is not None and event.partition is not None:
            events[group_of(batch.cluster, event.topic, event.partition, groups)].append(event)
    for group, own in enumerate(events):
        if own:
            yield group, replace(batch, events=own)


def _pass_of(cluster: str, event: Pass, group: int, groups: int) -> Pass:
    """The pass with the missed partitions of one group."""
    if event.missed == "all":
        return event
    missed = {
        topic: [
            (partition, partition)
            for first, last in ranges
            for partition in range(first, last + 1)
            if group_of(cluster, topic, partition, groups) == group
        ]
        for topic, ranges in event.missed.items()
    }
    return replace(event, missed={topic: ranges for topic, ranges in missed.items() if ranges})
