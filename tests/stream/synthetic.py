"""Synthetic passes of a collector, and their rows by the reducer alone: the tests' oracle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from tests import version_1
from tidemark.core.codec import encode_batch
from tidemark.core.events import (
    MAX_EVENTS,
    OK,
    Batch,
    BrokerAnswer,
    Event,
    Observation,
    Pass,
    Replica,
)
from tidemark.core.identity import group_of
from tidemark.detect.default_thresholds import Detection
from tidemark.reduce.group import fold_group
from tidemark.reduce.rows import RawRecord, Row

CLUSTER = "synthetic"
COLLECTOR = "load"
COLLECTOR_EPOCH = 1
STARTED_AT = 1_800_000_000.0
BROKERS = (1, 2, 3)


class SyntheticPasses(NamedTuple):
    """A watched cluster: partitions of one topic, three replicas each."""

    partitions: int
    groups: int
    period_seconds: float = 1.0
    # Partitions divisible by this have no leader in passes 3 to 8 of 12: alerts fire and resolve.
    offline_every: int = 0
    # Of the events, by turns from pass to pass.
    versions: tuple[Literal[1, 2], ...] = (2,)

    def at(self, number: int) -> float:
        return STARTED_AT + number * self.period_seconds

    def observation(self, partition: int, number: int) -> Observation:
        leader = BROKERS[partition % 3]
        end = 1000 + 10 * number + partition
        at = self.at(number)
        cycle, step = divmod(number, 12)
        # Losing and electing a leader each start an epoch.
        epoch = (
            4 + 2 * cycle + (step >= 3) + (step > 8)
            if self.offline_every and partition % self.offline_every == 0
            else 4
        )
        if self.offline_every and partition % self.offline_every == 0 and 3 <= step <= 8:
            return Observation(
                topic="orders",
                partition=partition,
                observed_at=at,
                leader_epoch=epoch,
                leaderless=True,
                replicas=list(BROKERS),
                in_sync_replicas=[leader],
                metadata_from=[1, 2],
                metadata_at=at,
                samples=[Replica(broker=b, error="refused") for b in BROKERS],
            )
        samples = [
            Replica(
                broker=b,
                log_end_offset=end,
                high_watermark=end,
                log_start_offset=0,
                leader_epoch=epoch,
                leads=b == leader,
                requested_ms=1.0,
                answered_ms=2.0,
            )
            for b in BROKERS
        ]
        return Observation(
            topic="orders",
            partition=partition,
            observed_at=at,
            leader=leader,
            leader_epoch=epoch,
            replicas=list(BROKERS),
            in_sync_replicas=list(BROKERS),
            effective_min_in_sync_replicas=2,
            metadata_from=[1, 2],
            metadata_at=at,
            samples=samples,
            leader_log_end_offset_before=end,
            leader_log_end_offset_after=end,
            leader_before_at=at,
            leader_after_at=at,
            committed=end,
        )

    def records(self, number: int) -> Iterator[tuple[int, bytes]]:
        """(Kafka partition, value) of every record of a pass, packed as a collector does."""
        placed: dict[int, list[Event]] = defaultdict(list)
        for partition in range(self.partitions):
            placed[group_of(CLUSTER, "orders", partition, self.groups)].append(
                self.observation(partition, number)
            )
        end = Pass(
            number=number,
            started_at=self.at(number),
            ended_at=self.at(number) + 0.1,
            monotonic=number * self.period_seconds,
            period_ms=self.period_seconds * 1000,
            brokers=[BrokerAnswer(broker=b, outcome=OK) for b in BROKERS],
            partitions=self.partitions,
        )
        is_old = self.versions[number % len(self.versions)] == 1
        encode = version_1.encode_batch if is_old else encode_batch
        for group in range(self.groups):
            events: list[Event] = [*placed[group], end]
            for start in range(0, len(events), MAX_EVENTS):
                batch = Batch(
                    v=2,
                    cluster=CLUSTER,
                    collector=COLLECTOR,
                    collector_epoch=COLLECTOR_EPOCH,
                    pass_number=number,
                    events=events[start : start + MAX_EVENTS],
                )
                yield group, encode(batch)


def reduce_all(
    records: Iterable[RawRecord], groups: int, detection: Detection | None = None
) -> list[Row]:
    """Every row that the records give, each group folded at one go."""
    by_group: dict[int, list[RawRecord]] = defaultdict(list)
    for record in records:
        by_group[record.partition].append(record)
    return [
        row
        for group, found in sorted(by_group.items())
        for row in fold_group(None, found, detection or Detection(), group, groups)[1]
    ]
