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
    Escrow,
    Event,
    MetadataChange,
    Observation,
    PartitionDeleted,
    Pass,
)
from tidemark.detect.default_thresholds import Detection
from tidemark.evolve.cluster import apply_broker, has_reached
from tidemark.reduce.failures import Failures, reducer_failure
from tidemark.reduce.group_state import MAX_CLUSTERS, decode_group, encode_group, restore_clusters
from tidemark.reduce.partition_fold import PartitionFold
from tidemark.reduce.rows import MAX_ROW_BYTES, RawRecord, Row, dead_letter_row, fitting


def fold_group(
    blob: bytes | None,
    records: Iterable[RawRecord],
    detection: Detection,
    group: int,
    groups: int,
    max_row_bytes: int = MAX_ROW_BYTES,
) -> tuple[bytes, list[Row]]:
    """Folds new records of Kafka partition `group` of `groups` into the group's state.

    `blob` is the state that the last call returned (None at first). Pure: the same state and
    records give the same bytes and rows, and another split into calls gives the same alerts.
    """
    fold = Fold(decode_group(blob), detection, group, groups)
    fold.max_row_bytes = max_row_bytes
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

    max_row_bytes = MAX_ROW_BYTES

    def record(self, record: RawRecord) -> None:
        """One raw record. What is not readable becomes a dead letter and stops nothing."""
        first = len(self.rows)
        self._fold_record(record)
        self.rows[first:] = [fitting(row, record, self.max_row_bytes) for row in self.rows[first:]]

    def _fold_record(self, record: RawRecord) -> None:
        try:
            if record.size is not None:
                raise WireError(f"the record has {record.size} bytes, too many to be read here")
            batch, bad = salvage_batch(record.value or b"")
            self.stored_at = record.timestamp
            self._check_passes(batch)
        except Exception as error:
            self.rows.append(dead_letter_row(record, reducer_failure(error), record.value or b""))
            return
        self.rows += [dead_letter_row(record, event.error, event.payload) for event in bad]
        for event in batch.events:
            try:
                self._fold(batch, event)
            except Exception as error:
                # The last line of defence: an event that passed every check stops no query.
                self.rows.append(
                    dead_letter_row(record, reducer_failure(error), encode_event(event))
                )

    def _check_passes(self, batch: Batch) -> None:
        """Raises WireError for passes that the collector cannot have reached."""
        cluster = self.state.clusters.get(batch.cluster)
        clock = None if cluster is None else cluster.collectors.get(batch.collector)
        newest = max(
            [batch.pass_number, *(each.number for each in batch.events if isinstance(each, Pass))]
        )
        if (
            clock is not None
            and clock.collector_epoch == batch.collector_epoch
            and not has_reached(clock, newest, self.stored_at)
        ):
            raise WireError(
                f"pass {newest} is beyond what collector {batch.collector} can have reached: its "
                f"newest pass is {clock.pass_number}",
                "$.pass",
            )

    def batch(self, batch: Batch) -> None:
        """One decoded batch. Raises what `record` turns into a dead letter."""
        for event in batch.events:
            self._fold(batch, event)

    def _fold(self, batch: Batch, event: Event) -> None:
        cluster = self.state.clusters.get(batch.cluster)
        if cluster is None:
            if len(self.state.clusters) >= MAX_CLUSTERS:
                raise WireError(f"a group holds {MAX_CLUSTERS} clusters at most", "$.cluster")
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
            case MetadataChange() | Checkpoint() | Audit() | Escrow():
                self._apply_unsampled(batch, cluster, event)
