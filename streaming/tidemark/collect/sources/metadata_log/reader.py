"""Reads the metadata log through one active controller: snapshot, then log, then what is new.

Fetch returns records that are not committed yet; only those below the raft high watermark are
applied, so nothing that is applied is ever undone by a new controller.

It reads what is there at its start twice. The first time finds the topics that were deleted since:
the history of a deleted topic is no news. The second time reports.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from tidemark.collect.sources.metadata_log.batches import Batch, DamageError, read_batches
from tidemark.collect.sources.metadata_log.changes import Change, MetadataFold, decode_batch
from tidemark.collect.sources.metadata_log.image import Image, Watched, broker_event
from tidemark.collect.sources.metadata_log.records import (
    REMOVE_TOPIC,
    RemoveTopicRecord,
    UnlistedRecord,
    decode_record,
    record_key,
)
from tidemark.collect.sources.metadata_log.requests import (
    Fetched,
    SnapshotId,
    decode_fetch,
    decode_fetch_snapshot,
    fetch_request,
    fetch_snapshot_request,
)
from tidemark.collect.sources.metadata_log.snapshots import SnapshotReader
from tidemark.core.errors import WireError
from tidemark.core.events import BrokerState, MetadataChange, PartitionDeleted

# Sends a request to the controller and gives the body of the answer. Raises NoAnswerError.
Ask = Callable[[Any], Awaitable[bytes]]
# Takes events, and waits while too many wait.
Emit = Callable[[list[Change]], None]

OFFSET_OUT_OF_RANGE: Final = 1
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
NOT_LEADER: Final = 6
CLUSTER_AUTHORIZATION_FAILED: Final = 31
INVALID_REQUEST: Final = 42
FENCED_LEADER_EPOCH: Final = 74
UNKNOWN_LEADER_EPOCH: Final = 75
UNKNOWN_TOPIC_ID: Final = 100
# A larger snapshot, or more deleted topics, is not from a controller.
MAX_SNAPSHOT_BYTES: Final = 16 * 1024**3
MAX_DELETED_TOPICS: Final = 1_000_000
_EMIT_AT: Final = 1_000


class Outcome(Enum):
    """What follows a fetch."""

    AGAIN = auto()
    # The records are not committed yet.
    WAIT = auto()
    NEXT_CONTROLLER = auto()


class Result(NamedTuple):
    """An outcome; where another controller follows, what was wrong with this one."""

    outcome: Outcome
    reason: str | None = None


_AGAIN: Final = Result(Outcome.AGAIN)
_WAIT: Final = Result(Outcome.WAIT)


class MetadataLogReader:
    """`emit` gets the events, `now` is the wall clock in Unix seconds."""

    def __init__(self, watched: Watched, emit: Emit, now: Callable[[], float]) -> None:
        # Whether everything that was committed at the start is reported.
        self.is_live = False
        self._watched = watched
        self._emit = emit
        self._now = now
        self._quorum_epoch = 0
        self._last_image = Image(watched)
        self._fold = MetadataFold(watched)
        self._start_over()

    @property
    def applied_offset(self) -> int | None:
        """The offset of the last record that was reported; null before the first."""
        return None if self._scans or not self._offset else self._offset - 1

    @property
    def unlisted(self) -> list[UnlistedRecord]:
        """The records that no table lists, one for each type: what they say is left out."""
        return [*self._fold.image.unlisted.values()]

    def _start_over(self) -> None:
        """Reads from the newest snapshot again. The reducer ignores what it has."""
        if self.is_live:
            self._last_image = self._fold.image
        self.is_live = False
        self._fold = MetadataFold(self._watched)
        self._offset = self._last_epoch = 0
        # The first time, and the snapshot and the high watermark between which it reads.
        self._scans = True
        self._snapshot: SnapshotId | None = None
        self._target: int | None = None
        self._deleted: set[str] = set()

    async def read(self, ask: Ask) -> Result:
        """One fetch. Raises NoAnswerError, and WireError for an answer that cannot be read."""
        request = fetch_request(self._quorum_epoch, self._offset, self._last_epoch)
        answer = decode_fetch(await ask(request))
        if answer.error_code:
            return self._failed(answer.error_code, answer.leader_epoch)
        if answer.is_diverging:
            self._start_over()
            return Result(Outcome.NEXT_CONTROLLER, "has a log without the records read before")
        if answer.snapshot is not None:
            return self._begin_at(answer.snapshot)
        if answer.high_watermark is None:
            return _WAIT
        if self._target is None:
            self._target = answer.high_watermark
        moved = self._apply(answer, answer.high_watermark)
        if self._scans and self._offset >= self._target:
            return await self._begin_report(ask)
        if not self.is_live and self._offset >= self._target:
            self._become_live()
        return _WAIT if answer.records and not moved else _AGAIN

    def _failed(self, error_code: int, leader_epoch: int | None) -> Result:
        if leader_epoch is not None and leader_epoch > self._quorum_epoch:
            self._quorum_epoch = leader_epoch
            if error_code == FENCED_LEADER_EPOCH:
                return _AGAIN
        if error_code == OFFSET_OUT_OF_RANGE:
            self._start_over()
        if error_code == INVALID_REQUEST and self._offset:
            # The quorum's epoch is below that of the records: it is another quorum.
            self._start_over()
            self._quorum_epoch = 0
        return Result(Outcome.NEXT_CONTROLLER, _REASONS.get(error_code, f"gave error {error_code}"))

    def _begin_at(self, snapshot: SnapshotId) -> Result:
        """The log begins above the position: it reads from a snapshot."""
        if not self._scans:
            # The log moved on while nothing was read.
            self._start_over()
        if snapshot.end_offset <= self._offset:
            return Result(Outcome.NEXT_CONTROLLER, "offers a snapshot below the position")
        self._snapshot, (self._offset, self._last_epoch) = snapshot, snapshot
        return _AGAIN

    def _apply(self, answer: Fetched, high_watermark: int) -> bool:
        """Applies the committed batches. Whether there was one."""
        try:
            batches, _ = read_batches(answer.records, check_crc=False)
        except DamageError as error:
            batches = error.batches
            if not batches:
                raise
        moved = False
        for batch in batches:
            if batch.last_offset >= high_watermark:
                break
            if batch.last_offset < self._offset:
                continue
            if batch.leader_epoch < 0:
                raise WireError(f"the batch at offset {batch.base_offset} has no leader epoch")
            if self._scans:
                self._note_deleted(batch)
            else:
                self._report(batch)
            self._offset, self._last_epoch = batch.last_offset + 1, batch.leader_epoch
            moved = True
        return moved

    def _note_deleted(self, batch: Batch) -> None:
        for raw in () if batch.is_control else batch.records:
            if record_key(raw.value) == REMOVE_TOPIC:
                record = decode_record(raw.value)
                if isinstance(record, RemoveTopicRecord):
                    self._deleted.add(record.topic_id)
        if len(self._deleted) > MAX_DELETED_TOPICS:
            raise WireError(f"more than {MAX_DELETED_TOPICS} deleted topics")

    def _report(self, batch: Batch) -> None:
        entries = decode_batch(batch)
        try:
            self._hand_over(self._fold.apply(entries, self._now()))
        except WireError:
            self._start_over()
            raise

    async def _begin_report(self, ask: Ask) -> Result:
        """The second time: from the snapshot, which it downloads, or from the first record."""
        if self._snapshot is None:
            self._scans, self._offset, self._last_epoch = False, 0, 0
            return _AGAIN
        downloaded = SnapshotReader(self._watched)
        size = None
        while size is None or downloaded.position < size:
            request = fetch_snapshot_request(
                self._quorum_epoch, self._snapshot, downloaded.position
            )
            answer = decode_fetch_snapshot(await ask(request))
            if answer.error_code:
                self._start_over()
                return self._failed(answer.error_code, answer.leader_epoch)
            is_next = answer.position == downloaded.position and size in (None, answer.size)
            if not is_next or not answer.chunk or answer.size > MAX_SNAPSHOT_BYTES:
                raise WireError(f"FetchSnapshot answered another part of {self._snapshot}")
            size = answer.size
            downloaded.add(answer.chunk)
        whole, snapshot = downloaded.close(), self._snapshot
        self._scans, (self._offset, self._last_epoch) = False, snapshot
        self._hand_over(self._fold.replace(whole, snapshot.end_offset, self._now()))
        return _AGAIN

    def _become_live(self) -> None:
        """Reports the brokers as they are now, and partitions that are gone without a record."""
        self.is_live, at = True, self._now()
        image = self._fold.image
        gone = self._last_image.topics.keys() - image.topics.keys() - self._deleted
        if not image.is_known("partitions"):
            gone = set()
        self._hand_over(
            PartitionDeleted(topic=topic.name, partition=number, observed_at=at, topic_id=topic_id)
            for topic_id in gone
            for topic in (self._last_image.topics[topic_id],)
            for number in topic.partitions
        )
        if image.is_known("brokers"):
            self._hand_over(broker_event(broker, at) for broker in image.brokers.values())
        self._last_image, self._deleted = Image(self._watched), set()

    def _hand_over(self, changes: Iterable[Change]) -> None:
        ready: list[Change] = []
        for change in changes:
            if self.is_live or self._is_news(change):
                ready.append(change)
            if len(ready) >= _EMIT_AT:
                self._emit(ready)
                ready = []
        if ready:
            self._emit(ready)

    def _is_news(self, change: Change) -> bool:
        """Before it is live: the past of brokers and of deleted topics is none."""
        if isinstance(change, BrokerState):
            return False
        return not (isinstance(change, MetadataChange) and change.topic_id in self._deleted)


_REASONS: Final = {
    NOT_LEADER: "is not the active controller",
    UNKNOWN_LEADER_EPOCH: "is behind the other controllers",
    OFFSET_OUT_OF_RANGE: "has a log that ends below the records read before",
    CLUSTER_AUTHORIZATION_FAILED: (
        "denies ClusterAction on the cluster; grant it to the collector's user "
        "(docs/permissions.md of `tidemark assets` says what it allows)"
    ),
    UNKNOWN_TOPIC_OR_PARTITION: "is not a controller's listener",
    UNKNOWN_TOPIC_ID: "is a broker's listener; give that of the controllers",
}
