"""The alerts of a recording: its batches split over groups as the event topic splits them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tidemark.collect.publish.pack import Packer
from tidemark.core.codec import decode_batch
from tidemark.core.events import Batch, BrokerState, Pass, Ranges
from tidemark.core.identity import group_of
from tidemark.core.records import Alert, decode_record
from tidemark.detect.default_thresholds import Detection
from tidemark.observations.recorded_lines import read_lines
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark_lab.brokers.cluster import Place

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
    """The batches of each group, as a collector packs them. Passes and brokers go to every one."""
    head = (batch.cluster, batch.collector, batch.collector_epoch, batch.pass_number)
    packer = Packer(*head, groups)
    for event in batch.events:
        if isinstance(event, Pass) and event.missed != "all":
            packer.finish(event, _by_group(batch.cluster, event.missed, groups))
        elif isinstance(event, Pass | BrokerState):
            packer.broadcast(event)
        elif event.topic is not None and event.partition is not None:
            packer.add(group_of(batch.cluster, event.topic, event.partition, groups), event)
    for record in packer.take():
        yield record.group, decode_batch(record.payload)


def _by_group(cluster: str, missed: Ranges, groups: int) -> Iterator[tuple[int, Place]]:
    """Each missed partition with its group."""
    for topic, ranges in missed.items():
        for first, last in ranges:
            for partition in range(first, last + 1):
                yield group_of(cluster, topic, partition, groups), (topic, partition)
