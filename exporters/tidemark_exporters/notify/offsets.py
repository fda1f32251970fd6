"""How far one receiver is in the alerts topic, and where that is kept.

The committed offset is that of the oldest record that is not settled. Settled records beyond it
(gathering and urgency post out of order) are listed in the commit's metadata, so that a restart
does not post them again.
"""

from __future__ import annotations

import base64
import re
import zlib
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Annotated, Any, Final, NamedTuple, Protocol

from kafka import OffsetAndMetadata, TopicPartition
from kafka import errors as kafka_errors
from msgspec import DecodeError, Meta, Struct, json, structs

from tidemark.core.errors import ClusterError
from tidemark.core.records import Alert
from tidemark.kafka.client import make_consumer, reason_of
from tidemark.settings import Connection

# Kafka refuses commit metadata over offset.metadata.max.bytes, 4,096 by default.
MAX_METADATA_BYTES: Final = 4000
MAX_OWN: Final = 32
COMMIT_MS: Final = 3000
LOAD_MS: Final = 15_000

# (partition, offset) of a record.
Position = tuple[int, int]
# Records beyond this many are left out.
MAX_RECORDS: Final = 1_000_000
# Offsets [from, to).
Range = tuple[int, int]


class KnownState(NamedTuple):
    """The state of an alert, and when it started."""

    state: str
    starts_at: float


class Metadata(Struct, omit_defaults=True):
    """What is stored beside a committed offset.

    `done`: ranges [from, to) of settled offsets beyond it, or `packed` where they are many. `own`:
    the last state of alerts that have no record in the topic, by fingerprint. `topic_id`: of the
    topic that has these offsets, where it has an id.
    """

    done: Annotated[list[Range], Meta(max_length=2000)] = []
    packed: str = ""
    own: Annotated[dict[str, KnownState], Meta(max_length=MAX_OWN)] = {}
    topic_id: str | None = None


class Commit(Struct, frozen=True):
    """What is committed for one partition."""

    offset: int
    metadata: str = ""


def read_metadata(text: str | None) -> Metadata:
    """Empty where it cannot be read (another program's, cut off): records may be posted again."""
    try:
        return json.decode(text or "{}", type=Metadata)
    except DecodeError:
        return Metadata()


def settled_ranges(metadata: Metadata, offset: int) -> list[Range]:
    """In order. `offset` is the committed one; `packed` that cannot be read has none."""
    with suppress(ValueError):
        return sorted([*metadata.done, *unpack(metadata.packed, offset)])
    return sorted(metadata.done)


class _Partition:
    def __init__(self, committed: int | None = None, done: Iterable[Range] = ()) -> None:
        self.committed = committed
        self.done = list(done)
        # The offset after the newest record read that no earlier run settled.
        self.end = committed or 0
        self.pending: set[int] = set()

    def progress(self) -> tuple[int, list[Range]]:
        """The offset to commit, and the ranges of settled offsets beyond it.

        What is read and not pending is settled, and so are later ranges of an earlier run.
        """
        edges = [*sorted(self.pending), self.end]
        ranges = [(left + 1, right) for left, right in pairwise(edges) if left + 1 < right]
        ranges += [(start, end) for start, end in self.done if start >= self.end]
        offset = next((end for start, end in ranges if start == edges[0]), edges[0])
        return offset, [(start, end) for start, end in ranges if start > offset]


class Offsets:
    """Settled and pending offsets by partition. Bounded by what is pending: the alerts that wait.

    `commits` are those of an earlier run, `partitions` all of the topic. `fresh` is true where no
    earlier run has committed.
    """

    def __init__(
        self,
        commits: dict[int, Commit],
        partitions: Iterable[int] = (),
        topic_id: str | None = None,
    ) -> None:
        self._partitions = {number: _Partition() for number in partitions}
        self._topic_id = topic_id
        # Records of a deleted topic that were pending: a new one has the same offsets.
        self._deleted: Counter[Position] = Counter()
        self.fresh = not commits
        self.own: OrderedDict[str, KnownState] = OrderedDict()
        for number, each in commits.items():
            metadata = read_metadata(each.metadata)
            self._partitions[number] = _Partition(
                each.offset, settled_ranges(metadata, each.offset)
            )
            self.own.update(metadata.own)

    def begin_again(self, topic_id: str | None) -> None:
        """There is a new topic under the name: its offsets begin at 0, and none is settled."""
        self._topic_id = topic_id
        for number, partition in self._partitions.items():
            self._deleted.update((number, offset) for offset in partition.pending)
            self._partitions[number] = _Partition()

    def settled_before(self, position: Position) -> bool:
        """Whether an earlier run settled this record."""
        number, offset = position
        known = self._partitions.get(number)
        if known is None or known.committed is None:
            return False
        before = bisect_right(known.done, offset, key=lambda each: each[0])
        return offset < known.committed or (before > 0 and offset < known.done[before - 1][1])

    def begin(self, position: Position) -> None:
        """A record was read; it is pending until `settle`."""
        number, offset = position
        partition = self._partitions.setdefault(number, _Partition())
        partition.end = max(partition.end, offset + 1)
        partition.pending.add(offset)

    def settle(self, position: Position | None) -> None:
        """A record was delivered, or needs no delivery."""
        if position is not None and self._deleted[position] > 0:
            self._deleted[position] -= 1
        elif position is not None:
            partition, offset = position
            self._partitions[partition].pending.discard(offset)

    def remember(self, alert: Alert) -> None:
        """Keeps the state of an alert that has no record in the topic."""
        self.own.pop(alert.fingerprint, None)
        self.own[alert.fingerprint] = KnownState(alert.state, alert.starts_at)
        if len(self.own) > MAX_OWN:
            self.own.popitem(last=False)

    def replace(self, alert: Alert) -> None:
        """A new record says as much as what is kept of its alert."""
        known = self.own.get(alert.fingerprint)
        newer = known is not None and alert.starts_at >= known.starts_at
        if alert.state == "resolved" or (alert.state == "firing" and newer):
            self.own.pop(alert.fingerprint, None)

    def commits(self) -> dict[int, Commit]:
        """What to commit now. `own` is stored with the lowest partition."""
        result: dict[int, Commit] = {}
        for number in sorted(self._partitions):
            offset, done = self._partitions[number].progress()
            own = {} if result else dict(self.own)
            metadata = Metadata(done, own=own, topic_id=self._topic_id)
            result[number] = Commit(offset, _encode(metadata, offset))
        return result


def _encode(metadata: Metadata, offset: int) -> str:
    """JSON that fits. The records of ranges left out are posted again after a restart."""
    done = metadata.done
    while len(text := json.encode(metadata).decode()) > MAX_METADATA_BYTES:
        if metadata.packed:
            done = done[: len(done) // 2]
        metadata = structs.replace(metadata, done=[], packed=pack(done, offset))
    return "" if text == "{}" else text


class OffsetStore(Protocol):
    """Where a receiver's commits survive the process."""

    def load(self) -> dict[int, Commit]:
        """By partition, without those that were never committed."""

    def save(self, commits: dict[int, Commit]) -> bool:
        """False when it could not."""

    def close(self) -> None:
        """The store is not used any more."""


class KafkaOffsets:
    """An OffsetStore in a consumer group of the receiver's own, `<prefix>.notify.<receiver>`.

    The group has no members: the exporter reads the topic without it and only commits to it, so
    that a restart after `kill -9` waits for no session to time out. Used by one thread at a time.
    """

    def __init__(
        self, connection: Connection, topic: str, group: str, partitions: Iterable[int]
    ) -> None:
        self._group = group
        self._partitions = {number: TopicPartition(topic, number) for number in partitions}
        self._consumer: Any = make_consumer(connection, group_id=group, enable_auto_commit=False)
        self._consumer.assign(list(self._partitions.values()))

    def load(self) -> dict[int, Commit]:
        """Raises ClusterError."""
        commits = {}
        for number, partition in self._partitions.items():
            try:
                found = self._consumer.committed(partition, metadata=True, timeout_ms=LOAD_MS)
            except kafka_errors.KafkaError as error:
                raise ClusterError(
                    f"cannot read the offsets of group {self._group}: {reason_of(error)}. "
                    "Does the user have Read on the group?"
                ) from None
            if found is not None and found.offset >= 0:
                commits[number] = Commit(found.offset, found.metadata or "")
        return commits

    def save(self, commits: dict[int, Commit]) -> bool:
        """False when Kafka did not take it within COMMIT_MS."""
        offsets = {
            self._partitions[number]: OffsetAndMetadata(commit.offset, commit.metadata, -1)
            for number, commit in commits.items()
        }
        try:
            self._consumer.commit(offsets, timeout_ms=COMMIT_MS)
        except kafka_errors.KafkaError:
            return False
        return True

    def close(self) -> None:
        self._consumer.close(autocommit=False)


def pack(ranges: Sequence[Range], first: int) -> str:
    """`ranges` are in order, apart from each other, and from offset `first` on.

    A bit for each record, compressed (zlib) and in base 85, which JSON does not escape: records
    that settle in any order take about one bit each, long runs almost none.
    """
    text, offset = [], first
    for start, end in ranges:
        if end - first > MAX_RECORDS:
            break
        text += ["0" * (start - offset), "1" * (end - start)]
        offset = end
    # The leading 1 keeps the zeros after it.
    bits = int("1" + "".join(text), 2)
    data = bits.to_bytes((bits.bit_length() + 7) // 8)
    return base64.b85encode(zlib.compress(data, 9)).decode("ascii")


def unpack(text: str, first: int) -> list[Range]:
    """Raises ValueError: not what `pack` writes."""
    unzip = zlib.decompressobj()
    try:
        data = unzip.decompress(base64.b85decode(text), MAX_RECORDS // 8 + 1)
    except zlib.error:
        raise ValueError("not compressed") from None
    if not unzip.eof:
        raise ValueError("cut off, or of more than MAX_RECORDS")
    bits = f"{int.from_bytes(data):b}"[1:]
    return [(first + run.start(), first + run.end()) for run in re.finditer("1+", bits)]
