"""What the events and the probe's samples of a run show, read without the reducer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tidemark.core.codec import decode_batch
from tidemark.core.events import Observation
from tidemark_lab.brokers.cluster import Place


@dataclass
class Recording:
    """By partition. `sampled`: each high watermark that the collector read from a leader, and when.

    `log_starts`: the highest log start offset of any replica. `lineages`: the newest one that was
    read, (leader epoch, start offset) ascending.
    """

    sampled: dict[Place, list[tuple[float, int]]] = field(default_factory=dict)
    log_starts: dict[Place, int] = field(default_factory=dict)
    lineages: dict[Place, list[tuple[int, int]]] = field(default_factory=dict)

    def add(self, event: Observation) -> None:
        place = (event.topic, event.partition)
        if event.committed is not None:
            self.sampled.setdefault(place, []).append((event.observed_at, event.committed))
        start = max((sample.log_start_offset or 0 for sample in event.samples), default=0)
        self.log_starts[place] = max(self.log_starts.get(place, 0), start)
        if event.lineage:
            self.lineages[place] = [(epoch, offset) for epoch, offset in event.lineage]


def read_recording(events: Path) -> Recording:
    found = Recording()
    for line in events.read_bytes().splitlines():
        for event in decode_batch(line).events:
            if isinstance(event, Observation):
                found.add(event)
    return found


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
