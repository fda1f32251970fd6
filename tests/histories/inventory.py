"""What a collector knows of the partition between passes: metadata of two brokers, merged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tests.histories.broker import Broker
from tests.histories.controller import Brokers, PartitionRecord
from tidemark.collect.watched.lineage_schedule import Lineage
from tidemark.core.events import MAX_FAST_SAMPLES, FastHighWatermarks, Observation

PASSES_AFTER_CHANGE = 4
OLDER_EPOCH_READS = 3


class Image(NamedTuple):
    """One broker's Metadata answer. `epoch` and `topic_id` are null before 2.1 and 2.8."""

    broker: int
    at: float
    exists: bool
    topic: int
    topic_id: str | None
    leader: int
    epoch: int
    replicas: Brokers
    in_sync: Brokers


class Eligible(NamedTuple):
    """One DescribeTopicPartitions answer, with the leader epoch and in-sync set that it shows."""

    eligible: Brokers
    last_known: Brokers
    epoch: int
    in_sync: Brokers


def read_image(broker: Broker, at: float) -> Image:
    view, mode = broker.view, broker.mode
    return Image(
        broker.number,
        at,
        view.exists,
        view.topic,
        topic_id(view) if mode.topic_ids else None,
        view.leader,
        view.leader_epoch if mode.fenced else -1,
        view.replicas,
        view.in_sync,
    )


def topic_id(record: PartitionRecord) -> str:
    return f"id{record.topic}"


@dataclass(slots=True)
class Watched:
    """tidemark.collect.watched.watched_partition, for one partition."""

    image: Image
    witnesses: list[int] = field(default_factory=list)
    leader: int | None = None
    epoch: int | None = None
    former_leader: int | None = None
    leaderless: bool = False
    eligible: Eligible | None = None
    adding: Brokers = ()
    removing: Brokers = ()
    # min.insync.replicas, once the configuration was read.
    configured_min: int | None = None
    reads_left: dict[int, int] = field(default_factory=dict)
    # Brokers whose lineage diverges or is impossible: read again in every pass.
    check: set[int] = field(default_factory=set)
    leader_lineage: Lineage = field(default_factory=lambda: Lineage([], None))
    log_ends: dict[int, int] = field(default_factory=dict)
    without_newest: dict[int, tuple[int, int]] = field(default_factory=dict)
    quiet: object = None
    due_at: float = 0.0
    older_epoch_reads: int = 0
    fast: FastHighWatermarks | None = None
    highest: int = -1

    def add_fast(self, at: float, offset: int) -> None:
        """Only what is higher than the pass and the samples before showed, of one epoch."""
        if offset <= self.highest or self.leader is None or self.epoch is None:
            return
        known, self.highest = self.fast, offset
        if known is None:
            known = self.fast = FastHighWatermarks(
                leader=self.leader, leader_epoch=self.epoch, samples=[]
            )
        if (known.leader, known.leader_epoch) == (self.leader, self.epoch):
            known.samples.append((at, offset))
            del known.samples[:-MAX_FAST_SAMPLES]

    def restart_lineages(self) -> None:
        self.reads_left = dict.fromkeys(self.image.replicas, PASSES_AFTER_CHANGE)

    def update(self, image: Image) -> bool:
        """Takes newer metadata. Returns whether the placement changed."""
        before, self.image = self.image, image
        if image.epoch != before.epoch:
            self.highest = -1
            self.check = set()
            self.restart_lineages()
        elif image.replicas != before.replicas:
            self.reads_left = {b: n for b, n in self.reads_left.items() if b in image.replicas}
        leader = image.leader if image.leader >= 0 else None
        if leader != self.leader and self.leader is not None:
            self.former_leader = self.leader
        self.leader, self.epoch = leader, image.epoch if image.epoch >= 0 else None
        return (image.leader, image.epoch, image.replicas) != (
            before.leader,
            before.epoch,
            before.replicas,
        )

    @property
    def min_in_sync(self) -> int | None:
        """Partition.effectiveMinIsr."""
        minimum, replicas = self.configured_min, len(self.image.replicas)
        return None if minimum is None or not replicas else max(1, min(minimum, replicas))

    def eligible_shown(self, *, unchecked: bool) -> Eligible | None:
        """Null unless it belongs to the metadata; version 2c8b888 merged it unchecked."""
        found = self.eligible
        if found is None or unchecked:
            return found
        same = found.epoch == self.image.epoch and set(found.in_sync) == set(self.image.in_sync)
        return found if same else None

    def record_reads(self, shown: Observation, *, leader_read: bool) -> None:
        """LineageSchedule.record."""
        answered = {s.broker: s for s in shown.samples if s.error is None}
        if leader_read or shown.leader is None:
            self.reads_left = {
                b: left - (b in answered)
                for b, left in self.reads_left.items()
                if left > 1 or b not in answered
            }
        if self.check and not self.reads_left:
            again = [b for b in shown.replicas if b in self.check or b == shown.leader]
            self.reads_left = dict.fromkeys(again, 1)


class Inventory:
    """Merges images, as the collector's inventory. `gone`: topic ids to report as deleted."""

    def __init__(self) -> None:
        self.watched: Watched | None = None
        self.gone: list[str | None] = []
        self.absent = False

    def apply(self, images: list[Image], only_current: int | None) -> bool:
        """Returns whether requests must be planned again."""
        self.absent = (
            self.watched is not None
            and not any(image.exists for image in images)
            and len({image.broker for image in images}) >= 2
        )
        current = [i for i in images if not self._is_behind(i, images)] or images
        reports = [image for image in current if image.exists]
        if not reports:
            return False
        watched = self.watched
        if watched is not None and watched.image.topic_id is not None:
            same = [i for i in reports if i.topic_id == watched.image.topic_id]
            if same:
                reports = same
            elif len(reports) < 2 or len({i.topic_id for i in reports}) > 1:
                return False
            else:
                self.gone.append(watched.image.topic_id)
                watched = None
        newest = max(reports, key=lambda i: (i.epoch, i.broker == i.leader, i.at))
        if watched is not None:
            older = newest.topic_id is None and newest.epoch < watched.image.epoch
            is_back = older and len({i.broker for i in reports}) >= 2
            watched.older_epoch_reads = watched.older_epoch_reads + 1 if is_back else 0
            if watched.older_epoch_reads >= OLDER_EPOCH_READS:
                self.gone.append(None)
                watched = None
        if watched is None:
            watched = self.watched = Watched(newest)
            watched.restart_lineages()
            watched.update(newest)
            replan = True
        elif newest.epoch < watched.image.epoch:
            return False
        else:
            replan = watched.update(newest)
        watched.witnesses = sorted({i.broker for i in reports if i[5:] == newest[5:]})
        leaderless = {i.broker for i in reports if i.leader < 0 and i.epoch == newest.epoch}
        watched.leaderless = len(leaderless) >= 2 or leaderless == {only_current}
        return replan

    def _is_behind(self, image: Image, images: list[Image]) -> bool:
        epochs = [
            other.epoch
            for other in images
            if other is not image and other.exists and other.topic_id == image.topic_id
        ]
        known = self.watched
        if known is not None and known.image.topic_id == image.topic_id:
            epochs.append(known.image.epoch)
        return image.exists and bool(epochs) and image.epoch < max(epochs)
