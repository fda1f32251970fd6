"""The reducer of a group: raw records in, rows and the next state out.

The stream and `tidemark replay` share it. Records are folded one by one in offset order, so the
split into calls does not matter. Observations change partitions. A pass record is the clock: it
judges states, publishes views and grants restart grace.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.core.cluster import ClusterState
from tidemark.core.codec import encode_event, salvage_batch
from tidemark.core.errors import WireError
from tidemark.core.events import (
    Ack,
    Audit,
    Batch,
    BrokerState,
    Checkpoint,
    Event,
    MetadataChange,
    Observation,
    PartitionDeleted,
    Pass,
)
from tidemark.detect.thresholds import Detection
from tidemark.evolve.cluster import apply_broker
from tidemark.reduce.failures import Failures, reducer_failure
from tidemark.reduce.group_state import decode_group, encode_group, restore_clusters
from tidemark.reduce.partition_fold import PartitionFold
from tidemark.reduce.row_size import fitting
from tidemark.reduce.rows import RawRecord, Row, dead_letter_row


def fold_group(
    blob: bytes | None,
    records: Iterable[RawRecord],
    detection: Detection,
    group: int,
    groups: int,
) -> tuple[bytes, list[Row]]:
    """Folds new records of Kafka partition `group` of `groups` into the group's state.

    `blob` is the state that the last call returned (None at first). Pure: the same state and
    records give the same bytes and rows, and another split into calls gives the same alerts.
    """
    fold = Fold(decode_group(blob), detection, group, groups)
    last = None
    for last in sorted(records, key=lambda record: record.offset):
        fold.record(last)
    return _encode(fold, blob, last), fold.rows


def _encode(fold: Fold, blob: bytes | None, last: RawRecord | None) -> bytes:
    """The state after a call. What cannot be encoded stays as it was before the call.

    One dead letter names it; its place is that of the call's last record.
    """
    failures = Failures()
    state = fold.close(failures)
    try:
        encoded = encode_group(state)
    except Exception:
        restore_clusters(state, decode_group(blob), failures)
        encoded = encode_group(state)
    if failures and last is not None:
        reason = WireError(f"a state cannot be encoded: {failures}")
        fold.rows.append(dead_letter_row(last, reason, b""))
    return encoded


class Fold(PartitionFold):
    """Folds every kind of event of a group."""

    def record(self, record: RawRecord) -> None:
        """One raw record. What is not readable becomes a dead letter and stops nothing."""
        first = len(self.rows)
        self._fold_record(record)
        self.rows[first:] = [fitting(row, record) for row in self.rows[first:]]

    def _fold_record(self, record: RawRecord) -> None:
        try:
            batch, bad = salvage_batch(record.value or b"")
        except Exception as error:
            reason = error if isinstance(error, WireError) else reducer_failure(error)
            self.rows.append(dead_letter_row(record, reason, record.value or b""))
            return
        self.rows += [dead_letter_row(record, event.error, event.payload) for event in bad]
        for event in batch.events:
            try:
                self._fold(batch, event)
            except Exception as error:
                self._skip(record, event, error)

    def batch(self, batch: Batch) -> None:
        """One decoded batch. Raises what `record` turns into a dead letter."""
        for event in batch.events:
            self._fold(batch, event)

    def _skip(self, record: RawRecord, event: Event, error: Exception) -> None:
        """The last line of defence: an event that passed every check stops no query."""
        self.rows.append(dead_letter_row(record, reducer_failure(error), encode_event(event)))

    def _fold(self, batch: Batch, event: Event) -> None:
        cluster = self.state.clusters.get(batch.cluster)
        if cluster is None:
            cluster = self.state.clusters[batch.cluster] = ClusterState()
        match event:
            case Observation():
                self._observe(batch, cluster, event)
            case Pass():
                self._pass(batch, cluster, event)
            case PartitionDeleted():
                self._delete(batch, cluster, event)
            case Ack():
                self._acknowledge(batch, event)
            case BrokerState():
                apply_broker(cluster, event)
            case MetadataChange() | Checkpoint() | Audit():
                self._apply_unsampled(batch, cluster, event)
