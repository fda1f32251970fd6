"""What the samples of a run show of each partition, read without the product's reducer."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tidemark.core.codec import decode_batch
from tidemark.core.events import Batch, Observation, Pass
from tidemark.observations.recorded_lines import read_lines
from tidemark_lab.brokers.cluster import Place
from tidemark_lab.judge.proofs import Oracle


class Reading(NamedTuple):
    """A high watermark that a leader reported: read between two times."""

    since: float
    until: float
    committed: int
    leader_epoch: int | None


class LeaderRead(NamedTuple):
    """A pass in which the leader of an epoch answered; `has_lineage`: with its epochs."""

    at: float
    leader_epoch: int | None
    has_lineage: bool


class InSync(NamedTuple):
    """The leader and the in-sync set that a pass showed."""

    at: float
    leader: int | None
    members: tuple[int, ...]


@dataclass
class Samples:
    """Of one partition, oldest first. `log_starts`: (time, the highest one so far).

    `in_sync`: each change.
    """

    readings: list[Reading] = field(default_factory=list)
    leader_reads: list[LeaderRead] = field(default_factory=list)
    log_starts: list[tuple[float, int]] = field(default_factory=list)
    oracle: Oracle = field(default_factory=Oracle)
    topic_id: str | None = None
    in_sync: list[InSync] = field(default_factory=list)

    @property
    def log_start(self) -> int:
        return self.log_starts[-1][1] if self.log_starts else 0

    def add(self, shown: Observation, pass_started_at: float) -> None:
        self.topic_id = shown.topic_id or self.topic_id
        leader = next((s for s in shown.samples if s.broker == shown.leader), None)
        asked = (leader.requested_ms or 0.0) / 1000.0 if leader is not None else 0.0
        if shown.committed is not None:
            since = pass_started_at + asked
            self.readings.append(
                Reading(since, shown.observed_at, shown.committed, shown.leader_epoch)
            )
        if leader is not None and leader.leads and leader.leader_epoch == shown.leader_epoch:
            has_lineage = shown.lineage_complete_from is not None
            self.leader_reads.append(LeaderRead(shown.observed_at, shown.leader_epoch, has_lineage))
        if shown.in_sync_replicas is not None:
            newest = InSync(shown.observed_at, shown.leader, tuple(shown.in_sync_replicas))
            if not self.in_sync or self.in_sync[-1][1:] != newest[1:]:
                self.in_sync.append(newest)
        start = max((s.log_start_offset or 0 for s in shown.samples), default=0)
        if start > self.log_start:
            self.log_starts.append((shown.observed_at, start))
        self.oracle.observe(shown)


def read_samples(batches: Iterable[Batch], until: float = math.inf) -> dict[Place, Samples]:
    """By partition, of the passes before a time. The start of a pass is in the event at its end."""
    found: dict[Place, Samples] = defaultdict(Samples)
    pending: list[Observation] = []
    for batch in batches:
        for event in batch.events:
            if isinstance(event, Observation):
                pending.append(event)
            elif isinstance(event, Pass):
                for shown in pending if event.ended_at <= until else ():
                    found[shown.topic, shown.partition].add(shown, event.started_at)
                pending.clear()
    return found


def batches_of(recording: Path) -> Iterator[Batch]:
    return (decode_batch(line.data) for line in read_lines([str(recording)]))


def served_at(lines: Iterable[str]) -> list[float]:
    """When a leader of each newer epoch first answered the probe as such, Unix seconds.

    The probe's samples come from a thread for each broker: a line may be older than the one before.
    """
    first: dict[int, float] = {}
    for line in lines:
        sample = json.loads(line)
        epoch = sample["leader_epoch"]
        if sample["committed"] is not None and epoch is not None:
            first[epoch] = min(sample["at"], first.get(epoch, sample["at"]))
    return sorted(first.values())
